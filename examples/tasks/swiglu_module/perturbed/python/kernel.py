"""Deliberately wrong: the gate takes the place of the other half."""

from __future__ import annotations

import torch


def run(x: torch.Tensor) -> torch.Tensor:
    """The gate is multiplied with itself."""
    gate, _ = x.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * gate
