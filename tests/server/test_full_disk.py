"""A disk that is really full, below a worker and below a Server: clear refusals, nothing partial, nothing lost.

With real processes, each on a tmpfs of its own in a mount namespace of its own.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.support import services
from tests.support.full_disk import Disk, own_disk
from tests.support.services import GOOD, JOB, Service, until
from tests.support.worker_service import package, verify_package

pytest.importorskip("fastapi", reason="services are an extra")
from akf.client import AKFClient

pytestmark = pytest.mark.soak
MIB = 8


def post(service: Service, path: str, data: dict[str, str], package: bytes | None = None) -> requests.Response:
    files = None if package is None else {"package": ("package.tar", package, "application/x-tar")}
    return requests.post(f"{service.url}/api/v1/{path}", data=data, files=files, timeout=60)


def verified(worker: Service, data: bytes) -> requests.Response:
    return post(worker, "verify", {"task_id": "t", "op_name": "relu", "timeout": "30"}, data)


def leases(worker: Service) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = requests.get(f"{worker.url}/api/v1/leases", timeout=10).json()["leases"]
    return found


def refused(answer: requests.Response) -> None:
    """It is a refusal of the machine, with what is wrong and what to do."""
    body = answer.json()
    assert answer.status_code in {503, 507}, body
    assert "No space left" in body["detail"] or "full" in body["detail"], body
    assert "free space" in body["problems"][0]["hint"], body


def test_a_worker_whose_disk_is_full_refuses_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    with services.akf_worker(folder / "state", devices="0,1", within=own_disk(folder, MIB)) as worker:
        disk = Disk(worker.process.pid, folder)
        lease = post(worker, "leases", {"task_id": "held", "ttl_s": "600"}).json()
        disk.fill()
        for number in range(3):
            refused(post(worker, "acquire_device", {"task_id": f"one{number}"}))
            refused(post(worker, "leases", {"task_id": f"two{number}"}))
            refused(verified(worker, verify_package("pass")))
        assert [each["task_id"] for each in leases(worker)] == ["held"]
        renewed = post(worker, f"leases/{lease['lease_id']}/renew", {"token": str(lease["token"])})
        assert renewed.status_code == 200 or "free space" in renewed.json()["problems"][0]["hint"]
        assert requests.get(f"{worker.url}/api/v1/status", timeout=10).status_code == 200
        released = post(worker, f"leases/{lease['lease_id']}/release", {"token": str(lease["token"])})
        assert released.json() == {"released": True}
        disk.clear()
        assert disk.files("state/packages/uploads") == []
        got = sorted(post(worker, "acquire_device", {"task_id": "after"}).json()["device_id"] for _ in range(2))
        assert got == [0, 1]
        for device in got:
            post(worker, "release_device", {"task_id": "after", "device_id": str(device)})
        assert verified(worker, verify_package("pass")).json()["success"] is True
        until(lambda: disk.files("state/packages") == ["uploads"], 10)


def test_an_upload_or_a_package_that_does_not_fit_is_the_machine_s_fault(tmp_path: Path) -> None:
    """The archive fits on the disk or not, what it unpacks to does not; neither is said to be the candidate's."""
    folder = tmp_path / "disk"
    with services.akf_worker(folder / "state", within=own_disk(folder, MIB)) as worker:
        disk = Disk(worker.process.pid, folder)
        big = package({"verify_relu.py": "pass", "data.bin": bytes(12 << 20)})
        refused(verified(worker, big))
        disk.fill(but_kib=1024)
        some = package({"verify_relu.py": "pass", "data.bin": bytes(700 << 10)})
        answer = verified(worker, some)
        assert answer.status_code == 200, answer.text
        assert (answer.json()["success"], answer.json()["outcome"]) == (False, "infra_error")
        writes = "open('out.bin', 'wb').write(bytes(32 << 20))"
        own = verified(worker, verify_package(writes)).json()
        assert (own["success"], "No space left" in own["log"]) == (False, True)
        disk.clear()
        until(lambda: disk.files("state/packages") == ["uploads"], 10)
        assert disk.files("state/packages/uploads") == []
        assert leases(worker) == []
        assert verified(worker, some).json()["success"] is True


