"""A profiler's table: its columns, found by name in the header of a file.

Invariants:
1. A column is found by one of its spellings, wherever it stands; versions of a profiler rename columns and move them.
2. A column twice, also under two spellings, or a needed one that is missing is refused.
3. What nobody asks for is skipped and remembered, so that a renamed column does not vanish without a word.
4. One empty name at the end is no column: `msprof op` ends every line with a comma. Its cells must be empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from akf.contracts.problems import Problem
from akf.contracts.text import did_you_mean, show
from akf.traffic.cells import CellError, CellKind, split, text_of

MAX_COLUMNS = 512
REST = "rest"
_BOM = b"\xef\xbb\xbf"


class Column(NamedTuple):
    """A column to read.

    Attributes:
        name: What the frame calls it.
        spellings: What headers call it.
        kind: What its cells hold; times are microseconds in the file and integer nanoseconds in the frame.
        needed: The header must have it; a column that is not there is all missing in the frame.
        filled: Every row must have a value.
    """

    name: str
    spellings: tuple[str, ...]
    kind: CellKind = "text"
    needed: bool = False
    filled: bool = False


class Table(NamedTuple):
    """What a kind of file must hold.

    Attributes:
        name: What people call it.
        columns: Its columns.
        more: Finds further columns to read by a header's name, such as one counter each.
    """

    name: str
    columns: tuple[Column, ...]
    more: Callable[[str], Column | None] = lambda _: None


class Header(NamedTuple):
    """A table's columns in one file.

    Attributes:
        names: All names of the header.
        places: Where the columns stand.
        absent: Columns of the table that the file does not have.
        extra: Names of the further columns that `Table.more` found.
        unread: Names that nobody asked for.
    """

    names: tuple[str, ...]
    places: tuple[tuple[int, Column], ...]
    absent: tuple[Column, ...]
    extra: tuple[str, ...]
    unread: tuple[str, ...]


def read_header(line: bytes, table: Table, file: str) -> tuple[Header | None, list[Problem]]:
    """The columns of a file by its first line, and what is wrong with it; None when no row can be read."""
    problems = []
    hint = f"the first line must name the columns of {table.name}"
    if line.startswith(_BOM):
        again = "it passed through an editor: export it again"
        problems.append(Problem("AKF-F118", "the file starts with a byte order mark", file, line=1, hint=again))
    try:
        names = split(text_of(line.removeprefix(_BOM)))
    except CellError as bad:
        return None, [*problems, Problem(bad.code, f"in the header, {bad}", file, line=1, hint=hint)]
    if len(names) > MAX_COLUMNS:
        return None, [*problems, Problem("AKF-F111", f"the header has {len(names)} columns", file, line=1, hint=hint)]
    header, twice = _find(names, table)
    for name, other in twice:
        also = "" if other == name else f", also as {show(other)}"
        problems.append(Problem("AKF-F112", f"the column {show(name)} is there twice{also}", file, line=1))
    missing = [column for column in header.absent if column.needed]
    for column in missing:
        near = did_you_mean(column.spellings[0], header.unread)
        message = f"the column {' or '.join(map(show, column.spellings))} is missing"
        meant = f"did you mean {show(near)}?" if near else hint
        problems.append(Problem("AKF-F111", message, file, line=1, hint=meant))
    return (None if missing else header), problems


def _find(names: list[str], table: Table) -> tuple[Header, list[tuple[str, str]]]:
    wanted = {spelling: column for column in table.columns for spelling in column.spellings}
    places: list[tuple[int, Column]] = []
    taken: dict[str, str] = {}
    twice, extra, unread = [], [], []
    for at, name in enumerate(names):
        if not name and 0 < at == len(names) - 1:
            places.append((at, Column(REST, ("",), "rest")))
            continue
        column = wanted.get(name) or table.more(name)
        key = column.name if column else name
        if key in taken:
            twice.append((name, taken[key]))
            continue
        taken[key] = name
        if column is None:
            unread.append(name)
            continue
        places.append((at, column))
        if name not in wanted:
            extra.append(column.name)
    found = {column.name for _, column in places}
    absent = tuple(column for column in table.columns if column.name not in found)
    return Header(tuple(names), tuple(places), absent, tuple(extra), tuple(unread)), twice
