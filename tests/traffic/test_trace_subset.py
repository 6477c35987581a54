"""A representative part: what it is, and that its errors are stated."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.support.request_traces import EVERYTHING, Request, draft, made, mooncake, stage, text

from akf.contracts.problems import UsageError

BUSY = [Request(ms, 1024, 10, (0, 1)) for ms in range(0, 1000, 100)]
CALM = [Request(2000 + 1000 * index, 2048, 50, tuple(range(10 + 4 * index, 14 + 4 * index))) for index in range(10)]
STAGES = [stage("short_prefill", (1, 1024), (1, 99)), stage("long_prefill", (1025, 9999), (1, 99))]


def sample(tmp_path: Path, rows: list[Request], size: int) -> dict[str, Any]:
    found: dict[str, Any] = made(draft(STAGES), text(tmp_path / "t.jsonl", map(mooncake, rows)), subset=size).workload
    return found


def by_name(workload: dict[str, Any]) -> dict[str, Any]:
    return {error["statistic"]: error for error in workload["sample"]["errors"]}


def test_a_sample_of_everything_has_no_error(tmp_path: Path) -> None:
    workload = sample(tmp_path, BUSY + CALM, 20)
    found = workload["sample"]
    assert (found["requests"], found["windows"], found["start_ns"], found["worst_ratio"]) == (20, 1, 0, 0)
    assert found["input_distance"] == found["output_distance"] == {"numerator": 0, "denominator": 1}
    assert {error["error_ratio"] for error in found["errors"]} == {0}
    whole = made(draft(STAGES), text(tmp_path / "t.jsonl", map(mooncake, BUSY + CALM))).workload
    assert workload["digest_of_requests"] == whole["digest_of_requests"]


def test_the_window_that_is_least_wrong_is_taken(tmp_path: Path) -> None:
    """Half of the requests are busy and half calm, so a window over the border is better than either half."""
    workload = sample(tmp_path, BUSY + CALM, 10)
    found = workload["sample"]
    assert found["windows"] == 11
    assert 0 < found["start_ns"] < 1_000_000_000
    weights = by_name(workload)["weight-ratio.short_prefill"]
    assert weights["whole_value"] == 0.5
    assert found["worst_ratio"] == max(
        found["input_distance"]["numerator"] / found["input_distance"]["denominator"],
        found["output_distance"]["numerator"] / found["output_distance"]["denominator"],
        *(error["error_ratio"] for error in found["errors"]),
    )


def test_the_errors_of_a_window_by_hand(tmp_path: Path) -> None:
    """Rates 1/s and 1/4/s against 2/5/s: the first window is wrong by 3/2, the second by 3/8 and by its spread."""
    rows = [Request(0, 1024, 10, (0, 1)), Request(1000, 1024, 10, (0, 1)), Request(5000, 1024, 10, (0, 2))]
    workload = sample(tmp_path, rows, 2)
    errors = by_name(workload)
    assert (workload["sample"]["start_ns"], workload["sample"]["worst_ratio"]) == (1_000_000_000, 1)
    assert errors["rate-per-s"] == {
        "statistic": "rate-per-s", "whole_value": 0.4, "sample_value": 0.25, "error_ratio": 0.375,
    }  # fmt: skip
    assert errors["gap-cv-ratio"]["whole_value"] == 0.6
    assert (errors["gap-cv-ratio"]["sample_value"], errors["gap-cv-ratio"]["error_ratio"]) == (0, 1)
    assert (errors["reuse-ratio"]["whole_value"], errors["reuse-ratio"]["sample_value"]) == (0.5, 0.25)
    assert errors["reuse-ratio"]["error_ratio"] == 0.25


def test_the_rate_decides_where_all_else_is_equal(tmp_path: Path) -> None:
    rows = [Request(ms, 1024, 10, (ms, ms + 1)) for ms in (0, 100, 200, 10_000, 20_000, 30_000, 60_000)]
    workload = sample(tmp_path, rows, 3)
    errors = by_name(workload)
    assert errors["rate-per-s"]["whole_value"] == 0.1
    assert errors["rate-per-s"]["sample_value"] == pytest.approx(0.1, rel=0.5)
    assert workload["sample"]["start_ns"] >= 200_000_000


def test_a_window_starts_cold(tmp_path: Path) -> None:
    rows = [Request(1000 * index, 1024, 10, (0, 1)) for index in range(10)]
    error = by_name(sample(tmp_path, rows, 5))["reuse-ratio"]
    assert (error["whole_value"], error["sample_value"]) == (0.9, 0.8)
    assert error["error_ratio"] == float(Fraction(1, 10))


def test_what_a_sample_cannot_have_is_no_error_of_zero(tmp_path: Path) -> None:
    workload = sample(tmp_path, BUSY + CALM, 1)
    error = by_name(workload)["rate-per-s"]
    assert (error["sample_value"], error["error_ratio"]) == (None, None)
    assert workload["sample"]["worst_ratio"] is None


def test_a_sample_is_no_larger_than_the_requests_inside_the_stages(tmp_path: Path) -> None:
    path = text(tmp_path / "t.jsonl", map(mooncake, [*BUSY, Request(9000, 20_000, 10)]))
    assert made(draft(STAGES), path, subset=10).workload["traffic"]["outside"] == 1
    with pytest.raises(UsageError) as caught:
        made(draft(STAGES), path, subset=11)
    assert caught.value.problems[0].code == "AKF-F260"


def test_windows_are_limited_and_evenly_spaced(tmp_path: Path) -> None:
    rows = [Request(10 * index, 600, 10, (0, 1)) for index in range(2000)]
    found = made(draft(EVERYTHING), text(tmp_path / "t.jsonl", map(mooncake, rows)), subset=50).workload["sample"]
    assert found["windows"] == 256
