"""A store in a folder, for one Server: SQLite in WAL mode.

Invariants:
- One Server owns the folder; a second one is refused while the first lives, and the kernel frees it when that one ends
  in whatever way. So every other owner that stands in the store is dead.
- A store of an earlier version is brought to this one; one of a later version is left alone.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from akf.contracts.problems import ConflictError, IntegrityError, StorageError
from akf.server.store import VERSION, Rows, Store

_TABLES = """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, user TEXT NOT NULL, status TEXT NOT NULL,
    priority INTEGER NOT NULL, request BLOB NOT NULL, result BLOB, error TEXT, outcome TEXT,
    starts INTEGER NOT NULL DEFAULT 0, submit_time REAL NOT NULL, start_time REAL, end_time REAL);
CREATE INDEX IF NOT EXISTS jobs_by_status ON jobs (status, number);
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL, time REAL NOT NULL, kind TEXT NOT NULL,
    data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS events_of_job ON events (job, number);
CREATE TABLE IF NOT EXISTS workers (name TEXT PRIMARY KEY, entry BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS holds (
    worker TEXT NOT NULL, task TEXT NOT NULL, device INTEGER NOT NULL, PRIMARY KEY (worker, task, device));
"""
_OWNERS = """
BEGIN;
ALTER TABLE jobs ADD COLUMN owner TEXT;
ALTER TABLE jobs ADD COLUMN cancel INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holds ADD COLUMN owner TEXT;
PRAGMA user_version=2;
COMMIT;
"""


class SqliteStore(Store):
    """The store in a folder.

    Args:
        place: the folder, which is made when it is missing.

    Raises:
        ConflictError: another Server owns it.
        IntegrityError: it is no store, or one of another version.
        StorageError: it cannot be made or opened.
    """

    def __init__(self, place: str | Path) -> None:
        super().__init__()
        folder = Path(place)
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._owned = os.open(folder / "owner.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            text = f"the Server's store cannot be made: {error.strerror}"
            raise StorageError.of("AKF-F601", text, file=str(folder), hint="name a writable --store") from error
        try:
            fcntl.flock(self._owned, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._owned)
            hint = "end the other Server, or name another --store"
            raise ConflictError.of("AKF-C601", "another Server owns this store", file=str(folder), hint=hint) from None
        self._path = folder / "jobs.sqlite"
        try:
            self._base = sqlite3.connect(self._path, isolation_level=None)
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute("PRAGMA synchronous=FULL")
            version = self._base.execute("PRAGMA user_version").fetchone()[0]
            if version <= 1:
                self._base.executescript(_TABLES)
                self._base.executescript(_OWNERS)
        except sqlite3.DatabaseError as error:
            os.close(self._owned)
            raise _no_store(self._path, str(error)) from error
        if version > VERSION:
            self.close()
            raise _no_store(self._path, f"its version is {version}")

    def close(self) -> None:
        """See `Store.close`."""
        self._base.close()
        os.close(self._owned)

    def beat(self) -> bool:
        """See `Store.beat`: nobody else could take it for dead."""
        return True

    @property
    def _dead(self) -> str:
        return f"owner IS NOT '{self.owner}'"

    @property
    def _locking(self) -> str:
        return ""

    def _in_order(self) -> None:
        """SQLite has one writer."""

    def _run(self, query: str, values: Sequence[Any] = ()) -> Rows:
        return self._base.execute(query, values)

    @contextmanager
    def _written(self) -> Iterator[None]:
        try:
            self._base.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._base.execute("ROLLBACK")
                raise
            self._base.execute("COMMIT")
        except sqlite3.OperationalError as error:
            text = f"the store cannot be written: {error}"
            hint = "free space on its file system; what was accepted is still there"
            raise StorageError.of("AKF-F602", text, file=str(self._path), hint=hint) from error


def _no_store(path: Path, why: str) -> IntegrityError:
    hint = "move it away; a new one is made"
    return IntegrityError.of("AKF-I601", f"this is no store of this version: {why}", file=str(path), hint=hint)
