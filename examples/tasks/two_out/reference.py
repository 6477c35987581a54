"""Both results in double precision: the oracle of this Task. It is never shown to a candidate's process."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(x: Any, w: Any, b: Any) -> tuple[Any, ...]:
    """What is positive of the product plus the bias, and the singular values of x from the largest on."""
    wide = x.astype(np.float64)
    out = np.maximum(wide @ w.astype(np.float64) + b.astype(np.float64), 0.0)
    return out, np.linalg.svd(wide, compute_uv=False)
