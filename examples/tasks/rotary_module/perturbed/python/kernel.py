"""Deliberately wrong: the second half turns the other way."""

from __future__ import annotations

import torch


def run(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """The second half turns against the first."""
    first, second = x.chunk(2, dim=-1)
    across, along = cosine[:, None, :], sine[:, None, :]
    return torch.cat([first * across - second * along, second * across - first * along], dim=-1)
