"""`akf try` with the clock: cheats that show in timed batches only, in Python and in C++, and honest ones beside them.

A machine that is too busy for its clocks says so and finds nothing; it is asked again, and then let be.
"""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.evaluate import cheats_compiled, cheats_timed

from akf.contracts.shipped import shipped
from akf.evaluate.trial import try_candidate

TASKS, FUSED = shipped("examples") / "tasks", shipped("examples") / "candidates" / "rmsnorm-fused"
TRIES = 3
X86_ONLY = {"stops_the_clock", "keeps_another_rounding"}

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def torch_here() -> None:
    pytest.importorskip("numpy", reason="the harness needs numpy")
    pytest.importorskip("torch", reason="a candidate in Python needs torch")


def patiently(task: str, candidate: Path) -> dict[str, Any]:
    """The answer; it has no outcome where the machine was too busy every time."""
    for _ in range(TRIES):
        answer = try_candidate(TASKS / task, candidate, "cpu", quick=False)
        last = answer["checks"][-1]
        if (last["name"], last["outcome"]) != ("timing", "incomparable"):
            return answer
    return {**answer, "outcome": None}


def module_tried(name: str, folder: Path) -> dict[str, Any]:
    candidate = {**cheats_timed.CHEATS, **cheats_timed.CONTROLS}[name]
    file = folder / f"{name}.py"
    file.write_text(candidate.source)
    return patiently(candidate.task, file)


def kernel_tried(name: str, folder: Path) -> dict[str, Any]:
    if name in X86_ONLY and platform.machine() != "x86_64":
        pytest.skip("written for x86-64")
    kernel = {**cheats_compiled.CHEATS, **cheats_compiled.CONTROLS}[name]
    (folder / "src").mkdir()
    (folder / "src" / "kernel.cpp").write_text(kernel.source)
    shutil.copy(FUSED / "src" / "launch.json", folder / "src")
    manifest = json.loads((FUSED / "candidate.json").read_bytes())
    del manifest["$schema"]
    (folder / "candidate.json").write_text(json.dumps({**manifest, "id": "mine"}))
    return patiently("rmsnorm", folder)


@pytest.mark.usefixtures("torch_here")
@pytest.mark.parametrize("name", cheats_timed.CHEATS)
def test_a_module_that_cheats_the_clock_is_found(name: str, tmp_path: Path) -> None:
    answer = module_tried(name, tmp_path)
    assert answer["outcome"] in {"fail", None}, answer
    assert answer["outcome"] is None or set(answer["reasons"]) & cheats_timed.CHEATS[name].reasons, answer["reasons"]


@pytest.mark.usefixtures("torch_here")
@pytest.mark.parametrize("name", cheats_timed.CONTROLS)
def test_an_honest_module_is_timed(name: str, tmp_path: Path) -> None:
    answer = module_tried(name, tmp_path)
    assert answer["outcome"] in {"pass", None}, answer


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name", cheats_compiled.CHEATS)
def test_a_kernel_that_cheats_is_found(name: str, tmp_path: Path) -> None:
    answer = kernel_tried(name, tmp_path)
    assert answer["outcome"] in {"fail", None}, answer
    assert answer["outcome"] is None or set(answer["reasons"]) & cheats_compiled.CHEATS[name].reasons, answer["reasons"]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name", cheats_compiled.CONTROLS)
def test_an_honest_kernel_is_timed(name: str, tmp_path: Path) -> None:
    answer = kernel_tried(name, tmp_path)
    assert answer["outcome"] in {"pass", None}, answer
