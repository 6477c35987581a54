"""The Server's durable state: jobs, their events, workers, and the devices that jobs hold.

Invariants, of every home of a store (`sqlite`, `postgres`):
- What a caller was told is on the disk: a write is committed before it is answered.
- A job that runs has one owner, the Server that started it; nobody else ends it or has it wait again. A Server is alive
  until it ends or is not heard of for the lease's time; then another one takes its jobs over, each job once.
- A job that is over stays so: nothing changes its status any more.
- Events of all jobs have rising numbers, in the order in which they can be seen, so a reader who was away goes on from
  the last one that it saw.
- Retention removes jobs that are over, oldest first, with their events; never one that waits or runs. A wall clock that
  is set while the Server runs makes none older.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple, Protocol

import orjson

from akf.contracts.problems import BlockedError
from akf.fabric.clock import unix_time

OVER = ("completed", "failed", "error", "cancelled")
STATUSES = ("pending", "running", *OVER)
LONGEST_EVENT_BYTES = 64 << 10
VERSION = 2
_ALL = 1 << 62
_COLUMNS = (
    'number, id, "user", status, priority, request, result, error, outcome, starts, submit_time, start_time, end_time'
)


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


class Rows(Protocol):
    """What a query found."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""

    def fetchall(self) -> Sequence[tuple[Any, ...]]:
        """All that it found."""


