"""A Server and a worker on two networks; the link between them is cut while a job runs, and while a device is awaited.

Each with real processes, in network namespaces that the test makes.
"""

from __future__ import annotations

import base64
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.support import services
from tests.support.netns import THERE, Link, two_networks
from tests.support.services import GOOD, JOB, Service, until
from tests.support.worker_service import processes_with

pytest.importorskip("fastapi", reason="services are an extra")
from akf.client import AKFClient

pytestmark = pytest.mark.soak
TOKEN = "a-token-for-two-networks"  # noqa: S105 - the test's own
BASIC = {"Authorization": "Basic " + base64.b64encode(f"akf:{TOKEN}".encode()).decode()}


@pytest.fixture
def link() -> Iterator[Link]:
    with two_networks() as made:
        yield made


@pytest.fixture
def worker(link: Link, tmp_path: Path) -> Iterator[Service]:
    """A worker with two devices in the other network."""
    env = {"AKF_WORKER_TOKEN": TOKEN}
    with services.akf_worker(
        tmp_path / "worker", "--host", THERE, devices="0,1", env=env, within=link.there
    ) as started:
        yield started


def naps(seconds: float) -> str:
    """A candidate that takes its time, once a process."""
    return (
        f"import time\nimport numpy\n\nnaps = [{seconds}]\n\nclass ModelNew:\n    def __call__(self, x):\n"
        "        time.sleep(naps.pop() if naps else 0)\n        return numpy.maximum(x, 0)\n"
    )


def with_token(url: str) -> str:
    return url.replace("://", f"://akf:{TOKEN}@")


def looked(worker: Service, path: str) -> dict[str, Any]:
    found: dict[str, Any] = requests.get(worker.url + path, headers=BASIC, timeout=10).json()
    return found


def asked(worker: Service, path: str, **data: str) -> requests.Response:
    return requests.post(f"{worker.url}/api/v1/{path}", data=data, headers=BASIC, timeout=120)


def held(worker: Service) -> list[str]:
    return sorted(lease["task_id"] for lease in looked(worker, "/api/v1/leases")["leases"])


@pytest.mark.parametrize("cut_s", [4, 50])
def test_a_job_whose_link_is_cut_in_the_middle_ends_and_its_device_comes_back(
    link: Link, worker: Service, tmp_path: Path, cut_s: int
) -> None:
    """A short cut goes unnoticed; after a long one the job runs again, and nothing of its first start is left."""
    with (
        services.server(tmp_path / "store") as server,
        AKFClient(server.url) as client,
    ):
        client.register_worker(with_token(worker.url), "cpu", "x86_64")
        op_name = f"cut_{cut_s}"
        job = client.submit_job(**{**JOB, "op_name": op_name}, init_code=naps(8))
        until(lambda: processes_with(op_name))
        link.cut()
        time.sleep(cut_s)
        assert client.get_job_status(job)["status"] == "running"
        if cut_s > 40:
            until(lambda: not processes_with(op_name), 20)
        link.mend()
        done = client.wait_for_completion(job, timeout=180)
        assert (done["status"], done["outcome"]) == ("completed", "ok")
        kinds = [event["kind"] for event in client.events(job)]
        assert kinds.count("finished") == 1
        assert ("worker_fault" in kinds) == (cut_s > 40)
        until(lambda: held(worker) == [], 60)
        after = client.submit_job(**JOB, init_code=GOOD)
        assert client.wait_for_completion(after, timeout=120)["status"] == "completed"
        assert processes_with(op_name) == []


def test_a_device_that_is_granted_into_a_cut_link_comes_back(link: Link, worker: Service) -> None:
    """Two wait when the link is cut: nobody is there when the devices come, and the next one who asks has them."""
    for device in ("0", "1"):
        assert asked(worker, "acquire_device", task_id="holder").json() == {"device_id": int(device)}
    lost: list[requests.RequestException] = []

    def waits(name: str) -> None:
        try:
            data = {"task_id": name}
            requests.post(f"{worker.url}/api/v1/acquire_device", data=data, headers=BASIC, timeout=45)
        except requests.RequestException as error:
            lost.append(error)

    waiting = [threading.Thread(target=waits, args=(f"cut{number}",)) for number in range(2)]
    for each in waiting:
        each.start()
    until(lambda: looked(worker, "/api/v1/leases")["waiting"] == 2)
    link.cut()
    for device in ("0", "1"):
        curl = ["curl", "-sf", f"{worker.url}/api/v1/release_device", "-u", f"akf:{TOKEN}"]
        there(link, [*curl, "--data", f"task_id=holder&device_id={device}"])
    time.sleep(50)
    assert len(lost) == 2
    link.mend()
    assert held(worker) == []
    assert [asked(worker, "acquire_device", task_id="next").json()["device_id"] for _ in range(2)] == [0, 1]
    assert held(worker) == ["next", "next"]


def test_a_device_that_came_before_the_cut_stays_with_its_holder(link: Link, worker: Service) -> None:
    """Its connection is lost, but the answer had arrived: the lease goes by its own time, not by the connection's."""
    with requests.Session() as session:
        url = f"{worker.url}/api/v1/acquire_device"
        got = session.post(url, data={"task_id": "holder"}, headers=BASIC, timeout=30).json()
        lease = asked(worker, "leases", task_id="short", ttl_s="5").json()
        link.cut()
        time.sleep(45)
        link.mend()
        assert held(worker) == ["holder"]
        late = asked(worker, f"leases/{lease['lease_id']}/renew", token=str(lease["token"]))
        assert late.status_code == 409
        asked(worker, "release_device", task_id="holder", device_id=str(got["device_id"]))
    assert held(worker) == []


def there(link: Link, words: list[str]) -> None:
    subprocess.run([*link.there, *words], check=True, capture_output=True, timeout=30)
