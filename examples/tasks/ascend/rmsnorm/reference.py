"""RMSNorm in double precision: the oracle of this Task. It is never shown to a candidate's process."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(x: Any, weight: Any, *, eps: float) -> tuple[Any, ...]:
    """Scale each row of x by the reciprocal root of its mean square, then by weight."""
    wide = x.astype(np.float64)
    mean_square = np.mean(wide * wide, axis=-1, keepdims=True)
    return (wide / np.sqrt(mean_square + eps) * weight.astype(np.float64),)
