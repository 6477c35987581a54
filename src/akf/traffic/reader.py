"""One pass over one table that may be larger than memory.

Invariants:
1. Held at a time are two pieces of the file: one is parsed while the one before it is used. The digest is of the very
   bytes that were parsed.
2. Nothing of a file with a problem counts: the pass ends with an `InvalidError` that holds them all, up to
   `MAX_LISTED`, and no frame is given after the first problem.
3. A file without rows is refused.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import polars as pl

from akf.contracts.files import open_regular, refusal
from akf.contracts.problems import InvalidError, Problem
from akf.traffic.cells import LONGEST_LINE
from akf.traffic.rows import SPOILED, fast, slow
from akf.traffic.tables import Header, Table, read_header

Progress = Callable[[int], object]
"""Told of the bytes of each piece that was read."""

_Ahead = tuple[int, bytes, int, Future[Any]]

PIECE = 4 * 1024 * 1024
MAX_LISTED = 20


class Reader:
    """A table to be read once: ``for frame in Reader(path, "rank0/kernel_details.csv", KERNELS)``.

    Args:
        path: The file.
        name: What problems and artifacts call it.
        table: What it must hold.
        progress: Told of the bytes read.
        piece: Bytes to hold at a time.

    Attributes:
        digest: SHA-256 of the file, once it is read.
        header: Its columns, from the first frame on.
    """

    header: Header

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str,
        table: Table,
        progress: Progress = lambda _: None,
        piece: int = PIECE,
    ) -> None:
        self._path = os.fspath(path)
        self._table = table
        self._progress = progress
        self._piece = piece
        self._problems: list[Problem] = []
        self._lines = 0
        self.name = name
        self.digest = ""

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """Read the file.

        Raises:
            InvalidError: With every problem of the file.
            StorageError: It cannot be read.
        """
        self._lines = 0
        rows = 0
        hashed = hashlib.sha256()
        with ThreadPoolExecutor(2) as beside:
            for size, body, line, parsing in self._ahead(beside, hashed):
                frame = self._decided(parsing.result(), body, line)
                if frame is not None:
                    rows += frame.height
                    yield frame
                elif len(self._problems) > MAX_LISTED or self._problems[-1].code == SPOILED:
                    break
                self._progress(size)
        if not self._lines:
            self._problems.append(Problem("AKF-F119", "the file is empty", self.name, hint=_NOTHING))
        elif not rows and not self._problems:
            self._problems.append(Problem("AKF-F119", "the file has no rows", self.name, line=1, hint=_NOTHING))
        self._refuse()
        self.digest = "sha256:" + hashed.hexdigest()

    def _ahead(self, beside: ThreadPoolExecutor, hashed: Any) -> Iterator[_Ahead]:
        """Pieces of rows, each while the next one is parsed already: bytes read, rows, their first line's number."""
        waiting: _Ahead | None = None
        for piece in self._pieces():
            hashing = beside.submit(hashed.update, piece)
            body = piece
            if not self._lines:
                head, _, body = piece.partition(b"\n")
                self._read_header(head)
                self._lines = 1
            if body:
                body = body if body.endswith(b"\n") else body + b"\n"
                line = self._lines + 1
                count = body.count(b"\n")
                self._lines += count
                following = len(piece), body, line, beside.submit(fast, body, count, line, self.header)
                if waiting is not None:
                    yield waiting
                waiting = following
            hashing.result()
        if waiting is not None:
            yield waiting

    def _read_header(self, line: bytes) -> None:
        header, self._problems = read_header(line.removesuffix(b"\r"), self._table, self.name)
        if header is None:
            self._refuse()
        else:
            self.header = header

    def _decided(self, frame: pl.DataFrame | None, body: bytes, line: int) -> pl.DataFrame | None:
        if frame is None:
            most = MAX_LISTED + 1 - len(self._problems)
            frame, problems = slow(body, line, self.header, self.name, most)
            self._problems += problems
        return None if self._problems else frame

    def _refuse(self) -> None:
        if len(self._problems) > MAX_LISTED:
            cut = f"more than {MAX_LISTED} problems; the rest of the file was not read"
            self._problems[MAX_LISTED:] = [Problem("AKF-F121", cut, self.name)]
        if self._problems:
            raise InvalidError(self._problems)

    def _pieces(self) -> Iterator[bytes]:
        """The file in pieces of whole lines; only the last line may lack its end."""
        descriptor = open_regular(self._path)
        try:
            rest = b""
            while data := os.read(descriptor, self._piece):
                cut = data.rfind(b"\n") + 1
                if cut:
                    yield rest + data[:cut]
                    rest = data[cut:]
                else:
                    rest += data
                if len(rest) > LONGEST_LINE:  # which is refused
                    break
            if rest:
                yield rest
        except OSError as error:
            raise refusal(self._path, error) from error
        finally:
            os.close(descriptor)


_NOTHING = "nothing was recorded: profile again"
