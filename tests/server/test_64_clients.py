"""64 clients on 4 devices over HTTP, for as long as is wanted; some die holding, some die waiting, some are impatient.

A minute by default. Ten minutes, and the table that the documentation shows:
`AKF_CLIENTS_S=600 python -m tests.support.fault_table`.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import orjson
import pytest
import requests
from tests.support import services
from tests.support.services import GOOD, JOB, Service
from tests.support.worker_service import processes_with

pytest.importorskip("fastapi", reason="services are an extra")
from akf.client import AKFClient

pytestmark = pytest.mark.soak
SECONDS = float(os.environ.get("AKF_CLIENTS_S", "60"))
DEVICES, JOBS_EVERY_S, LOOKS, IDLE_S = 4, 3.0, 12, 5


def test_64_clients_on_4_devices_lose_nothing(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    marker = f"clients{os.getpid()}"
    with (
        services.akf_worker(tmp_path / "worker", "--idle", str(IDLE_S), devices="0,1,2,3") as worker,
        services.server(tmp_path / "store") as server,
        AKFClient(server.url) as client,
    ):
        client.register_worker(worker.url, "cpu", "x86_64")
        until_at = time.time() + SECONDS
        argv = [sys.executable, "-m", "tests.support.lending_client", worker.url, str(until_at), marker]
        crowd = [Popen([*argv, str(number)], stdout=PIPE) for number in range(4)]
        jobs: list[str] = []
        dice = random.Random(1)
        killed = 0
        lent: list[int] = []
        while time.time() < until_at:
            jobs.append(client.submit_job(**JOB, init_code=GOOD))
            killed += _dies(worker, dice)
            for _ in range(LOOKS):
                time.sleep(JOBS_EVERY_S / LOOKS)
                lent.append(DEVICES - _free(worker))
        told = [orjson.loads(each.communicate(timeout=180)[0]) for each in crowd]
        done = Counter(client.wait_for_completion(job, timeout=300)["status"] for job in jobs)
        leaked = _still_lent(worker)
        figures = _figures(told, done, len(jobs), killed, processes_with(marker))
        figures |= {"leaked devices": leaked, "devices lent, %": round(100 * sum(lent) / len(lent) / DEVICES, 1)}
        for name, value in figures.items():
            record_property(name, value)
        assert [figures[name] for name in MUST_BE_0] == [0] * len(MUST_BE_0), figures
        assert {each.returncode for each in crowd} == {0}


MUST_BE_0 = ("lost jobs", "leaked devices", "double grants", "orphan processes", "clients that were refused")


def _dies(worker: Service, dice: random.Random) -> int:
    """Somebody asks for a device and is killed: while it holds, or while it waits."""
    code = f"import requests; requests.post('{worker.url}/api/v1/acquire_device', data={{'task_id': 'dies'}}); input()"
    with Popen([sys.executable, "-c", code], stdin=PIPE) as dying:
        time.sleep(0.3 + 0.7 * dice.random())
        dying.kill()
    return 1


def _figures(
    told: list[dict[str, Any]], done: Counter[str], jobs: int, killed: int, orphans: list[int]
) -> dict[str, Any]:
    """What the clients saw: a device has one holder when no two of them had it at once."""
    spans = sorted(tuple(span) for each in told for span in each["spans"])
    waits = sorted(wait for each in told for wait in each["waits"])
    double = 0
    last: dict[int, float] = {}
    used = 0.0
    for begin, end, device in spans:
        double += begin < last.get(device, 0.0)
        last[device] = max(last.get(device, 0.0), end)
        used += end - begin
    return {
        "seconds": round(SECONDS),
        "devices acquired and released": len(spans),
        "clients killed, holding or waiting": killed,
        "jobs meanwhile": jobs,
        "lost jobs": jobs - done["completed"],
        "double grants": double,
        "orphan processes": len(orphans),
        "clients that were refused": sum(each["refused"] for each in told),
        "devices held by clients that live, %": round(100 * used / (SECONDS * DEVICES), 1),
        "wait p50, ms": round(1e3 * waits[len(waits) // 2], 1),
        "wait p99, ms": round(1e3 * waits[len(waits) * 99 // 100], 1),
    }


def _still_lent(worker: Service) -> int:
    """How many devices do not come back, though those who died with one are given their time."""
    end = time.monotonic() + 3 * IDLE_S + 30
    while (lent := DEVICES - _free(worker)) and time.monotonic() < end:
        time.sleep(0.1)
    return lent


def _free(worker: Service) -> int:
    text = requests.get(f"{worker.url}/metrics", timeout=30).text
    line = next(line for line in text.splitlines() if line.startswith('akf_worker_devices{state="free"}'))
    return int(float(line.split()[-1]))
