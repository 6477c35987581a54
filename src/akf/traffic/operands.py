"""The operands of a kernel, from the text that profilers print.

Invariants:
1. Operands are separated by `;`, sizes by `,`; a list of shapes may stand in quotes of its own. An empty shape is a
   scalar or an optional operand that is absent; it keeps its place.
2. Shapes, element types and formats of one kernel are lists of the same length, where they were recorded.
3. An element type that AKF knows gets AKF's name, whatever its prefix; any other keeps the profiler's.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from akf.contracts.limits import MAX_SAFE_INTEGER
from akf.contracts.text import printable, show

MAX_OPERANDS = 256
_LONGEST_WORD = 64
_SIZE = re.compile(r"-?\d{1,16}", re.ASCII)
_PREFIX = re.compile(r"^(?:DT|ACL)_", re.IGNORECASE)
_UNKNOWN = frozenset({"", "N/A", "NA", "UNDEFINED", "UNDEFINE"})
_DTYPES = {
    "BF16": "bfloat16", "BFLOAT16": "bfloat16", "FLOAT16": "float16", "HALF": "float16", "FLOAT": "float32",
    "FLOAT32": "float32", "DOUBLE": "float64", "FLOAT64": "float64", "FLOAT8_E4M3FN": "float8_e4m3",
    "FLOAT8_E5M2": "float8_e5m2", "INT64": "int64", "INT32": "int32", "INT16": "int16", "INT8": "int8", "INT4": "int4",
    "UINT8": "uint8", "BOOL": "bool",
}  # fmt: skip


class Operand(NamedTuple):
    """One operand; what was not recorded is None."""

    shape: tuple[int, ...] | None
    dtype: str | None
    layout: str | None


def operands(shapes: str | None, dtypes: str | None, formats: str | None) -> tuple[Operand, ...]:
    """The operands that three lists describe; none when nothing was recorded.

    Raises:
        ValueError: The lists contradict each other, or hold what is no size.
    """
    lists = [
        None if shapes is None else [_shape(text) for text in _listed(_unquoted(shapes))],
        None if dtypes is None else [_dtype(text) for text in _listed(_unquoted(dtypes))],
        None if formats is None else [_word(text) for text in _listed(_unquoted(formats))],
    ]
    counts = {len(found) for found in lists if found is not None}
    if not counts:
        return ()
    if len(counts) > 1:
        held = ", ".join(f"{len(found)} {name}" for found, name in zip(lists, _NAMES, strict=True) if found is not None)
        raise ValueError(f"the operands do not match: {held}")
    if max(counts) > MAX_OPERANDS:
        raise ValueError(f"more than {MAX_OPERANDS} operands")
    columns = [found if found is not None else [None] * max(counts) for found in lists]
    return tuple(Operand(*found) for found in zip(*columns, strict=True))


_NAMES = ("shapes", "element types", "formats")


def _listed(text: str) -> list[str]:
    return text.split(";")


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _shape(text: str) -> tuple[int, ...] | None:
    if not text.strip():
        return ()
    sizes = text.split(",")
    if not all(_SIZE.fullmatch(size.strip()) for size in sizes):
        raise ValueError(f"{show(text)} is no shape")
    found = tuple(int(size) for size in sizes)
    if max(found) > MAX_SAFE_INTEGER:
        raise ValueError(f"{show(text)} is no shape")
    return None if min(found) < 0 else found  # a size of -1 was not known yet when it was recorded


def _dtype(text: str) -> str | None:
    word = _PREFIX.sub("", text.strip()).upper()
    return None if word in _UNKNOWN else _DTYPES.get(word) or _word(text)


def _word(text: str) -> str | None:
    word = printable(text.strip())[:_LONGEST_WORD]
    return None if word.upper() in _UNKNOWN else word
