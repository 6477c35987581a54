"""A tar archive that a stranger sent, written out below a folder; and what a program left there, read back.

Invariants:
- Nothing is written outside the folder, and nothing over something else: plain files and folders only, no link, no
  device, no absolute name, no `..`, no name twice.
- The archive is read in one pass, by a reader of its own: its numbers are checked before they are used, and it never
  goes back.
- What it unpacks to is bounded in bytes, files and depth, and so is what a compressed one may expand to; the memory in
  which it is read does not grow with it.
- What is read back is read without following a link, from regular files with one name, within bounds.
"""

from __future__ import annotations

import bz2
import lzma
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from akf.contracts.text import show

_BLOCK = 512
_CHUNK = 1 << 16
_LZMA_MEMORY = 128 * 1024**2
_FILE, _FOLDER, _LONG_NAME, _PAX, _PAX_GLOBAL = (b"\0", b"0", b"7"), b"5", b"L", b"x", b"g"
_KINDS = {b"1": "a hard link", b"2": "a symbolic link", b"3": "a device", b"4": "a device", b"6": "a pipe"}
_KINDS |= {b"S": "a sparse file", b"K": "a link with a long name"}
_EXTENDED_BYTES = 1 << 20
_LONGEST_NAME = 1024
_LONGEST_PART = 255
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
ARTIFACTS = (".json", ".jsonl")


class Bounds(NamedTuple):
    """What an archive may unpack to."""

    total_bytes: int = 2 * 1024**3
    files: int = 10_000
    levels: int = 32


class ArtifactBounds(NamedTuple):
    """What is read back."""

    file_bytes: int = 8 * 1024**2
    total_bytes: int = 32 * 1024**2
    files: int = 1000
    levels: int = 32


class PackageError(ValueError):
    """An archive that is not unpacked; says why."""


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, /, max_length: int) -> bytes: ...


def unpack(source: IO[bytes], folder: Path, bounds: Bounds = Bounds()) -> int:  # noqa: B008 - a constant
    """Write an archive out; returns how many files it held.

    Args:
        source: the archive, plain or compressed by gzip, bzip2 or xz.
        folder: an existing folder.
        bounds: what it may unpack to.

    Raises:
        PackageError: it is broken, too big, or holds what is not taken. Something of it may be in the folder.
    """
    reader = _Reader(source, bounds.total_bytes + 4 * _BLOCK * bounds.files + 2 * _EXTENDED_BYTES)
    seen: dict[str, bool] = {}
    total = files = 0
    for member in _members(reader):
        parts = _parts(member.name, bounds.levels)
        total += member.size
        if total > bounds.total_bytes:
            raise PackageError(f"it unpacks to more than {bounds.total_bytes} bytes")
        if len(seen) + len(parts) > bounds.files:
            raise PackageError(f"it holds more than {bounds.files} files and folders")
        if member.folder:
            _make_folder(folder, parts, seen)
            for _ in reader.content(member.size):
                pass
            continue
        path = "/".join(parts)
        if not parts or path in seen:
            raise PackageError(f"{show(member.name)} is there twice" if parts else "a file has no name")
        _make_folder(folder, parts[:-1], seen)
        seen[path] = False
        _write(reader, folder / path, member)
        files += 1
    if not seen:
        raise PackageError("it holds nothing")
    return files


def artifacts(folder: Path, bounds: ArtifactBounds = ArtifactBounds()) -> tuple[dict[str, str], list[str]]:  # noqa: B008
    """The raw text of every `*.json` and `*.jsonl` below a folder, and the names of those that are left out."""
    found: dict[str, str] = {}
    left_out: list[str] = []
    total = 0
    for name, data in _regular(folder, bounds, left_out):
        total += len(data)
        if total > bounds.total_bytes or len(found) >= bounds.files:
            left_out.append(name)
            continue
        with suppress(UnicodeDecodeError):
            found[name] = data.decode("utf-8")
    return found, left_out


