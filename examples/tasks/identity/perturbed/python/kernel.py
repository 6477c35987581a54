"""Deliberately wrong: the copy of the negative."""

from __future__ import annotations

import torch


def run(x: torch.Tensor) -> torch.Tensor:
    """Every sign is wrong."""
    return -x
