"""The whole way: files of a profiler, a benchmark and a trace, over a Campaign and a run, to a Task of each type."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.support import traffic
from tests.support.cli import Answer, inside

TASK = traffic.EXAMPLE / "campaign" / "task" / "task.json"


def opened(kind: str, folder: Path, *more: object) -> Answer:
    """Survey a story, put its artifacts under the example's Campaign, freeze, triage, open."""
    case, files, _ = traffic.variants()[kind]
    inputs = traffic.written(folder / "in", case, **files)
    traffic.survey(inputs, "--model", "tiny-qwen3", "--out", folder / "out").accepted()
    campaign = Path(shutil.copytree(traffic.EXAMPLE / "campaign", folder / "campaign"))
    for name in ("workload.json", "capture.json"):
        shutil.copy(folder / "out" / name, campaign / name)
    arm = campaign / "vllm_ascend.json"
    if kind == "no_go":
        value = json.loads(arm.read_bytes())
        value["opportunity"]["target_ratio"] = 1.6
        arm.write_text(json.dumps(value), encoding="utf-8")
    inside("init-run", arm, "--runs-root", folder / "runs", "--run-id", "tiny").accepted()
    said = inside("triage", folder / "runs" / "tiny", "--out", folder / "triage.json").accepted().document
    assert said["answer"] == kind
    return inside("open-task", folder / "runs" / "tiny", folder / "triage.json", *more)


@pytest.mark.parametrize("kind", ["integration", "configuration", "pipeline"])
def test_a_task_without_a_kernel(kind: str, tmp_path: Path) -> None:
    document = opened(kind, tmp_path).accepted().document
    assert document["type"] == kind
    assert inside("audit", tmp_path / "runs" / "tiny").status == 0


def test_a_kernel_task(tmp_path: Path) -> None:
    document = opened("kernel", tmp_path, "--from", TASK).accepted().document
    assert document["type"] == "kernel"
    assert document["opportunity"]["hotspot"] == "vllm_ascend.add-rms-norm"
    task = json.loads((tmp_path / "runs" / "tiny" / "tasks" / "add-rms-norm.json").read_bytes())
    assert [row["symbols"] for row in task["rows"]] == [{"T": 16}]


def test_no_task_of_a_no_go(tmp_path: Path) -> None:
    assert opened("no_go", tmp_path, "--from", TASK).status == 4