def read_regular(folder: Path, name: str, most: int) -> bytes | None:
    """A file that a program left, by its plain name; none when it is not there, no regular file, or too big."""
    with suppress(OSError):
        handle = os.open(folder, _OPEN_FOLDER)
        try:
            return _content(handle, name, most)
        finally:
            os.close(handle)
    return None


def _regular(folder: Path, bounds: ArtifactBounds, left_out: list[str]) -> Iterator[tuple[str, bytes]]:
    pending = [("", 0)]
    looked = 0
    while pending:
        prefix, level = pending.pop()
        handle = _folder_below(folder, prefix)
        if handle is None:
            continue
        try:
            for entry in sorted(os.scandir(handle), key=lambda each: each.name):
                looked += 1
                name = prefix + entry.name
                if looked > 100 * bounds.files:
                    return
                if entry.is_dir(follow_symlinks=False):
                    if level < bounds.levels:
                        pending.append((f"{name}/", level + 1))
                elif entry.name.endswith(ARTIFACTS) and entry.name.isprintable():
                    data = None
                    with suppress(OSError):
                        data = _content(handle, entry.name, bounds.file_bytes, name, left_out)
                    if data is not None:
                        yield name, data
        finally:
            os.close(handle)


def _folder_below(folder: Path, prefix: str) -> int | None:
    """A folder, reached without following a link on the way."""
    handle = None
    with suppress(OSError):
        handle = os.open(folder, _OPEN_FOLDER)
        for part in prefix.split("/")[:-1]:
            inner = os.open(part, _OPEN_FOLDER, dir_fd=handle)
            os.close(handle)
            handle = inner
        return handle
    if handle is not None:
        os.close(handle)
    return None


def _content(folder: int, name: str, most: int, path: str = "", left_out: list[str] | None = None) -> bytes | None:
    handle = os.open(name, _OPEN_FILE, dir_fd=folder)
    with os.fdopen(handle, "rb") as stream:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            return None
        data = stream.read(most + 1)
    if len(data) > most:
        if left_out is not None:
            left_out.append(path)
        return None
    return data


class _Reader:
    """The archive's bytes in order, decompressed as they are needed."""

    def __init__(self, source: IO[bytes], most: int) -> None:
        self._chunks = _plain(source)
        self._left = most
        self._pending = b""

    def take(self, size: int, *, may_end: bool = False) -> bytes:
        """So many bytes; none at the very end, where that may be."""
        parts = [self._pending]
        have = len(self._pending)
        while have < size:
            chunk = next(self._chunks, b"")
            if not chunk:
                if may_end and not have:
                    return b""
                raise PackageError("it ends in the middle")
            self._left -= len(chunk)
            if self._left < 0:
                raise PackageError("it unpacks to more than it may")
            parts.append(chunk)
            have += len(chunk)
        data = b"".join(parts)
        self._pending = data[size:]
        return data[:size]

    def content(self, size: int) -> Iterator[bytes]:
        """A member's content in pieces; what fills its last block is passed over."""
        for start in range(0, size, _CHUNK):
            yield self.take(min(_CHUNK, size - start))
        self.take(-size % _BLOCK)


def _plain(source: IO[bytes]) -> Iterator[bytes]:
    """The archive without its compression."""
    data = source.read(_CHUNK)
    engine = _engine(data)
    while engine is None and data:
        yield data
        data = source.read(_CHUNK)
    while engine is not None:
        try:
            piece = engine.decompress(data, _CHUNK)
        except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError, MemoryError) as error:
            raise PackageError(f"it cannot be decompressed: {error}") from error
        if piece:
            yield piece
        if engine.eof:
            return
        data = getattr(engine, "unconsumed_tail", b"")
        if not data and getattr(engine, "needs_input", True):
            data = source.read(_CHUNK)
            if not data and not piece:
                raise PackageError("its compression ends in the middle")


def _engine(start: bytes) -> _Decompressor | None:
    if start.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(wbits=31)
    if start.startswith(b"BZh"):
        return bz2.BZ2Decompressor()
    if start.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMADecompressor(memlimit=_LZMA_MEMORY)
    return None


