"""The wall clock jumps by more than a day, forward and back, while leases are held and jobs run.

With real processes, whose wall clock a preloaded library moves; everything else that they see is real.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.support import services
from tests.support.clocks import WallClock
from tests.support.services import GOOD, JOB, Service, until

pytest.importorskip("fastapi", reason="services are an extra")
from akf.client import AKFClient

pytestmark = pytest.mark.soak
JUMP_S = 25 * 3600
PRUNED_S = 65
"""Longer than the minute after which the Server looks for jobs that it need not keep."""


def post(service: Service, path: str, **data: str) -> requests.Response:
    return requests.post(f"{service.url}/api/v1/{path}", data=data, timeout=60)


def held(service: Service) -> dict[str, dict[str, Any]]:
    found = requests.get(f"{service.url}/api/v1/leases", timeout=10).json()["leases"]
    return {lease["task_id"]: lease for lease in found}


@pytest.mark.parametrize("jump_s", [JUMP_S, -JUMP_S])
def test_leases_end_neither_early_nor_late_and_no_device_is_lent_twice(tmp_path: Path, jump_s: int) -> None:
    clock = WallClock(tmp_path)
    folder = tmp_path / "worker"
    with services.akf_worker(folder, devices="0,1,2", env=clock.env) as worker:
        kept = post(worker, "leases", task_id="kept", ttl_s="6").json()
        left = post(worker, "leases", task_id="left", ttl_s="6").json()
        old = post(worker, "acquire_device", task_id="old").json()["device_id"]
        assert sorted([kept["device_id"], left["device_id"], old]) == [0, 1, 2]
        clock.jump(jump_s)
        began = time.monotonic()
        waits = post(worker, "leases", task_id="waits", ttl_s="1", wait_s="3")
        assert waits.status_code == 503  # nobody's device was given out
        assert set(held(worker)) == {"kept", "left", "old"}
        renewed = post(worker, f"leases/{kept['lease_id']}/renew", token=str(kept["token"])).json()
        assert 5 < renewed["expires_in_s"] <= 6
        until(lambda: "left" not in held(worker), 15)
        assert 4 < time.monotonic() - began < 9
        assert post(worker, "leases", task_id="next", ttl_s="60").json()["device_id"] == left["device_id"]
        post(worker, f"leases/{kept['lease_id']}/renew", token=str(kept["token"]), ttl_s="60")
        worker.kill()
    with services.akf_worker(folder, devices="0,1,2", env=clock.env) as worker:
        assert set(held(worker)) == {"kept", "next", "old"}
        post(worker, "release_device", task_id="old", device_id=str(old))
        new = post(worker, "leases", task_id="new").json()
        assert (new["device_id"], new["token"] > left["token"]) == (old, True)


def test_jobs_that_run_and_jobs_that_ended_stay_what_they_are(tmp_path: Path) -> None:
    """What ended is kept for a day; so long the Server's clock is off by more, forward and back."""
    clock = WallClock(tmp_path)
    naps = f"import time\nimport numpy\n\nnaps = [{PRUNED_S}, 0]\n\n" + GOOD.partition("\n\n\n")[2].replace(
        "        return", "        time.sleep(naps.pop(0) if naps else 0)\n        return"
    )
    with (
        services.akf_worker(tmp_path / "worker", devices="0,1", env=clock.env) as worker,
        services.server(tmp_path / "store", "--keep-days", "1", env=clock.env) as server,
        AKFClient(server.url) as client,
    ):
        client.register_worker(worker.url, "cpu", "x86_64")
        done = client.submit_job(**JOB, init_code=GOOD)
        assert client.wait_for_completion(done, timeout=60)["status"] == "completed"
        running = client.submit_job(**JOB, init_code=naps)
        until(lambda: client.get_job_status(running)["status"] == "running")
        for jump_s, off_s in ((JUMP_S, PRUNED_S), (-JUMP_S, 10), (0, 0)):
            clock.jump(jump_s)
            each = client.submit_job(**JOB, init_code=GOOD)
            assert client.wait_for_completion(each, timeout=60)["status"] == "completed"
            time.sleep(off_s)
        found = client.wait_for_completion(running, timeout=120)
        assert (found["status"], found["starts"]) == ("completed", 1)
        assert client.get_job_status(done)["status"] == "completed"
        assert [event["kind"] for event in client.events(running)].count("finished") == 1
        assert held(worker) == {}
