"""A matrix product in double precision: the oracle of this Task. It is never shown to a candidate's process."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(a: Any, b: Any) -> tuple[Any, ...]:
    """The product."""
    return (a.astype(np.float64) @ b.astype(np.float64),)
