"""The Server driven by its own OpenAPI document, and its page in a real browser."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support import services
from tests.support.services import GOOD, JOB

pytest.importorskip("fastapi", reason="services are an extra")
from akf.client import AKFClient


@pytest.mark.soak
def test_nothing_that_the_document_allows_or_forbids_breaks_the_server(tmp_path: Path) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="it drives the Server")
    from hypothesis import HealthCheck, Phase, given, settings  # noqa: PLC0415 - with what it draws by

    tried: list[int] = []
    with services.server(tmp_path / "store") as server, services.aikg_worker() as worker:
        with AKFClient(server.url) as client:
            client.register_worker(worker.url, "cpu", "x86_64")
        for found in schemathesis.openapi.from_url(f"{server.url}/openapi.json").get_all_operations():
            operation = found.ok()

            @given(case=operation.as_strategy())
            @settings(
                max_examples=60, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck),
                derandomize=True,
            )  # fmt: skip
            def attempt(case: Any) -> None:
                if case.path == "/api/v1/events":  # it has no end
                    return
                answer = case.call(base_url=server.url, timeout=20)
                tried.append(answer.status_code)
                assert answer.status_code < 500, (case.path, answer.text)
                assert str(answer.status_code) in case.operation.definition.raw["responses"], (case.path, answer.text)

            attempt()
        assert len(tried) > 500
        assert server.process.poll() is None
        with AKFClient(server.url) as client:
            job = client.submit_job(**JOB, init_code=GOOD)
            assert client.wait_for_completion(job, timeout=120)["status"] == "completed"


@pytest.mark.soak
def test_the_page_shows_workers_and_jobs_and_what_they_say_is_text(tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium to draw the page")
    tag = "<img src=x onerror=document.title='painted'>"
    with services.server(tmp_path / "store") as server, services.aikg_worker() as worker:
        with AKFClient(server.url) as client:
            client.register_worker(worker.url, "cpu", "x86_64", tags=[tag])
            job = client.submit_job(**JOB, init_code=GOOD)
            client.wait_for_completion(job, timeout=60)
        words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'browser'}"]
        drawn = subprocess.run(
            [browser, *words, "--virtual-time-budget=4000", "--dump-dom", server.url],
            capture_output=True, text=True, check=True, timeout=120,
        ).stdout  # fmt: skip
    assert worker.url in drawn
    assert job[:8] in drawn
    assert 'class="completed"' in drawn
    assert "1 completed" in drawn
    assert "&lt;img src=x" in drawn
    assert "painted</title>" not in drawn
