"""The Worker Service driven by its own OpenAPI document: no 5xx but for what says so, and no hang."""

import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.fabric.test_unpack import malformed
from tests.support.worker_service import Service, service, verify_package

schemathesis = pytest.importorskip("schemathesis")
pytestmark = pytest.mark.soak

REFUSED = 503
"""What is said with this status is no fault: a device that was not free in time, a worker that ends."""


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("fuzz") / "state"
    many = ",".join(map(str, range(500)))  # nobody waits for one, however many are never given back
    with service(folder, "--idle", "1", "--package-mib", "8", devices=many) as running:
        yield running


def test_no_request_that_the_document_allows_or_forbids_breaks_the_service(worker: Service) -> None:
    from hypothesis import HealthCheck, Phase, given, settings  # noqa: PLC0415

    document = schemathesis.openapi.from_url(f"{worker.url}/openapi.json")
    tried = 0
    for found in document.get_all_operations():
        operation = found.ok()
        if operation.path in {"/api/v1/drain", "/api/v1/events"}:  # it ends the service's work; it has no end
            continue

        @given(case=operation.as_strategy())
        @settings(
            max_examples=60,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            derandomize=True,
        )
        def attempt(case: Any) -> None:
            nonlocal tried
            tried += 1
            answer = case.call(base_url=worker.url, timeout=20)
            assert answer.status_code < 500 or answer.status_code == REFUSED, (case.path, answer.text)

        attempt()
    assert tried > 500
    alive = worker.verify("print('alive')")
    assert alive["success"] is True, alive


def test_malformed_packages_do_not_break_the_service(worker: Service) -> None:
    chance = random.Random(7)
    fields = {"task_id": "t", "op_name": "relu", "timeout": "5"}
    with httpx.Client(base_url=worker.url, timeout=60) as client:
        for _ in range(1000):
            files = {"package": ("package.tar", malformed(chance), "application/x-tar")}
            answer = client.post("/api/v1/verify", data=fields, files=files)
            assert answer.status_code == 200
            assert answer.json()["outcome"] in {"ok", "candidate_failed"}
        files = {"package": ("package.tar", verify_package("print('alive')"), "application/x-tar")}
        assert client.post("/api/v1/verify", data=fields, files=files).json()["success"] is True
