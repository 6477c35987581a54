"""One candidate through `akf try`, as a command: refusals, what they cost, and what the environment is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from akf.agents.control import akf
from akf.agents.limits import Limits, Meter
from akf.agents.trial import try_files
from akf.contracts.problems import DefectError, PreconditionError, UsageError

ROOT = Path(__file__).resolve().parents[2]
TASK = ROOT / "examples" / "tasks" / "rmsnorm"


def test_a_refusal_keeps_its_kind_and_its_problems() -> None:
    with pytest.raises(UsageError, match="AKF-U"):
        akf("explain", "AKF-P999", limit_s=60).need()
    assert akf("explain", "AKF-P107", limit_s=60).need()["command"] == "explain"


def test_a_command_beyond_its_time_is_stopped() -> None:
    with pytest.raises(PreconditionError, match="AKF-P722"):
        akf("--version", limit_s=0.001)


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """A program in the place of `akf`."""
    (folder / "akf").mkdir()
    (folder / "akf" / "__init__.py").write_text("")
    (folder / "akf" / "__main__.py").write_text(program)
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_no_key_of_a_model_reaches_a_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(tmp_path, monkeypatch, "import json, os; print(json.dumps({'names': sorted(os.environ)}))")
    monkeypatch.setenv("AKF_MODEL_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    names = akf("x", limit_s=60).need()["names"]
    assert "PATH" in names
    assert not [name for name in names if "KEY" in name]


@pytest.mark.parametrize("says", ["", "not json", "[1]", "{} {}"])
def test_no_document_is_a_defect_and_never_the_candidate_s_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str
) -> None:
    stand_in(tmp_path, monkeypatch, f"print({says!r})")
    with pytest.raises(DefectError, match="AKF-X720"):
        akf("try", limit_s=60)


def test_a_package_of_the_folder_is_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "akf").mkdir()
    (tmp_path / "akf" / "__init__.py").write_text("raise SystemExit(99)")
    monkeypatch.chdir(tmp_path)
    assert akf("explain", "AKF-P107", limit_s=60).status == 0


def test_a_candidate_that_is_refused_failed_and_was_paid() -> None:
    meter = Meter(Limits(0, 100.0, 2))
    found = try_files(TASK, {"candidate.json": json.dumps({"kind": "CandidateManifest"})}, meter, timed=False)
    assert found.outcome == "fail"
    assert found.reasons
    assert meter.spent()["attempts"] == 1
    assert meter.spent()["board_s"] > 0
    outside = try_files(TASK, {"../x": ""}, meter, timed=False)
    assert (outside.outcome, outside.reasons) == ("fail", ("AKF-S034",))
    with pytest.raises(PreconditionError, match="AKF-P720"):
        try_files(TASK, {}, meter, timed=False)
