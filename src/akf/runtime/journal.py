"""The events of a runtime, on disk: what was accepted is there after a crash, and ends once.

Invariants:
- One writer: a journal that another runtime holds is refused. Events are written in order, in groups, each group one
  durable step (SQLite, write-ahead log, synchronous FULL): after a crash the journal is a beginning of what happened.
- The database itself refuses a second end of a task.
- Of tasks that are over as many are kept as was said, the latest; what has not ended is kept whole. An old one leaves
  its id and a digest of its graph, in the step that makes the events durable for which it goes: an id is one task's for
  ever, and numbers are not given twice. What a reader does not find any more is told as `lost`.
- What is read is checked: another version, or a file that is no journal, is refused and left as it is.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from akf.contracts.problems import ConflictError, IntegrityError, StorageError
from akf.runtime.events import Record
from akf.runtime.state import FINAL, TaskState, Told
from akf.runtime.task import Task

_ID, _VERSION = 0x414B46, 1
_SCHEMA = """
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, task TEXT, node TEXT, at_ns INTEGER NOT NULL, data TEXT NOT NULL
) STRICT;
CREATE INDEX by_task ON events (task, seq) WHERE task IS NOT NULL;
CREATE UNIQUE INDEX one_end ON events (task) WHERE kind IN ('finished', 'failed', 'cancelled');
CREATE UNIQUE INDEX one_beginning ON events (task) WHERE kind = 'accepted';
"""
_GONE = "CREATE TABLE IF NOT EXISTS gone (task TEXT PRIMARY KEY, graph BLOB NOT NULL) STRICT, WITHOUT ROWID"
_COUNT = "SELECT count(*) FROM events WHERE kind IN ('finished', 'failed', 'cancelled')"
_OLDEST = (
    "SELECT task, seq FROM events WHERE kind IN ('finished', 'failed', 'cancelled') ORDER BY seq DESC LIMIT -1 OFFSET ?"
)
TASKS = 100_000
"""How many tasks that are over are kept, where nobody says otherwise."""
_JSON = json.JSONEncoder(separators=(",", ":")).encode
_Job = tuple[list[Record], Callable[[str | None], None]]


class Journal:
    """A journal in a file, which is made where there is none.

    Args:
        path: the file.
        keep_tasks: how many tasks that are over stay; up to an eighth more before the oldest go together.

    Raises:
        ConflictError: another runtime holds it.
        IntegrityError: the file is no journal of this version.
        StorageError: the file system refuses.
    """

    def __init__(self, path: str | Path, keep_tasks: int = TASKS) -> None:
        if keep_tasks < 1:
            raise ValueError("a journal keeps at least one task that is over")
        self._keep = keep_tasks
        self._name = Path(path).name
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(str(path), timeout=0, isolation_level=None, check_same_thread=False)
            self._open()
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                hint = "end the runtime that holds it, or name another file"
                raise ConflictError.of(
                    "AKF-C702", f"{self._name}: another runtime holds this journal", hint=hint
                ) from None
            raise StorageError.of("AKF-F708", f"{self._name}: the journal cannot be opened: {error}") from None
        except sqlite3.DatabaseError:
            raise self._foreign() from None
        self._over = self._rows(_COUNT)[0][0]
        self._failed: str | None = None
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="akf-journal", daemon=True)
        self._thread.start()

    def last(self) -> int:
        """The last sequence number."""
        return self._rows("SELECT coalesce(max(seq), 0) FROM events")[0][0]  # type: ignore[no-any-return]

    def between(self, since: int, most: int) -> list[Record]:
        """Up to so many events after a sequence number; a `lost` stands for those that are kept no more."""
        found = []
        for row in self._rows("SELECT * FROM events WHERE seq > ? ORDER BY seq LIMIT ?", since, most):
            record = _record(row)
            if record.seq > since + 1:
                data = {"from": since + 1, "to": record.seq - 1}
                found.append(Record(record.seq - 1, "lost", None, None, 0, data))
            found.append(record)
            since = record.seq
        return found

    def events(self, task: str) -> list[Record]:
        """All events of a task."""
        return [_record(row) for row in self._rows("SELECT * FROM events WHERE task = ? ORDER BY seq", task)]

    def unfinished(self) -> Iterator[str]:
        """Tasks that were accepted and have not ended, in the order in which they were accepted."""
        query = (
            "SELECT task FROM events AS one WHERE kind = 'accepted' AND NOT EXISTS (SELECT 1 FROM events AS other"
            " WHERE other.task = one.task AND other.kind IN ('finished', 'failed', 'cancelled')) ORDER BY seq"
        )
        for (task,) in self._rows(query):
            yield task

    def accepted(self) -> int:
        """How many tasks were ever accepted."""
        query = "SELECT (SELECT count(*) FROM events WHERE kind = 'accepted') + (SELECT count(*) FROM gone)"
        return self._rows(query)[0][0]  # type: ignore[no-any-return]

    def same(self, task: str, graph: Any) -> bool | None:
        """Whether this graph was accepted under this id; None where nothing was, now or ever."""
        if self.has(task):
            return bool(self.events(task)[0].data["graph"] == graph)
        gone = self._rows("SELECT graph FROM gone WHERE task = ?", task)
        return gone[0][0] == _digest(graph) if gone else None

    def has(self, task: str) -> bool:
        """Whether a task was accepted and is kept."""
        return bool(self._rows("SELECT 1 FROM events WHERE task = ? AND kind = 'accepted'", task))

    def write(self, records: list[Record], done: Callable[[str | None], None]) -> None:
        """Make events durable, then say so on the journal's thread, or why they are not: then nothing is any more."""
        self._jobs.put((records, done))

    def settle(self) -> None:
        """Wait until everything so far is written."""
        written = threading.Event()
        self._jobs.put(([], lambda _: written.set()))
        written.wait()

    def refusal(self, why: str) -> StorageError:
        """What is said of a journal that cannot be written."""
        hint = "make room and start the runtime again: it goes on from what is durable"
        return StorageError.of("AKF-F708", f"{self._name}: the journal cannot be written: {why}", hint=hint)

    def close(self) -> None:
        """Write what waits, and let the file go."""
        self._jobs.put(None)
        self._thread.join()
        self._db.close()

    def _open(self) -> None:
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("BEGIN EXCLUSIVE")
        found = (
            self._db.execute("PRAGMA application_id").fetchone()[0],
            self._db.execute("PRAGMA user_version").fetchone()[0],
        )
        tables = self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if found == (0, 0) and not tables:
            for statement in _SCHEMA.split(";\n"):
                self._db.execute(statement)
            self._db.execute(_GONE)
            self._db.execute(f"PRAGMA application_id = {_ID}")
            self._db.execute(f"PRAGMA user_version = {_VERSION}")
        elif found != (_ID, _VERSION):
            raise self._foreign()
        else:
            self._db.execute(_GONE)  # journals of before had none
        self._db.execute("COMMIT")

    def _foreign(self) -> IntegrityError:
        hint = "name another file; this one was left as it is"
        return IntegrityError.of("AKF-I701", f"{self._name} is no journal of this version", hint=hint)

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with self._lock:
            return self._db.execute(query, values).fetchall()

    def _serve(self) -> None:
        job = self._jobs.get()
        while job is not None:
            jobs = [job]
            while not self._jobs.empty() and (job := self._jobs.get()) is not None:
                jobs.append(job)
            failed = self._commit([record for records, _ in jobs for record in records])
            for _, done in jobs:
                done(failed)
            if job is not None:
                job = self._jobs.get()

    def _commit(self, records: list[Record]) -> str | None:
        if not records or self._failed is not None:
            return self._failed
        rows = [(*record[:5], _JSON(record.data)) for record in records]
        over = self._over + sum(record.kind in FINAL for record in records)
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)
                if over > self._keep + self._keep // 8:
                    over -= self._let_go()
                self._db.execute("COMMIT")
                self._over = over
            except sqlite3.Error as error:
                self._failed = str(error)
        return self._failed

    def _let_go(self) -> int:
        """Let the oldest tasks that are over go; returns how many."""
        run = self._db.execute
        old = run(_OLDEST, (self._keep,)).fetchall()
        for task, _ in old:
            query = "SELECT data FROM events WHERE task = ? AND kind = 'accepted'"
            graph = json.loads(run(query, (task,)).fetchone()[0])["graph"]
            run("INSERT INTO gone VALUES (?, ?)", (task, _digest(graph)))
            run("DELETE FROM events WHERE task = ?", (task,))
        if old:
            run("DELETE FROM events WHERE task IS NULL AND seq <= ?", (old[0][1],))
        return len(old)


def _digest(graph: Any) -> bytes:
    return hashlib.sha256(json.dumps(graph, sort_keys=True, separators=(",", ":")).encode()).digest()[:16]


def replay(records: list[Record], graph_of: Callable[[Any], Any]) -> tuple[Task, TaskState, list[Told]]:
    """A task as its events tell it, and what followed from them and is not among them."""
    first = records[0]
    task = Task(str(first.task), graph_of(first.data["graph"]), first.data["tenant"], first.data["nice"])
    state = TaskState(task.id, task.graph)
    missing: list[Told] = []
    for record in records[1:]:
        told = Told(record.kind, record.node, record.data)
        if told in missing:
            missing.remove(told)
        else:
            missing += state.apply(record.kind, record.node, record.data)
    return task, state, missing


def _record(row: Any) -> Record:
    seq, kind, task, node, at_ns, data = row
    return Record(seq, kind, task, node, at_ns, json.loads(data))
