"""`calibrate` and `measure`: every planned sample once, raw integers, every timed output checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.harness.builder import Task, run_harness

from akf.harness.plan import planned, planned_ids
from akf.harness.timing import Span, early_work

AffineTask = Callable[..., Task]


def plan(**changes: Any) -> dict[str, Any]:
    value = {
        "pairs": 2,
        "blocks": 1,
        "batches": 3,
        "launches": {"N64": 200, "N1024": 150},
        "round_trip_ns": 20_000,
        "runs": ["ab"],
    }
    return {**value, **changes}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_planned_id_is_there_once_and_in_order(affine: AffineTask, out: Path) -> None:
    status, report = run_harness("measure", affine("honest").request(plan=plan(runs=["aa", "ab"])), out)
    assert status == 0
    assert {name: check["outcome"] for name, check in report["checks"].items()} == {"aa": "pass", "ab": "pass"}
    for name in ("aa", "ab"):
        samples = lines(out / f"{name}.jsonl")
        assert [sample["id"] for sample in samples] == planned_ids(["N64", "N1024"], 2, 1)
        assert all(len(sample["values"]) == 3 for sample in samples)
        assert all(isinstance(value, int) and value > 0 for sample in samples for value in sample["values"])


def test_every_block_of_a_row_runs_a_b_b_a() -> None:
    samples = planned(["r", "s"], 2, 3)
    assert "".join(sample["side"] for sample in samples) == "ABBA" * 12
    assert [sample["row"] for sample in samples[:24]] == ["r"] * 12 + ["s"] * 12


def test_ids_are_unique() -> None:
    ids = planned_ids(["a", "b"], 12, 3)
    assert len(ids) == len(set(ids)) == 2 * 12 * 3 * 4


@pytest.mark.parametrize(
    ("kernel", "code"),
    [
        ("cache_by_address", "WRONG_RESULT"),
        ("cache_by_prefix", "RESULT_REPLAY"),
        ("skips_half", "OUTPUT_NOT_WRITTEN"),
        ("mutates_input", "INPUT_MUTATED"),
        ("segfault", "CHILD_CRASHED"),
        ("exit_zero", "CHILD_EXITED"),
        ("sends_forgery", "RESULT_FORGED"),
        ("nan", "NON_FINITE"),
        ("works_in_a_thread", "ASYNCHRONOUS_WORK"),
        ("works_in_a_process", "ASYNCHRONOUS_WORK"),
        ("works_behind_a_crowd", "ASYNCHRONOUS_WORK"),
        ("leaves_thread", "ASYNCHRONOUS_WORK"),
    ],
)
def test_timed_launches_are_checked(affine: AffineTask, out: Path, kernel: str, code: str) -> None:
    status, report = run_harness("measure", affine(kernel).request(plan=plan()), out)
    assert status == 0
    check = report["checks"]["ab"]
    assert check["outcome"] == "fail"
    assert [reason["code"] for reason in check["reasons"]] == [code]
    assert check["facts"]["taken"] < check["facts"]["planned"]


def test_kernel_that_does_not_repeat_itself_is_held_to_the_oracle(affine: AffineTask, out: Path) -> None:
    _, report = run_harness("measure", affine("unsteady").request(plan=plan(launches={"N64": 201, "N1024": 151})), out)
    assert report["checks"]["ab"]["outcome"] == "pass"


def test_work_before_the_clock_starts_is_found(affine: AffineTask, out: Path) -> None:
    task = affine("works_on_waking")
    task.rows = [task.case("N1024", {"N": 1024}, {})]
    _, report = run_harness("measure", task.request(plan=plan(pairs=5, launches={"N1024": 150})), out)
    assert report["checks"]["ab"]["outcome"] == "fail"
    assert "ASYNCHRONOUS_WORK" in [reason["code"] for reason in report["checks"]["ab"]["reasons"]]


def test_waking_as_late_as_the_other_side_is_no_offence() -> None:
    def spans(*waking: int) -> list[Span]:
        return [Span(1_000_000, 990_000, each) for each in waking * 12]

    usual = spans(90_000, 100_000, 120_000)
    assert early_work(usual, usual, 6_000) == 0
    assert early_work(spans(95_000, 110_000, 130_000), usual, 6_000) == 0
    assert early_work(spans(190_000, 200_000, 220_000), usual, 6_000) == pytest.approx(0.1, abs=0.01)
    assert early_work(spans(190_000, 200_000, 220_000)[:29], usual, 6_000) == 0
    assert early_work(spans(100_000, 900_000, 120_000), usual, 6_000) == 0


@pytest.mark.parametrize("sizes", [(64, 1024), (67, 3)])
def test_no_input_comes_twice(affine: AffineTask, out: Path, sizes: tuple[int, int]) -> None:
    """A kernel that knows every input byte by byte has never seen the one that it gets."""
    task = affine("knows_every_input")
    task.rows = [task.case(f"N{size}", {"N": size}, {}) for size in sizes]
    launches = {row["id"]: 40 for row in task.rows}
    _, report = run_harness("measure", task.request(plan=plan(launches=launches, blocks=3)), out)
    assert report["checks"]["ab"]["facts"]["taken"] == report["checks"]["ab"]["facts"]["planned"]
    assert all(reason["code"] == "TIMING_MISMATCH" for reason in report["checks"]["ab"]["reasons"])


def test_a_few_wrong_outputs_are_found_by_the_secret_sample(affine: AffineTask, out: Path) -> None:
    _, report = run_harness("measure", affine("forgets_one_in_many").request(plan=plan(pairs=8, blocks=3)), out)
    assert [reason["code"] for reason in report["checks"]["ab"]["reasons"]] == ["WRONG_RESULT"]


@pytest.mark.parametrize("kind", ["zeros", "constant", "uniform", "mixed"])
def test_any_distribution_can_be_timed(affine: AffineTask, out: Path, kind: str) -> None:
    task = affine("honest")
    task.rows = [task.case(f"N{size}", {"N": size}, {}, {"x": {"kind": kind}}) for size in (64, 67)]
    request = task.request(plan=plan(pairs=1, launches={"N64": 3, "N67": 1}))
    _, report = run_harness("measure", request, out)
    assert report["checks"]["ab"]["facts"]["taken"] == report["checks"]["ab"]["facts"]["planned"]
    assert all(reason["code"] == "TIMING_MISMATCH" for reason in report["checks"]["ab"]["reasons"])


@pytest.mark.parametrize(
    ("kernel", "code"), [("mutates_input", "INPUT_MUTATED"), ("writes_nothing", "OUTPUT_NOT_WRITTEN")]
)
def test_tensors_that_do_not_fill_their_lines_are_checked_too(
    affine: AffineTask, out: Path, kernel: str, code: str
) -> None:
    task = affine(kernel)
    task.rows = [task.case("N67", {"N": 67}, {})]
    _, report = run_harness("measure", task.request(plan=plan(launches={"N67": 50})), out)
    assert [reason["code"] for reason in report["checks"]["ab"]["reasons"]] == [code]


@pytest.mark.parametrize("kernel", ["joins_threads", "truncates", "holds_descriptors"])
def test_what_ends_before_the_launch_returns_is_no_offence(affine: AffineTask, out: Path, kernel: str) -> None:
    launches = {"N64": 20, "N1024": 20}
    _, report = run_harness("measure", affine(kernel).request(plan=plan(launches=launches)), out)
    assert report["checks"]["ab"]["facts"]["taken"] == report["checks"]["ab"]["facts"]["planned"]
    assert all(reason["code"] == "TIMING_MISMATCH" for reason in report["checks"]["ab"]["reasons"])


def test_failing_baseline_blocks(affine: AffineTask, out: Path) -> None:
    _, report = run_harness("measure", affine("honest", baseline="segfault").request(plan=plan()), out)
    assert report["checks"]["ab"]["outcome"] == "blocked"


def test_calibration_fixes_launches_within_memory(affine: AffineTask, out: Path) -> None:
    request = affine("honest").request()
    request["limits"]["output_bytes_per_row"] = 1 << 20
    status, report = run_harness("calibrate", request, out)
    assert status == 0
    facts = report["facts"]
    assert facts["round_trip_ns"] > 0
    assert 2 <= facts["launches"]["N64"] <= (1 << 20) // 256
    assert 2 <= facts["launches"]["N1024"] <= (1 << 20) // 4096
