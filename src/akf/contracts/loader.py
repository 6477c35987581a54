"""Strict JSON: what a file must be before anything looks at its meaning.

Invariants:
1. What is refused: an empty file, a byte order mark, bytes that are not UTF-8, a syntax error, data after the
   document, a key twice in one object (after escapes are decoded), NaN and Infinity, a number beyond
   ±(2^53-1) however it is written, a lone surrogate, nesting over `MAX_DEPTH`, a top level that is no object.
2. Every problem of a file is listed at once, with line, column and JSON pointer.
3. The fast path only ever says "valid" or "unsure"; the slow scanner decides what is unsure.

`-0` and `-0.0` are accepted and mean 0, which is how their canonical form is written; a number too small for
a double becomes 0.
"""

from __future__ import annotations

import re
from contextlib import suppress

from akf.contracts.document import Document
from akf.contracts.files import open_regular, read_input, too_large
from akf.contracts.limits import MAX_DEPTH, MAX_FILE_BYTES, MAX_SAFE_INTEGER
from akf.contracts.problems import InvalidError, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Document", "fast", "open_regular", "parse", "read_input", "shallow", "slow"]

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_BOM = b"\xef\xbb\xbf"


def parse(data: bytes, file: str) -> Document:
    """Parse the bytes of one file.

    Raises:
        InvalidError: With every problem of the file.
    """
    if len(data) > MAX_FILE_BYTES:
        raise too_large(file, len(data))
    value = fast(data)
    return Document(slow(data, file) if value is None else value, file, data)


def fast(data: bytes) -> dict[str, Any] | None:
    """Return the value of a valid document, or None when this path cannot tell."""
    import json  # noqa: PLC0415 - a third of orjson's start-up cost, for documents of kilobytes

    if b"\\u" in data and _SURROGATE.search(data):
        return None
    try:
        text = data.decode()
        value = json.JSONDecoder(
            object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
        ).decode(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not shallow(value, data):
        return None
    return value


def shallow(value: Any, data: bytes) -> bool:
    """Say whether containers nest at most `MAX_DEPTH` deep; `data` is the text of `value`."""
    if data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
        return True
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for container in level
            for item in (container.values() if type(container) is dict else container)
            if type(item) is dict or type(item) is list
        ]
        if not level:
            return True
    return False


def slow(data: bytes, file: str) -> dict[str, Any]:
    """Return the value, or raise with everything that is wrong."""
    from akf.contracts.scanner import Scanner, Stop  # noqa: PLC0415 - only on trouble

    problems: list[Problem] = []
    if data.startswith(_BOM):
        hint = "save the file as UTF-8 without a byte order mark"
        text = "the file starts with a byte order mark"
        problems.append(Problem("AKF-S002", text, file, "", 1, 1, hint=hint))
        data = data[len(_BOM) :]
    try:
        scanner = Scanner(data.decode(), file)
    except UnicodeDecodeError as error:
        problems.append(_not_utf8(data, error.start, file))
        raise InvalidError(problems) from None
    value = None
    with suppress(Stop):
        value = scanner.scan()
    problems += scanner.problems
    if problems:
        raise InvalidError(problems)
    assert isinstance(value, dict)  # noqa: S101 - scan() reports every other type
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError
    return value


def _integer(digits: str) -> int:
    value = int(digits)
    if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        raise ValueError
    return value


def _float(digits: str) -> float:
    value = float(digits)
    if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        raise ValueError
    return value


def _constant(_: str) -> None:
    raise ValueError


def _not_utf8(data: bytes, at: int, file: str) -> Problem:
    before = data[:at].decode()
    line = before.count("\n") + 1
    column = len(before) - before.rfind("\n")
    looks_wide = data[:2] in {b"\xff\xfe", b"\xfe\xff"} or b"\x00" in data[:4]
    hint = "the file looks like UTF-16: save it as UTF-8" if looks_wide else "save the file as UTF-8"
    found = f"0x{data[at]:02x}"
    return Problem("AKF-S003", f"byte {found} is not valid UTF-8 here", file, None, line, column, "UTF-8", found, hint)
