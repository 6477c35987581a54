"""Who may ask a Worker Service: tokens in both forms, roles, tenants, and no service that is open to others."""

import base64
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.cli import inside
from tests.support.worker_service import WAIT_S, Service, service, verify_package

TOKENS = {name: f"{name}-token-of-sixteen" for name in ("reader", "user", "admin", "other")}


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("access")
    listed = [
        {
            "name": name,
            "role": "user" if name == "other" else name,
            "sha256": hashlib.sha256(token.encode()).hexdigest(),
        }
        for name, token in TOKENS.items()
    ]
    file = folder / "tokens.json"
    file.write_text(json.dumps({"tokens": listed}))
    file.chmod(0o600)
    with service(folder / "state", "--host", "0.0.0.0", "--tokens", str(file), devices="0,1") as running:  # noqa: S104
        yield running


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[name]}"}


def test_g23_without_a_token_nobody_is_answered_but_for_whether_it_lives(worker: Service) -> None:
    for path in ("/api/v1/status", "/metrics", "/openapi.json", "/api/v1/leases", "/nowhere"):
        answer = worker.get(path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic")
    assert worker.get("/health").status_code == 200
    wrong = {"authorization": "Bearer wrong"}
    assert worker.post("/api/v1/acquire_device", {"task_id": "t"}, headers=wrong).status_code == 401


def test_a_client_that_knows_no_tokens_carries_one_in_its_address(worker: Service) -> None:
    url = worker.url.replace("0.0.0.0", f"akf:{TOKENS['user']}@127.0.0.1")  # noqa: S104
    answer = httpx.post(f"{url}/api/v1/acquire_device", data={"task_id": "t"}, timeout=WAIT_S)
    device = answer.json()["device_id"]
    files = {"package": ("package.tar", verify_package("print('ran')"), "application/x-tar")}
    fields = {"task_id": "t", "op_name": "relu", "timeout": "20"}
    body = httpx.post(f"{url}/api/v1/verify", data=fields, files=files, timeout=WAIT_S).json()
    assert body["success"] is True
    released = httpx.post(f"{url}/api/v1/release_device", data={"task_id": "t", "device_id": str(device)})
    assert released.json() == {"status": "ok"}
    broken = base64.b64encode(b"no colon").decode()
    assert worker.get("/api/v1/status", headers={"authorization": f"Basic {broken}"}).status_code == 401


def test_roles_bound_what_may_be_done(worker: Service) -> None:
    assert worker.get("/api/v1/status", headers=bearer("reader")).status_code == 200
    for path in ("/api/v1/acquire_device", "/api/v1/cancel", "/api/v1/leases"):
        assert worker.post(path, {"task_id": "t"}, headers=bearer("reader")).status_code == 403
    assert worker.post("/api/v1/drain", headers=bearer("user")).status_code == 403


def test_one_tenant_can_neither_release_nor_cancel_nor_use_another_s(worker: Service) -> None:
    lease = worker.post("/api/v1/leases", {"task_id": "same"}, headers=bearer("user")).json()
    assert lease["tenant"] == "user"
    fields = {"task_id": "same", "device_id": str(lease["device_id"])}
    worker.post("/api/v1/release_device", fields, headers=bearer("other"))
    assert worker.post("/api/v1/cancel", {"task_id": "same"}, headers=bearer("other")).json() == {"cancelled": False}
    seen = worker.get("/api/v1/leases", headers=bearer("other")).json()["leases"]
    assert [(each["device_id"], each["lease_id"], each["token"]) for each in seen] == [(lease["device_id"], "", 0)]
    mine = worker.get("/api/v1/leases", headers=bearer("user")).json()["leases"]
    assert [each["lease_id"] for each in mine] == [lease["lease_id"]]
    released = worker.post(
        f"/api/v1/leases/{lease['lease_id']}/release", {"token": lease["token"]}, headers=bearer("user")
    )
    assert released.json() == {"released": True}


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", pytest.param("::", marks=pytest.mark.soak), pytest.param("192.0.2.1", marks=pytest.mark.soak)],  # noqa: S104
)
def test_g23_it_does_not_listen_beyond_this_machine_without_tokens(tmp_path: Path, host: str) -> None:
    argv = [sys.executable, "-m", "akf", "worker", "--host", host, "--port", "0", "--folder", str(tmp_path / "s")]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 4
    assert "AKF-P601" in ended.stdout
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (("--arch", "a100"), "AKF-U507", "x86_64"),
        (("--devices", "0,1,0"), "AKF-U502", "twice in the list: 0"),
        (("--python", "/no/such/python"), "AKF-U508", "/no/such/python"),
    ],
)
def test_what_no_worker_can_be_is_refused_before_anything_listens(
    words: tuple[str, ...], code: str, named: str
) -> None:
    refused = inside("worker", "--backend", "cpu", "--arch", "x86_64", *words).refused(2)
    assert refused.codes == {code}
    assert named in refused.problems[0]["message"]


@pytest.mark.parametrize("backend", ["abacus", "--help", "CPU"])
def test_a_backend_that_is_none_is_refused_before_anything_listens(backend: str) -> None:
    assert inside("worker", f"--backend={backend}").refused(2).codes == {"AKF-U506"}
