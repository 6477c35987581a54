"""Strict JSON: what a file must be before anything looks at its meaning.

Invariants:
1. Only regular files are read, opened without waiting, never more than `MAX_FILE_BYTES` + 1 bytes of them.
2. What is refused: an empty file, a byte order mark, bytes that are not UTF-8, a syntax error, data after the
   document, a key twice in one object (after escapes are decoded), NaN and Infinity, a number beyond
   ±(2^53-1) however it is written, a lone surrogate, nesting over `MAX_DEPTH`, a top level that is no object.
3. Every problem of a file is listed at once, with line, column and JSON pointer.
4. The fast path only ever says "valid" or "unsure"; the slow scanner decides what is unsure.

`-0` and `-0.0` are accepted and mean 0, which is how their canonical form is written; a number too small for
a double becomes 0.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress

from akf.contracts.limits import MAX_DEPTH, MAX_FILE_BYTES, MAX_SAFE_INTEGER
from akf.contracts.problems import InvalidError, Problem, StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from akf.contracts.scanner import Lines, Place

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_BOM = b"\xef\xbb\xbf"
_SMALL = 256 * 1024
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}
_SENSELESS = {
    errno.ENOENT: ("AKF-F001", "the file does not exist"),
    errno.ENOTDIR: ("AKF-F001", "the file does not exist: a part of its path is not a directory"),
    errno.EISDIR: ("AKF-F002", "a directory stands where a file is expected"),
    errno.ENXIO: ("AKF-F002", "a socket or an absent device stands where a file is expected"),
    errno.ENODEV: ("AKF-F002", "an absent device stands where a file is expected"),
    errno.ELOOP: ("AKF-F003", "the path runs through a loop of symbolic links"),
    errno.ENAMETOOLONG: ("AKF-F007", "the path is too long for this system"),
}


class Document:
    """A parsed file: its value, its name in messages, and the bytes it came from."""

    __slots__ = ("_lines", "_places", "file", "source", "value")

    def __init__(self, value: dict[str, Any], file: str, source: bytes) -> None:
        self.value = value
        self.file = file
        self.source = source
        self._lines: Lines | None = None
        self._places: Place | None = None

    def __repr__(self) -> str:
        return f"Document({self.file!r}, {len(self.source)} bytes)"

    def locate(self, pointer: str, *, key: bool = False) -> tuple[int, int]:
        """Return line and column of the value at `pointer` (or of its key).

        What is not there is located at the nearest container that is.
        """
        self.prefetch((pointer,))
        assert self._lines is not None  # noqa: S101 - prefetch sets both
        assert self._places is not None  # noqa: S101
        place = self._places
        for token in _tokens(pointer):
            inner = place.inside.get(token)
            if inner is None or inner.value < 0:
                break
            place = inner
        return self._lines.at(place.key if key else place.value)

    def prefetch(self, pointers: Iterable[str]) -> None:
        """Find many places in one pass over the text; of a small document, all of them."""
        from akf.contracts.scanner import Place, Scanner, Stop  # noqa: PLC0415 - only on trouble

        small = len(self.source) <= _SMALL
        news = self._places is None
        if small and not news:
            return
        places = self._places = self._places or Place()
        for pointer in () if small else pointers:
            place = places
            for token in _tokens(pointer):
                news = news or token not in place.inside
                place = place.inside.setdefault(token, Place())
        if not news:
            return
        scanner = Scanner(self.source.decode(), self.file, places=places, everything=small)
        try:
            scanner.scan()
        except Stop as defect:  # pragma: no cover - the source was accepted before
            raise AssertionError(f"{self.file} was valid and is not any more") from defect
        self._lines = scanner.lines

    def problem(
        self,
        code: str,
        message: str,
        pointer: str = "",
        *,
        key: bool = False,
        expected: Any = None,
        found: Any = None,
        hint: str | None = None,
    ) -> Problem:
        """Make a problem at `pointer` in this file."""
        line, column = self.locate(pointer, key=key)
        return Problem(code, message, self.file, pointer, line, column, expected, found, hint)


def read_input(path: str | os.PathLike[str]) -> bytes:
    """Read a regular file of at most `MAX_FILE_BYTES` bytes.

    Raises:
        InvalidError: It is missing, not a regular file, too large, or the path makes no sense.
        StorageError: The system refuses or fails.
    """
    name = os.fspath(path)
    descriptor = open_regular(name)
    try:
        size = os.fstat(descriptor).st_size
        if size > MAX_FILE_BYTES:
            raise _too_large(name, size)
        parts: list[bytes] = []
        room = MAX_FILE_BYTES + 1
        while room and (part := os.read(descriptor, min(room, max(size + 1, 65_536)))):
            parts.append(part)
            room -= len(part)
    except OSError as error:
        raise refusal(name, error) from error
    finally:
        os.close(descriptor)
    if not room:
        raise _too_large(name, None)
    return b"".join(parts)


def open_regular(path: str | os.PathLike[str]) -> int:
    """Open a regular file for reading, without waiting for anybody, and return its descriptor."""
    name = os.fspath(path)
    try:
        _only_regular(name, os.stat(name).st_mode)  # noqa: PTH116 - no pathlib at start; opening a device can already do something
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        raise refusal(name, error) from error
    try:
        _only_regular(name, os.fstat(descriptor).st_mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def parse(data: bytes, file: str) -> Document:
    """Parse the bytes of one file.

    Raises:
        InvalidError: With every problem of the file.
    """
    if len(data) > MAX_FILE_BYTES:
        raise _too_large(file, len(data))
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


def _tokens(pointer: str) -> list[str]:
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _only_regular(name: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "not a regular file")
        raise InvalidError.of(
            "AKF-F002",
            f"{kind} stands where a file is expected",
            file=name,
            expected="a regular file",
            found=kind,
        )


def _too_large(name: str, size: int | None) -> InvalidError:
    return InvalidError.of(
        "AKF-F006",
        f"the file is larger than {MAX_FILE_BYTES} bytes",
        file=name,
        expected=MAX_FILE_BYTES,
        found=size,
        hint="raw samples belong into files of their own, named by digest",
    )


def refusal(name: str, error: OSError | ValueError) -> InvalidError | StorageError:
    """Return what an error of the system means for the file `name`."""
    if not isinstance(error, OSError):
        return InvalidError.of("AKF-F007", "the path cannot be used: it holds a NUL or cannot be encoded", file=name)
    if error.errno in _SENSELESS:
        code, message = _SENSELESS[error.errno]
        return InvalidError.of(code, message, file=name)
    if error.errno in {errno.EACCES, errno.EPERM}:
        return StorageError.of("AKF-F004", "the file may not be read", file=name, hint="check its permissions")
    return StorageError.of("AKF-F005", f"reading failed: {error.strerror or error.errno}", file=name)


def _not_utf8(data: bytes, at: int, file: str) -> Problem:
    before = data[:at].decode()
    line = before.count("\n") + 1
    column = len(before) - before.rfind("\n")
    looks_wide = data[:2] in {b"\xff\xfe", b"\xfe\xff"} or b"\x00" in data[:4]
    hint = "the file looks like UTF-16: save it as UTF-8" if looks_wide else "save the file as UTF-8"
    found = f"0x{data[at]:02x}"
    return Problem("AKF-S003", f"byte {found} is not valid UTF-8 here", file, None, line, column, "UTF-8", found, hint)
