"""The six endpoints of the AIKG wire, asked as its own client asks: `requests`, JSON, polling."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest
import requests
from tests.support import services
from tests.support.services import GOOD, JOB, SLEEPS, WRONG

TERMINAL = {"completed", "failed", "error", "cancelled"}
WIRE = {"status", "job_type", "op_name", "submit_time", "result", "error"}


class Client:
    """How the SDK of the AIKG services calls: no time limit but the test's own, errors by `raise_for_status`."""

    def __init__(self, url: str) -> None:
        self.url = url

    def post(self, path: str, body: Any = None) -> requests.Response:
        return requests.post(f"{self.url}{path}", json=body, timeout=60)

    def get(self, path: str) -> requests.Response:
        return requests.get(f"{self.url}{path}", timeout=60)

    def submit(self, **fields: Any) -> str:
        answer = self.post("/api/v1/jobs/submit", {**JOB, **fields})
        answer.raise_for_status()
        job: str = answer.json()["job_id"]
        return job

    def status(self, job: str) -> dict[str, Any]:
        answer = self.get(f"/api/v1/jobs/{job}/status")
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    def wait(self, job: str) -> dict[str, Any]:
        while (found := self.status(job))["status"] not in TERMINAL:
            time.sleep(0.05)
        return found


@pytest.fixture
def client(server: services.Service) -> Client:
    return Client(server.url)


def test_a_good_candidate_completes(client: Client) -> None:
    job = client.submit(init_code=GOOD)
    assert str(uuid.UUID(job)) == job
    found = client.wait(job)
    assert found.keys() >= WIRE
    assert (found["status"], found["job_type"], found["op_name"], found["error"]) == (
        "completed",
        "single",
        "relu",
        None,
    )
    assert found["result"]["success"] is True
    assert found["result"]["code"] == GOOD
    assert found["result"]["profile"]["gen_time"] > 0
    assert found["result"]["profile"]["base_time"] > 0
    assert isinstance(found["submit_time"], float)
    profile = found["result"]["profile"]
    assert profile["evidence"] is False
    assert "no evidence" in profile["note"]


def test_a_wrong_candidate_fails_and_its_code_is_kept(client: Client) -> None:
    found = client.wait(client.submit(init_code=WRONG))
    assert found["status"] == "failed"
    assert found["outcome"] == "candidate_failed"
    assert found["result"]["success"] is False
    assert found["result"]["code"] == WRONG
    assert "values are wrong" in found["error"]


@pytest.mark.parametrize("job_type", ["single", "evolve"])
def test_without_a_candidate_nobody_writes_one(client: Client, job_type: str) -> None:
    found = client.wait(client.submit(job_type=job_type))
    assert (found["status"], found["error"], found["result"]) == ("error", "no coder configured", None)


def test_the_fields_that_the_job_manager_reads_are_kept_and_others_are_named(client: Client) -> None:
    answer = client.post("/api/v1/jobs/submit", {**JOB, "elite_size": 3, "no_such_field": 1})
    assert answer.status_code == 200
    assert answer.json()["ignored"] == ["no_such_field"]
    strict = client.post("/api/v1/jobs/submit?strict=true", {**JOB, "elite_size": 3, "no_such_field": 1})
    assert strict.status_code == 400
    assert "no_such_field" in strict.json()["detail"]
    assert "elite_size" not in strict.json()["detail"]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"task_desc": "x = 1"}, ["class Model", "get_inputs", "get_init_inputs"]),
        ({"task_desc": "def ("}, ["task_desc is no Python: line 1"]),
        ({"backend": "tpu"}, ["backend", "ascend, cuda, cpu"]),
        ({"arch": "a100"}, ["arch", "x86_64"]),
        ({"dsl": "no_such_dsl"}, ["dsl", "cpp"]),
        ({"job_type": "nonsense"}, ["job_type", "evolve, single"]),
        ({"workflow": "nonsense"}, ["workflow", "coder_only_workflow"]),
        ({"op_name": "../../../tmp/x"}, ["op_name"]),
        ({"framework": "tensorflow"}, ["framework", "torch"]),
        ({"init_code": "x = 1"}, ["class ModelNew"]),
    ],
)
def test_what_cannot_run_is_refused_with_what_could(client: Client, changed: dict[str, Any], named: list[str]) -> None:
    answer = client.post("/api/v1/jobs/submit", {**JOB, **changed})
    assert answer.status_code == 400
    detail = answer.json()["detail"]
    assert isinstance(detail, str)
    assert [each for each in named if each not in detail] == []


def test_everything_wrong_is_said_at_once(client: Client) -> None:
    detail = client.post("/api/v1/jobs/submit", {**JOB, "dsl": "x", "workflow": "y", "op_name": "/"}).json()["detail"]
    assert all(name in detail for name in ("op_name", "dsl", "workflow"))


@pytest.mark.parametrize("changed", [{"arch": "aarch64"}, {"tags": ["elsewhere"]}])
def test_without_a_matching_worker_a_job_is_a_conflict(client: Client, changed: dict[str, Any]) -> None:
    answer = client.post("/api/v1/jobs/submit", {**JOB, **changed})
    assert answer.status_code == 409
    assert "akf worker register SERVER WORKER" in answer.json()["detail"]
    assert answer.json()["detail"].startswith("No available worker found for backend=")


def test_triton_is_the_triton_of_the_backend(client: Client) -> None:
    answer = client.post("/api/v1/jobs/submit", {**JOB, "backend": "ascend", "arch": "ascend910b4", "dsl": "triton"})
    assert answer.status_code == 409  # and not 400: it is known


