"""One Server and one worker of the AIKG wire for the tests of a module that change neither."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests
from tests.support import services


@pytest.fixture(scope="module")
def worker() -> Iterator[services.Service]:
    with services.aikg_worker() as started:
        yield started


@pytest.fixture(scope="module")
def server(worker: services.Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[services.Service]:
    pytest.importorskip("fastapi", reason="services are an extra")
    with services.server(tmp_path_factory.mktemp("server") / "store") as started:
        body: dict[str, Any] = {"url": worker.url, "backend": "cpu", "arch": "x86_64", "capacity": 1, "tags": ["lab"]}
        requests.post(f"{started.url}/api/v1/workers/register", json=body, timeout=30).raise_for_status()
        yield started
