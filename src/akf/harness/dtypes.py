"""Element types: how they lie in memory, and what they are to the oracle.

Invariants:
- A tensor in the arena is bytes of `store`; the oracle, the comparison and the draw see `decode(bytes)`.
- `bfloat16`, which numpy lacks, is carried as its 16 bits and widened to float32: exact. Rounding to it is to the
  nearest, ties to even.
- Nothing else is converted: for every other type `decode` and `encode` are the identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class DType:
    """One element type; `ordered` is the integer type of its bits, None for exact types."""

    name: str
    store: str
    ordered: Any = None
    lowest: int = 0

    @property
    def exact(self) -> bool:
        """Integers and truth values: any difference is an error."""
        return self.ordered is None


_ALL = (
    DType("float16", "float16", np.int16, -(1 << 15)),
    DType("bfloat16", "uint16", np.int16, -(1 << 15)),
    DType("float32", "float32", np.int32, -(1 << 31)),
    DType("float64", "float64", np.int64, -(1 << 63)),
    DType("int8", "int8"),
    DType("uint8", "uint8"),
    DType("int16", "int16"),
    DType("int32", "int32"),
    DType("int64", "int64"),
    DType("bool", "bool"),
)
DTYPES = {each.name: each for each in _ALL}


def decode(stored: Any, dtype: str) -> Any:
    """Stored elements as numbers; a view where the type needs no conversion."""
    if dtype != "bfloat16":
        return stored
    return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)


def encode(values: Any, dtype: str) -> Any:
    """Numbers as stored elements, rounded to the type."""
    if dtype != "bfloat16":
        return values.astype(DTYPES[dtype].store, copy=False)
    return _to_bfloat16(values)


def rounded(values: Any, dtype: str) -> Any:
    """Wide numbers rounded to a type, still as numbers."""
    return decode(encode(values, dtype), dtype)


def ordered(stored: Any, dtype: str) -> Any:
    """Floats as integers in the same order, so that neighbours differ by one."""
    kind = DTYPES[dtype]
    bits = np.ascontiguousarray(stored).view(kind.ordered).astype(np.int64)
    return np.where(bits < 0, np.int64(kind.lowest) - bits, bits)


def _to_bfloat16(values: Any) -> Any:
    """Nearest, ties to even, straight from float64: a detour over float32 would round twice."""
    wide = np.asarray(values, dtype=np.float64)
    with np.errstate(all="ignore"):
        single = wide.astype(np.float32)
        bits = single.view(np.uint32).copy()
        back = single.astype(np.float64)
        # float32's own rounding is undone towards zero, and its last bit set: "round to odd" keeps what decides a tie
        inexact = (back != wide) & np.isfinite(single)
        away = inexact & (np.abs(back) > np.abs(wide))
        bits[away] -= np.uint32(1)
        bits[inexact] |= np.uint32(1)
        overflow = np.isinf(single) & np.isfinite(wide)
        bits[overflow] = (bits[overflow] & np.uint32(0x80000000)) | np.uint32(0x7F7FFFFF)
        nearest = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
        nearest = np.where(np.isnan(single), (bits >> np.uint32(16)) | np.uint32(0x40), nearest)
    return nearest.astype(np.uint16)
