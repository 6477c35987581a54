"""Deliberately wrong: the bias comes after ReLU."""

from __future__ import annotations

import torch


def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The bias is added after what is negative was cut off."""
    return torch.relu(x @ w) + b
