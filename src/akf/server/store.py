"""The Server's durable state: jobs, their events, workers, and the devices that jobs hold. SQLite in WAL mode.

Invariants:
- What a caller was told is on the disk: a write is committed before it is answered.
- One Server owns a store; a second one is refused while the first lives, and the kernel frees it when that one ends in
  whatever way.
- A job that is over stays so: nothing changes its status any more.
- Events of all jobs have rising numbers, so a reader who was away goes on from the last one that it saw.
- Retention removes jobs that are over, oldest first, with their events; never one that waits or runs. A wall clock that
  is set while the Server runs makes none older.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from akf.contracts.problems import BlockedError, ConflictError, IntegrityError, StorageError
from akf.fabric.clock import unix_time

OVER = ("completed", "failed", "error", "cancelled")
STATUSES = ("pending", "running", *OVER)
LONGEST_EVENT_BYTES = 64 << 10
_VERSION = 1
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


class Job(NamedTuple):
    """One job, as it stands."""

    number: int
    id: str
    user: str
    status: str
    priority: int
    request: dict[str, Any]
    result: dict[str, Any] | None
    error: str | None
    outcome: str | None
    starts: int
    submit_time: float
    start_time: float | None
    end_time: float | None


class Event(NamedTuple):
    """One thing that happened to a job."""

    number: int
    job: str
    time: float
    kind: str
    data: dict[str, Any]


class Store:
    """The store at a place.

    Args:
        place: a folder, which is made when it is missing.

    Raises:
        BlockedError: a database of another kind is named.
        ConflictError: another Server owns it.
        IntegrityError: it is no store, or one of another version.
        StorageError: it cannot be made or opened.
    """

    def __init__(self, place: str | Path) -> None:
        if "://" in str(place):
            message = f"the store {str(place).partition('://')[0]}://… is of a kind that this version does not have"
            raise BlockedError.of("AKF-E601", message, hint="name a folder: jobs are kept in SQLite there")
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
            self._base.executescript(_TABLES)
            version = self._base.execute("PRAGMA user_version").fetchone()[0]
            self._base.execute(f"PRAGMA user_version={version or _VERSION}")
        except sqlite3.DatabaseError as error:
            os.close(self._owned)
            raise _no_store(self._path, str(error)) from error
        if version not in {0, _VERSION}:
            self.close()
            raise _no_store(self._path, f"its version is {version}")

    def close(self) -> None:
        """Let go of the store."""
        self._base.close()
        os.close(self._owned)

    def add(self, identity: str, user: str, request: dict[str, Any]) -> Job:
        """A new job, which waits."""
        with self._written():
            self._base.execute(
                "INSERT INTO jobs (id, user, status, priority, request, submit_time) VALUES (?, ?, 'pending', ?, ?, ?)",
                (identity, user, request.get("priority", 0), orjson.dumps(request), unix_time()),
            )
            self._event(identity, "submitted", {"user": user})
        found = self.job(identity)
        assert found is not None  # noqa: S101 - it was written just now
        return found

    def job(self, identity: str) -> Job | None:
        """One job by its id."""
        row = self._base.execute("SELECT * FROM jobs WHERE id = ?", (identity,)).fetchone()
        return None if row is None else _job(row)

    def jobs(
        self, statuses: Iterable[str] = STATUSES, user: str | None = None, before: int | None = None, limit: int = -1
    ) -> list[Job]:
        """Jobs, newest first."""
        wanted = tuple(statuses)
        where = [f"status IN ({','.join('?' * len(wanted))})"]
        values: list[Any] = [*wanted]
        for clause, value in (("user = ?", user), ("number < ?", before)):
            if value is not None:
                where.append(clause)
                values.append(value)
        query = f"SELECT * FROM jobs WHERE {' AND '.join(where)} ORDER BY number DESC LIMIT ?"  # noqa: S608 - no value in it
        return [_job(row) for row in self._base.execute(query, (*values, limit))]

    def counts(self) -> dict[str, int]:
        """How many jobs there are, by status."""
        rows = self._base.execute("SELECT status, COUNT(*) FROM jobs GROUP BY status")
        return dict.fromkeys(STATUSES, 0) | dict(rows.fetchall())

    def waiting(self, user: str) -> int:
        """How many jobs of a user are not over."""
        query = "SELECT COUNT(*) FROM jobs WHERE user = ? AND status IN ('pending', 'running')"
        return int(self._base.execute(query, (user,)).fetchone()[0])

    def start(self, identity: str) -> bool:
        """A job that waits runs now; tells whether it waited."""
        query = (
            "UPDATE jobs SET status = 'running', starts = starts + 1, start_time = ? "
            "WHERE id = ? AND status = 'pending'"
        )
        with self._written():
            begun = self._base.execute(query, (unix_time(), identity)).rowcount == 1
            if begun:
                self._event(identity, "started", {})
        return begun

    def requeue(self, identity: str, why: str) -> None:
        """A job that ran waits again."""
        with self._written():
            query = "UPDATE jobs SET status = 'pending' WHERE id = ? AND status = 'running'"
            if self._base.execute(query, (identity,)).rowcount:
                self._event(identity, "requeued", {"why": why})

    def finish(
        self, identity: str, status: str, *, result: dict[str, Any] | None, error: str | None, outcome: str | None
    ) -> bool:
        """A job is over; tells whether it was not yet."""
        query = (
            "UPDATE jobs SET status = ?, result = ?, error = ?, outcome = ?, end_time = ? "
            "WHERE id = ? AND status IN ('pending', 'running')"
        )
        stored = None if result is None else orjson.dumps(result, default=str)
        with self._written():
            ended = self._base.execute(query, (status, stored, error, outcome, unix_time(), identity)).rowcount == 1
            if ended:
                self._event(identity, "finished", {"status": status, "error": error, "outcome": outcome})
        return ended

    def event(self, job: str, kind: str, data: dict[str, Any]) -> None:
        """Something happened to a job."""
        with self._written():
            self._event(job, kind, data)

    def _event(self, job: str, kind: str, data: dict[str, Any]) -> None:
        stored = orjson.dumps(data, default=str)
        if len(stored) > LONGEST_EVENT_BYTES:
            stored = orjson.dumps({"left_out_bytes": len(stored)})
        query = "INSERT INTO events (job, time, kind, data) VALUES (?, ?, ?, ?)"
        self._base.execute(query, (job, unix_time(), kind, stored))

    def events(self, job: str | None, after: int, limit: int) -> list[Event]:
        """What happened after an event, in order; of one job, or of all."""
        where, values = ("job = ? AND ", [job]) if job is not None else ("", [])
        query = f"SELECT * FROM events WHERE {where}number > ? ORDER BY number LIMIT ?"  # noqa: S608 - no value in it
        rows = self._base.execute(query, (*values, after, limit))
        return [Event(number, of, at, kind, orjson.loads(data)) for number, of, at, kind, data in rows]

    def last_event(self) -> int:
        """The number of the newest event."""
        return int(self._base.execute("SELECT COALESCE(MAX(number), 0) FROM events").fetchone()[0])

    def save_worker(self, name: str, entry: dict[str, Any]) -> None:
        """Keep a worker under its name, in place of what stood there."""
        with self._written():
            self._base.execute("REPLACE INTO workers VALUES (?, ?)", (name, orjson.dumps(entry)))

    def remove_worker(self, name: str) -> None:
        """Keep a worker no more."""
        with self._written():
            self._base.execute("DELETE FROM workers WHERE name = ?", (name,))

    def workers(self) -> dict[str, dict[str, Any]]:
        """Every worker by its name."""
        rows = self._base.execute("SELECT name, entry FROM workers ORDER BY name")
        return {name: orjson.loads(entry) for name, entry in rows}

    def hold(self, worker: str, task: str, device: int) -> None:
        """A task holds a device of a worker."""
        with self._written():
            self._base.execute("REPLACE INTO holds VALUES (?, ?, ?)", (worker, task, device))

    def let_go(self, worker: str, task: str, device: int) -> None:
        """It holds it no more."""
        with self._written():
            query = "DELETE FROM holds WHERE worker = ? AND task = ? AND device = ?"
            self._base.execute(query, (worker, task, device))

    def holds(self) -> list[tuple[str, str, int]]:
        """Worker, task and device of everything that is held."""
        return list(self._base.execute("SELECT worker, task, device FROM holds ORDER BY worker, device, task"))

    def prune(self, keep: int, older_than_s: float) -> int:
        """Remove jobs that are over: all but the newest `keep`, and those that ended so long ago."""
        over = "status IN ('completed', 'failed', 'error', 'cancelled')"
        query = (
            f"DELETE FROM jobs WHERE {over} AND (end_time < ? OR number <= COALESCE("  # noqa: S608 - no value in it
            f"(SELECT number FROM jobs WHERE {over} ORDER BY number DESC LIMIT 1 OFFSET ?), 0))"
        )
        with self._written():
            gone = self._base.execute(query, (unix_time() - older_than_s, keep)).rowcount
            if gone:
                self._base.execute("DELETE FROM events WHERE job NOT IN (SELECT id FROM jobs)")
        return gone

    @contextmanager
    def _written(self) -> Iterator[None]:
        """All of a block's changes, or none of them."""
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


def _job(row: tuple[Any, ...]) -> Job:
    number, identity, user, status, priority, request, result, *rest = row
    read = None if result is None else orjson.loads(result)
    return Job(number, identity, user, status, priority, orjson.loads(request), read, *rest)
