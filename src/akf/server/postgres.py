"""A store that several Servers share: PostgreSQL.

Invariants:
- Each Server has a row that says when it was last heard of, by the database's clock. One that is silent for the lease's
  time is dead: its jobs and devices are another one's, and it learns so itself before it does anything more.
- A job is claimed by `FOR UPDATE SKIP LOCKED`: two Servers never have the same one, and none waits for another.
- The tables are brought to this version under a lock, once, whichever Server comes first; tables of a later version are
  left alone.
- No text of an error holds the address's password.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar
from urllib.parse import urlsplit

import psycopg

from akf.contracts.problems import BlockedError, IntegrityError, StorageError
from akf.contracts.text import printable
from akf.server.store import VERSION, Rows, Store

LEASE_S = 15.0
CONNECT_S = 5
_SCHEMA_LOCK, _EVENT_LOCK = 0x414B46_01, 0x414B46_02
_SESSION = "-c statement_timeout=10000 -c lock_timeout=10000 -c idle_in_transaction_session_timeout=30000"
_MIGRATIONS = {
    2: """
CREATE TABLE jobs (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE, "user" TEXT NOT NULL,
    status TEXT NOT NULL, priority INTEGER NOT NULL, request BYTEA NOT NULL, result BYTEA, error TEXT, outcome TEXT,
    starts INTEGER NOT NULL DEFAULT 0, submit_time DOUBLE PRECISION NOT NULL, start_time DOUBLE PRECISION,
    end_time DOUBLE PRECISION, owner TEXT, cancel INTEGER NOT NULL DEFAULT 0);
CREATE INDEX jobs_by_status ON jobs (status, number);
CREATE TABLE events (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, job TEXT NOT NULL, time DOUBLE PRECISION NOT NULL,
    kind TEXT NOT NULL, data BYTEA NOT NULL);
CREATE INDEX events_of_job ON events (job, number);
CREATE TABLE workers (name TEXT PRIMARY KEY, entry BYTEA NOT NULL);
CREATE TABLE holds (
    worker TEXT NOT NULL, task TEXT NOT NULL, device BIGINT NOT NULL, owner TEXT NOT NULL,
    PRIMARY KEY (worker, task, device));
CREATE TABLE servers (name TEXT PRIMARY KEY, seen TIMESTAMPTZ NOT NULL);
""",
}
"""What brings tables of the version before to this one; the numbers are those of every home."""


class PostgresStore(Store):
    """The store in a database.

    Args:
        address: `postgresql://HOST/DATABASE`; what it leaves out is read as every client of PostgreSQL does it, the
            password from `PGPASSWORD` or the user's `.pgpass`.
        lease_s: how long a Server that is not heard of is taken for alive.

    Raises:
        BlockedError: the database does not answer, or not to this user.
        IntegrityError: its tables are of a later version.
    """

    shared: ClassVar[bool] = True

    def __init__(self, address: str, lease_s: float = LEASE_S) -> None:
        super().__init__()
        self._address = address
        self.shown = shown(address)
        self.lease_s = lease_s
        try:
            self._base = self._connected()
            self._migrate()
        except psycopg.Error as error:
            hint = "is it running, and does it take this user? PGPASSWORD or .pgpass gives the password"
            text = f"the database {self.shown} gave no answer: {self._words(error)}"
            raise BlockedError.of("AKF-E611", text, hint=hint) from None
        self._join()

    def close(self) -> None:
        """See `Store.close`."""
        with suppress(psycopg.Error, StorageError):
            self._run("DELETE FROM servers WHERE name = ?", (self.owner,))
        self._base.close()

    def beat(self) -> bool:
        """See `Store.beat`."""
        known = self._run("UPDATE servers SET seen = clock_timestamp() WHERE name = ?", (self.owner,)).rowcount == 1
        if not known:
            self.owner = uuid.uuid4().hex  # what ran under the old name is whoever's takes it over
            self._join()
            return False
        silent = "DELETE FROM servers WHERE seen < clock_timestamp() - make_interval(secs => ?)"
        self._run(silent, (self.lease_s,))
        return True

    def _join(self) -> None:
        self._run("INSERT INTO servers (name, seen) VALUES (?, clock_timestamp())", (self.owner,))

    @property
    def _dead(self) -> str:
        return "(owner IS NULL OR owner NOT IN (SELECT name FROM servers))"

    @property
    def _locking(self) -> str:
        return " FOR UPDATE SKIP LOCKED"

    def _in_order(self) -> None:
        self._run("SELECT pg_advisory_xact_lock(?)", (_EVENT_LOCK,))

    def _run(self, query: str, values: Sequence[Any] = ()) -> Rows:
        try:
            if self._base.closed:
                self._base = self._connected()
            return self._base.execute(query.replace("?", "%s").encode(), values)
        except psycopg.Error as error:
            raise self._unwritten(error) from None

    @contextmanager
    def _written(self) -> Iterator[None]:
        try:
            if self._base.closed:
                self._base = self._connected()
            with self._base.transaction():
                yield
        except psycopg.Error as error:
            raise self._unwritten(error) from None

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(
            self._address, autocommit=True, connect_timeout=CONNECT_S, options=_SESSION, application_name="akf server",
            tcp_user_timeout=10_000,
        )  # fmt: skip

    def _migrate(self) -> None:
        with self._base.transaction():
            self._base.execute("SELECT pg_advisory_xact_lock(%s)", (_SCHEMA_LOCK,))
            self._base.execute("CREATE TABLE IF NOT EXISTS akf_store (version INTEGER NOT NULL)")
            found = self._base.execute("SELECT COALESCE(MAX(version), 0) FROM akf_store").fetchone()
            version = found[0] if found else 0
            if version > VERSION:
                self._base.close()
                text = f"this is no store of this version: its version is {version}"
                raise IntegrityError.of("AKF-I601", text, file=self.shown, hint="name another database")
            for number in sorted(_MIGRATIONS):
                if number > version:
                    self._base.execute(_MIGRATIONS[number].encode())
                    self._base.execute("INSERT INTO akf_store (version) VALUES (%s)", (number,))

    def _unwritten(self, error: psycopg.Error) -> StorageError:
        text = f"the store cannot be reached or written: {self._words(error)}"
        hint = "look at the database; what was accepted is still there"
        return StorageError.of("AKF-F602", text, file=self.shown, hint=hint)

    def _words(self, error: psycopg.Error) -> str:
        said = " ".join(str(error).split()) or type(error).__name__
        for secret in _secrets(self._address):
            said = said.replace(secret, "…")
        return printable(said)[:500]


def shown(address: str) -> str:
    """An address without its user, its password and its settings."""
    try:
        parts = urlsplit(address)
        return printable(f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}")
    except ValueError:
        return "postgresql://…"


def _secrets(address: str) -> list[str]:
    """Whatever of an address may be a password: that of its user, and all of its settings."""
    try:
        parts = urlsplit(address)
        found = [address, parts.password or "", parts.query]
    except ValueError:
        found = [address, address.partition("://")[2].rpartition("@")[0]]
    return sorted(filter(None, found), key=len, reverse=True)
