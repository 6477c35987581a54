"""The request: everything the harness needs, as one JSON file; and its validation.

Invariants:
- Unknown fields are refused; shapes are integers; a digest stands beside every artifact's path.
- Nothing here has a default that weakens a check.
"""

# ruff: noqa: B905 - zip has no strict= in Python 3.9
from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from .outcome import HarnessError

KIND, VERSION = "HarnessRequest", 1
ITEM_BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1,
    "bool": 1,
}  # fmt: skip
ABIS = ("binary", "python")
DEVICES = ("cpu", "cuda", "npu")
DISTRIBUTIONS = ("normal", "uniform", "zeros", "constant", "mixed")
ROLES = ("baseline", "candidate", "perturbed")


@dataclass(frozen=True)
class Operand:
    """One tensor of a case."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    access: str
    distribution: dict[str, Any] = field(default_factory=dict)
    misalign: int = 0
    strides: tuple[int, ...] = ()

    @property
    def steps(self) -> tuple[int, ...]:
        """Strides in elements, as stated or as a contiguous tensor has them."""
        if self.strides:
            return self.strides
        steps: list[int] = []
        step = 1
        for length in reversed(self.shape):
            steps.append(step)
            step *= length
        return tuple(reversed(steps))

    @property
    def span(self) -> int:
        """Elements from the first to the last, those between rows included."""
        return 1 + sum((length - 1) * step for length, step in zip(self.shape, self.steps))

    @property
    def nbytes(self) -> int:
        """Bytes from the first element to the last."""
        return self.span * ITEM_BYTES[self.dtype]


@dataclass(frozen=True)
class Case:
    """One set of shapes, attributes and inputs: a correctness case or a timed row."""

    id: str
    seed: bytes
    attributes: dict[str, Any]
    operands: tuple[Operand, ...]
    calls: dict[str, list[dict[str, Any]]]
    control: bool = True
    held_back: bool = False

    @property
    def inputs(self) -> tuple[Operand, ...]:
        """Operands that the kernel reads."""
        return tuple(operand for operand in self.operands if operand.access != "out")

    @property
    def outputs(self) -> tuple[Operand, ...]:
        """Operands that the kernel writes."""
        return tuple(operand for operand in self.operands if operand.access != "in")


@dataclass(frozen=True)
class Product:
    """The only output of every case is the product of these two operands, both matrices."""

    left: str
    right: str


@dataclass(frozen=True)
class Artifact:
    """A shared object with its launcher and symbol, or a Python file or folder with its entry."""

    abi: str
    path: str
    digest: str
    entry: str
    launcher: str = ""
    launcher_digest: str = ""


@dataclass(frozen=True)
class Plan:
    """What will be measured: nothing in it depends on a sample."""

    pairs: int
    blocks: int
    batches: int
    launches: dict[str, int]
    round_trip_ns: int
    runs: tuple[str, ...]


@dataclass(frozen=True)
class Request:
    """A parsed request."""

    reference: str
    tolerances: dict[str, dict[str, float]]
    baseline_factor: float
    baseline_floor: float
    determinism: str
    repeats: int
    isolation: str
    device: str
    threads: int
    limits: dict[str, Any]
    artifacts: dict[str, Artifact]
    cases: tuple[Case, ...]
    rows: tuple[Case, ...]
    plan: Optional[Plan]
    product: Optional[Product] = None


class _Reader:
    """Typed access with a path for the message."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise HarnessError("REQUEST_INVALID", f"{where or '/'} must be an object", 2)
        self.value = value
        self.where = where
        self.used: set[str] = set()

    def get(self, name: str, kind: Any, default: Any = None) -> Any:
        self.used.add(name)
        if name not in self.value:
            if default is not None:
                return default
            raise HarnessError("REQUEST_INVALID", f"{self.where}/{name} is missing", 2)
        value = self.value[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise HarnessError("REQUEST_INVALID", f"{self.where}/{name} has the wrong type", 2)
        return value

    def count(self, name: str, default: Any = None, least: int = 1) -> int:
        value = self.get(name, int, default)
        if value < least:
            raise HarnessError("REQUEST_INVALID", f"{self.where}/{name} must be {least} or more", 2)
        return int(value)

    def word(self, name: str, words: Any, default: Any = None) -> str:
        value = self.get(name, str, default)
        if value not in words:
            raise HarnessError("REQUEST_INVALID", f"{self.where}/{name} must be one of {', '.join(words)}", 2)
        return str(value)

    def done(self) -> None:
        unknown = sorted(set(self.value) - self.used)
        if unknown:
            raise HarnessError("REQUEST_INVALID", f"{self.where}/{unknown[0]} is not a field", 2)


def _operand(value: Any, where: str) -> Operand:
    reader = _Reader(value, where)
    shape = reader.get("shape", list)
    if any(isinstance(item, bool) or not isinstance(item, int) or item < 1 for item in shape):
        raise HarnessError("REQUEST_INVALID", f"{where}/shape must hold positive integers", 2)
    access = reader.word("access", ("in", "out", "inout"))
    distribution = reader.get("distribution", dict, {} if access == "out" else None)
    if access != "out" and distribution.get("kind") not in DISTRIBUTIONS:
        raise HarnessError("REQUEST_INVALID", f"{where}/distribution/kind is unknown", 2)
    operand = Operand(
        name=reader.get("name", str),
        dtype=reader.word("dtype", tuple(ITEM_BYTES)),
        shape=tuple(shape),
        access=access,
        distribution=distribution,
        misalign=reader.count("misalign", 0, least=0),
        strides=tuple(reader.get("strides", list, [])),
    )
    reader.done()
    if operand.strides:
        _strides(operand, where)
    return operand


def _strides(operand: Operand, where: str) -> None:
    """Non-negative, one for each axis; two elements of an output never share a place."""
    steps = operand.strides
    if len(steps) != len(operand.shape) or any(isinstance(s, bool) or not isinstance(s, int) or s < 0 for s in steps):
        raise HarnessError("REQUEST_INVALID", f"{where}/strides must hold a whole number for each axis", 2)
    reach = 1
    for step, length in sorted(zip(steps, operand.shape)):
        if operand.access != "in" and length > 1 and step < reach:
            raise HarnessError("REQUEST_INVALID", f"{where}/strides let elements of an output overlap", 2)
        reach += step * (length - 1)


def _case(value: Any, where: str) -> Case:
    reader = _Reader(value, where)
    seed = bytes.fromhex(reader.get("seed", str))
    if len(seed) != 32:  # noqa: PLR2004 - HMAC-SHA-256
        raise HarnessError("REQUEST_INVALID", f"{where}/seed must be 32 bytes in hex", 2)
    operands = tuple(
        _operand(item, f"{where}/operands/{index}") for index, item in enumerate(reader.get("operands", list))
    )
    case = Case(
        id=reader.get("id", str),
        seed=seed,
        attributes=reader.get("attributes", dict, {}),
        operands=operands,
        calls=reader.get("calls", dict, {}),
        control=reader.get("control", bool, True),
        held_back=bool(reader.value.get("held_back", False)),
    )
    reader.used.add("held_back")
    reader.done()
    names = {operand.name for operand in operands}
    for role, call in case.calls.items():
        for index, argument in enumerate(call):
            if argument.get("kind") == "tensor" and argument.get("operand") not in names:
                raise HarnessError("REQUEST_INVALID", f"{where}/calls/{role}/{index}: no such operand", 2)
    return case


def _plan(value: Any, rows: tuple[Case, ...]) -> Plan:
    reader = _Reader(value, "/plan")
    batches = reader.count("batches")
    if batches % 2 == 0:
        raise HarnessError("REQUEST_INVALID", "/plan/batches must be odd", 2)
    launches = reader.get("launches", dict)
    for row in rows:
        if not isinstance(launches.get(row.id), int) or launches[row.id] < 1:
            raise HarnessError("REQUEST_INVALID", f"/plan/launches/{row.id} must be a positive integer", 2)
    runs = tuple(reader.get("runs", list))
    if not runs or any(run not in ("aa", "ab") for run in runs):
        raise HarnessError("REQUEST_INVALID", "/plan/runs must hold aa, ab or both", 2)
    plan = Plan(
        pairs=reader.count("pairs"),
        blocks=reader.count("blocks"),
        batches=batches,
        launches=launches,
        round_trip_ns=reader.count("round_trip_ns"),
        runs=runs,
    )
    reader.done()
    if plan.blocks % 2 == 0:
        raise HarnessError("REQUEST_INVALID", "/plan/blocks must be odd", 2)
    return plan


def _artifact(value: Any, where: str) -> Artifact:
    reader = _Reader(value, where)
    abi = reader.word("abi", ABIS, "binary")
    path, digest = reader.get("path", str), reader.get("digest", str)
    if abi == "python":
        artifact = Artifact(abi, path, digest, reader.get("entry", str))
    else:
        launcher, launcher_digest = reader.get("launcher", str), reader.get("launcher_digest", str)
        artifact = Artifact(abi, path, digest, reader.get("symbol", str), launcher, launcher_digest)
    reader.done()
    return artifact


def _agree(case: Case, artifacts: dict[str, Artifact]) -> None:
    """Every artifact can be called for a case: a binary one has its call, a python one returns its outputs."""
    if {role for role, artifact in artifacts.items() if artifact.abi == "binary"} - set(case.calls):
        raise HarnessError("REQUEST_INVALID", f"case {case.id} lacks the call of an artifact", 2)
    python = any(artifact.abi == "python" for artifact in artifacts.values())
    if python and any(operand.access == "inout" for operand in case.operands):
        raise HarnessError("REQUEST_INVALID", f"case {case.id}: the python ABI returns outputs, it updates none", 2)


def _product(value: Any, cases: tuple[Case, ...]) -> Product:
    reader = _Reader(value, "/product")
    product = Product(reader.get("left", str), reader.get("right", str))
    reader.done()
    for case in cases:
        shapes = {operand.name: operand.shape for operand in case.inputs}
        left, right = shapes.get(product.left, ()), shapes.get(product.right, ())
        matrices = len(left) == len(right) == 2 and left[1] == right[0]  # noqa: PLR2004
        if not matrices or [operand.shape for operand in case.outputs] != [(left[0], right[1])]:
            raise HarnessError("REQUEST_INVALID", f"/product is not that of case {case.id}", 2)
    return product


def request_device(value: dict[str, Any]) -> str:
    """Where the tensors of python artifacts live."""
    return str(value.get("device", "cpu"))


def parse(value: Any) -> Request:
    """Validate a request's JSON value."""
    reader = _Reader(value, "")
    reader.word("kind", (KIND,))
    if reader.get("schema_version", int) != VERSION:
        raise HarnessError("REQUEST_INVALID", f"/schema_version must be {VERSION}", 2)
    artifacts = {
        role: _artifact(item, f"/artifacts/{role}") for role, item in sorted(reader.get("artifacts", dict).items())
    }
    if "baseline" not in artifacts or set(artifacts) - set(ROLES):
        raise HarnessError("REQUEST_INVALID", "/artifacts must hold baseline, and may hold candidate, perturbed", 2)
    cases = tuple(_case(item, f"/cases/{index}") for index, item in enumerate(reader.get("cases", list)))
    rows = tuple(_case(item, f"/rows/{index}") for index, item in enumerate(reader.get("rows", list)))
    for group in (cases, rows):
        if len({case.id for case in group}) != len(group):
            raise HarnessError("REQUEST_INVALID", "an id is used twice", 2)
        for case in group:
            _agree(case, artifacts)
    if request_device(value) != "cpu" and any(artifact.abi == "binary" for artifact in artifacts.values()):
        raise HarnessError("REQUEST_INVALID", "/device: the binary ABI is called on the host's processor", 2)
    limits = _Reader(reader.get("limits", dict), "/limits")
    request = Request(
        reference=reader.get("reference", str),
        tolerances=reader.get("tolerances", dict),
        baseline_factor=float(reader.get("baseline_factor", (int, float))),
        baseline_floor=float(reader.get("baseline_floor", (int, float))),
        determinism=reader.word("determinism", ("bitwise", "tolerance")),
        repeats=reader.count("repeats"),
        isolation=reader.word("isolation", ("auto", "userns", "none")),
        device=reader.word("device", DEVICES, "cpu"),
        threads=reader.count("threads", 1),
        limits={
            "timeout_s": float(limits.get("timeout_s", (int, float))),
            "memory_bytes": limits.count("memory_bytes"),
            "cpu_s": limits.count("cpu_s"),
            "log_bytes": limits.count("log_bytes"),
            "processes": limits.count("processes"),
            "output_bytes_per_row": limits.count("output_bytes_per_row"),
        },
        artifacts=artifacts,
        cases=cases,
        rows=rows,
        plan=_plan(value["plan"], rows) if value.get("plan") is not None else None,
        product=_product(value["product"], (*cases, *rows)) if value.get("product") is not None else None,
    )
    limits.done()
    reader.used |= {"plan", "product"}
    reader.done()
    return request


def load(path: str) -> Request:
    """Read and validate a request file."""
    try:
        value = json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise HarnessError("REQUEST_INVALID", f"{path}: {error}", 2) from error
    try:
        return parse(value)
    except (TypeError, ValueError, AttributeError) as error:
        raise HarnessError("REQUEST_INVALID", f"{path}: {error}", 2) from error
