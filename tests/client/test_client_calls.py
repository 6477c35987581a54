"""The client against AKF's Server, and against one that knows the AIKG wire and nothing else."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import services, worker_service
from tests.support.cli import inside
from tests.support.services import GOOD, JOB, REFERENCE, WRONG, Service

pytest.importorskip("httpx", reason="the client is an extra")
from akf.client import AIKGClient, AKFClient, AsyncAKFClient, ServiceError, UnreachableError
from akf.client.exchange import Asked


@pytest.fixture(scope="module")
def existing() -> Iterator[Service]:
    with services.started(["tests.support.aikg_server"]) as started:
        yield started


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    pytest.importorskip("fastapi", reason="services are an extra")
    with services.server(tmp_path_factory.mktemp("ours") / "store") as started, services.aikg_worker() as worker:
        with AKFClient(started.url) as client:
            client.register_worker(worker.url, "cpu", "x86_64")
        yield started


def test_the_names_and_arguments_are_those_of_the_known_client() -> None:
    wanted = {
        "submit_job": ["op_name", "task_desc", "job_type", "backend", "arch", "dsl", "framework", "kwargs"],
        "get_job_status": ["job_id"],
        "get_workers_status": [],
        "cancel_job": ["job_id"],
        "wait_for_completion": ["job_id", "interval", "timeout", "cancel_on_interrupt"],
    }
    assert AIKGClient is AKFClient
    for name, arguments in wanted.items():
        for client in (AKFClient, AsyncAKFClient):
            assert list(inspect.signature(getattr(client, name)).parameters)[1:] == arguments, name


@pytest.mark.parametrize("which", ["existing", pytest.param("ours", marks=pytest.mark.soak)])
def test_a_job_from_its_submission_to_its_end(which: str, request: pytest.FixtureRequest) -> None:
    service: Service = request.getfixturevalue(which)
    with AKFClient(service.url) as client:
        good = client.submit_job(**JOB, init_code=GOOD)
        found = client.wait_for_completion(good, interval=0.05, timeout=60)
        assert (found["status"], found["result"]["success"]) == ("completed", True)
        assert client.cancel_job(good)["cancelled"] is (which == "existing")
        wrong = client.submit_job(**{**JOB, "op_name": "wrong"}, init_code=WRONG)
        assert client.wait_for_completion(wrong, interval=0.05, timeout=60)["status"] == "failed"
        assert isinstance(client.get_workers_status(), list)


@pytest.mark.parametrize("which", ["existing", pytest.param("ours", marks=pytest.mark.soak)])
def test_the_same_for_asyncio_many_at_once(which: str, request: pytest.FixtureRequest) -> None:
    service: Service = request.getfixturevalue(which)

    async def several() -> list[str]:
        async with AsyncAKFClient(service.url) as client:
            jobs = [await client.submit_job(**JOB, init_code=GOOD) for _ in range(2)]
            done = await asyncio.gather(*(client.wait_for_completion(job, interval=0.05, timeout=60) for job in jobs))
            return [each["status"] for each in done]

    assert asyncio.run(several()) == ["completed"] * 2


def test_a_refusal_says_what_the_server_said(existing: Service, ours: Service) -> None:
    for service in (existing, ours):
        with AKFClient(service.url) as client, pytest.raises(ServiceError) as caught:
            client.submit_job("relu", "x = 1", backend="cpu", arch="x86_64", dsl="cpp")
        assert caught.value.http_status == 400
        assert "Model" in caught.value.detail
        assert "refused with status 400: " in str(caught.value)
        assert "\n" not in str(caught.value)
        with AKFClient(service.url) as client, pytest.raises(ServiceError) as missing:
            client.get_job_status("../../escape")
        assert missing.value.http_status == 404


def test_nobody_there_is_no_refusal() -> None:
    with AKFClient("http://127.0.0.1:9") as client, pytest.raises(UnreachableError):
        client.wait_for_completion("5", timeout=60)


@pytest.mark.parametrize("which", ["existing", pytest.param("ours", marks=pytest.mark.soak)])
def test_a_wait_ends_in_time_and_the_job_goes_on(which: str, request: pytest.FixtureRequest) -> None:
    service: Service = request.getfixturevalue(which)
    with AKFClient(service.url) as client:
        job = client.submit_job(**{**JOB, "op_name": "sleep_30"}, init_code=services.SLEEPS)
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            client.wait_for_completion(job, interval=0.05, timeout=0.5)
        assert time.monotonic() - begun < 10
        assert client.get_job_status(job)["status"] in {"pending", "running"}
        assert client.cancel_job(job) == {"cancelled": True}


@pytest.mark.soak
def test_who_interrupts_the_wait_cancels_the_job(ours: Service) -> None:
    with AKFClient(ours.url) as client:
        job = client.submit_job(**JOB, init_code=services.SLEEPS)
        script = (
            "from akf.client import AKFClient\n"
            f"with AKFClient({ours.url!r}) as client:\n"
            f"    next(client.events({job!r}))\n"
            "    print('waits', flush=True)\n"
            f"    client.wait_for_completion({job!r})\n"
        )
        waiter = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert waiter.stdout is not None
        assert waiter.stdout.readline() == b"waits\n"
        time.sleep(0.3)
        os.kill(waiter.pid, signal.SIGINT)
        waiter.communicate(timeout=30)
        assert services.until(lambda: client.get_job_status(job)["status"] == "cancelled")


def test_who_interrupts_the_command_that_waits_leaves_the_job_alone(existing: Service) -> None:
    with AKFClient(existing.url) as client:
        job = client.submit_job(**{**JOB, "op_name": "sleep_30"}, init_code=services.SLEEPS)
        argv = [sys.executable, "-m", "akf", "job", "wait", job, "--server", existing.url]
        waiter = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert services.until(lambda: bool(connections(waiter.pid)))
        waiter.send_signal(signal.SIGINT)
        assert b"AKF-U003" in waiter.communicate(timeout=30)[0]
        assert waiter.returncode == 130
        assert client.get_job_status(job)["status"] in {"pending", "running"}
        assert client.cancel_job(job) == {"cancelled": True}


def connections(pid: int) -> list[Path]:
    """The sockets that a process has open."""
    try:
        return [at for at in Path(f"/proc/{pid}/fd").iterdir() if str(at.readlink()).startswith("socket:")]
    except FileNotFoundError:
        return []


@pytest.mark.parametrize("url", ["http://[::", "127.0.0.1:8000", "http://", "ftp://127.0.0.1", "http://127.0.0.1:port"])
def test_what_is_no_address_is_said_before_anything_is_asked(url: str) -> None:
    refused = inside("job", "list", "--server", url).refused(2)
    assert refused.codes == {"AKF-U601"}
    assert "http://HOST:PORT" in refused.problems[0]["hint"]


@pytest.mark.soak
def test_events_go_on_where_one_left_off(ours: Service) -> None:
    with AKFClient(ours.url) as client:
        job = client.submit_job(**JOB, init_code=GOOD)
        whole = list(client.events(job))
        assert (whole[0]["kind"], whole[-1]["kind"]) == ("submitted", "finished")
        assert {"started", "assigned", "log", "verified", "profiled"} <= {each["kind"] for each in whole}
        assert list(client.events(job, after=whole[2]["number"])) == whole[3:]
        assert "all results agree" in client.get_job_log(job)


def test_the_commands(ours: Service, tmp_path: Path) -> None:
    task, code = tmp_path / "relu.py", tmp_path / "code.py"
    task.write_text(REFERENCE)
    code.write_text(WRONG)
    words = ["--backend", "cpu", "--arch", "x86_64", "--dsl", "cpp", "--framework", "numpy", "--server", ours.url]
    failed = inside("job", "submit", task, "--init-code", code, "--set", "priority=3", "--wait", 60, *words)
    assert failed.status == 10
    assert failed.document["job"]["status"] == "failed"
    job = failed.document["job_id"]
    assert inside("job", "wait", job, "--server", ours.url).status == 10
    assert (
        inside("job", "status", job, "--server", ours.url).accepted().document["job"]["outcome"] == "candidate_failed"
    )
    logs = inside("job", "logs", job, "--server", ours.url).accepted().document["log"]
    assert any("values are wrong" in line for line in logs)
    listed = inside("job", "list", "--status", "failed", "--server", ours.url).accepted().document
    assert job in {each["job_id"] for each in listed["jobs"]}
    assert inside("job", "cancel", job, "--server", ours.url).accepted().document["cancelled"] is False
    nobody = inside("job", "submit", task, "--wait", 60, *words).refused(6)
    assert "no coder configured" in nobody.problems[0]["message"]
    inside("job", "submit", task, "--set", "priority", *words).refused(2)
    odd = inside("job", "submit", task, "--set", "priorty=5", *words).accepted()
    assert odd.document["ignored"] == ["priorty"]
    assert '"priorty"' in odd.err
    shown = inside("job", "status", job, "--human", "--server", ours.url).out
    assert re.search(rb"submit time: 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC", shown)
    inside("job", "submit", tmp_path / "missing.py", *words).refused(7)
    assert json.loads(inside("job", "status", "none", "--server", ours.url).refused(1).out)["status"] == 1


@pytest.mark.soak
def test_a_wait_says_that_no_worker_is_left(tmp_path: Path) -> None:
    task, code = tmp_path / "relu.py", tmp_path / "code.py"
    task.write_text(REFERENCE)
    code.write_text(services.SLEEPS)
    words = ["--backend", "cpu", "--arch", "x86_64", "--dsl", "cpp", "--framework", "numpy"]
    with services.server(tmp_path / "store") as ours, services.aikg_worker() as worker:
        inside("worker", "register", ours.url, worker.url, "cpu", "x86_64").accepted()
        at = ["--server", ours.url]
        job = inside("job", "submit", task, "--init-code", code, *words, *at).accepted().document["job_id"]
        with AKFClient(ours.url) as client:
            services.until(lambda: any(each["held"] for each in client._asked(Asked("GET", "/api/v1/workers"))))
        worker.kill()
        late = inside("job", "wait", job, "--timeout", 25, *at).refused(6)
        assert f'no worker that answers is left for backend="cpu", arch="x86_64"; registered: {worker.url}' in late.err
        assert "and waits: no worker that answers is left" in late.problems[0]["message"]
        inside("worker", "unregister", ours.url, worker.url).accepted()
        gone = inside("worker", "unregister", ours.url, worker.url).accepted()
        assert gone.document["worker"] == {"name": worker.url, "known": False}


@pytest.mark.soak
def test_what_a_candidate_says_is_there_while_it_runs(tmp_path: Path) -> None:
    task, code = tmp_path / "relu.py", tmp_path / "code.py"
    task.write_text(REFERENCE)
    code.write_text("print('here I am')\n" + services.SLEEPS)
    words = ["--backend", "cpu", "--arch", "x86_64", "--dsl", "cpp", "--framework", "numpy"]
    with services.server(tmp_path / "store") as ours, worker_service.service(tmp_path / "worker") as worker:
        at = ["--server", ours.url]
        inside("worker", "register", ours.url, worker.url, "cpu", "x86_64").accepted()
        job = inside("job", "submit", task, "--init-code", code, *words, *at).accepted().document["job_id"]
        services.until(lambda: "here I am" in inside("job", "logs", job, *at).accepted().document["log"])
        assert inside("job", "status", job, *at).accepted().document["job"]["status"] == "running"
        other = worker.get("/api/v1/said?task_id=another").json()
        assert other == {"said": None}
        inside("job", "cancel", job, *at).accepted()
