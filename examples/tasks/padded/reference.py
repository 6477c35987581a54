"""A linear layer with ReLU in double precision: the oracle of this Task. It is never shown to a candidate's process."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(x: Any, w: Any, b: Any) -> tuple[Any, ...]:
    """What is positive of the product plus the bias."""
    return (np.maximum(x.astype(np.float64) @ w.astype(np.float64) + b.astype(np.float64), 0.0),)