class _Member(NamedTuple):
    name: str
    folder: bool
    size: int
    mode: int


def _members(reader: _Reader) -> Iterator[_Member]:
    """Each member's header; its content comes next in the reader, and is taken before the next header."""
    long_name: bytes | None = None
    pax: dict[bytes, bytes] = {}
    while (header := reader.take(_BLOCK, may_end=True)).strip(b"\0"):
        if sum(header) - sum(header[148:156]) + 8 * ord(" ") != _number(header[148:156]):
            raise PackageError("a member's header is damaged")
        kind, size = header[156:157], _number(header[124:136])
        if kind in {_LONG_NAME, _PAX, _PAX_GLOBAL}:
            if size > _EXTENDED_BYTES:
                raise PackageError("a member's extended header is too long")
            data = b"".join(reader.content(size))
            if kind == _LONG_NAME:
                long_name = data.rstrip(b"\0")
            elif kind == _PAX:
                pax = _records(data)
            continue
        if kind not in _FILE and kind != _FOLDER:
            raise PackageError(f"it holds {_KINDS.get(kind, f'a member of kind {kind!r}')}")
        if any(key.startswith(b"GNU.sparse") for key in pax):
            raise PackageError("it holds a sparse file")
        size = _decimal(pax[b"size"]) if b"size" in pax else size
        raw = pax.get(b"path", long_name if long_name is not None else _short_name(header))
        yield _Member(_text(raw), kind == _FOLDER, size, _number(header[100:108]))
        long_name, pax = None, {}


def _short_name(header: bytes) -> bytes:
    name = header[:100].split(b"\0")[0]
    prefix = header[345:500].split(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _text(name: bytes) -> str:
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        raise PackageError(f"the name {name[:80]!r} is no text") from None
    if len(text) > _LONGEST_NAME or not text.isprintable():
        raise PackageError(f"the name {show(text)} is too long or not printable")
    return text


def _number(field: bytes) -> int:
    """A number of a header: octal, or binary with its first bit set."""
    if field[0] == 0x80:  # noqa: PLR2004 - the mark of a positive binary number
        return int.from_bytes(field[1:], "big")
    text = field.strip(b" \0")
    if not text or not text.strip(b"01234567"):
        return int(text or b"0", 8)
    raise PackageError("a number in a member's header is none")


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > 20:  # noqa: PLR2004 - longer than any 64 bits
        raise PackageError("a number in a member's header is none")
    return int(text)


def _records(data: bytes) -> dict[bytes, bytes]:
    """The records of a pax header: a length, a key and a value each."""
    found = {}
    while data:
        length, space, _ = data.partition(b" ")
        size = _decimal(length)
        key, equals, value = data[len(length) + 1 : size - 1].partition(b"=")
        if not space or not equals or not len(length) + 2 < size <= len(data) or data[size - 1 : size] != b"\n":
            raise PackageError("a member's extended header is damaged")
        found[key] = value
        data = data[size:]
    return found


def _parts(name: str, levels: int) -> tuple[str, ...]:
    """A name's parts, which lead nowhere but down."""
    parts = tuple(part for part in name.split("/") if part not in {"", "."})
    if name.startswith("/") or ".." in parts:
        raise PackageError(f"{show(name)} leads out of the package")
    if len(parts) > levels or any(len(os.fsencode(part)) > _LONGEST_PART for part in parts):
        raise PackageError(f"{show(name)} is too deep or too long")
    return parts


def _make_folder(folder: Path, parts: tuple[str, ...], seen: dict[str, bool]) -> None:
    for end in range(1, len(parts) + 1):
        path = "/".join(parts[:end])
        if path not in seen:
            (folder / path).mkdir(0o700)
            seen[path] = True
        elif not seen[path]:
            raise PackageError(f"{show(path)} is a file and a folder")


def _write(reader: _Reader, path: Path, member: _Member) -> None:
    mode = 0o600 | (member.mode & 0o100)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode), "wb") as stream:
        for piece in reader.content(member.size):
            stream.write(piece)
