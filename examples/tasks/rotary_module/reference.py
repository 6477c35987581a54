"""The rotary embedding in double precision: the oracle of this Task. It is never shown to a candidate's process."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(x: Any, cosine: Any, sine: Any) -> tuple[Any, ...]:
    """Each pair of elements, half a head apart, turned by the angle of its token and place."""
    first, second = np.split(x.astype(np.float64), 2, axis=-1)
    across, along = cosine.astype(np.float64)[:, None, :], sine.astype(np.float64)[:, None, :]
    return (np.concatenate([first * across - second * along, second * across + first * along], axis=-1),)
