"""Modules of the `python` ABI: requests for them, and the checks run on one template for a whole session of tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.harness.builder import seed

from akf.evaluate.request import python_object
from akf.harness import correct, timing
from akf.harness.bench import Bench
from akf.harness.outcome import Check
from akf.harness.request import parse
from akf.harness.template import Template

REFERENCE = """
import numpy as np

def reference(x, w, b):
    wide = x.astype(np.float64) @ w.astype(np.float64) + b
    return (np.maximum(wide, 0.0),)
"""
HONEST = "return torch.relu(x @ w + b)"


def module(body: str, head: str = "") -> str:
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return f"import torch\n{head}\n\ndef run(x, w, b):\n{lines}\n"


def artifact(path: Path, entry: str = "run") -> dict[str, str]:
    return {"abi": "python", "path": str(path), "digest": python_object(path).digest, "entry": entry}


def written(folder: Path, name: str, text: str) -> dict[str, str]:
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return artifact(path)


def operand(name: str, shape: list[int], access: str = "in", **more: Any) -> dict[str, Any]:
    value: dict[str, Any] = {"name": name, "dtype": "float32", "shape": shape, "access": access, **more}
    if access != "out":
        value.setdefault("distribution", {"kind": "normal", "scale": 1.0})
    return value


def linear(name: str, m: int = 24, n: int = 16, *, k: int = 32, held_back: bool = False) -> dict[str, Any]:
    shapes = {"x": [m, k], "w": [k, n], "b": [n]}
    return {
        "id": name,
        "seed": seed(name),
        "operands": [*(operand(*each) for each in shapes.items()), operand("out", [m, n], "out")],
        "control": not held_back,
        "held_back": held_back,
    }


def asked(artifacts: dict[str, Any], **changes: Any) -> dict[str, Any]:
    cases = [linear("small"), linear("wide", 8, 40), linear("hidden", 5, 7, held_back=True)]
    return {
        "kind": "HarnessRequest",
        "schema_version": 1,
        "reference": REFERENCE,
        "tolerances": {"float32": {"rtol": 1e-4, "atol": 1e-5}},
        "baseline_factor": 8.0,
        "baseline_floor": 0.25,
        "determinism": "bitwise",
        "repeats": 2,
        "isolation": "auto",
        "limits": {
            "timeout_s": 3,
            "memory_bytes": 2 << 30,
            "cpu_s": 30,
            "log_bytes": 65536,
            "processes": 4096,
            "output_bytes_per_row": 16 << 20,
        },
        "artifacts": artifacts,
        "cases": cases,
        "rows": [linear("small")],
        "plan": None,
        **changes,
    }


def trio(folder: Path, candidate: str) -> dict[str, Any]:
    """Baseline, candidate and a wrong kernel as files."""
    return {
        "baseline": written(folder, "baseline", module(HONEST)),
        "candidate": written(folder, "candidate", candidate),
        "perturbed": written(folder, "perturbed", module("return torch.relu(x @ w - b)")),
    }


def checked(template: Template, request: dict[str, Any]) -> dict[str, Check]:
    bench = Bench(parse(request), template=template)
    try:
        checks: dict[str, Check] = correct.check(bench)["checks"]
        return checks
    finally:
        bench.close()


def timed(template: Template, request: dict[str, Any]) -> Check:
    """An A/B run without a core of its own: what its times are is nobody's concern here."""
    plan = {"pairs": 1, "blocks": 1, "batches": 3, "launches": {"small": 8}, "round_trip_ns": 20_000, "runs": ["ab"]}
    bench = Bench(parse({**request, "plan": plan}), template=template)
    try:
        check: Check = timing.measure(bench)["checks"]["ab"]
        return check
    finally:
        bench.close()


def codes(checks: dict[str, Check]) -> set[str]:
    return {reason["code"] for check in checks.values() for reason in check.reasons}


def outcomes(checks: dict[str, Check]) -> dict[str, str]:
    return {name: check.outcome for name, check in checks.items()}
