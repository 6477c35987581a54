"""SwiGLU in double precision: the oracle of this Task. It is never shown to a candidate's process."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(x: Any) -> tuple[Any, ...]:
    """The first half of each row times its logistic function, times the second half."""
    gate, up = np.split(x.astype(np.float64), 2, axis=-1)
    with np.errstate(over="ignore"):
        return (gate / (1.0 + np.exp(-gate)) * up,)
