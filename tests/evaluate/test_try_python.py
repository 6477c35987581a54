"""`akf try` with candidates in Python: every cheat is found for a true reason, and no honest candidate is.

`AKF_SHARED_EXPLOITS`, or `../shared/exploits` beside the checkout, may hold further ones: files with `KIND = "kernel"`,
`TRUTH`, and `PROBLEM` where it is not `linear`. Without the folder there is nothing to collect.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.evaluate.cheats import CHEATS, CONTROLS, QUICK

from akf.contracts.shipped import shipped
from akf.evaluate.trial import try_candidate

ROOT = Path(__file__).parents[2]
FURTHER = Path(os.environ.get("AKF_SHARED_EXPLOITS") or ROOT.parent / "shared" / "exploits")
TRUTHS = {"rejected": "fail", "pass": "pass"}

pytestmark = pytest.mark.usefixtures("torch_here")


@pytest.fixture(scope="module")
def torch_here() -> None:
    pytest.importorskip("numpy", reason="the harness needs numpy")
    pytest.importorskip("torch", reason="a candidate in Python needs torch")


def tried(name: str, tmp_path: Path, *, quick: bool = True) -> dict[str, Any]:
    candidate = {**CHEATS, **CONTROLS}[name]
    file = tmp_path / f"{name}.py"
    file.write_text(candidate.source)
    return try_candidate(shipped("examples") / "tasks" / candidate.task, file, "cpu", quick=quick)


def stage(names: dict[str, Any]) -> list[Any]:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.soak) for name in names]


@pytest.mark.parametrize("name", stage(CHEATS))
def test_a_cheat_is_found_for_a_true_reason(name: str, tmp_path: Path) -> None:
    answer = tried(name, tmp_path)
    assert answer["outcome"] == "fail", answer
    assert set(answer["reasons"]) & CHEATS[name].reasons, answer["reasons"]


@pytest.mark.parametrize("name", stage(CONTROLS))
def test_an_honest_candidate_passes(name: str, tmp_path: Path) -> None:
    answer = tried(name, tmp_path)
    assert (answer["outcome"], answer["reasons"]) == ("pass", []), answer


@pytest.mark.soak
@pytest.mark.parametrize("name", ["plain", "joins_its_threads", "answers_by_version", "counts_its_calls"])
def test_with_the_clock(name: str, tmp_path: Path) -> None:
    """What is timed is right too; a machine that is too busy for its clocks gives no figures."""
    answer = tried(name, tmp_path, quick=False)
    assert answer["outcome"] == ("fail" if name in CHEATS else "pass"), answer
    if answer["checks"][-1] == {"name": "timing", "category": "evidence", "outcome": "pass", "profiler": "off"}:
        assert {"noise", "gain", "row:published"} <= {figure["name"] for figure in answer["figures"]}


def further() -> list[Path]:
    files = sorted(FURTHER.glob("*.py")) if FURTHER.is_dir() else []
    return [file for file in files if said(file, "KIND") == "kernel"]


def said(file: Path, name: str) -> str:
    found = re.search(rf'^{name} = "(\w+)"', file.read_text(encoding="utf-8"), re.MULTILINE)
    return found.group(1) if found else ""


if further():  # without the folder there is no such test, rather than one that is skipped

    @pytest.mark.soak
    @pytest.mark.parametrize("file", [pytest.param(file, id=file.stem) for file in further()])
    def test_further_ones_get_their_truth(file: Path) -> None:
        task = shipped("examples") / "tasks" / (said(file, "PROBLEM") or "linear")
        answer = try_candidate(task, file, "cpu", quick=True)
        assert answer["outcome"] == TRUTHS[said(file, "TRUTH")], answer
