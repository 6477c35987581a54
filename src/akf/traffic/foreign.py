"""JSON that another tool wrote: read strictly, located exactly, numbers kept as decimal text says.

Invariants:
1. A file may hold several documents one after another (an appended result, one document a line); each stays apart.
2. What `akf.contracts.loader` refuses is refused here with the same codes, line and column: a byte order mark, bytes
   that are not UTF-8, a key twice, NaN, a syntax error or an end too early, nesting over `MAX_DEPTH`.
3. `Infinity` is read and remembered (`infinite`): one tool documents it for one key, and its reader says so.
4. A number is an int or a Decimal, exact; no binary float is made of it.
5. Never more than `MAX_BYTES` of a file are read.
"""

from __future__ import annotations

import json
import os
import re
from decimal import Decimal

from akf.contracts.digests import digest
from akf.contracts.files import open_regular, refusal
from akf.contracts.limits import MAX_DEPTH
from akf.contracts.loader import shallow, slow
from akf.contracts.places import Lines, Place, find
from akf.contracts.pointer import parts, pointer_to
from akf.contracts.problems import InvalidError, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any

MAX_BYTES = 128 * 1024 * 1024
"""Of one file: 5,000 requests of 1,000 tokens in the detailed layouts."""

_LONGEST_NUMBER = 400
_SPACE = re.compile(r"[ \t\n\r]*+")
_SCANNER_ONLY = {"AKF-S005", "AKF-S012"}  # several documents, and any top level, are fine here
_LARGE = {"AKF-S008", "AKF-S009"}  # foreign numbers may be large (an epoch in nanoseconds)


class Foreign:
    """One document of a foreign file: its value, and where in the file its parts stand."""

    __slots__ = ("_end", "_start", "_text", "file", "infinite", "value")

    def __init__(self, value: Any, file: str, text: str, start: int, end: int, infinite: bool) -> None:
        self.value = value
        self.file = file
        self.infinite = infinite
        self._text = text
        self._start = start
        self._end = end

    def problem(self, code: str, message: str, path: Sequence[str | int] = (), **fields: Any) -> Problem:
        """Make a problem at the value that `path` leads to, or at the nearest container that is there."""
        pointer = pointer_to(path)
        root = place = Place()
        for token in parts(pointer):
            place = place.inside.setdefault(token, Place())
        find(self._text[self._start : self._end], root)
        place = root
        for token in parts(pointer):
            inner = place.inside[token]
            if inner.value < 0:
                break
            place = inner
        line, column = Lines(self._text).at(self._start + place.value)
        return Problem(code, message, self.file, pointer, line, column, **fields)


class File:
    """A foreign file that was read: its name as the user gave it, its bytes and their digest."""

    __slots__ = ("data", "digest", "name", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = os.fspath(path)
        self.data = read(path)
        self.digest = digest(self.data)


def read(path: Path) -> bytes:
    """Read a regular file of at most `MAX_BYTES` bytes.

    Raises:
        InvalidError: It is missing, no regular file, or too large.
        StorageError: The system refuses or fails.
    """
    name = os.fspath(path)
    descriptor = open_regular(name)
    try:
        with open(descriptor, "rb") as file:  # noqa: PTH123 - an open descriptor
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise refusal(name, error) from error
    if len(data) > MAX_BYTES:
        raise InvalidError.of(
            "AKF-F200",
            f"the file is larger than {MAX_BYTES} bytes",
            file=name,
            expected=MAX_BYTES,
            hint="run the benchmark in parts, or without its detail per request",
        )
    return data


def documents(data: bytes, file: str) -> list[Foreign]:
    """Return the JSON documents of a file, one after another.

    Raises:
        InvalidError: The first document that is malformed, with everything that is wrong with it.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        slow(data, file)
        raise
    if text.startswith("\ufeff"):
        slow(data, file)
    found: list[Foreign] = []
    infinite: list[str] = []
    decoder = json.JSONDecoder(
        object_pairs_hook=_object, parse_int=_integer, parse_float=Decimal, parse_constant=_constant(infinite)
    )
    at = _skip(text, 0)
    while at < len(text):
        infinite.clear()
        try:
            value, end = decoder.raw_decode(text, at)
            if not shallow(value if isinstance(value, dict | list) else [], data):
                raise ValueError  # noqa: TRY301 - explained below like every other fault
        except (ValueError, ArithmeticError, RecursionError):
            raise InvalidError(_explained(text, at, file)) from None
        found.append(Foreign(value, file, text, at, end, bool(infinite)))
        at = _skip(text, end)
    if not found:
        raise InvalidError.of("AKF-S001", "the file is empty", file=file, line=1, column=1)
    return found


def _explained(text: str, at: int, file: str) -> list[Problem]:
    """What is wrong with the document that starts at `at`, by the slow reader."""
    try:
        slow(text[at:].encode("utf-8", "surrogatepass"), file)
        problems: list[Problem] = []
    except InvalidError as error:
        problems = [p for p in error.problems if p.code not in _SCANNER_ONLY and not _documented(p)]
    real = [problem for problem in problems if problem.code not in _LARGE] or problems
    line, column = Lines(text).at(at)
    moved = [
        problem.replace(
            line=(problem.line or 1) + line - 1,
            column=(problem.column or 1) + (column - 1 if (problem.line or 1) == 1 else 0),
        )
        for problem in real
    ]
    nested = f"this document cannot be read; it may be nested more than {MAX_DEPTH} deep"
    return moved or [Problem("AKF-S004", nested, file, None, line, column)]


def _documented(problem: Problem) -> bool:
    return problem.code == "AKF-S007" and problem.found == "Infinity"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError
    return value


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError
    return int(digits)


def _constant(infinite: list[str]) -> Any:
    def constant(word: str) -> Decimal:
        if word != "Infinity":
            raise ValueError
        infinite.append(word)
        return Decimal(word)

    return constant


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()
