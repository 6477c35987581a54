"""The text of a trace's file, packed with gzip or not, piece by piece.

Invariants:
1. Held at a time is one piece; no more than `MAX_TRACE_BYTES` of text are read, packed or not.
2. Refused with the line: a byte order mark, bytes that are not UTF-8, a packed file that is damaged or cut off.
3. The digest is of the file's own bytes, packed as they are.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from akf.contracts.files import refusal
from akf.contracts.limits import MAX_TRACE_BYTES
from akf.contracts.problems import InvalidError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PIECE = 1024 * 1024
PACKED = b"\x1f\x8b"
"""What a file begins with that gzip has packed."""
_BOM = "\ufeff"


class HashedFile(io.RawIOBase):
    """A file that is hashed as it is read."""

    def __init__(self, descriptor: int, progress: Callable[[int], object]) -> None:
        self.hashed = hashlib.sha256()
        self._file = io.FileIO(descriptor)
        self._progress = progress

    def readable(self) -> bool:
        """As every file here."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read, hash and tell of what was read."""
        count = self._file.readinto(buffer) or 0
        self.hashed.update(memoryview(buffer)[:count])
        self._progress(count)
        return count

    def close(self) -> None:
        """Close the descriptor as well."""
        self._file.close()
        super().close()


def texts(file: HashedFile, name: str) -> Iterator[str]:
    """Yield the pieces.

    Raises:
        InvalidError: The file is no text, damaged, or too large.
        StorageError: It cannot be read.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    read = None
    count, lines = 0, 0
    while True:
        try:
            read = read or _reader(file)
            data = read(PIECE)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            hint = "copy the file again, or export the profile again"
            text = f"the packed file is damaged or cut off: {error}"
            raise InvalidError.of("AKF-F151", text, file=name, line=lines + 1, hint=hint) from None
        except OSError as error:
            raise refusal(name, error) from error
        try:
            text = decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            line = lines + 1 + error.object[: error.start].count(b"\n")
            raise InvalidError.of(
                "AKF-F150", f"byte 0x{error.object[error.start]:02x} is not valid UTF-8", file=name, line=line
            ) from None
        if not count and text.startswith(_BOM):
            raise InvalidError.of("AKF-F150", "the file starts with a byte order mark", file=name, line=1, column=1)
        count += len(data)
        if count > MAX_TRACE_BYTES:
            message = f"the trace is larger than {MAX_TRACE_BYTES} bytes"
            hint = "profile fewer steps: a few tens are enough"
            raise InvalidError.of("AKF-F154", message, file=name, expected=MAX_TRACE_BYTES, hint=hint)
        lines += text.count("\n")
        if text:
            yield text
        if not data:
            return


def _reader(file: HashedFile) -> Callable[[int], bytes]:
    buffered = io.BufferedReader(file, PIECE)
    packed = buffered.peek(len(PACKED)).startswith(PACKED)
    return gzip.GzipFile(fileobj=buffered).read if packed else buffered.read