def test_a_full_disk_below_temporary_files_is_no_fault_of_the_request(tmp_path: Path) -> None:
    """What a request is read into lies there, before it is known what it asks for."""
    folder = tmp_path / "disk"
    within = own_disk(folder, MIB)
    with services.akf_worker(tmp_path / "state", env={"TMPDIR": str(folder)}, within=within) as worker:
        disk = Disk(worker.process.pid, folder)
        disk.fill()
        refused(verified(worker, package({"verify_relu.py": "pass", "data.bin": bytes(2 << 20)})))
        disk.clear()
        assert verified(worker, package({"verify_relu.py": "pass", "data.bin": bytes(2 << 20)})).json()["success"]


def test_a_server_whose_disk_is_full_accepts_nothing_and_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    naps = GOOD.replace("import numpy", "import time\nimport numpy")
    napping = naps.replace("        return", "        time.sleep(0.1)\n        return")
    with (
        services.akf_worker(tmp_path / "worker", devices="0,1") as worker,
        services.server(folder / "store", within=own_disk(folder, MIB)) as server,
        AKFClient(server.url) as client,
    ):
        disk = Disk(server.process.pid, folder)
        client.register_worker(worker.url, "cpu", "x86_64")
        accepted = [client.submit_job(**JOB, init_code=napping) for _ in range(4)]
        disk.fill()
        refusals = [post_job(server) for _ in range(5)]
        for answer in refusals:
            if answer.status_code == 200:  # there was room in the log's last page
                accepted.append(answer.json()["job_id"])
            else:
                assert answer.status_code == 507, answer.text
                assert "written" in answer.json()["detail"], answer.text
                assert "free space" in answer.json()["problems"][0]["hint"], answer.text
        assert refusals[-1].status_code == 507
        statuses = {client.get_job_status(job)["status"] for job in accepted}
        assert statuses <= {"pending", "running", "completed"}
        assert requests.get(f"{server.url}/api/v1/health", timeout=10).status_code == 200
        time.sleep(3)
        disk.clear()
        done = [client.wait_for_completion(job, timeout=120) for job in accepted]
        assert {each["status"] for each in done} == {"completed"}
        until(lambda: leases(worker) == [], 30)
        last = client.submit_job(**JOB, init_code=GOOD)
        assert client.wait_for_completion(last, timeout=60)["status"] == "completed"
        assert len(client_jobs(server)) == len(accepted) + 1


def test_a_server_that_is_killed_on_a_full_disk_finds_every_job_again(tmp_path: Path) -> None:
    """The tmpfs ends with its namespace, so the second Server is started in that of a process that stays."""
    folder = tmp_path / "disk"
    with subprocess.Popen([*own_disk(folder, MIB), "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write(b"x")
        holder.stdin.flush()
        holder.stdout.read(1)
        there = ("nsenter", f"--mount=/proc/{holder.pid}/ns/mnt")
        disk = Disk(holder.pid, folder)
        with services.akf_worker(tmp_path / "worker", devices="0,1") as worker:
            with services.server(folder / "store", within=there) as server, AKFClient(server.url) as client:
                client.register_worker(worker.url, "cpu", "x86_64")
                accepted = [client.submit_job(**JOB, init_code=GOOD) for _ in range(6)]
                disk.fill()
                server.kill()
            disk.clear()
            with services.server(folder / "store", within=there) as server, AKFClient(server.url) as client:
                done = [client.wait_for_completion(job, timeout=120) for job in accepted]
                assert {each["status"] for each in done} == {"completed"}
                until(lambda: leases(worker) == [], 30)
        holder.stdin.close()


def post_job(server: Service) -> requests.Response:
    return requests.post(f"{server.url}/api/v1/jobs/submit", json={**JOB, "init_code": GOOD}, timeout=60)


def client_jobs(server: Service) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = requests.get(f"{server.url}/api/v1/jobs?limit=500", timeout=30).json()["jobs"]
    return found
