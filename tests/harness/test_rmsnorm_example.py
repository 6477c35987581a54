"""The shipped example: the honest candidates are right, the wrong one is caught, one is faster and one is not."""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import median

import pytest
from tests.harness.builder import ROOT, rmsnorm, run_harness
from tests.harness.test_measure import lines

pytest.importorskip("numpy", reason='needs numpy: pip install "ascend-kernel-forge[host]"')
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++: apt-get install g++")


def candidate(name: str) -> Path:
    return ROOT / "examples" / "candidates" / f"rmsnorm-{name}" / "src" / "kernel.cpp"


@pytest.mark.parametrize(("name", "outcome"), [("fused", "pass"), ("naive", "pass"), ("wrong", "fail")])
def test_check_of_the_shipped_candidates(tmp_path: Path, name: str, outcome: str) -> None:
    task = rmsnorm(tmp_path, candidate(name))
    status, report = run_harness("check", task.request(), tmp_path / "out")
    assert status == 0
    assert report["checks"]["correctness"]["outcome"] == outcome
    assert report["checks"]["sensitivity"]["outcome"] == "pass"
    assert report["checks"]["hit_proof"]["outcome"] == "pass"


@pytest.mark.parametrize(("name", "faster"), [("fused", True), ("naive", False)])
def test_direction_of_the_difference(tmp_path: Path, name: str, faster: bool) -> None:
    task = rmsnorm(tmp_path, candidate(name))
    plan = {
        "pairs": 2,
        "blocks": 1,
        "batches": 3,
        "launches": {"T1": 200, "T4": 60, "T8": 40},
        "round_trip_ns": 10_000,
        "runs": ["ab"],
    }
    _, report = run_harness("measure", task.request(plan=plan), tmp_path / "out")
    assert report["checks"]["ab"]["facts"]["taken"] == report["checks"]["ab"]["facts"]["planned"]
    samples = lines(tmp_path / "out" / "ab.jsonl")
    times = {
        side: median(min(sample["values"]) for sample in samples if sample["side"] == side and sample["row"] == "T8")
        for side in ("A", "B")
    }
    assert (times["B"] < times["A"]) is faster
