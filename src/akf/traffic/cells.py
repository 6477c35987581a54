"""The cells of a profiler's table: what one text may mean, decided slowly and exactly.

Invariants:
1. Three spellings of missing (`N/A`, `NA`, nothing) are one, and never a zero.
2. A moment and a span are decimal microseconds, become whole nanoseconds exactly, and carry no exponent: that is what
   a spreadsheet makes of them, with digits gone. A TAB behind them (which keeps spreadsheets away) is no part of them.
3. A pipe's time is computed by the profiler in floating point: there an exponent is only a way to write it.
4. A quoted cell ends at a comma or at the end of the line, and holds no line break.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal
from typing import Literal

from akf.contracts.text import show
from akf.traffic.exact import LATEST_NS, LONGEST_NS, nanoseconds

CellKind = Literal["text", "whole", "moment", "span", "pipe", "rest"]
MISSING = ("N/A", "NA", "")
LARGEST = 2**62
"""Of a count."""
LONGEST_LINE = 1024 * 1024

_CELL = re.compile(r'"((?:[^"]|"")*)"(?=,|$)|((?!")[^,]*)')
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_NUMBER = re.compile(r" *([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,2})?)", re.ASCII)
_EXACT = Context(prec=100)
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)


class CellError(ValueError):
    """A cell that its column cannot hold.

    Args:
        code: The code of the problem.
        message: What is wrong, to follow the name of the column.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def text_of(line: bytes) -> str:
    """The text of a line.

    Raises:
        CellError: It is none.
    """
    if len(line) > LONGEST_LINE:
        raise CellError("AKF-F120", f"the line is longer than {LONGEST_LINE} bytes")
    if b"\0" in line:
        raise CellError("AKF-F118", "the line holds a NUL")
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise CellError("AKF-F118", f"byte 0x{line[error.start]:02x} is not valid UTF-8 here") from None


def split(line: str) -> list[str]:
    """Cut a line into its cells.

    Raises:
        CellError: A quote opens a cell and nothing closes it.
    """
    if '"' not in line:
        return line.split(",")
    cells: list[str] = []
    at = 0
    while True:
        found = _CELL.match(line, at)
        if found is None:
            what = "goes on after its quote" if _QUOTED.match(line, at) else "is opened by a quote that nothing closes"
            raise CellError("AKF-F117", f"cell {len(cells) + 1} {what}")
        quoted = found.group(1)
        cells.append(found.group(2) if quoted is None else quoted.replace('""', '"'))
        at = found.end()
        if at == len(line):
            return cells
        at += 1  # the comma


def value(text: str, kind: CellKind, *, filled: bool = False) -> str | int | None:
    """What the text of a cell means in a column of this kind.

    Raises:
        CellError: The column cannot hold it.
    """
    if kind in {"moment", "span"}:
        text = text.rstrip("\t")
    if text in MISSING:
        if filled:
            raise CellError("AKF-F116", f"is {show(text)}, and this column must be filled")
        return None
    if kind == "rest":
        raise CellError("AKF-F113", f"is {show(text)} and belongs to no column")
    if kind == "text":
        return text
    if kind == "whole":
        if not _WHOLE.fullmatch(text) or not 0 <= int(text) <= LARGEST:
            raise CellError("AKF-F115", f"is {show(text)}, not a whole number")
        return int(text)
    return _time(text, kind)


def _time(text: str, kind: CellKind) -> int:
    found = _NUMBER.fullmatch(text) if kind == "pipe" else None
    if found is not None:
        time = int(_EXACT.multiply(Decimal(found.group(1)), 1000).to_integral_value())  # half to even
    else:
        try:
            time = nanoseconds(text)
        except ValueError as error:
            code = "AKF-F114" if "exponent" in str(error) else "AKF-F115"
            raise CellError(code, str(error)) from None
    if not 0 <= time <= (LATEST_NS if kind == "moment" else LONGEST_NS):
        raise CellError("AKF-F115", f"is {show(text)}, out of the range of times")
    return time
