"""A shape with symbols against a shape that was seen.

Invariants:
1. A solution gives every symbol one size; put in, the sizes give the seen shape back, up to how it is grouped.
2. Grouping is all that may differ: neighbouring dimensions merged or split, ones in front (`[T, 32, 128]` is also
   `[T, 4096]`, `[1, T, 4096]` and `[T * 32, 128]`). Only a shape whose one symbol stands first is regrouped.
3. A weight, which has no symbol, may be seen transposed, and in the cube's fractal storage: `[a, b, p, q]` holds a
   matrix of `b * p` rows and `a * q` columns, padded to whole fractals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

Dimension: TypeAlias = "int | Mapping[str, Any]"
_FRACTAL = "FRACTAL_NZ"
_FRACTAL_RANK = 4


def solve(expected: Sequence[Dimension], seen: Sequence[int], *, grouped: bool = True) -> dict[str, int] | None:
    """Return the sizes of the expected shape's symbols that explain the seen one, or None.

    Args:
        expected: the shape with symbols.
        seen: the shape without.
        grouped: whether its dimensions may be grouped otherwise.
    """
    if any(size < 1 for size in seen):
        return None
    same = _each(expected, seen) if len(expected) == len(seen) else None
    return _regrouped(expected, seen) if same is None and grouped else same


def is_weight(expected: Sequence[int], seen: Sequence[int], layout: str | None) -> bool:
    """Say whether a matrix without symbols is seen here: as it is, transposed, or in fractal storage."""
    rows, columns = expected
    if layout == _FRACTAL and len(seen) == _FRACTAL_RANK:
        outer, inner, height, width = seen
        stored = (inner * height, outer * width)
        return any(stored == (_whole(a, height), _whole(b, width)) for a, b in ((rows, columns), (columns, rows)))
    return tuple(seen) in {(rows, columns), (columns, rows)}


def _each(expected: Sequence[Dimension], seen: Sequence[int]) -> dict[str, int] | None:
    found: dict[str, int] = {}
    for dimension, size in zip(expected, seen, strict=True):
        if isinstance(dimension, int):
            if dimension != size:
                return None
        elif found.setdefault(dimension["sym"], size) != size:
            return None
    return found


def _regrouped(expected: Sequence[Dimension], seen: Sequence[int]) -> dict[str, int] | None:
    symbol = None if not expected or isinstance(expected[0], int) else expected[0]["sym"]
    if not all(isinstance(size, int) for size in expected[symbol is not None :]):
        return None
    fixed = [size for size in expected if isinstance(size, int) and size > 1]
    left = [size for size in seen if size > 1]
    while fixed:
        wanted, found = fixed.pop(), left.pop() if left else 0
        while wanted != found:
            if found == 0:
                return None
            if found < wanted:
                found *= left.pop() if left else 0
            elif fixed:
                wanted *= fixed.pop()
            elif symbol is not None and found % wanted == 0:
                left.append(found // wanted)
                break
            else:
                return None
    rest = prod(left)
    if symbol is None:
        return {} if rest == 1 else None
    return {symbol: rest}


def _whole(size: int, block: int) -> int:
    return -(-size // block) * block
