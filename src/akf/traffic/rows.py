"""The rows of a table, a piece of whole lines at a time.

Invariants:
1. The fast way (polars) says "sure" or "unsure"; the slow way (`cells`) decides what is unsure, row by row, and names
   the line of whatever is wrong. Where both answer, they answer the same.
2. Every row is as wide as the header. The fast way sees it by a mark that it sets behind every line: in a row that
   lacks a cell, or has one too many, the mark is not where it belongs.
3. A frame holds the table's columns, the further ones, and `line`; what is missing is null.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from akf.contracts.problems import Problem
from akf.contracts.text import printable
from akf.traffic.cells import LARGEST, LONGEST_LINE, MISSING, CellError, CellKind, split, text_of, value
from akf.traffic.exact import LATEST_NS, LONGEST_NS
from akf.traffic.tables import REST, Column, Header

SPOILED = "AKF-F114"
"""A time with an exponent: the whole file passed through a spreadsheet, so one such problem says it all."""

_MARK = "\x1f"
_TIME = r"^[0-9]{1,19}(\.[0-9]{1,24})?\t*$"
_MOST = {"whole": LARGEST, "moment": LATEST_NS, "span": LONGEST_NS, "pipe": LONGEST_NS}
_READ_AS: dict[CellKind, Any] = {
    "text": pl.String,  # as Categorical, polars 1.44 takes `"a"b` for `a`
    "rest": pl.String,
    "whole": pl.Int64,
    "moment": pl.String,
    "span": pl.String,
    "pipe": pl.Decimal(38, 3),  # parsed to thousandths, half to even: nanoseconds
}
_HINTS = {
    "AKF-F113": "a row that lacks a cell shifts all that follow it: export the profile again",
    SPOILED: "the file passed through a spreadsheet: export the profile again, and leave it as it is",
    "AKF-F116": "export the profile again",
    "AKF-F117": "export the profile again",
}


def fast(rows: bytes, count: int, line: int, header: Header) -> pl.DataFrame | None:
    """So many rows as a frame, or None when this way cannot tell; `line` is the number of the first."""
    end = b"\r\n" if rows.endswith(b"\r\n") else b"\n"
    returns = rows.count(b"\r") if b"\r" in rows else 0
    if b"\0" in rows or _MARK.encode() in rows or returns != (0 if end == b"\n" else count):
        return None
    if _has_long_line(rows) or not _is_utf8(rows):
        return None
    names = [str(at) for at in range(len(header.names))]
    types: dict[str, Any] = dict.fromkeys(names, pl.String)
    types.update({names[at]: _READ_AS[column.kind] for at, column in header.places})
    types[_MARK] = pl.Categorical
    columns = [column for _, column in header.places]
    marked = rows.replace(end, f",{_MARK}\n".encode())
    try:
        read = pl.scan_csv(marked, has_header=False, schema=types, null_values=list(MISSING)).select(
            *(pl.col(names[at]).alias(column.name) for at, column in header.places), pl.col(_MARK)
        )
        frame = read.collect()
        if frame.height != count or frame[_MARK].null_count() or not (frame[_MARK] == _MARK).all():
            return None
        if not all(frame[c.name].str.contains(_TIME).all() for c in columns if c.kind in {"moment", "span"}):
            return None
        frame = frame.select(*(_converted(column) for column in columns))
    except pl.exceptions.PolarsError:
        return None
    return _whole(frame, header, line) if all(_sound(frame[column.name], column) for column in columns) else None


def slow(rows: bytes, line: int, header: Header, file: str, most: int) -> tuple[pl.DataFrame | None, list[Problem]]:
    """The rows as a frame, or None and at least `most` of the problems, if there are as many."""
    held: dict[str, list[str | int | None]] = {column.name: [] for _, column in header.places}
    problems: list[Problem] = []
    for at, raw in enumerate(rows.removesuffix(b"\n").split(b"\n"), line):
        if len(problems) >= most or (problems and problems[-1].code == SPOILED):
            break
        problems += (Problem(*found, file, line=at, hint=_HINTS.get(found[0])) for found in _row(raw, header, held))
    if problems:
        return None, problems
    series = [pl.Series(column.name, held[column.name], _type(column)) for _, column in header.places]
    return _whole(pl.DataFrame(series), header, line), []


def _row(raw: bytes, header: Header, held: dict[str, list[str | int | None]]) -> list[tuple[str, str]]:
    """Read one row into the columns; returns what is wrong with it."""
    try:
        cells = split(text_of(raw.removesuffix(b"\r")))
    except CellError as bad:
        return [(bad.code, str(bad))]
    if len(cells) != len(header.names):
        return [("AKF-F113", f"the row has {len(cells)} cells, the header {len(header.names)}")]
    wrong = []
    for place, column in header.places:
        try:
            held[column.name].append(value(cells[place], column.kind, filled=column.filled))
        except CellError as bad:
            wrong.append((bad.code, f"{printable(header.names[place]) or 'the last cell'} {bad}"))
    return wrong


def _type(column: Column) -> Any:
    return pl.Categorical if column.kind in {"text", "rest"} else pl.Int64


def _converted(column: Column) -> pl.Expr:
    held: pl.Expr = pl.col(column.name)
    if column.kind in {"text", "rest"}:
        held = held.cast(pl.Categorical)
    if column.kind in {"moment", "span"}:
        held = held.str.strip_chars_end("\t").cast(pl.Decimal(38, 3))
    if column.kind in {"moment", "span", "pipe"}:
        held = held.to_physical().cast(pl.Int64)
    return held


def _sound(held: pl.Series, column: Column) -> bool:
    """Whether the values are such as the slow way would take."""
    if column.kind == "rest":
        return held.null_count() == len(held)
    if column.filled and held.null_count():
        return False
    most = _MOST.get(column.kind)
    return most is None or held.null_count() == len(held) or bool(((held >= 0) & (held <= most)).all())


def _whole(frame: pl.DataFrame, header: Header, line: int) -> pl.DataFrame:
    absent = (pl.lit(None, _type(column)).alias(column.name) for column in header.absent)
    lines = pl.int_range(line, line + frame.height, dtype=pl.Int64)
    return frame.drop(REST, strict=False).with_columns(*absent, line=lines)


def _has_long_line(rows: bytes) -> bool:
    step = LONGEST_LINE // 2
    return any(rows.find(b"\n", at, at + step) < 0 for at in range(0, len(rows) - step, step))


def _is_utf8(rows: bytes) -> bool:
    if rows.isascii():
        return True
    try:
        rows.decode()
    except UnicodeDecodeError:
        return False
    return True
