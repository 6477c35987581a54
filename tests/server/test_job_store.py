"""What is kept: jobs, their order, events, retention; and whose turn it is."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import postgres

pytest.importorskip("fastapi", reason="services are an extra")
from akf.contracts.problems import BlockedError, ConflictError, IntegrityError, StorageError
from akf.server.sqlite import SqliteStore
from akf.server.store import Job, Store, opened
from akf.server.waiting import Waiting

REQUEST = {
    "op_name": "relu", "job_type": "single", "backend": "cpu", "arch": "x86_64", "init_code": "x", "priority": 0,
}  # fmt: skip


def job(store: Store, identity: str, user: str = "ann", **fields: object) -> Job:
    return store.add(identity, user, {**REQUEST, **fields})


def order(waiting: Waiting, room: bool = True, among: set[str] | None = None) -> list[str]:
    """Which jobs come one after another, each taking as long as the others."""
    found = []
    while (taken := waiting.take(lambda user: among is None or user in among, lambda _: room)) is not None:
        turn, place = taken
        waiting.share.settle(turn, 1_000_000_000)
        found.append(place.id)
    return found


class Home:
    """Where a store is: it can be opened, and a Server on it can die."""

    def __init__(self, place: str, *, shared: bool) -> None:
        self.place, self.shared = place, shared

    def __call__(self) -> Store:
        if not self.shared:
            return opened(self.place)
        from akf.server.postgres import PostgresStore  # noqa: PLC0415

        return PostgresStore(self.place, lease_s=0.3)

    def kill(self, store: Store) -> None:
        """End its Server without a word."""
        if not self.shared:
            store.close()
            return
        other = self()
        time.sleep(0.4)
        other.beat()
        other.close()
        store.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    if request.param == "sqlite":
        yield Home(str(tmp_path / "store"), shared=False)
        return
    pytest.importorskip("psycopg", reason="PostgreSQL is an extra")
    with postgres.cluster() as address:
        yield Home(address, shared=True)


class TestContract:
    """What holds in every home of a store."""

    def test_a_job_ends_once(self, home: Home) -> None:
        store = home()
        job(store, "a")
        assert store.start("a")
        assert not store.start("a")
        assert store.finish("a", "completed", result={"success": True}, error=None, outcome="ok")
        assert not store.finish("a", "cancelled", result=None, error=None, outcome=None)
        store.requeue("a", "no reason")
        found = store.job("a")
        assert found is not None
        assert (found.status, found.result, found.starts) == ("completed", {"success": True}, 1)
        assert [each.kind for each in store.events("a", 0, 100)] == ["submitted", "started", "finished"]
        store.close()

    def test_retention_takes_the_oldest_that_are_over(self, home: Home) -> None:
        store = home()
        for name in "abcde":
            job(store, name)
        for name in "abcd":
            store.finish(name, "completed", result=None, error=None, outcome=None)
        assert store.prune(keep=2, older_than_s=3600) == 2
        assert [each.id for each in store.jobs()] == ["e", "d", "c"]
        assert {each.job for each in store.events(None, 0, 100)} == {"c", "d", "e"}
        time.sleep(0.01)
        assert store.prune(keep=2, older_than_s=0) == 2
        assert [each.id for each in store.jobs()] == ["e"]
        store.close()

    def test_pages_of_jobs_and_of_events(self, home: Home) -> None:
        store = home()
        for number in range(5):
            job(store, str(number), user="ann" if number % 2 else "bob")
        assert [each.id for each in store.jobs(limit=2)] == ["4", "3"]
        assert [each.id for each in store.jobs(before=4, limit=2)] == ["2", "1"]
        assert [each.id for each in store.jobs(user="ann")] == ["3", "1"]
        first = store.events(None, 0, 3)
        assert [each.job for each in [*first, *store.events(None, first[-1].number, 9)]] == list("01234")
        store.close()

    def test_what_ran_at_a_server_that_is_dead_is_taken_over_once(self, home: Home) -> None:
        first = home()
        for name in "abc":
            job(first, name)
        assert first.start("a")
        assert first.start("b")
        first.hold("http://worker", "a_1", 0)
        first.want_cancel("b")
        assert first.take_over() == []
        assert first.holds() == []
        home.kill(first)
        second = home()
        assert [each.id for each in second.take_over()] == ["a", "b"]
        assert second.take_over() == []
        assert second.cancels() == ["b"]
        assert second.holds() == [("http://worker", "a_1", 0)]
        second.requeue("a", "it died")
        assert second.pending() == ["a", "c"]
        assert second.finish("b", "cancelled", result=None, error=None, outcome="cancelled")
        second.let_go("http://worker", "a_1", 0)
        assert second.holds() == []
        second.close()

    def test_odd_texts_are_kept_and_ask_for_nothing(self, home: Home) -> None:
        store = home()
        job(store, "a", user="b-.'\"%s?")
        assert store.waiting("b-.'\"%s?") == 1
        assert store.finish("a", "error", result={"x": "\0"}, error="half \ud800 and \0", outcome=None)
        found = store.job("a")
        assert found is not None
        assert (found.result, found.error) == ({"x": "\0"}, "half \\ud800 and \\0")
        assert store.job("\0") is None
        store.save_worker("w", {"url": "http://a"})
        store.save_worker("w", {"url": "http://b"})
        assert store.workers() == {"w": {"url": "http://b"}}
        store.remove_worker("w")
        assert store.workers() == {}
        assert store.last_event() == store.events(None, 0, 9)[-1].number
        store.close()


class TestStore:
    def test_what_was_answered_is_there_after_kill(self, tmp_path: Path) -> None:
        script = (
            "import os, signal, sys\nfrom akf.server.sqlite import SqliteStore as Store\n"
            f"store = Store({str(tmp_path)!r})\n"
            "for n in range(20):\n    store.add(str(n), 'ann', {'priority': 0})\n    print(n, flush=True)\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, env=os.environ)
        said = done.stdout.split()
        store = SqliteStore(tmp_path)
        assert {each.id for each in store.jobs()} == {word.decode() for word in said}
        assert len(said) == 20
        store.close()

    def test_one_owner(self, tmp_path: Path) -> None:
        store = SqliteStore(tmp_path)
        with pytest.raises(ConflictError):
            SqliteStore(tmp_path)
        store.close()
        SqliteStore(tmp_path).close()

    def test_what_is_no_store(self, tmp_path: Path) -> None:
        with pytest.raises(BlockedError):
            opened("mysql://host/akf")
        with pytest.raises(StorageError):
            opened("/proc/no-such")
        (tmp_path / "jobs.sqlite").write_bytes(b"something else" * 100)
        with pytest.raises(IntegrityError):
            SqliteStore(tmp_path)
        (tmp_path / "jobs.sqlite").unlink()
        SqliteStore(tmp_path).close()
        base = sqlite3.connect(tmp_path / "jobs.sqlite")
        base.execute("PRAGMA user_version=99")
        base.close()
        with pytest.raises(IntegrityError, match="99"):
            SqliteStore(tmp_path)


class TestWaiting:
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return SqliteStore(tmp_path)

    def test_priority_then_age_within_a_user(self, store: Store) -> None:
        waiting = Waiting({})
        for name, priority in (("a", 0), ("b", 5), ("c", -5), ("d", 0)):
            waiting.add(job(store, name, priority=priority))
        assert order(waiting) == ["c", "a", "d", "b"]

    def test_users_take_turns_whoever_came_first(self, store: Store) -> None:
        waiting = Waiting({})
        for number in range(4):
            waiting.add(job(store, f"a{number}", "ann"))
        for number in range(2):
            waiting.add(job(store, f"b{number}", "bob"))
        assert {"b0", "b1"} <= set(order(waiting)[:4])

    def test_a_nicer_user_gets_less(self, store: Store) -> None:
        waiting = Waiting({"bob": 10})
        for number in range(20):
            waiting.add(job(store, f"a{number}", "ann"))
            waiting.add(job(store, f"b{number}", "bob"))
        assert sum(name.startswith("a") for name in order(waiting)[:20]) >= 15

    def test_what_has_no_room_holds_up_nothing_else(self, store: Store) -> None:
        waiting = Waiting({})
        waiting.add(job(store, "device"))
        waiting.add(job(store, "none", init_code=None))
        assert order(waiting, room=False) == ["none"]
        assert len(waiting) == 1
        assert order(waiting) == ["device"]

    def test_a_user_over_its_quota_waits_and_a_cancelled_job_is_gone(self, store: Store) -> None:
        waiting = Waiting({})
        first, second = job(store, "a", "ann"), job(store, "b", "bob")
        waiting.add(first)
        waiting.add(second)
        assert order(waiting, among={"bob"}) == ["b"]
        assert waiting.remove(first)
        assert not waiting.remove(first)
        assert order(waiting) == []