@pytest.mark.parametrize("body", [{}, {"op_name": "relu"}, {**JOB, "max_rounds": "many"}, [], None])
def test_missing_and_ill_typed_fields_are_listed(client: Client, body: Any) -> None:
    answer = client.post("/api/v1/jobs/submit", body)
    assert answer.status_code == 422
    assert all({"type", "loc", "msg", "input"} <= each.keys() for each in answer.json()["detail"])


@pytest.mark.parametrize("path", ["status", "cancel"])
def test_a_job_that_is_not_there(client: Client, path: str) -> None:
    answer = (client.get if path == "status" else client.post)(f"/api/v1/jobs/{uuid.uuid4()}/{path}")
    assert answer.status_code == 404
    assert answer.json() == {"detail": "Job not found"}


def test_cancel_of_a_running_job_and_of_one_that_is_over(client: Client) -> None:
    job = client.submit(init_code=SLEEPS)
    services.until(lambda: client.status(job)["status"] == "running")
    assert client.post(f"/api/v1/jobs/{job}/cancel").json() == {"cancelled": True}
    assert client.status(job)["status"] == "cancelled"
    again = client.post(f"/api/v1/jobs/{job}/cancel")
    assert again.status_code == 200
    assert again.json() == {"cancelled": False, "reason": "Job status is cancelled"}


def test_no_server_and_no_worker_of_another_kind_is_registered(client: Client, worker: services.Service) -> None:
    own = client.post("/api/v1/workers/register", {"url": client.url, "backend": "cpu", "arch": "x86_64"})
    assert own.status_code == 400
    assert "address of a Server" in own.json()["detail"]
    other = client.post("/api/v1/workers/register", {"url": worker.url, "backend": "cpu", "arch": "aarch64"})
    assert other.status_code == 400
    assert 'arch="x86_64", not backend="cpu", arch="aarch64"' in other.json()["detail"]
    assert {each["name"] for each in client.get("/api/v1/workers").json()} == {worker.url}


def test_unregistering_is_idempotent_and_leaves_others_alone(client: Client, worker: services.Service) -> None:
    away = {"url": "http://akf:secret@127.0.0.1:9/", "backend": "cpu", "arch": "x86_64", "tags": ["away"]}
    client.post("/api/v1/workers/register", away).raise_for_status()
    for known in (True, False):
        answer = client.post("/api/v1/workers/unregister", {"name": away["url"]})
        assert answer.json() == {"status": "unregistered", "name": "http://127.0.0.1:9", "known": known}
    assert [each["name"] for each in client.get("/api/v1/workers").json()] == [worker.url]
    assert client.post("/api/v1/workers/unregister", {"name": "no address"}).status_code == 400


def test_registering_again_changes_nothing_but_what_is_said(client: Client, worker: services.Service) -> None:
    body = {"url": f"{worker.url}/", "backend": "cpu", "arch": "x86_64", "tags": ["lab", "quiet"]}
    answer = client.post("/api/v1/workers/register", body)
    assert answer.json()["status"] == "registered"
    assert answer.json()["capacity"] == 2  # its two devices, not the default of 1
    listed = client.get("/api/v1/workers/status").json()
    assert listed == [{"backend": "cpu", "arch": "x86_64", "load": 0, "capacity": 2, "tags": ["lab", "quiet"]}]


@pytest.mark.parametrize("url", ["localhost:9001", "ftp://host", "http://", "http://host:99999", "http://h/?q"])
def test_what_is_no_address_is_refused(client: Client, url: str) -> None:
    answer = client.post("/api/v1/workers/register", {"url": url, "backend": "cpu", "arch": "x86_64"})
    assert answer.status_code == 400
    assert "address" in answer.json()["detail"]


@pytest.mark.parametrize("devices", [[], [0, 0], [-1], [1 << 40]])
def test_local_devices_that_are_none(client: Client, devices: list[int]) -> None:
    body = {"backend": "cpu", "arch": "x86_64", "devices": devices}
    assert client.post("/api/v1/workers/register-local", body).status_code == 400


def test_local_devices_that_this_machine_does_not_have(client: Client) -> None:
    answer = client.post(
        "/api/v1/workers/register-local", {"backend": "ascend", "arch": "ascend910b4", "devices": [4097]}
    )
    assert answer.status_code == 400
    assert "/dev/davinci4097" in answer.json()["detail"]


def test_half_a_character_is_no_500(client: Client) -> None:
    text = '{"op_name": "\\ud800", "task_desc": "\\ud800", "\\udfff": 1}'
    answer = requests.post(
        f"{client.url}/api/v1/jobs/submit", data=text, headers={"content-type": "application/json"}, timeout=30
    )
    assert 400 <= answer.status_code < 500


def test_a_body_over_the_limit_is_not_read(client: Client) -> None:
    sent = (b"x" * (1 << 20) for _ in range(9))
    answer = requests.post(f"{client.url}/api/v1/jobs/submit", data=sent, timeout=30)
    assert answer.status_code == 413


def test_another_site_s_page_neither_reads_nor_changes(client: Client) -> None:
    url = f"{client.url}/api/v1/workers/status"
    assert requests.get(url, headers={"host": "evil.example"}, timeout=30).status_code == 421
    away = requests.post(
        f"{client.url}/api/v1/jobs/submit", json=JOB, headers={"origin": "http://evil.example"}, timeout=30
    )
    assert away.status_code == 403


def test_the_openapi_document_holds_all_six(client: Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {
        "/api/v1/jobs/submit", "/api/v1/jobs/{job_id}/status", "/api/v1/jobs/{job_id}/cancel",
        "/api/v1/workers/register", "/api/v1/workers/register-local", "/api/v1/workers/status",
    } <= paths.keys()  # fmt: skip
