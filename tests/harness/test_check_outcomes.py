"""`check`: every way to be wrong has its reason code, and honest kernels pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.harness.builder import Task, run_harness

from akf.harness import correct
from akf.harness.bench import Bench
from akf.harness.request import parse

AffineTask = Callable[..., Task]

FAILURES = [
    ("slightly_wrong", "correctness", "WRONG_RESULT"),
    ("one_element", "correctness", "WRONG_RESULT"),
    ("zeros", "correctness", "WRONG_RESULT"),
    ("less_exact", "correctness", "WORSE_THAN_BASELINE"),
    ("nan", "isfinite", "NON_FINITE"),
    ("infinite", "isfinite", "NON_FINITE"),
    ("mutates_input", "correctness", "INPUT_MUTATED"),
    ("writes_outside", "correctness", "OUT_OF_BOUNDS_WRITE"),
    ("writes_nothing", "correctness", "OUTPUT_NOT_WRITTEN"),
    ("segfault", "correctness", "CHILD_CRASHED"),
    ("abort", "correctness", "CHILD_CRASHED"),
    ("exhaust_memory", "correctness", "CHILD_CRASHED"),
    ("exit_zero", "correctness", "CHILD_EXITED"),
    ("hang", "correctness", "CHILD_TIMEOUT"),
    ("spin", "correctness", "CHILD_TIMEOUT"),
    ("prints_forgery", "correctness", "WRONG_RESULT"),
    ("sends_forgery", "correctness", "RESULT_FORGED"),
    ("unsteady", "correctness", "NONDETERMINISTIC"),
    ("right_once", "correctness", "WRONG_RESULT"),
    ("leaves_process", "correctness", "ASYNCHRONOUS_WORK"),
    ("leaves_thread", "correctness", "ASYNCHRONOUS_WORK"),
    ("leader_leaves", "correctness", "CHILD_TIMEOUT"),
    ("works_in_a_thread", "correctness", "ASYNCHRONOUS_WORK"),
    ("works_in_a_process", "correctness", "ASYNCHRONOUS_WORK"),
    ("works_in_a_sibling", "correctness", "ASYNCHRONOUS_WORK"),
    ("works_below_a_process", "correctness", "ASYNCHRONOUS_WORK"),
    ("works_behind_a_crowd", "correctness", "ASYNCHRONOUS_WORK"),
]


def codes(report: dict[str, Any], check: str) -> list[str]:
    return [reason["code"] for reason in report["checks"][check]["reasons"]]


def outcomes(report: dict[str, Any]) -> dict[str, str]:
    return {name: check["outcome"] for name, check in report["checks"].items()}


UNCONFINED = {"segfault", "abort", "exit_zero", "spin", "sends_forgery", "exhaust_memory", "leaves_process"}
UNCONFINED |= {"leaves_thread", "works_in_a_sibling", "works_below_a_process"}
WITHOUT = [(*row, "none") for row in FAILURES if row[0] in UNCONFINED]
WITHOUT += [("kills_itself", "correctness", "CHILD_KILLED", "none")]  # in a name space of its own it cannot
PLACES = [pytest.param(*row, "auto", id=f"{row[0]}-auto") for row in FAILURES]
PLACES += [pytest.param(*row, id=f"{row[0]}-none", marks=pytest.mark.soak) for row in WITHOUT]


@pytest.mark.parametrize(("kernel", "check", "code", "isolation"), PLACES)
def test_failure_has_its_reason(
    affine: AffineTask, out: Path, kernel: str, check: str, code: str, isolation: str
) -> None:
    request = affine(kernel).request(isolation=isolation)
    request["limits"]["timeout_s"] = 1
    status, report = run_harness("check", request, out)
    assert status == 0
    assert report["checks"][check]["outcome"] == "fail"
    assert code in codes(report, check)


@pytest.mark.parametrize("isolation", ["auto", "none"])
@pytest.mark.parametrize("kernel", ["honest", "floods_log", "joins_threads", "truncates", "holds_descriptors"])
def test_honest_kernel_passes(affine: AffineTask, out: Path, kernel: str, isolation: str) -> None:
    status, report = run_harness("check", affine(kernel).request(isolation=isolation), out)
    assert status == 0
    assert outcomes(report) == dict.fromkeys(("sensitivity", "correctness", "isfinite", "hit_proof"), "pass")
    lines = [json.loads(line) for line in (out / "correctness.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {(line["case"], line["side"]) for line in lines} == {
        (case, side) for case in ("N64", "N67", "N1024") for side in ("baseline", "candidate")
    }
    assert report["facts"]["left_running"] == 0


@pytest.mark.parametrize(("role", "found"), [("candidate", "fail"), ("baseline", "blocked")])
def test_tasks_that_are_left_at_the_end_count(
    affine: AffineTask, monkeypatch: pytest.MonkeyPatch, role: str, found: str
) -> None:
    """They may have been started after the last answer, by an alarm for instance."""
    really = correct.run_cases

    def leaving(bench: Bench, who: str, *rest: Any, **named: Any) -> correct.Pass:
        done = really(bench, who, *rest, **named)
        done.left_running = int(who == role)
        return done

    monkeypatch.setattr(correct, "run_cases", leaving)
    check = correct.check(Bench(parse(affine("honest").request())))["checks"]["correctness"]
    assert check.outcome == found
    assert check.reasons[0]["code"] == ("ASYNCHRONOUS_WORK" if role == "candidate" else "BASELINE_FAILED")


def test_baseline_that_leaves_work_behind_blocks(affine: AffineTask, out: Path) -> None:
    _, report = run_harness("check", affine("honest", baseline="leaves_thread").request(), out)
    assert report["checks"]["correctness"]["outcome"] == "blocked"
    assert codes(report, "correctness")[0] == "BASELINE_FAILED"
    assert "ASYNCHRONOUS_WORK" in report["checks"]["correctness"]["reasons"][0]["detail"]


@pytest.mark.parametrize("isolation", ["auto", "none"])
def test_what_a_kernel_left_running_is_ended(affine: AffineTask, out: Path, isolation: str) -> None:
    task = affine("leaves_process")
    digest = task.artifacts["candidate"]["digest"]
    run_harness("check", task.request(isolation=isolation), out)
    survivors = [
        maps.parent.name
        for maps in Path("/proc").glob("[0-9]*/cmdline")
        if b"akf_child" in _read(maps) and str(_parent(maps.parent)) == "1"
    ]
    assert survivors == [], digest


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _parent(process: Path) -> int:
    text = _read(process / "stat").rpartition(b")")[2].split()
    return int(text[1]) if text else 0


def test_bounded_log_is_kept_beside_the_report(affine: AffineTask, out: Path) -> None:
    run_harness("check", affine("floods_log").request(), out)
    side = json.loads((out / "side.json").read_text(encoding="utf-8"))
    assert side["logs"]["candidate"].startswith("a line of noise")
    assert len(side["logs"]["candidate"]) <= 4096


def test_determinism_may_be_left_to_the_tolerance(affine: AffineTask, out: Path) -> None:
    _, report = run_harness("check", affine("unsteady").request(determinism="tolerance"), out)
    assert report["checks"]["correctness"]["outcome"] == "pass"


def test_baseline_that_crashes_blocks_and_does_not_fail(affine: AffineTask, out: Path) -> None:
    status, report = run_harness("check", affine("honest", baseline="segfault").request(), out)
    assert status == 0
    assert report["checks"]["correctness"]["outcome"] == "blocked"
    assert codes(report, "correctness")[0] == "BASELINE_FAILED"


def test_task_whose_tolerance_takes_anything_is_refused(affine: AffineTask, out: Path) -> None:
    request = affine("honest").request(tolerances={"float32": {"rtol": 10.0, "atol": 10.0}})
    _, report = run_harness("check", request, out)
    assert report["checks"]["sensitivity"]["outcome"] == "blocked"
    assert set(codes(report, "sensitivity")) == {"INSENSITIVE_ORACLE"}
    forgeries = {reason["forgery"] for reason in report["checks"]["sensitivity"]["reasons"]}
    assert forgeries == {"zeros", "constant", "copy_of_input", "permuted"}
