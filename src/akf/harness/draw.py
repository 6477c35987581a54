"""Hidden inputs: drawn after the candidate is sealed, from a seed that only this process has.

Invariants:
- One counter-based stream per seed and label; the same seed gives the same bytes on any machine's numpy.
- A tensor is drawn as it is stored; `numbers` gives its shape, its strides and its values.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from .dtypes import DTYPES, decode, encode
from .request import Operand


def stream(seed: bytes, label: str) -> Any:
    """An independent generator per label."""
    key = hashlib.sha256(seed + b"\0" + label.encode()).digest()
    return np.random.Generator(np.random.Philox(key=np.frombuffer(key[:16], dtype=np.uint64)))


def draw(operand: Operand, generator: Any, count: int) -> Any:
    """`count` tensors of an operand as they are stored, one a line, what lies between rows included."""
    shape = (count, operand.span)
    kind = operand.distribution["kind"]
    scale = float(operand.distribution.get("scale", 1.0))
    stored: Any
    if DTYPES[operand.dtype].exact:
        low, high = limits(operand)
        whole = generator.integers(low, high, size=shape, dtype="int64")
        stored = (np.zeros(shape, dtype="int64") if kind == "zeros" else whole).astype(DTYPES[operand.dtype].store)
    elif kind == "zeros":
        stored = encode(np.zeros(shape, dtype=np.float32), operand.dtype)
    elif kind == "constant":
        stored = encode(np.full(shape, float(operand.distribution.get("value", scale))), operand.dtype)
    else:
        stored = encode(_floats(operand.distribution, kind, generator, shape), operand.dtype)
    live = operand.distribution.get("live_rows")
    if live is not None and not operand.strides and operand.shape:
        stored.reshape(count, operand.shape[0], -1)[:, int(live) :] = 0
    return stored


def limits(operand: Operand) -> tuple[int, int]:
    """Least value of an exact operand, and the one after its greatest."""
    default = 2 if operand.dtype == "bool" else 127
    return int(operand.distribution.get("low", 0)), int(operand.distribution.get("high", default))


def _floats(form: dict[str, Any], kind: str, generator: Any, shape: tuple[int, ...]) -> Any:
    if kind == "uniform":
        least = float(form.get("low", -1.0))
        width = float(form.get("high", 1.0)) - least
        return generator.random(size=shape, dtype=np.float32) * np.float32(width) + np.float32(least)
    values = generator.standard_normal(size=shape, dtype=np.float32)
    values *= np.float32(form.get("scale", 1.0))
    if kind == "mixed":
        values *= np.exp2(generator.integers(-8, 9, size=shape)).astype(np.float32)
    return values


def changed(operand: Operand, stored: Any, generator: Any) -> Any:
    """Other elements, inside the operand's distribution where it has ends, else beyond the old value's size."""
    form = operand.distribution
    if DTYPES[operand.dtype].exact:
        low, high = limits(operand)
        steps = generator.integers(1, max(2, high - low), size=stored.shape)
        moved = low + (stored.astype(np.int64) - low + steps) % max(1, high - low)
        return moved.astype(DTYPES[operand.dtype].store)
    values = decode(stored, operand.dtype)
    if form["kind"] == "uniform":
        least, most = float(form.get("low", -1.0)), float(form.get("high", 1.0))
        half = (most - least) / 2
        return encode(np.where(values < least + half, values + half, values - half), operand.dtype)
    more = float(form.get("scale", 1.0)) * (1.0 + generator.random(size=values.shape))
    return encode(-2.0 * values - more, operand.dtype)


def numbers(operand: Operand, stored: Any) -> Any:
    """One stored tensor as the numbers that it stands for, in its shape; a view where nothing is converted."""
    return decode(in_shape(operand, stored), operand.dtype)


def in_shape(operand: Operand, stored: Any) -> Any:
    """One stored tensor in its shape."""
    flat = stored.reshape(-1)
    if not operand.strides:
        return flat.reshape(operand.shape)
    steps = tuple(step * flat.itemsize for step in operand.steps)
    return np.lib.stride_tricks.as_strided(flat, operand.shape, steps)
