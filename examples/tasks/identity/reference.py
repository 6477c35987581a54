"""A copy in double precision: the oracle of this Task. It is never shown to a candidate's process."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(x: Any) -> tuple[Any, ...]:
    """The input itself."""
    return (x.astype(np.float64),)
