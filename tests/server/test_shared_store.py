"""Several Servers on one PostgreSQL: each job runs once, and what a dead one ran goes on at another."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import postgres, services
from tests.support.cli import inside
from tests.support.services import GOOD, JOB, SLEEPS
from tests.support.worker_service import service

pytest.importorskip("fastapi", reason="services are an extra")
pytest.importorskip("psycopg", reason="PostgreSQL is an extra")
import psycopg

from akf.client import AKFClient
from akf.contracts.problems import BlockedError, IntegrityError, StorageError
from akf.server.postgres import PostgresStore

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with postgres.cluster() as made:
        yield made


def emptied(address: str) -> str:
    """The same database without a table."""
    with psycopg.connect(address, autocommit=True) as base:
        base.execute("DROP SCHEMA public CASCADE")
        base.execute("CREATE SCHEMA public")
    return address


def test_of_many_who_claim_a_job_at_once_one_gets_it(address: str) -> None:
    emptied(address)
    stores = [PostgresStore(address) for _ in range(4)]
    names = [f"job-{number}" for number in range(50)]
    for name in names:
        stores[0].add(name, "ann", {"priority": 0})
    won: list[list[str]] = [[] for _ in stores]
    together = threading.Barrier(len(stores))

    def claim(index: int) -> None:
        together.wait()
        won[index] = [name for name in names if stores[index].start(name)]

    threads = [threading.Thread(target=claim, args=(index,)) for index in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(name for each in won for name in each) == sorted(names)
    numbers = [event.number for event in stores[1].events(None, 0, 1000)]
    assert numbers == sorted(set(numbers))
    assert [each.starts for each in stores[2].jobs()] == [1] * len(names)
    for store in stores:
        store.close()


def test_who_was_taken_for_dead_ends_nothing_of_what_others_run_now(address: str) -> None:
    emptied(address)
    late, quick = PostgresStore(address, lease_s=0.2), PostgresStore(address, lease_s=0.2)
    late.add("a", "ann", {"priority": 0})
    assert late.start("a")
    time.sleep(0.3)
    assert quick.beat()
    assert [each.id for each in quick.take_over()] == ["a"]
    assert not late.finish("a", "completed", result=None, error=None, outcome="ok")
    late.requeue("a", "no reason")
    assert not late.beat()
    assert late.beat()
    found = quick.job("a")
    assert found is not None
    assert found.status == "running"
    assert quick.finish("a", "completed", result=None, error=None, outcome="ok")
    late.close()
    quick.close()


def test_tables_of_a_later_version_are_left_alone_and_a_broken_connection_is_made_again(address: str) -> None:
    emptied(address)
    store = PostgresStore(address)
    with psycopg.connect(address, autocommit=True) as base:
        base.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'akf server'")
        with pytest.raises(StorageError, match="AKF-F602"):
            store.counts()
        assert store.counts()["pending"] == 0
        store.close()
        base.execute("UPDATE akf_store SET version = 99")
    with pytest.raises(IntegrityError, match="99"):
        PostgresStore(address)


def test_a_password_is_in_no_error() -> None:
    secret = "postgresql://ann:hunter2@127.0.0.1:9/akf?sslpassword=hunter3"  # noqa: S105
    with pytest.raises(BlockedError) as caught:
        PostgresStore(secret)
    assert "postgresql://127.0.0.1:9/akf" in str(caught.value)
    refused = inside("server", "--port", 0, "--store", secret).refused(6)
    assert refused.codes == {"AKF-E611"}
    assert "hunter" not in f"{caught.value}{refused.out.decode()}{refused.err}"


def test_two_servers_share_jobs_and_one_takes_over_what_the_other_ran(address: str, tmp_path: Path) -> None:
    emptied(address)
    with (
        service(tmp_path / "worker", devices="0,1") as worker,
        services.started(["akf", "server", "--port", "0", "--store", address]) as one,
        services.started(["akf", "server", "--port", "0", "--store", address]) as two,
        AKFClient(one.url) as first,
        AKFClient(two.url) as second,
    ):
        first.register_worker(worker.url, "cpu", "x86_64")
        jobs = [client.submit_job(**JOB, init_code=GOOD) for client in (first, second) for _ in range(6)]
        for job in jobs:
            found = first.wait_for_completion(job, interval=0.2, timeout=120)
            assert (found["status"], found["starts"]) == ("completed", 1)
        assert [second.get_job_status(job)["status"] for job in jobs] == ["completed"] * len(jobs)

        slow = first.submit_job(**JOB, init_code=SLEEPS)
        services.until(lambda: second.get_job_status(slow)["status"] == "running")
        assert second.cancel_job(slow) == {"cancelled": True}
        assert services.until(lambda: worker.free() == 2)

        lasting = [first.submit_job(**JOB, init_code=f"import time\n\ntime.sleep(6)\n{GOOD}") for _ in range(2)]
        services.until(lambda: worker.free() == 0)
        one.kill()
        two.kill()
        with (
            services.started(["akf", "server", "--port", "0", "--store", address]) as three,
            AKFClient(three.url) as third,
        ):
            for job in lasting:
                found = third.wait_for_completion(job, interval=0.2, timeout=120)
                assert (found["status"], found["starts"]) == ("completed", 2)
                kinds = [each["kind"] for each in third.events(job)]
                assert (kinds.count("requeued"), kinds.count("finished")) == (1, 1)
            assert services.until(lambda: worker.free() == 2)
