"""What the harness is asked: shapes, calls, seeds and objects of one Task, Build and baseline.

Invariants:
- A case's seed is HMAC-SHA-256 over the gate's secret and JCS([candidate, build, gate, attempt, case]).
- The request names objects by path and digest; the harness seals them before it draws an input.
- The child learns neither digests nor ids: it gets descriptors, offsets and numbers.
- Some cases are held back: their shapes and attributes are drawn from the Task's domain by the same secret, and stand
  in no file before. A candidate's own claim of support changes none of it.

A Task of the `python` ABI is asked for in the same words, with `PythonObjects` in the place of `Objects`:

    objects = PythonObjects(python_object(baseline), python_object(candidate), python_object(perturbed))
    seeds = seeds_for(task, secrets.token_bytes(32), "", "", "operator", "")
    request = harness_request(task, campaign, objects, "auto", seeds, device="cpu")
    answer = run(program, "check", request, work, timeout_s)            # correctness and anti-cheat, nothing is timed
    answer.report["checks"]      # sensitivity, correctness, isfinite, hit_proof: outcome, reasons [{code, ...}], facts

Then `calibrate` gives `report["facts"]` `launches` by row and `round_trip_ns`; with
`request["plan"] = harness_plan(...)` `measure` leaves `aa.jsonl` and `ab.jsonl`. Of `campaign`,
`acceptance.error_factor` alone is read. Without a perturbed object `hit_proof` is `not_run`, unless a fallback was
seen. The harness runs under `run(..., interpreter=...)`, which needs numpy, and torch where an object is Python.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.canonical import digest, digest_file, jcs
from akf.contracts.tree import tree_digest
from akf.frameworks.host_reference import Baseline
from akf.routes.launch_spec import LaunchSpec, parse_spec, resolve_call
from akf.store.untrusted import read_tree

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
HELD_BACK = 3
HELD_BACK_ELEMENTS = 1 << 20
_DISTRIBUTIONS: dict[str, dict[str, Any]] = {
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


class PythonObject(NamedTuple):
    """One file or folder of the `python` ABI; `entry` is `run`, or `module:run` where a folder has no `kernel.py`."""

    path: Path
    digest: str
    entry: str = "run"


class PythonObjects(NamedTuple):
    """The modules of one evaluation; the baseline may be the arm's own library."""

    baseline: PythonObject | Baseline
    candidate: PythonObject | None = None
    perturbed: PythonObject | None = None


def python_object(path: Path, entry: str = "run") -> PythonObject:
    """A file or folder with the digest of what it holds now.

    Raises:
        InvalidError: it holds something that is no regular file, or too much.
        StorageError: the folder cannot be read.
        OSError: the file cannot be read.
    """
    if not path.is_dir():
        return PythonObject(path, digest_file(path), entry)
    files = read_tree(path, path.name)
    return PythonObject(path, tree_digest((file.path, file.executable, digest(file.data)) for file in files), entry)


def harness_request(
    task: dict[str, Any],
    campaign: dict[str, Any],
    objects: Objects | PythonObjects,
    isolation: str,
    seeds: dict[str, str],
    device: str = "cpu",
) -> dict[str, Any]:
    """The request without a plan.

    Args:
        task: the frozen Task.
        campaign: the Campaign.
        objects: what is compiled, or the modules.
        isolation: `auto`, or a level that must hold.
        seeds: hex seed by case and row id.
        device: where tensors of modules live: `cpu`, `cuda` or `npu`.
    """
    specs = _specs(objects)
    tolerance = {"atol": task["tolerance"]["atol"], "rtol": task["tolerance"]["rtol"]}
    dtypes = sorted({operand["dtype"] for operand in task["abi"]["operands"] if operand["access"] != "in"})
    cases = [*({**row, "inputs": "normal"} for row in task["rows"]), *task.get("cases", ())]
    cases += held_back(task, seeds["held-back"])
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
        "device": device,
        "limits": LIMITS,
        "artifacts": _modules(objects) if isinstance(objects, PythonObjects) else _artifacts(objects),
        "cases": [_case(task, specs, case, seeds[f"case:{case['id']}"]) for case in cases],
        "rows": [_case(task, specs, {**row, "inputs": "normal"}, seeds[f"row:{row['id']}"]) for row in task["rows"]],
        "product": task.get("product"),
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
    names += ["held-back", *(f"case:{_held_back_id(number)}" for number in range(HELD_BACK))]
    return {
        name: hmac.new(secret, jcs([candidate, build, gate, attempt, name]), hashlib.sha256).hexdigest()
        for name in names
    }


def held_back(task: dict[str, Any], seed: str) -> list[dict[str, Any]]:
    """Cases whose sizes and attributes a secret draws from the Task's domain; none is one that the Task publishes.

    A domain of a single point, or one whose points are all published, has none.
    """
    published = [*task["rows"], *task.get("cases", ())]
    known = [(each["symbols"], each["attributes"]) for each in published]
    drawn = _Drawn(bytes.fromhex(seed))
    found: list[dict[str, Any]] = []
    for _ in range(HELD_BACK * 20):
        symbols = {each["sym"]: drawn.size(each) for each in task["domain"]}
        attributes = {each["name"]: drawn.choice(each["values"]) for each in task["abi"].get("attributes", ())}
        symbols = _bounded(task, symbols)
        if (symbols, attributes) not in known:
            known.append((symbols, attributes))
            name = _held_back_id(len(found))
            found.append(
                {"id": name, "symbols": symbols, "attributes": attributes, "inputs": "normal", "held_back": True}
            )
        if len(found) == HELD_BACK:
            break
    return found


