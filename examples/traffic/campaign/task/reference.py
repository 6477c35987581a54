"""Residual add and RMSNorm in double precision: the oracle of this Task. It is never shown to a candidate's process."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(x1: Any, x2: Any, gamma: Any, *, eps: float) -> tuple[Any, ...]:
    """Add the residual, scale each row by the reciprocal root of its mean square, then by gamma."""
    x = x1.astype(np.float64) + x2.astype(np.float64)
    rstd = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
    return x * rstd * gamma.astype(np.float64), rstd, x
