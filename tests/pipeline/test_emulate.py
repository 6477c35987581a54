"""Builds that are executed without a device: what is compared, what is found, and that it never counts.

The object here is compiled by g++ and behaves like one of the simulator, so that no toolchain is needed.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.runs import tree

from akf.contracts.canonical import canonical_bytes, digest
from akf.contracts.problems import IntegrityError, InvalidError, PreconditionError
from akf.contracts.shipped import shipped
from akf.evaluate.emulate import emulate

pytest.importorskip("numpy", reason="needs numpy")
pytestmark = pytest.mark.usefixtures("compiler")

TASK = shipped("examples") / "tasks" / "ascend" / "softmax"
KERNEL = shipped("examples") / "kernels" / "pto_isa_direct" / "softmax"
SOURCE = """
#include <cmath>
#include <cstdlib>
#include <unistd.h>
static unsigned block;
extern "C" void akf_simulator_begin() {}
extern "C" void akf_simulator_block(unsigned index) { block = index; }
extern "C" void softmax(float* x, float* out, int m, int n) {
    for (int row = block * 8; row < m && row < static_cast<int>(block + 1) * 8; ++row) {
        float largest = -INFINITY, sum = 0;
        for (int i = 0; i < n; ++i) largest = std::fmax(largest, x[row * n + i]);
        for (int i = 0; i < n; ++i) sum += std::exp(x[row * n + i] - largest);
        for (int i = 0; i < n; ++i) out[row * n + i] = std::exp(x[row * n + i] - largest) / sum;
    }
    // more
}
"""


def made(folder: Path, more: str = "", source: str = SOURCE, **changes: Any) -> Path:
    """A diagnostic Build of the stage `cpu_sim_so` in a folder."""
    target = folder / "build" / "candidate" / "kernel.so"
    target.parent.mkdir(parents=True)
    command = ["g++", "-O1", "-shared", "-fPIC", "-x", "c++", "-o", str(target), "-"]
    subprocess.run(command, input=source.replace("// more", more).encode(), check=True, timeout=120)
    data = target.read_bytes()
    value = json.loads((shipped("docs/examples") / "artifacts" / "build.minimal.json").read_bytes())
    output = {**value["outputs"][0], "digest": digest(data), "bytes": len(data)}
    value |= {"parents": [], "diagnostic": True, "route": "pto_isa_direct", "soc": "ascend910b4", "stage": "cpu_sim_so"}
    value |= {"outputs": [output], "launch": json.loads((KERNEL / "launch.json").read_bytes()), **changes}
    (folder / "build.json").write_bytes(canonical_bytes(value))
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The Task with one row and one case."""
    value = json.loads((TASK / "task.json").read_bytes())
    value |= {"rows": value["rows"][:1], "cases": value["cases"][1:2]}
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "task.json").write_text(json.dumps(value))
    (tmp_path / "task" / "reference.py").write_bytes((TASK / "reference.py").read_bytes())
    return tmp_path / "task"


def test_what_is_right_passes_and_says_that_it_is_diagnostic(tmp_path: Path) -> None:
    shown = emulate(made(tmp_path / "b"), TASK)
    assert (shown["outcome"], shown["reasons"], shown["diagnostic"]) == ("pass", [], True)
    assert all(case["bound_share"] < 1 for case in shown["cases"])
    assert len(shown["cases"]) == 8


def test_the_same_build_has_the_same_figures(small: Path, tmp_path: Path) -> None:
    build = made(tmp_path / "b")
    before = tree(tmp_path)
    assert emulate(build, small) == emulate(build, small)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("out[0] += 0.25f;", "WRONG_RESULT"),
        ("out[0] = NAN;", "NON_FINITE"),
        ("x[0] = 0;", "INPUT_MUTATED"),
        ("out[m * n] = 0;", "OUT_OF_BOUNDS_WRITE"),
        ("out[-1] = 0;", "OUT_OF_BOUNDS_WRITE"),
        ("abort();", "CHILD_CRASHED"),
        ("_exit(0);", "CHILD_EXITED"),
    ],
)
def test_what_is_wrong_is_named(more: str, reason: str, small: Path, tmp_path: Path) -> None:
    shown = emulate(made(tmp_path / "b", more), small)
    assert shown["outcome"] == "fail"
    assert reason in shown["reasons"]


def test_what_is_never_written_is_no_number(small: Path, tmp_path: Path) -> None:
    shown = emulate(made(tmp_path / "b", source=SOURCE.replace("i < n; ++i) out", "i < n - 1; ++i) out")), small)
    assert "NON_FINITE" in shown["reasons"]


@pytest.mark.parametrize(("step", "outcome"), [(80, "pass"), (64, "fail")], ids=["right", "contiguous"])
def test_rows_that_lie_apart_and_a_workspace_are_passed_as_declared(step: int, outcome: str, tmp_path: Path) -> None:
    """Rows of 64 elements, 80 apart; the kernel keeps its powers in a workspace."""
    task = json.loads((TASK / "task.json").read_bytes())
    x, out = task["abi"]["operands"]
    x |= {"shape": [4, 64], "strides": [80, 1]}
    out["shape"] = [4, 64]
    task |= {"domain": [], "cases": [], "rows": [{**task["rows"][0], "symbols": {}}]}
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "task.json").write_text(json.dumps(task))
    (tmp_path / "task" / "reference.py").write_bytes((TASK / "reference.py").read_bytes())
    launch = json.loads((KERNEL / "launch.json").read_bytes())
    tensor = {"kind": "tensor", "dtype": "float32", "shape": [4, 64]}
    launch["args"] = [
        {"name": "x", **tensor, "strides": [80, 1], "access": "in"},
        {"name": "out", **tensor, "access": "out"},
        {"name": "powers", "kind": "workspace", "dtype": "float32", "shape": [64]},
    ]
    launch["grid"] = [4]
    source = SOURCE.replace("float* x, float* out, int m, int n", "float* x, float* out, float* powers")
    head, _, _ = source.partition("    for (int row")
    source = f"""{head}
    float sum = 0;
    for (int i = 0; i < 64; ++i) sum += powers[i] = std::exp(x[block * {step} + i]);
    for (int i = 0; i < 64; ++i) out[block * 64 + i] = powers[i] / sum;
}}
"""
    assert emulate(made(tmp_path / "b", source=source, launch=launch), tmp_path / "task")["outcome"] == outcome


@pytest.mark.parametrize(
    "changes",
    [{"route": "host_cpp"}, {"route": "triton_ascend"}, {"outputs": []}],
    ids=["host", "no emulation", "none"],
)
def test_a_build_that_cannot_be_executed_here_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(PreconditionError) as caught:
        emulate(made(tmp_path / "b", **changes), TASK)
    assert caught.value.problems[0].code == "AKF-P500"


def test_another_object_than_the_builds_is_not_executed(tmp_path: Path) -> None:
    build = made(tmp_path / "b")
    made(tmp_path / "other", "out[0] = 1;")
    target = "build/candidate/kernel.so"
    (build / target).write_bytes((tmp_path / "other" / target).read_bytes())
    with pytest.raises(IntegrityError):
        emulate(build, TASK)


def test_a_kernel_of_another_task_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError) as caught:
        emulate(made(tmp_path / "b"), TASK.parent / "matmul")
    assert caught.value.problems[0].code == "AKF-M043"
