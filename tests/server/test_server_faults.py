"""What goes wrong around jobs, with real processes that are killed: nothing is lost, or blamed on a candidate."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.support import services
from tests.support.services import GOOD, JOB, Service, akf_worker, until

pytest.importorskip("fastapi", reason="services are an extra")
from akf.client import AKFClient

pytestmark = pytest.mark.soak


def waits(flag: Path) -> str:
    """A candidate that says it runs, and goes on when it is let."""
    return (
        "import pathlib, time\nimport numpy\n\n"
        "class ModelNew:\n    def __call__(self, x):\n"
        f"        flag = pathlib.Path({str(flag)!r})\n"
        "        if not flag.with_suffix('.go').exists():\n            flag.touch()\n"
        "        while not flag.with_suffix('.go').exists():\n            time.sleep(0.02)\n"
        "        return numpy.maximum(x, 0)\n"
    )


def naps(seconds: int) -> str:
    """A candidate that takes its time, once a process."""
    return (
        f"import time\nimport numpy\n\nnaps = [{seconds}]\n\nclass ModelNew:\n    def __call__(self, x):\n"
        "        time.sleep(naps.pop() if naps else 0)\n        return numpy.maximum(x, 0)\n"
    )


def happened(client: AKFClient, job: str, kind: str) -> dict[str, Any]:
    """The first event of a kind, as soon as it happens."""
    return next(event for event in client.events(job) if event["kind"] == kind)


def kinds(client: AKFClient, job: str) -> list[str]:
    return [event["kind"] for event in client.events(job)]


def test_a_job_outlives_its_server_and_its_worker(tmp_path: Path) -> None:
    """Server and worker are killed in the middle of a job; the job ends on the other worker, under the next Server."""
    flag = tmp_path / "flag"
    with services.aikg_worker("0") as first:
        with services.server(tmp_path / "store") as server, AKFClient(server.url) as client:
            client.register_worker(first.url, "cpu", "x86_64")
            job = client.submit_job(**JOB, init_code=waits(flag))
            until(flag.exists)
            server.kill()
        with services.server(tmp_path / "store") as server, AKFClient(server.url) as client:
            found = client.get_job_status(job)
            assert found["status"] in {"pending", "running"}
            assert len(client.get_workers_status()) == 1
            assert happened(client, job, "requeued")["why"] == "the Server was interrupted"
            first.kill()
            flag.with_suffix(".go").touch()
            with services.aikg_worker("0,1") as second:
                client.register_worker(second.url, "cpu", "x86_64")
                done = client.wait_for_completion(job, timeout=60)
                assert (done["status"], done["outcome"], done["starts"]) == ("completed", "ok", 2)
                assert done["result"]["worker"] == second.url
                assert _free(second.url) == 2


def test_what_a_worker_fails_to_do_is_tried_elsewhere_and_is_nobody_s_failure(tmp_path: Path) -> None:
    """The worker with the lowest load is dead; another dies in the middle of a verification."""
    flag = tmp_path / "flag"
    with (
        services.server(tmp_path / "store") as server,
        services.aikg_worker("0,1,2,3") as dead,
        services.aikg_worker("0") as dying,
        AKFClient(server.url) as client,
    ):
        client.register_worker(dead.url, "cpu", "x86_64")
        dead.kill()
        client.register_worker(dying.url, "cpu", "x86_64", tags=["dying"])
        job = client.submit_job(**JOB, init_code=waits(flag), tags=["dying"])
        until(flag.exists)
        dying.kill()
        flag.with_suffix(".go").touch()
        assert happened(client, job, "worker_fault")["worker"] == dying.url
        assert client.get_job_status(job)["status"] == "running"
        with services.aikg_worker("0,1") as alive:
            client.register_worker(alive.url, "cpu", "x86_64", tags=["dying"])
            done = client.wait_for_completion(job, timeout=60)
            assert (done["status"], done["outcome"]) == ("completed", "ok")
            several = [client.submit_job(**JOB, init_code=GOOD) for _ in range(3)]
            assert [client.wait_for_completion(each, timeout=60)["status"] for each in several] == ["completed"] * 3
            assert _free(alive.url) == 2


def test_a_cancelled_job_s_processes_have_ended_when_that_is_answered(tmp_path: Path) -> None:
    with (
        services.server(tmp_path / "store") as server,
        akf_worker(tmp_path / "worker") as worker,
        AKFClient(server.url) as client,
    ):
        client.register_worker(worker.url, "cpu", "x86_64")
        job = client.submit_job(**{**JOB, "op_name": "cancelled_op"}, init_code=naps(60))
        until(lambda: candidates("cancelled_op"))
        after = client.submit_job(**JOB, init_code=GOOD)
        assert client.cancel_job(job) == {"cancelled": True}
        assert candidates("cancelled_op") == []
        assert client.get_job_status(job)["status"] == "cancelled"
        assert client.wait_for_completion(after, timeout=60)["status"] == "completed"
        assert server.end() == 0
        assert json.loads(server.said.read_text().partition("\n")[2])["jobs"]["cancelled"] == 1


def test_a_server_that_is_told_to_end_does_and_its_jobs_wait_for_the_next(tmp_path: Path) -> None:
    """Although somebody reads events and a job runs; what runs is ended, and its device is free."""
    with akf_worker(tmp_path / "worker") as worker:
        with services.server(tmp_path / "store") as server, AKFClient(server.url) as client:
            client.register_worker(worker.url, "cpu", "x86_64")
            job = client.submit_job(**{**JOB, "op_name": "ended_op"}, init_code=naps(6))
            until(lambda: candidates("ended_op"))
            reader = threading.Thread(target=lambda: list(client.events(job)))
            reader.start()
            begun = time.monotonic()
            assert server.end() == 0
            assert time.monotonic() - begun < 15
            reader.join(10)
            assert not reader.is_alive()
        assert candidates("ended_op") == []
        assert _free(worker.url) == 1
        with services.server(tmp_path / "store") as server, AKFClient(server.url) as client:
            done = client.wait_for_completion(job, timeout=120)
            assert (done["status"], done["starts"]) == ("completed", 2)


def test_a_worker_that_hangs_is_lost_and_taken_back(tmp_path: Path) -> None:
    """It is stopped, not killed: its connections stay open and nobody answers on them."""
    with (
        services.server(tmp_path / "store") as server,
        akf_worker(tmp_path / "one") as hanging,
        AKFClient(server.url) as client,
    ):
        client.register_worker(hanging.url, "cpu", "x86_64")
        job = client.submit_job(**{**JOB, "op_name": "lost_op"}, init_code=naps(1))
        until(lambda: candidates("lost_op"))
        os.kill(hanging.process.pid, signal.SIGSTOP)
        with akf_worker(tmp_path / "two") as other:
            client.register_worker(other.url, "cpu", "x86_64")
            done = client.wait_for_completion(job, timeout=300)
            os.kill(hanging.process.pid, signal.SIGCONT)
            assert (done["status"], done["result"]["worker"]) == ("completed", other.url)
            until(lambda: all(each["health"] == "closed" for each in _workers(server)), 90)
            until(lambda: _free(hanging.url) == 1)


def test_killed_again_and_again_nothing_is_lost_or_run_to_its_end_twice(tmp_path: Path) -> None:
    """Twenty jobs; the Server is killed four times meanwhile."""
    with akf_worker(tmp_path / "worker", devices="0,1") as worker:
        jobs: list[str] = []
        for number in range(5):
            with services.server(tmp_path / "store") as server, AKFClient(server.url) as client:
                if number == 0:
                    client.register_worker(worker.url, "cpu", "x86_64")
                if number < 4:
                    jobs += [client.submit_job(**JOB, init_code=GOOD) for _ in range(5)]
                    time.sleep(0.4 * number)
                    server.kill()
                    continue
                done = [client.wait_for_completion(job, timeout=300) for job in jobs]
                assert {each["status"] for each in done} == {"completed"}
                assert [kinds(client, job).count("finished") for job in jobs] == [1] * 20
                until(lambda: _free(worker.url) == 2)
                print(f"20 jobs, 4 kills: {sum(each['starts'] for each in done)} starts")


def _workers(server: Service) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = requests.get(f"{server.url}/api/v1/workers", timeout=30).json()
    return found


def _free(url: str) -> int:
    """How many devices of a worker are free: so many can be acquired at once."""
    devices = requests.get(f"{url}/api/v1/status", timeout=30).json()["devices"]
    taken = []
    for number in range(len(devices)):
        try:
            data = {"task_id": f"count-{number}"}
            taken.append(requests.post(f"{url}/api/v1/acquire_device", data=data, timeout=5).json()["device_id"])
        except requests.Timeout:
            break
    for number, device in enumerate(taken):
        data = {"task_id": f"count-{number}", "device_id": str(device)}
        requests.post(f"{url}/api/v1/release_device", data=data, timeout=5)
    return len(taken)


def candidates(op_name: str) -> list[str]:
    """The command lines of this operator's candidates that run."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = place.read_bytes().decode("utf-8", "replace")
            if "check_program.candidate" in words and op_name in words:
                found.append(words)
    return found
