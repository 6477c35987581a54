"""Deliberately wrong: the singular values of the transposed product."""

from __future__ import annotations

import torch


def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The bias comes after ReLU, and the singular values are squared."""
    return torch.relu(x @ w) + b, torch.linalg.svdvals(x) ** 2