def _held_back_id(number: int) -> str:
    return f"held-back-{number + 1}"


class _Drawn:
    """Whole numbers from a secret, in the order in which they are asked for."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._asked = 0

    def below(self, bound: int) -> int:
        """One of 0 ... bound - 1."""
        self._asked += 1
        number = hmac.new(self._seed, self._asked.to_bytes(8, "big"), hashlib.sha256).digest()
        return int.from_bytes(number[:16], "big") % bound

    def choice(self, values: Sequence[Any]) -> Any:
        """One of some values."""
        return values[self.below(len(values))]

    def size(self, dimension: dict[str, Any]) -> int:
        """A size of the domain: small and large ones are as likely as each other."""
        unit = int(dimension["multiple_of"])
        least = -(-int(dimension["min"]) // unit)
        span = int(dimension["max"]) // unit - least
        reach = 1 << self.below(span.bit_length() + 1) if span else 0
        return (least + self.below(min(reach, span) + 1)) * unit


def _bounded(task: dict[str, Any], symbols: dict[str, int]) -> dict[str, int]:
    """The sizes, with the largest halved towards its least until every operand is one that the oracle can afford."""
    least = {each["sym"]: -(-each["min"] // each["multiple_of"]) * each["multiple_of"] for each in task["domain"]}
    unit = {each["sym"]: each["multiple_of"] for each in task["domain"]}
    sizes = dict(symbols)
    while max(_elements(operand, sizes) for operand in task["abi"]["operands"]) > HELD_BACK_ELEMENTS:
        name = max(sorted(sizes), key=lambda each: sizes[each] / least[each])
        if sizes[name] <= least[name]:
            break
        sizes[name] = max(least[name], sizes[name] // 2 // unit[name] * unit[name])
    return sizes


def _elements(operand: dict[str, Any], symbols: dict[str, int]) -> int:
    return math.prod(_shape(operand, symbols))


def _modules(objects: PythonObjects) -> dict[str, Any]:
    roles = {"baseline": objects.baseline, "candidate": objects.candidate, "perturbed": objects.perturbed}
    return {
        role: _library(each)
        if isinstance(each, Baseline)
        else {"abi": "python", "path": str(each.path), "digest": each.digest, "entry": each.entry}
        for role, each in roles.items()
        if each is not None
    }


def _specs(objects: Objects | PythonObjects) -> dict[str, LaunchSpec]:
    specs = {"baseline": objects.baseline.spec} if isinstance(objects.baseline, Baseline) else {}
    if isinstance(objects, Objects) and objects.build is not None:
        spec = parse_spec(objects.build["launch"])
        specs |= {"candidate": spec, "perturbed": spec}
    return specs


def _library(baseline: Baseline) -> dict[str, Any]:
    return {
        "path": str(baseline.library),
        "digest": baseline.digest,
        "symbol": baseline.spec.symbol,
        "launcher": str(baseline.launcher),
        "launcher_digest": baseline.launcher_digest,
    }


def _artifacts(objects: Objects) -> dict[str, Any]:
    found = {"baseline": _library(objects.baseline)}
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
        "operands": [
            _operand(operand, symbols, case, first=place == 0) for place, operand in enumerate(task["abi"]["operands"])
        ],
        "calls": {role: resolve_call(spec, symbols, attributes) for role, spec in specs.items()},
        "control": case["inputs"] not in {"zeros", "mixed", "padded"} and not case.get("held_back", False),
        "held_back": case.get("held_back", False),
    }


def _shape(operand: dict[str, Any], symbols: dict[str, int]) -> list[int]:
    return [symbols[size["sym"]] if isinstance(size, dict) else size for size in operand["shape"]]


def distribution(shape: Sequence[int], inputs: str, *, first: bool) -> dict[str, Any]:
    """How one operand that is read is drawn.

    Args:
        shape: its sizes.
        inputs: the case's distribution; `padded` leaves the first quarter of the first operand's rows, and no vector.
        first: whether it is the Task's first operand.
    """
    if inputs != "padded":
        return _DISTRIBUTIONS[inputs]
    if len(shape) == 1:
        return _DISTRIBUTIONS["zeros"]
    return {"kind": "normal", "live_rows": max(1, shape[0] // 4)} if first else _DISTRIBUTIONS["normal"]


def _operand(operand: dict[str, Any], symbols: dict[str, int], case: dict[str, Any], *, first: bool) -> dict[str, Any]:
    value: dict[str, Any] = {
        "name": operand["name"],
        "dtype": operand["dtype"],
        "shape": _shape(operand, symbols),
        "access": operand["access"],
    }
    if operand.get("strides") is not None:
        value["strides"] = list(operand["strides"])
    if operand["access"] != "out":
        value["distribution"] = distribution(value["shape"], case["inputs"], first=first)
    if (case.get("misalign") or {}).get(operand["name"]):
        value["misalign"] = case["misalign"][operand["name"]]
    return value
