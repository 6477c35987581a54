"""Softmax over rows in double precision: the oracle of this Task. It is never shown to a candidate's process."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(x: Any) -> tuple[Any, ...]:
    """Powers of each row's distance from its maximum, divided by their sum."""
    wide = x.astype(np.float64)
    power = np.exp(wide - np.max(wide, axis=-1, keepdims=True))
    return (power / np.sum(power, axis=-1, keepdims=True),)
