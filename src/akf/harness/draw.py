"""Hidden inputs: drawn after the candidate is sealed, from a seed that only this process has.

Invariants:
- One counter-based stream per seed and label; the same seed gives the same bytes on any machine's numpy.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from .request import Operand


def stream(seed: bytes, label: str) -> Any:
    """An independent generator per label."""
    key = hashlib.sha256(seed + b"\0" + label.encode()).digest()
    return np.random.Generator(np.random.Philox(key=np.frombuffer(key[:16], dtype=np.uint64)))


def draw(operand: Operand, generator: Any, count: int) -> Any:
    """`count` tensors of an operand, shape (count, *shape)."""
    shape: tuple[int, ...] = (count, *operand.shape)
    kind = operand.distribution["kind"]
    scale = float(operand.distribution.get("scale", 1.0))
    if operand.dtype.startswith("int"):
        low, high = int(operand.distribution.get("low", 0)), int(operand.distribution.get("high", 127))
        return generator.integers(low, high, size=shape, dtype=operand.dtype)
    if kind == "zeros":
        return np.zeros(shape, dtype=operand.dtype)
    if kind == "constant":
        return np.full(shape, float(operand.distribution.get("value", scale)), dtype=operand.dtype)
    if kind == "uniform":
        least = float(operand.distribution.get("low", -1.0))
        width = float(operand.distribution.get("high", 1.0)) - least
        values = generator.random(size=shape, dtype=np.float32) * np.float32(width) + np.float32(least)
    else:
        values = generator.standard_normal(size=shape, dtype=np.float32)
        values *= np.float32(scale)
    if kind == "mixed":
        values *= np.exp2(generator.integers(-8, 9, size=shape)).astype(np.float32)
    return values.astype(operand.dtype, copy=False)
