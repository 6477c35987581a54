"""Operands beyond one input and one output: updated in place, integers, workspace, stream, other dtypes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.harness.builder import Task, built, run_harness

from akf.routes.launch_spec import parse_spec

pytest.importorskip("numpy", reason='needs numpy: pip install "ascend-kernel-forge[host]"')
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++: apt-get install g++")

SPEC = parse_spec(
    {
        "abi": "c",
        "symbol": "accumulate",
        "args": [
            {"name": "acc", "kind": "tensor", "dtype": "float64", "shape": ["N", "M"], "access": "inout"},
            {"name": "scratch", "kind": "workspace", "dtype": "float64", "shape": ["N", "M"]},
            {"name": "x", "kind": "tensor", "dtype": "int32", "shape": ["N", "M"], "access": "in"},
            {"name": "stream", "kind": "stream"},
            {"name": "total", "kind": "tensor", "dtype": "int64", "shape": [1], "access": "out"},
            {"name": "count", "kind": "scalar", "dtype": "int32", "value": "N * M"},
            {"name": "scale", "kind": "scalar", "dtype": "float64", "value": "scale"},
        ],
    }
)
KERNEL = """
#include <cstdint>
extern "C" void accumulate(double* acc, double* scratch, const std::int32_t* x, void* stream, std::int64_t* total,
                           std::int32_t count, double scale) {
    (void)stream;
    for (std::int32_t i = 0; i < count; ++i) scratch[i] = scale * x[i];
    std::int64_t sum = 0;
    for (std::int32_t i = 0; i < count; ++i) { acc[i] += scratch[i]; sum += x[i]; }
    *total = sum + OFFSET;
}
"""
REFERENCE = """
def reference(acc, x, *, scale):
    return acc + scale * x, x.sum(dtype="int64").reshape(1)
"""


def task(folder: Path, candidate_offset: int) -> Task:
    artifacts = {}
    for role, offset in (("baseline", 0), ("candidate", candidate_offset), ("perturbed", 7)):
        source = folder / role / "src" / f"{role}.cpp"
        source.parent.mkdir(parents=True)
        source.write_text(KERNEL.replace("OFFSET", str(offset)), encoding="utf-8")
        artifacts[role] = built(source, SPEC, folder)
    made = Task(REFERENCE, SPEC, artifacts)
    whole = {"x": {"kind": "uniform", "low": -100, "high": 100}}
    made.cases = [made.case(f"{n}x{m}", {"N": n, "M": m}, {"scale": 0.5}, whole) for n, m in ((3, 5), (8, 16))]
    made.rows = [made.case("row", {"N": 8, "M": 16}, {"scale": 0.5}, whole)]
    return made


@pytest.mark.parametrize(("offset", "outcome"), [(0, "pass"), (1, "fail")])
def test_every_kind_of_operand(tmp_path: Path, offset: int, outcome: str) -> None:
    tolerances = {"float64": {"rtol": 1e-14, "atol": 1e-15}, "int64": {"rtol": 0.0, "atol": 0.0}}
    plan = {"pairs": 1, "blocks": 1, "batches": 1, "launches": {"row": 50}, "round_trip_ns": 20_000, "runs": ["ab"]}
    request = task(tmp_path, offset).request(tolerances=tolerances, plan=plan)
    status, report = run_harness("check", request, tmp_path / "check")
    assert status == 0
    assert {name: report["checks"][name]["outcome"] for name in ("correctness", "hit_proof", "sensitivity")} == {
        "correctness": outcome,
        "hit_proof": "pass",
        "sensitivity": "pass",
    }
    status, report = run_harness("measure", request, tmp_path / "measure")
    assert status == 0
    assert report["checks"]["ab"]["outcome"] in {outcome, "incomparable"}
    assert all(item["code"] in {"WRONG_RESULT", "TIMING_MISMATCH"} for item in report["checks"]["ab"]["reasons"])
