"""Who may ask the Server for what, and plug-ins of the group `akf.jobs`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.support import services
from tests.support.cli import akf
from tests.support.services import GOOD, JOB

pytest.importorskip("fastapi", reason="services are an extra")
from akf.client import AKFClient, ServiceError
from akf.fabric.access import digest

TOKENS = {name: f"{name}-0123456789abcdef" for name in ("root", "ann", "bob", "eye")}
ROLES = {"root": "admin", "ann": "user", "bob": "user", "eye": "reader"}
PLUGIN = """
from akf.server.executors import Conclusion


async def run(job):
    job.log("from a plug-in")
    answer = await job.on_device(device)
    return Conclusion("completed", {"success": True, "seen": answer["device"]}, None, "ok")


async def device(assignment):
    return {"outcome": "ok", "device": assignment.device}


async def broken(job):
    raise ValueError("a defect of the plug-in")
"""


def plugin(folder: Path) -> dict[str, str]:
    """An installed distribution with two job types; the environment that finds it."""
    info = folder / "my_jobs-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "my_jobs.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-jobs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[akf.jobs]\nmine = my_jobs:run\nbroken = my_jobs:broken\n")
    return {"PYTHONPATH": f"{folder}:{services.ROOT / 'src'}"}


@pytest.mark.soak
def test_roles_owners_and_plug_ins(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    entries = [{"name": name, "role": ROLES[name], "sha256": digest(TOKENS[name])} for name in TOKENS]
    tokens.write_text(json.dumps({"tokens": entries}))
    tokens.chmod(0o600)
    words = ["--tokens", str(tokens), "--waiting", "3"]
    with (
        services.server(tmp_path / "store", *words, env=plugin(tmp_path / "site")) as server,
        services.aikg_worker() as worker,
        AKFClient(server.url, TOKENS["root"]) as root,
        AKFClient(server.url.replace("//", f"//akf:{TOKENS['ann']}@")) as ann,
        AKFClient(server.url, TOKENS["bob"]) as bob,
        AKFClient(server.url, TOKENS["eye"]) as eye,
    ):
        assert requests.get(f"{server.url}/api/v1/jobs", timeout=30).status_code == 401
        assert requests.get(server.url, auth=("akf", "wrong"), timeout=30).status_code == 401
        for client in (ann, eye):
            assert _refused(lambda client=client: client.register_worker(worker.url, "cpu", "x86_64")) == 403
        root.register_worker(worker.url, "cpu", "x86_64")
        assert _refused(lambda: eye.submit_job(**JOB)) == 403

        job = ann.submit_job(**JOB, job_type="mine")
        done = ann.wait_for_completion(job, timeout=60)
        assert (done["status"], done["user"], done["result"]["success"]) == ("completed", "ann", True)
        assert ann.get_job_log(job) == "from a plug-in"
        broken = ann.wait_for_completion(ann.submit_job(**JOB, job_type="broken"), timeout=60)
        assert (broken["status"], broken["error"]) == ("error", "ValueError: a defect of the plug-in")

        assert _refused(lambda: bob.get_job_status(job)) == 404  # as if it were not there
        assert _refused(lambda: bob.cancel_job(job)) == 404
        assert eye.get_job_status(job)["status"] == "completed"
        assert _refused(lambda: eye.cancel_job(job)) == 403
        assert [len(client.list_jobs()["jobs"]) for client in (ann, bob, root, eye)] == [2, 0, 2, 2]

        sleeping = [bob.submit_job(**JOB, init_code=services.SLEEPS) for _ in range(3)]
        assert _refused(lambda: bob.submit_job(**JOB, init_code=GOOD)) == 429
        assert [root.cancel_job(each)["cancelled"] for each in sleeping] == [True] * 3


def test_beyond_this_machine_only_with_tokens(tmp_path: Path) -> None:
    akf("server", "--host", "0.0.0.0", "--store", tmp_path / "s").refused(4)  # noqa: S104 - it is refused
    shared = tmp_path / "tokens.json"
    shared.write_text('{"tokens": []}')
    shared.chmod(0o644)
    assert akf("server", "--tokens", shared, "--store", tmp_path / "s").refused(4).codes == {"AKF-T602"}


def _refused(ask: Any) -> int:
    with pytest.raises(ServiceError) as caught:
        ask()
    return caught.value.http_status
