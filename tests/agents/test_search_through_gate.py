"""The real thing: kernels that agents found or wrote, tried by `akf try`, measured by the operator gate, decided."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.endpoint import endpoint

from akf.agents.control import akf
from akf.agents.executors import asked, handed_in
from akf.agents.gate import Supervisor
from akf.agents.jobs import Request, run_job
from akf.agents.model import Settings

pytest.importorskip("numpy")
pytestmark = [pytest.mark.soak, pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is missing")]

ROOT = Path(__file__).resolve().parents[2]
SET_UP_S = 900.0


@pytest.fixture(scope="module")
def supervisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervisor]:
    """A run on this machine with baselines of all three operators."""
    folder = tmp_path_factory.mktemp("search")
    before = os.environ.get("AKF_STATE")
    os.environ["AKF_STATE"] = str(folder / "state")
    draft = ROOT / "suites" / "host-kernels" / "arms" / "host_reference.json"
    akf("fill", draft, "--host", "--out", folder / "ready", "--keys", folder / "keys", limit_s=SET_UP_S).need()
    campaign = folder / "ready" / "arms" / "host_reference.json"
    words = ("init-run", campaign, "--runs-root", folder / "runs", "--keys", folder / "keys")
    made = akf(*words, limit_s=SET_UP_S).need()
    yield Supervisor(Path(made["path"]), folder / "keys")
    if before is None:
        del os.environ["AKF_STATE"]
    else:
        os.environ["AKF_STATE"] = before


@pytest.mark.parametrize("op", ["rmsnorm", "softmax", "matmul"])
def test_evolve_without_a_model_ends_in_a_decision_for_a_faster_kernel(
    supervisor: Supervisor, op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AKF_JOBS_RUN", str(supervisor.run))
    monkeypatch.setenv("AKF_JOBS_KEYS", str(supervisor.keys))
    fields = {"op_name": op, "backend": "cpu", "dsl": "cpp", "max_rounds": 4, "parallel_num": 2, "num_islands": 2}
    request = asked(fields, "evolve")
    ended = run_job(request)
    assert ended.status == "completed", ended.error
    assert ended.speed is not None
    assert ended.speed > 1.2
    decision = handed_in(request, ended)
    assert decision is not None
    assert decision["gate"] == "pass", decision
    assert decision["gain"]["low"] > 1.2
    assert decision["verdict"] == "incomplete"
    assert decision["reasons"] == ["GATE_MISSING"]
    assert decision["tries"] >= 1


def test_single_with_a_recorded_conversation_ends_in_a_kernel_that_passes(tmp_path: Path) -> None:
    task = shutil.copytree(ROOT / "examples" / "tasks" / "rmsnorm", tmp_path / "rmsnorm")
    value = json.loads((task / "task.json").read_text())
    value["budget"]["tokens"] = 200_000
    (task / "task.json").write_text(json.dumps(value))
    good = (ROOT / "examples" / "candidates" / "rmsnorm-fused" / "src" / "kernel.cpp").read_text()
    answers = [f"FILE: src/kernel.cpp\n```cpp\n{text}\n```\n" for text in ("int does not compile", good)]
    with endpoint(answers) as stand_in:
        model = Settings("stand-in", stand_in.url, transcripts=str(tmp_path / "kept"))
        ended = run_job(Request(task, "single", model=model))
        spoken = len(stand_in.questions)
    assert (ended.status, spoken) == ("completed", 2)
    assert ended.speed is not None
    assert ended.speed > 1.2
    replayed = run_job(Request(task, "single", model=model, replay=True))
    assert replayed.files == ended.files
