"""A Task of modules, asked for as `akf try` does: `harness_request`, the packed harness, its answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.harness.modules import HONEST, REFERENCE, module

from akf.evaluate.program import pack, run
from akf.evaluate.request import PythonObjects, harness_request, python_object, seeds_for

ONLY_THE_PUBLISHED = """
if x.shape[0] not in (32, 48): return torch.zeros(x.shape[0], 16)
return torch.relu(x @ w + b)
"""


def task() -> dict[str, Any]:
    rows = {"symbols": {"M": 32}, "attributes": {}, "weight": 1.0, "bytes": 1, "operations": 1}
    symbol = {"sym": "M", "min": 16, "max": 512, "multiple_of": 16}
    operands = [("x", "in", [symbol, 24]), ("w", "in", [24, 16]), ("b", "in", [16]), ("out", "out", [symbol, 16])]
    return {
        "abi": {
            "kind": "python",
            "operands": [
                {"name": name, "access": access, "dtype": "float32", "shape": shape, "layout": "ND"}
                for name, access, shape in operands
            ],
        },
        "domain": [symbol],
        "rows": [{"id": "row", **rows}],
        "cases": [{"id": "tail", "symbols": {"M": 48}, "attributes": {}, "inputs": "tiny"}],
        "tolerance": {"atol": 1e-5, "rtol": 1e-4},
        "reference": {"text": REFERENCE},
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [(module(ONLY_THE_PUBLISHED), "fail"), pytest.param(module(HONEST), "pass", marks=pytest.mark.soak)],
    ids=["only_the_published", "honest"],
)
def test_a_task_of_modules_is_checked(tmp_path: Path, text: str, found: str) -> None:
    pytest.importorskip("torch", reason='needs torch: pip install "ascend-kernel-forge[torch]"')
    for name, each in (("base", module(HONEST)), ("mine", text), ("wrong", module("return x @ w"))):
        (tmp_path / f"{name}.py").write_text(each, encoding="utf-8")
    objects = PythonObjects(*(python_object(tmp_path / f"{name}.py") for name in ("base", "mine", "wrong")))
    seeds = seeds_for(task(), b"secret", "", "", "operator", "")
    request = harness_request(task(), {"acceptance": {"error_factor": 8.0}}, objects, "auto", seeds)
    work = tmp_path / "work"
    work.mkdir()
    answer = run(pack(work), "check", request, work, 120, interpreter=sys.executable)
    checks = answer.report["checks"]
    assert checks["correctness"]["outcome"] == found
    assert checks["correctness"]["facts"]["held_back"] == 3
    assert checks["hit_proof"]["outcome"] == "pass"
    assert answer.report["facts"]["template"]["threads"] == 1
    codes = [reason["code"] for reason in checks["correctness"]["reasons"]]
    assert codes[:1] == (["ENVELOPE_OVERCLAIM"] if found == "fail" else [])
