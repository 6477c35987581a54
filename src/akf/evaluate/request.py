"""What the harness is asked: shapes, calls, seeds and objects of one Task, Build and baseline.

Invariants:
- A case's seed is HMAC-SHA-256 over the gate's secret and JCS([candidate, build, gate, attempt, case]).
- The request names objects by path and digest; the harness seals them before it draws an input.
- The child learns neither digests nor ids: it gets descriptors, offsets and numbers.
"""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.canonical import jcs
from akf.frameworks.host_reference import Baseline
from akf.routes.launch_spec import LaunchSpec, parse_spec, resolve_call

LIMITS = {
    "timeout_s": 30.0,
    "memory_bytes": 2 * 1024**3,
    "cpu_s": 120,
    "log_bytes": 64 * 1024,
    "processes": 64,
    "output_bytes_per_row": 32 * 1024**2,
}
REPEATS = 3
BATCHES = 3
DISTRIBUTIONS: dict[str, dict[str, Any]] = {
    "normal": {"kind": "normal"},
    "zeros": {"kind": "zeros"},
    "tiny": {"kind": "normal", "scale": 1e-4},
    "large": {"kind": "normal", "scale": 1e4},
    "mixed": {"kind": "mixed"},
}


class Objects(NamedTuple):
    """Compiled objects of one evaluation; `build` is None while only the baseline runs."""

    baseline: Baseline
    folder: Path | None
    build: dict[str, Any] | None


def harness_request(
    task: dict[str, Any], campaign: dict[str, Any], objects: Objects, isolation: str, seeds: dict[str, str]
) -> dict[str, Any]:
    """The request without a plan.

    Args:
        task: the frozen Task.
        campaign: the Campaign.
        objects: what is compiled.
        isolation: `auto`, or a level that must hold.
        seeds: hex seed by case and row id.
    """
    specs = _specs(objects)
    tolerance = {"atol": task["tolerance"]["atol"], "rtol": task["tolerance"]["rtol"]}
    dtypes = sorted({operand["dtype"] for operand in task["abi"]["operands"] if operand["access"] != "in"})
    cases = [*({**row, "inputs": "normal"} for row in task["rows"]), *task.get("cases", ())]
    return {
        "kind": "HarnessRequest",
        "schema_version": 1,
        "reference": task["reference"]["text"],
        "tolerances": dict.fromkeys(dtypes, tolerance),
        "baseline_factor": float(campaign["acceptance"]["error_factor"]),
        "baseline_floor": 0.25,
        "determinism": "bitwise",
        "repeats": REPEATS,
        "isolation": isolation,
        "limits": LIMITS,
        "artifacts": _artifacts(objects),
        "cases": [_case(task, specs, case, seeds[f"case:{case['id']}"]) for case in cases],
        "rows": [_case(task, specs, {**row, "inputs": "normal"}, seeds[f"row:{row['id']}"]) for row in task["rows"]],
    }


def harness_plan(
    launches: dict[str, int], round_trip_ns: int, pairs: int, blocks: int, batches: int, runs: list[str]
) -> dict[str, Any]:
    """The plan of a measurement, as the harness takes it."""
    return {
        "pairs": pairs, "blocks": blocks, "batches": batches, "launches": launches, "round_trip_ns": round_trip_ns,
        "runs": runs,
    }  # fmt: skip


def seeds_for(
    task: dict[str, Any], secret: bytes, candidate: str, build: str, gate: str, attempt: str
) -> dict[str, str]:
    """Hex seed of every case and row."""
    names = [f"case:{each['id']}" for each in [*task["rows"], *task.get("cases", ())]]
    names += [f"row:{row['id']}" for row in task["rows"]]
    return {
        name: hmac.new(secret, jcs([candidate, build, gate, attempt, name]), hashlib.sha256).hexdigest()
        for name in names
    }


def _specs(objects: Objects) -> dict[str, LaunchSpec]:
    specs = {"baseline": objects.baseline.spec}
    if objects.build is not None:
        spec = parse_spec(objects.build["launch"])
        specs |= {"candidate": spec, "perturbed": spec}
    return specs


def _artifacts(objects: Objects) -> dict[str, Any]:
    baseline = objects.baseline
    found = {
        "baseline": {
            "path": str(baseline.library),
            "digest": baseline.digest,
            "symbol": baseline.spec.symbol,
            "launcher": str(baseline.launcher),
            "launcher_digest": baseline.launcher_digest,
        }
    }
    if objects.build is None or objects.folder is None:
        return found
    by_subject = {output["subject"]: output for output in objects.build["outputs"] if output["role"] != "log"}
    launcher = by_subject["launcher"]
    for role in ("candidate", "perturbed"):
        output = by_subject[role]
        found[role] = {
            "path": str(objects.folder / output["path"]),
            "digest": output["digest"],
            "symbol": objects.build["launch"]["symbol"],
            "launcher": str(objects.folder / launcher["path"]),
            "launcher_digest": launcher["digest"],
        }
    return found


def _case(task: dict[str, Any], specs: dict[str, LaunchSpec], case: dict[str, Any], seed: str) -> dict[str, Any]:
    symbols, attributes = case["symbols"], case["attributes"]
    return {
        "id": case["id"],
        "seed": seed,
        "attributes": attributes,
        "operands": [_operand(operand, symbols, case["inputs"]) for operand in task["abi"]["operands"]],
        "calls": {role: resolve_call(spec, symbols, attributes) for role, spec in specs.items()},
        "control": case["inputs"] not in {"zeros", "mixed"},
    }


def _operand(operand: dict[str, Any], symbols: dict[str, int], inputs: str) -> dict[str, Any]:
    value: dict[str, Any] = {
        "name": operand["name"],
        "dtype": operand["dtype"],
        "shape": [symbols[size["sym"]] if isinstance(size, dict) else size for size in operand["shape"]],
        "access": operand["access"],
    }
    if operand["access"] != "out":
        value["distribution"] = DISTRIBUTIONS[inputs]
    return value
