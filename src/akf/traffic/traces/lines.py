"""The lines of a trace file, streamed, with their numbers and the file's digest.

Invariants:
- A file is read once, in blocks; no more than a block and a line of it is held.
- A line ends with LF or CR LF; a last line without an end counts. An empty line is refused unless it is the last one.
- What is no text at all is refused by its first bytes, with what it probably is: a compressed file, a Git LFS pointer,
  a byte order mark.
- The digest is of the file's bytes as they are.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

from akf.contracts.files import open_regular, refusal
from akf.contracts.problems import InvalidError

BLOCK = 1 << 20
MAX_LINE_BYTES = 16 << 20
_NO_TRACE = (
    (b"\x1f\x8b", "a gzip file", "decompress it first: gunzip FILE"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", "decompress it first: zstd -d FILE"),
    (b"PK\x03\x04", "a zip archive", "unpack it first: unzip FILE"),
    (b"PAR1", "a Parquet file", "export it as the published layout, CSV or JSON Lines"),
    (b"version https://git-lfs", "a Git LFS pointer, not the trace", "fetch the data: git lfs pull, or download it"),
    (b"\xef\xbb\xbf", "text behind a byte order mark", "save it as UTF-8 without a byte order mark"),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
)


class Lines:
    """Iterate once; `digest` holds afterwards.

    Raises:
        InvalidError: The file is missing, no regular file, no text, or has a line beyond `MAX_LINE_BYTES`.
        StorageError: It cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.file = os.fspath(path)
        self._digest = hashlib.sha256()

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return os.path.basename(self.file)  # noqa: PTH119 - as it was given

    @property
    def digest(self) -> str:
        """SHA-256 of what was read so far."""
        return f"sha256:{self._digest.hexdigest()}"

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        number = 0
        rest = b""
        for block in self._blocks():
            if number == 0 and not rest:
                self._refuse_no_text(block)
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                number += 1
                yield number, line.removesuffix(b"\r")
            if len(rest) > MAX_LINE_BYTES:
                raise InvalidError.of(
                    "AKF-F252", f"the line is longer than {MAX_LINE_BYTES} bytes", file=self.file, line=number + 1
                )
        if rest:
            yield number + 1, rest.removesuffix(b"\r")

    def _blocks(self) -> Iterator[bytes]:
        descriptor = open_regular(self.file)
        try:
            while block := os.read(descriptor, BLOCK):
                self._digest.update(block)
                yield block
        except OSError as error:
            raise refusal(self.file, error) from error
        finally:
            os.close(descriptor)

    def _refuse_no_text(self, block: bytes) -> None:
        for start, what, hint in _NO_TRACE:
            if block.startswith(start):
                raise InvalidError.of(
                    "AKF-F265",
                    f"{what} stands where a trace is expected",
                    file=self.file,
                    line=1,
                    expected="CSV or JSON Lines",
                    found=what,
                    hint=hint,
                )


def first_line(path: str | os.PathLike[str]) -> bytes:
    """The first line of a file.

    Raises:
        InvalidError: There is none.
    """
    lines = Lines(path)
    for _, line in lines:
        return line
    raise InvalidError.of("AKF-F250", "the file is empty", file=lines.file, hint="a trace holds one request a line")
