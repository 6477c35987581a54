"""Row means in double precision: the oracle of this Task. It is never shown to a candidate's process."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(x: Any) -> tuple[Any, ...]:
    """The mean of each row, in every column."""
    means = x.astype(np.float64).mean(axis=1, keepdims=True)
    return (np.repeat(means, x.shape[1], axis=1),)
