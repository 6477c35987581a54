"""Deliberately wrong: divided by the sum without the last element."""

from __future__ import annotations

import torch


def run(x: torch.Tensor) -> torch.Tensor:
    """The sum misses half of the row."""
    powers = torch.exp(x - x.amax(-1, keepdim=True))
    return powers / powers[:, : x.shape[1] // 2].sum(-1, keepdim=True)
