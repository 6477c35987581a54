"""The shipped example: the honest candidates are right, the wrong one is caught, one is faster and one is not."""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import median

import pytest
from tests.harness.builder import ROOT, digest_of, rmsnorm, run_harness
from tests.harness.test_measure import lines
from tests.support.cli import inside

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


CLANG = next((name for name in ("clang++", "clang++-19") if shutil.which(name)), None)


@pytest.mark.skipif(CLANG is None, reason="needs clang: apt-get install clang")
@pytest.mark.parametrize(("name", "outcome"), [("fused", "pass"), ("wrong", "fail")])
def test_objects_of_the_second_compiler_are_checked_alike(tmp_path: Path, name: str, outcome: str) -> None:
    task = rmsnorm(tmp_path, candidate(name))
    words = ("--route", "host_cpp", "--soc", "native", "--out", tmp_path / "clang", "--option", "compiler=clang++")
    inside("build", candidate(name).parent, *words).accepted()
    made = tmp_path / "clang" / "build" / "candidate" / "kernel.so"
    assert b"clang version" in made.read_bytes()
    task.artifacts["candidate"] |= {"path": str(made), "digest": digest_of(made)}
    _, report = run_harness("check", task.request(), tmp_path / "out")
    assert report["checks"]["correctness"]["outcome"] == outcome


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
