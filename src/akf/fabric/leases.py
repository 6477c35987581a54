"""Leases of devices on the disk, so that a service that is killed knows what it had lent.

Invariants:
- A lease is on the disk before anybody has it, and its end before anybody else has the device: what is written down
  between two commits gets there together or not at all, and who writes tells nobody before the commit.
- Tokens rise for ever: each is larger than all that were given, and the clock's milliseconds at least, so they rise
  even where the file was lost.
- Times are those of the boot clock, which nobody can set. After a boot nothing of before runs, and no lease holds.
- One process has a folder; another one is refused.
- An audit line is written for each grant, release and reclaim, and never changed.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from akf.contracts.problems import ConflictError, IntegrityError, StorageError
from akf.contracts.text import printable
from akf.fabric.clock import boot_clock
from akf.store._system import storage

DATABASE = "leases.sqlite"
AUDIT_KEPT = 100_000
_LARGEST_DEVICE = 2**63 - 1
"""What the file can hold of a number that a stranger sent."""
Event = Literal["granted", "released", "reclaimed", "refused"]
_SCHEMA = """
create table if not exists lease (
    id text primary key, task text not null, tenant text not null, device integer not null, token integer not null,
    ttl_s real, granted_s real not null, seen_s real not null
) strict;
create table if not exists state (name text primary key, value text not null) strict;
create table if not exists audit (
    at integer primary key, unix_ms integer not null, event text not null, lease text not null, task text not null,
    tenant text not null, device integer not null, token integer not null, why text not null
) strict;
"""


class Lease(NamedTuple):
    """A device that one task has.

    Attributes:
        ttl_s: how long it holds without a renewal; none is a lease of the AIKG wire, which knows no renewal.
        seen_s: when it was last granted, renewed or used, on the boot clock.
    """

    id: str
    task: str
    tenant: str
    device: int
    token: int
    ttl_s: float | None
    granted_s: float
    seen_s: float


class AuditLine(NamedTuple):
    """What happened to a lease."""

    at: int
    unix_ms: int
    event: str
    lease: str
    task: str
    tenant: str
    device: int
    token: int
    why: str


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is still the one at this path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


class LeaseBook:
    """The leases of one worker, in a folder of its own.

    Args:
        folder: where; it is made when it is missing.

    Raises:
        ConflictError: another process has the folder.
        StorageError: it cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        with storage(folder, "create"):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            message = f"another worker has the folder {folder.name}"
            hint = "end it, or give this one a folder of its own (--folder)"
            raise ConflictError.of("AKF-C501", message, file=str(folder), hint=hint) from None
        if not _is_at(self._lock, folder / "lock"):
            os.close(self._lock)
            message = f"the folder {folder.name} was removed while it was opened"
            raise ConflictError.of("AKF-C501", message, file=str(folder), hint="open it again")
        self._path = folder / DATABASE
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            os.close(self._lock)
            message = f"{DATABASE} cannot be read: {error}"
            hint = "nothing runs here now: move the file away; tokens go on from the clock"
            raise IntegrityError.of("AKF-I501", message, file=str(self._path), hint=hint) from error

    def _open(self) -> None:
        self._database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        self._database.execute("pragma journal_mode=wal")
        self._database.execute("pragma synchronous=normal")  # what a power cut takes away held nothing any more
        self._database.executescript(_SCHEMA)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        stored = dict(self._database.execute("select name, value from state"))
        given = self._database.execute("select max(token) from audit").fetchone()[0] or 0
        self._token = max(given, time.time_ns() // 1_000_000)
        self.lost: tuple[Lease, ...] = ()
        """Leases of before the machine was started again."""
        if stored.get("boot", boot) != boot:
            self.lost = tuple(self.held())
        for lease in self.lost:
            self._write("reclaimed", lease, "the machine was started again")
        self.commit()
        self._database.execute("insert or replace into state values ('boot', ?)", (boot,))

    def close(self) -> None:
        """Let the folder go; the leases hold on."""
        with suppress(sqlite3.Error, StorageError):
            self.commit()
        with suppress(sqlite3.Error):
            self._database.close()
        os.close(self._lock)

    def held(self) -> list[Lease]:
        """Every lease that holds, oldest first."""
        names = ", ".join(Lease._fields)
        return [Lease(*row) for row in self._database.execute(f"select {names} from lease order by token")]  # noqa: S608

    def grant(self, task: str, tenant: str, device: int, ttl_s: float | None) -> Lease:
        """Write down a new lease."""
        self._token += 1
        now = boot_clock()
        lease = Lease(os.urandom(16).hex(), task, tenant, device, self._token, ttl_s, now, now)
        self._write("granted", lease, "")
        return lease

    def seen(self, lease: Lease) -> Lease:
        """Write down that a lease is in use."""
        lease = lease._replace(seen_s=boot_clock())
        with self._stored():
            self._begin()
            self._database.execute(
                "update lease set seen_s = ?, ttl_s = ? where id = ?", (lease.seen_s, lease.ttl_s, lease.id)
            )
        return lease

    def end(self, lease: Lease, event: Event, why: str) -> None:
        """Write down that a lease holds no more."""
        self._write(event, lease, why)

    def refused(self, task: str, tenant: str, device: int, why: str) -> None:
        """Write down a release that released nothing."""
        known = device if abs(device) <= _LARGEST_DEVICE else -1
        with self._stored():
            self._begin()
            self._audit("refused", Lease("", task, tenant, known, 0, None, 0.0, 0.0), why)

    def audit(self, most: int = 1000) -> list[AuditLine]:
        """The last lines, oldest first."""
        rows = self._database.execute("select * from audit order by at desc limit ?", (most,)).fetchall()
        return [AuditLine(*row) for row in reversed(rows)]

    def commit(self) -> None:
        """Put on the disk what was written down since the last time; all of it, or nothing."""
        if self._database.in_transaction:
            with self._stored():
                self._database.execute("commit")

    def _write(self, event: Event, lease: Lease, why: str) -> None:
        with self._stored():
            self._begin()
            if event == "granted":
                self._database.execute("insert into lease values (?, ?, ?, ?, ?, ?, ?, ?)", lease)
            else:
                self._database.execute("delete from lease where id = ?", (lease.id,))
            self._audit(event, lease, why)

    def _begin(self) -> None:
        if not self._database.in_transaction:
            self._database.execute("begin immediate")

    @contextmanager
    def _stored(self) -> Iterator[None]:
        """What cannot be written is said as a fault of the storage, with all that was written down with it."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if self._database.in_transaction:
                self._database.execute("rollback")
            hint = "free space on its file system; what was lent stays lent, and nothing new is"
            raise StorageError.of(
                "AKF-F501", f"{DATABASE} cannot be written: {error}", file=str(self._path), hint=hint
            ) from error

    def _audit(self, event: Event, lease: Lease, why: str) -> None:
        row = (time.time_ns() // 1_000_000, event, lease.id, lease.task, lease.tenant, lease.device, lease.token)
        at = self._database.execute(
            "insert into audit (unix_ms, event, lease, task, tenant, device, token, why)"
            " values (?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, printable(why)),
        ).lastrowid
        if at is not None and at % 1000 == 0:
            self._database.execute("delete from audit where at <= ?", (at - AUDIT_KEPT,))