class Store(ABC):
    """A store in SQL; its homes say how a query is put, and which Servers are alive.

    Attributes:
        shared: whether other Servers may use it at the same time.
        owner: the name under which this Server runs jobs.
        lease_s: how long a Server that is not heard of is taken for alive.
    """

    shared: ClassVar[bool] = False
    lease_s: float = 0.0

    def __init__(self) -> None:
        self.owner = uuid.uuid4().hex

    @abstractmethod
    def close(self) -> None:
        """Let go of the store."""

    @abstractmethod
    def beat(self) -> bool:
        """This Server is alive; tells whether it was never taken for dead."""

    @abstractmethod
    def _run(self, query: str, values: Sequence[Any] = ()) -> Rows:
        """One query; `?` stands for a value."""

    @abstractmethod
    def _written(self) -> AbstractContextManager[None]:
        """All of a block's changes, or none of them."""

    @abstractmethod
    def _in_order(self) -> None:
        """Nobody else's event gets a number before this block's changes can be seen."""

    @property
    @abstractmethod
    def _dead(self) -> str:
        """The condition that a row's `owner` is a Server that is not alive."""

    @property
    @abstractmethod
    def _locking(self) -> str:
        """What is said behind a query so that each row goes to one Server, and none waits for another."""

    def add(self, identity: str, user: str, request: dict[str, Any]) -> Job:
        """A new job, which waits."""
        query = (
            "INSERT INTO jobs (id, \"user\", status, priority, request, submit_time) VALUES (?, ?, 'pending', ?, ?, ?)"
        )
        with self._written():
            self._run(query, (identity, user, request.get("priority", 0), orjson.dumps(request), unix_time()))
            self._event(identity, "submitted", {"user": user})
        found = self.job(identity)
        assert found is not None  # noqa: S101 - it was written just now
        return found

    def job(self, identity: str) -> Job | None:
        """One job by its id."""
        if not identity.isprintable():
            return None
        rows = self._run(f"SELECT {_COLUMNS} FROM jobs WHERE id = ?", (identity,)).fetchall()  # noqa: S608 - a constant
        return _job(rows[0]) if rows else None

    def jobs(
        self, statuses: Iterable[str] = STATUSES, user: str | None = None, before: int | None = None, limit: int = _ALL
    ) -> list[Job]:
        """Jobs, newest first."""
        wanted = tuple(statuses)
        where = [f"status IN ({','.join('?' * len(wanted))})"]
        values: list[Any] = [*wanted]
        for clause, value in (('"user" = ?', user), ("number < ?", before)):
            if value is not None:
                where.append(clause)
                values.append(value)
        query = f"SELECT {_COLUMNS} FROM jobs WHERE {' AND '.join(where)} ORDER BY number DESC LIMIT ?"  # noqa: S608 - no value in it
        return [_job(row) for row in self._run(query, (*values, limit)).fetchall()]

    def counts(self) -> dict[str, int]:
        """How many jobs there are, by status."""
        rows = self._run("SELECT status, COUNT(*) FROM jobs GROUP BY status")
        return dict.fromkeys(STATUSES, 0) | {str(status): int(count) for status, count in rows.fetchall()}

    def waiting(self, user: str) -> int:
        """How many jobs of a user are not over."""
        query = "SELECT COUNT(*) FROM jobs WHERE \"user\" = ? AND status IN ('pending', 'running')"
        return int(self._run(query, (user,)).fetchall()[0][0])

    def pending(self) -> list[str]:
        """The ids of all jobs that wait, oldest first."""
        return [row[0] for row in self._run("SELECT id FROM jobs WHERE status = 'pending' ORDER BY number").fetchall()]

    def start(self, identity: str) -> bool:
        """A job that waits runs now, here; tells whether it waited and nobody else took it."""
        query = (
            "UPDATE jobs SET status = 'running', starts = starts + 1, start_time = ?, owner = ? "  # noqa: S608 - a constant
            f"WHERE id IN (SELECT id FROM jobs WHERE id = ? AND status = 'pending'{self._locking})"
        )
        with self._written():
            begun = self._run(query, (unix_time(), self.owner, identity)).rowcount == 1
            if begun:
                self._event(identity, "started", {})
        return begun

    def requeue(self, identity: str, why: str) -> None:
        """A job that ran here waits again."""
        query = "UPDATE jobs SET status = 'pending', owner = NULL WHERE id = ? AND status = 'running' AND owner = ?"
        with self._written():
            if self._run(query, (identity, self.owner)).rowcount:
                self._event(identity, "requeued", {"why": why})

    def finish(
        self, identity: str, status: str, *, result: dict[str, Any] | None, error: str | None, outcome: str | None
    ) -> bool:
        """A job that waits, or runs here, is over; tells whether it was not yet."""
        query = (
            "UPDATE jobs SET status = ?, result = ?, error = ?, outcome = ?, end_time = ? "
            "WHERE id = ? AND (status = 'pending' OR (status = 'running' AND owner = ?))"
        )
        stored, error = None if result is None else orjson.dumps(result, default=str), _text(error)
        values = (status, stored, error, outcome, unix_time(), identity, self.owner)
        with self._written():
            ended = self._run(query, values).rowcount == 1
            if ended:
                self._event(identity, "finished", {"status": status, "error": error, "outcome": outcome})
        return ended

    def want_cancel(self, identity: str) -> None:
        """A job that runs at another Server is to be ended there."""
        with self._written():
            self._run("UPDATE jobs SET cancel = 1 WHERE id = ? AND status = 'running'", (identity,))

    def cancels(self) -> list[str]:
        """Jobs that run here and are to be ended."""
        query = "SELECT id FROM jobs WHERE cancel = 1 AND status = 'running' AND owner = ?"
        return [row[0] for row in self._run(query, (self.owner,)).fetchall()]

    def take_over(self) -> list[Job]:
        """Jobs of Servers that are not alive, which are this one's from now on."""
        query = (
            "UPDATE jobs SET owner = ? WHERE id IN "  # noqa: S608 - constants
            f"(SELECT id FROM jobs WHERE status = 'running' AND {self._dead}{self._locking}) RETURNING {_COLUMNS}"
        )
        with self._written():
            rows = self._run(query, (self.owner,)).fetchall()
        return sorted(map(_job, rows))

    def event(self, job: str, kind: str, data: dict[str, Any]) -> None:
        """Something happened to a job."""
        with self._written():
            self._event(job, kind, data)

    def _event(self, job: str, kind: str, data: dict[str, Any]) -> None:
        stored = orjson.dumps(data, default=str)
        if len(stored) > LONGEST_EVENT_BYTES:
            stored = orjson.dumps({"left_out_bytes": len(stored)})
        self._in_order()
        query = "INSERT INTO events (job, time, kind, data) VALUES (?, ?, ?, ?)"
        self._run(query, (job, unix_time(), kind, stored))

    def events(self, job: str | None, after: int, limit: int) -> list[Event]:
        """What happened after an event, in order; of one job, or of all."""
        where, values = ("job = ? AND ", [job]) if job is not None else ("", [])
        query = f"SELECT number, job, time, kind, data FROM events WHERE {where}number > ? ORDER BY number LIMIT ?"  # noqa: S608 - no value in it
        rows = self._run(query, (*values, after, limit)).fetchall()
        return [Event(number, of, at, kind, orjson.loads(data)) for number, of, at, kind, data in rows]

    def last_event(self) -> int:
        """The number of the newest event."""
        return int(self._run("SELECT COALESCE(MAX(number), 0) FROM events").fetchall()[0][0])

    def save_worker(self, name: str, entry: dict[str, Any]) -> None:
        """Keep a worker under its name, in place of what stood there."""
        query = (
            "INSERT INTO workers (name, entry) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET entry = excluded.entry"
        )
        with self._written():
            self._run(query, (name, orjson.dumps(entry)))

    def remove_worker(self, name: str) -> None:
        """Keep a worker no more."""
        with self._written():
            self._run("DELETE FROM workers WHERE name = ?", (name,))

    def workers(self) -> dict[str, dict[str, Any]]:
        """Every worker by its name."""
        rows = self._run("SELECT name, entry FROM workers ORDER BY name").fetchall()
        return {name: orjson.loads(entry) for name, entry in rows}

    def hold(self, worker: str, task: str, device: int) -> None:
        """A task of this Server holds a device of a worker."""
        query = "INSERT INTO holds (worker, task, device, owner) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
        with self._written():
            self._run(query, (worker, task, device, self.owner))

    def let_go(self, worker: str, task: str, device: int) -> None:
        """It holds it no more."""
        with self._written():
            query = "DELETE FROM holds WHERE worker = ? AND task = ? AND device = ?"
            self._run(query, (worker, task, device))

    def holds(self) -> list[tuple[str, str, int]]:
        """Worker, task and device of everything that is held by Servers that are not alive."""
        query = f"SELECT worker, task, device FROM holds WHERE {self._dead} ORDER BY worker, device, task"  # noqa: S608 - a constant
        return [(str(worker), str(task), int(device)) for worker, task, device in self._run(query).fetchall()]

    def prune(self, keep: int, older_than_s: float) -> int:
        """Remove jobs that are over: all but the newest `keep`, and those that ended so long ago."""
        over = "status IN ('completed', 'failed', 'error', 'cancelled')"
        query = (
            f"DELETE FROM jobs WHERE {over} AND (end_time < ? OR number <= COALESCE("  # noqa: S608 - no value in it
            f"(SELECT number FROM jobs WHERE {over} ORDER BY number DESC LIMIT 1 OFFSET ?), 0))"
        )
        with self._written():
            gone = self._run(query, (unix_time() - older_than_s, keep)).rowcount
            if gone:
                self._run("DELETE FROM events WHERE job NOT IN (SELECT id FROM jobs)")
        return gone


def opened(place: str) -> Store:
    """The store at a place: a folder, or the address of a database that several Servers share.

    Raises:
        BlockedError: a database of a kind that is not known here, or one that does not answer.
        ConflictError: another Server owns the folder.
        IntegrityError: it is no store, or one of another version.
        StorageError: it cannot be made or opened.
    """
    scheme, separator, _ = place.partition("://")
    if not separator:
        from akf.server.sqlite import SqliteStore  # noqa: PLC0415 - a Server has one home

        return SqliteStore(place)
    if scheme not in {"postgresql", "postgres"}:
        hint = "name a folder, or postgresql://HOST/DATABASE"
        raise BlockedError.of("AKF-E601", f"a store of the kind {scheme}://… is not known", hint=hint)
    from akf.server.postgres import PostgresStore  # noqa: PLC0415 - an optional extra

    return PostgresStore(place)


def _text(value: str | None) -> str | None:
    """A text that any database takes."""
    return None if value is None else value.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()


def _job(row: tuple[Any, ...]) -> Job:
    number, identity, user, status, priority, request, result, *rest = row
    read = None if result is None else orjson.loads(result)
    return Job(number, identity, user, status, priority, orjson.loads(request), read, *rest)
