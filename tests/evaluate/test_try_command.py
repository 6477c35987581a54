"""`akf try` as it is typed: compiled candidates, refusals, and nothing left behind."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import inside
from tests.support.toolchains import but

from akf.contracts.shipped import shipped

TASKS, CANDIDATES = shipped("examples") / "tasks", shipped("examples") / "candidates"
BINARY = ["rmsnorm", "swiglu", "rotary", "softmax", "matmul"]
PYTHON = [
    "linear",
    "padded",
    "small",
    "two_out",
    "wide_softmax",
    "identity",
    "rowmean",
    "swiglu_module",
    "rotary_module",
]

pytestmark = pytest.mark.usefixtures("state")


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders of these tests lie."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def manifest(task: str, **more: Any) -> dict[str, Any]:
    value = json.loads((CANDIDATES / "rmsnorm-fused" / "candidate.json").read_bytes())
    del value["$schema"], value["domain"]
    return {**value, "id": "mine", "task": task, **more}


def own_kernel(task: str, folder: Path, which: str = "plain") -> Path:
    """A submission whose kernel is one that the Task brings along."""
    shutil.copytree(TASKS / task / which / "host_cpp", folder / "src")
    (folder / "candidate.json").write_text(json.dumps(manifest(task)))
    return folder


@pytest.mark.usefixtures("compiler")
class TestCompiled:
    @pytest.mark.parametrize(
        ("name", "outcome", "reason"),
        [
            ("fused", "pass", None),
            ("wrong", "fail", "WRONG_RESULT"),
            ("replay", "fail", "RESULT_REPLAY"),
            ("later", "fail", "ASYNCHRONOUS_WORK"),
        ],
    )
    def test_the_shipped_candidates(self, name: str, outcome: str, reason: str | None, scratch: Path) -> None:
        answer = inside("try", TASKS / "rmsnorm", CANDIDATES / f"rmsnorm-{name}", "--quick").accepted().document
        assert (answer["outcome"], answer["diagnostic"]) == (outcome, True)
        assert answer["reasons"][:1] == ([reason] if reason else [])
        assert not list(scratch.iterdir()), "something was left"

    def test_no_other_device_is_there_for_them(self) -> None:
        candidate = CANDIDATES / "rmsnorm-fused"
        assert inside("try", TASKS / "rmsnorm", candidate, "--device", "cuda").refused(4).codes == {"AKF-P413"}

    @pytest.mark.parametrize("task", but(BINARY, "rmsnorm"))
    def test_what_a_task_brings_along_is_right_and_wrong(self, task: str, tmp_path: Path) -> None:
        right = inside("try", TASKS / task, own_kernel(task, tmp_path / "right"), "--quick").accepted().document
        wrong = inside("try", TASKS / task, own_kernel(task, tmp_path / "wrong", "perturbed"), "--quick").document
        assert (right["outcome"], right["reasons"]) == ("pass", [])
        assert wrong["outcome"] == "fail"

    def test_what_does_not_compile_fails(self, tmp_path: Path) -> None:
        folder = own_kernel("rmsnorm", tmp_path / "mine")
        (folder / "src" / "kernel.cpp").write_text("int nothing( {")
        answer = inside("try", TASKS / "rmsnorm", folder, "--quick").accepted().document
        assert (answer["outcome"], answer["checks"][0]["name"]) == ("fail", "build")
        assert "error" in answer["checks"][0]["note"]


@pytest.mark.soak
@pytest.mark.parametrize("task", PYTHON)
def test_modules_that_a_task_brings_along_are_right_and_wrong(task: str) -> None:
    pytest.importorskip("torch", reason="a candidate in Python needs torch")
    found = [
        inside("try", TASKS / task, TASKS / task / which / "python" / "kernel.py", "--quick").accepted().document
        for which in ("plain", "perturbed")
    ]
    assert [answer["outcome"] for answer in found] == ["pass", "fail"]


def test_a_candidate_of_another_abi_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("def run(x): return x\n")
    assert inside("try", TASKS / "rmsnorm", file).refused(4).codes == {"AKF-P410"}


def test_a_route_that_is_not_compiled_here_is_refused(tmp_path: Path) -> None:
    folder = own_kernel("rmsnorm", tmp_path / "mine")
    (folder / "candidate.json").write_text(json.dumps(manifest("rmsnorm", route="ascendc_direct")))
    assert inside("try", TASKS / "rmsnorm", folder).refused(4).codes == {"AKF-P412"}


def test_a_task_that_brings_no_plain_kernel_is_refused(tmp_path: Path) -> None:
    task = shutil.copytree(TASKS / "rmsnorm", tmp_path / "task")
    value = json.loads((task / "task.json").read_bytes())
    del value["plain"]
    (task / "task.json").write_text(json.dumps(value))
    assert inside("try", task, CANDIDATES / "rmsnorm-fused").refused(4).codes == {"AKF-P411"}


def test_a_python_task_without_its_modules_is_invalid(tmp_path: Path) -> None:
    task = shutil.copytree(TASKS / "small", tmp_path / "task")
    value = json.loads((task / "task.json").read_bytes())
    del value["plain"]
    (task / "task.json").write_text(json.dumps(value))
    assert inside("validate", task / "task.json").refused(1).codes == {"AKF-M046"}


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["nowhere", "nowhere"], 1, "AKF-F"),
        (["rmsnorm", "x", "--device", "gpu"], 2, "AKF-U002"),
    ],
)
def test_what_cannot_be_tried_is_said(words: list[str], status: int, code: str, tmp_path: Path) -> None:
    answer = inside("try", TASKS / words[0], tmp_path / words[1], *words[2:]).refused(status)
    assert all(each.startswith(code) for each in answer.codes)


def test_a_case_moves_operands_only(tmp_path: Path) -> None:
    task = shutil.copytree(TASKS / "swiglu", tmp_path / "task")
    value = json.loads((task / "task.json").read_bytes())
    value["cases"][-1]["misalign"] = {"x": 1, "y": 2}
    (task / "task.json").write_text(json.dumps(value))
    answer = inside("validate", task / "task.json").refused(1)
    assert answer.codes == {"AKF-M051"}
    assert answer.problems[0]["pointer"] == f"/cases/{len(value['cases']) - 1}/misalign/y"


@pytest.mark.usefixtures("compiler")
def test_a_kernel_that_takes_alignment_for_granted_is_found(tmp_path: Path) -> None:
    folder = own_kernel("swiglu", tmp_path / "mine")
    source = folder / "src" / "kernel.cpp"
    head, brace, rest = source.read_text().partition(") {\n")
    assert brace
    source.write_text(f"{head}{brace}    if (reinterpret_cast<std::uintptr_t>(x) % 16 != 0) return;\n{rest}")
    answer = inside("try", TASKS / "swiglu", folder, "--quick").accepted().document
    assert (answer["outcome"], answer["reasons"][:1]) == ("fail", ["OUTPUT_NOT_WRITTEN"])
    assert "unaligned" in answer["checks"][-1]["note"]
