"""The steps of `correctness`: one order, every code in one of them, nothing passed that was not reached."""

from __future__ import annotations

from pathlib import Path

from tests.harness.modules import HONEST, asked, checked, module, trio

from akf.harness import outcome
from akf.harness.outcome import REFUSED_RESULTS, Check
from akf.harness.steps import STEPS, steps, worst
from akf.harness.template import Template


def test_every_code_of_a_child_belongs_to_one_step() -> None:
    owned = [code for _, codes in STEPS for code in codes]
    assert len(owned) == len(set(owned))
    assert set(owned) >= REFUSED_RESULTS


def test_what_a_stopped_candidate_did_not_reach_is_not_passed() -> None:
    check = Check()
    check.add("SHAPE_MISMATCH", case="a")
    found = {each["step"]: each["outcome"] for each in steps(check, stopped=True)}
    assert [found[name] for name in ("loads", "returns", "metadata")] == ["pass", "pass", "fail"]
    assert {found[name] for name, _ in STEPS[4:]} == {"not_run"}
    found = {each["step"]: each["outcome"] for each in steps(check, stopped=False)}
    assert {found[name] for name, _ in STEPS[4:]} == {"pass"}


def test_a_baseline_that_fails_blocks_its_step() -> None:
    check = Check()
    check.add(outcome.BASELINE_FAILED, outcome.BLOCKED)
    assert {"step": "against_baseline", "outcome": "blocked"} in steps(check, stopped=False)


def test_the_largest_errors_are_exact_figures() -> None:
    sizes = [(1.5, 3), (0.25, 9)]
    lines = [
        {"side": "candidate", "max_abs": a.hex(), "max_rel": a.hex(), "max_ulp": ulp, "bound_share": a.hex()}
        for a, ulp in sizes
    ]
    assert worst(lines) == {
        "candidate": {"max_abs": (1.5).hex(), "max_rel": (1.5).hex(), "max_ulp": 9, "bound_share": (1.5).hex()}
    }


def test_the_report_counts_what_was_looked_at(template: Template, tmp_path: Path) -> None:
    facts = checked(template, asked(trio(tmp_path, module(HONEST))))["correctness"].facts
    assert {each["outcome"] for each in facts["steps"]} == {"pass"}
    assert [facts[name] for name in ("published", "twins", "held_back")] == [2, 2, 1]
    assert facts["calls"] == (2 * 2 + 2 + 2) + 5  # repeats and twins, and all once more, watched, in reverse
    assert set(facts["errors"]) == {"baseline", "candidate"}
