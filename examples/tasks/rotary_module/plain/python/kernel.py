"""The rotary embedding in plain torch."""

from __future__ import annotations

import torch


def run(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Each pair of elements, half a head apart, turned by the angle of its token and place."""
    first, second = x.chunk(2, dim=-1)
    across, along = cosine[:, None, :], sine[:, None, :]
    return torch.cat([first * across - second * along, second * across + first * along], dim=-1)
