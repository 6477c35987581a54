"""Deliberately wrong: the mean over all but the last column."""

from __future__ import annotations

import torch


def run(x: torch.Tensor) -> torch.Tensor:
    """The last column does not count."""
    return x[:, :-1].mean(1, keepdim=True).expand(x.shape).contiguous()
