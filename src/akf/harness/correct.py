"""The command `check`: sensitivity, correctness, isfinite, hit proof.

Invariants:
- Every case runs `repeats` times in one process and once more in a fresh process, in the opposite order.
- A baseline that fails blocks the checks; it never fails the candidate.
"""

# ruff: noqa: B905 - zip has no strict= in Python 3.9
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np

from . import draw, hit, outcome
from .bench import Bench
from .cases import Layout
from .memory import Arena
from .oracle import Errors, compare, forgeries
from .outcome import Check, ChildFailure, HarnessError
from .request import Case


@dataclass
class Prepared:
    """A case with its inputs and the oracle's answer."""

    case: Case
    layout: Layout
    inputs: dict[str, Any]
    image: bytes
    expected: list[Any]


@dataclass
class Pass:
    """What one process did with the cases."""

    outputs: dict[str, list[list[bytes]]] = field(default_factory=dict)
    mutated: dict[str, list[str]] = field(default_factory=dict)
    outside: list[str] = field(default_factory=list)
    failure: Optional[ChildFailure] = None
    failed_case: str = ""
    seen: Optional[hit.Observation] = None
    left_running: int = 0
    log: str = ""

    @property
    def misbehaviour(self) -> str:
        """What it did beside writing its outputs."""
        if self.left_running:
            return f"it leaves {self.left_running} tasks running"
        return "it changes memory that is not its output"


def prepare(bench: Bench, case: Case) -> Prepared:
    """Draw inputs and ask the oracle."""
    layout = Layout(case, 1, guard=True)
    inputs = {operand.name: draw.draw(operand, draw.stream(case.seed, operand.name), 1)[0] for operand in case.inputs}
    image = layout.image({name: np.ascontiguousarray(array).tobytes() for name, array in inputs.items()})
    return Prepared(case, layout, inputs, image, bench.oracle.expected(case, inputs))


def run_cases(bench: Bench, role: str, prepared: Sequence[Prepared], repeats: int) -> Pass:
    """Run every case in one fresh process."""
    done = Pass()
    arena = Arena(max(item.layout.size for item in prepared))
    child = None
    try:
        child = bench.child(role, arena)
        for item in prepared:
            done.failed_case = item.case.id
            child.ask(b"B", item.layout.columns(role))
            for _ in range(repeats):
                child.freeze()
                arena.write(0, _address(item.image), len(item.image))
                child.thaw()
                child.run(0, 1)
                child.freeze()
                _collect(done, item, arena)
                child.thaw()
        done.failed_case = ""
        done.seen = hit.observe(child)
        done.left_running = child.left_running()
    except ChildFailure as error:
        done.failure = error
    finally:
        if child is not None:
            child.close()
            done.log = child.log
        arena.close()
    return done


def _address(image: bytes) -> int:
    return int(np.frombuffer(image, dtype=np.uint8).ctypes.data)


def _collect(done: Pass, item: Prepared, arena: Arena) -> None:
    mutated, outside = item.layout.changed(arena, item.image)
    if mutated:
        done.mutated[item.case.id] = mutated
    if outside:
        done.outside.append(item.case.id)
    outputs = [arena.read(item.layout.regions[operand.name].offset, operand.nbytes) for operand in item.case.outputs]
    done.outputs.setdefault(item.case.id, []).append(outputs)


def _errors(bench: Bench, item: Prepared, outputs: Sequence[bytes]) -> list[Errors]:
    found = []
    for operand, data, expected in zip(item.case.outputs, outputs, item.expected):
        actual = np.frombuffer(data, dtype=operand.dtype).reshape(operand.shape)
        found.append(compare(actual, expected, bench.request.tolerances[operand.dtype]))
    return found


def sensitivity(bench: Bench, prepared: Sequence[Prepared]) -> Check:
    """The oracle and the tolerances must reject results that are wrong on purpose."""
    check = Check()
    tried = 0
    for item in prepared:
        if not item.case.control:
            continue
        for name, arrays in forgeries(item.case, item.inputs, item.expected):
            tried += 1
            errors = _errors(bench, item, [np.ascontiguousarray(array).tobytes() for array in arrays])
            if all(error.accepted for error in errors):
                check.add(outcome.INSENSITIVE_ORACLE, outcome.BLOCKED, case=item.case.id, forgery=name)
    check.facts["forgeries"] = tried
    if tried == 0:
        check.add(outcome.INSENSITIVE_ORACLE, outcome.BLOCKED, detail="no case is a control")
    check.settle()
    return check


class _Judge:
    """Compares the candidate's and the baseline's outputs, case by case."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.correctness = Check()
        self.isfinite = Check()
        self.lines: list[dict[str, Any]] = []

    def baseline(self, prepared: Sequence[Prepared], done: Pass) -> dict[str, list[Errors]]:
        """The baseline's errors; a baseline that fails blocks both checks."""
        if done.failure is not None or done.mutated or done.outside or done.left_running:
            detail = str(done.failure or done.misbehaviour)
            for check in (self.correctness, self.isfinite):
                check.add(outcome.BASELINE_FAILED, outcome.BLOCKED, detail=detail)
            return {}
        errors = {}
        for item in prepared:
            errors[item.case.id] = _errors(self._bench, item, done.outputs[item.case.id][0])
            self._note("baseline", item, errors[item.case.id])
            if not all(error.accepted for error in errors[item.case.id]):
                self.correctness.add(
                    outcome.BASELINE_FAILED, outcome.BLOCKED, case=item.case.id, detail="outside its own tolerance"
                )
        return errors

    def candidate(
        self, prepared: Sequence[Prepared], passes: Sequence[Pass], reference: dict[str, list[Errors]]
    ) -> None:
        """The candidate's verdicts."""
        for done in passes:
            self._behaviour(done)
        for item in prepared:
            runs = [run for done in passes for run in done.outputs.get(item.case.id, [])]
            distinct = sorted(set(map(tuple, runs)), key=lambda run: runs.index(list(run)))
            for run in distinct:
                self._case(item, run, reference.get(item.case.id))
            if len(distinct) > 1 and self._bench.request.determinism == "bitwise":
                self.correctness.add(outcome.NONDETERMINISTIC, case=item.case.id, runs=len(distinct))
        self.correctness.settle()
        self.isfinite.settle()

    def _behaviour(self, done: Pass) -> None:
        if done.failure is not None:
            self.correctness.add(done.failure.code, case=done.failed_case, detail=done.failure.detail)
            if self.isfinite.outcome == outcome.NOT_RUN:
                self.isfinite.reasons.append({"code": done.failure.code, "case": done.failed_case})
        elif done.left_running:
            self.correctness.add(outcome.ASYNCHRONOUS_WORK, detail=f"{done.left_running} tasks left running")
        for case, names in sorted(done.mutated.items()):
            self.correctness.add(outcome.INPUT_MUTATED, case=case, operands=names)
        for case in sorted(set(done.outside)):
            self.correctness.add(outcome.OUT_OF_BOUNDS_WRITE, case=case)

    def _case(self, item: Prepared, run: Sequence[bytes], reference: Optional[list[Errors]]) -> None:
        errors = _errors(self._bench, item, run)
        self._note("candidate", item, errors)
        request = self._bench.request
        for index, (operand, error) in enumerate(zip(item.case.outputs, errors)):
            where = {"case": item.case.id, "operand": operand.name}
            if all(byte == 0xFF for byte in run[index]):  # noqa: PLR2004 - the poison
                self.correctness.add(outcome.OUTPUT_NOT_WRITTEN, **where)
            if error.non_finite:
                self.isfinite.add(outcome.NON_FINITE, **where, elements=error.non_finite)
                self.correctness.add(outcome.NON_FINITE, **where, elements=error.non_finite)
            if error.violations:
                self.correctness.add(outcome.WRONG_RESULT, **where, elements=error.violations)
            elif reference is not None:
                allowed = request.baseline_factor * max(reference[index].bound_share, request.baseline_floor)
                if error.bound_share > allowed:
                    self.correctness.add(outcome.WORSE_THAN_BASELINE, **where)

    def _note(self, side: str, item: Prepared, errors: Sequence[Errors]) -> None:
        for operand, error in zip(item.case.outputs, errors):
            self.lines.append({"case": item.case.id, "side": side, "output": operand.name, **error.as_json()})


def _perturbed(bench: Bench, prepared: Sequence[Prepared], candidate: Pass, done: Pass) -> dict[str, Any]:
    """Whether the wrong kernel's outputs differ from the candidate's and fail the oracle, on every control case."""
    if done.failure is not None:
        return {"rejected": False, "differs": False, "failure": str(done.failure)}
    cases = [item for item in prepared if item.case.control]
    rejected = differs = bool(cases)
    for item in cases:
        run = done.outputs[item.case.id][0]
        rejected = rejected and not all(error.accepted for error in _errors(bench, item, run))
        differs = differs and run not in candidate.outputs.get(item.case.id, [])
    return {"rejected": rejected, "differs": differs, "cases": len(cases)}


def check(bench: Bench) -> dict[str, Any]:
    """Run the command. Returns checks, lines of correctness and facts."""
    request = bench.request
    if "candidate" not in request.artifacts or "perturbed" not in request.artifacts:
        raise HarnessError("REQUEST_INVALID", "check needs the artifacts candidate and perturbed", 2)
    if not request.cases:
        raise HarnessError("REQUEST_INVALID", "/cases is empty", 2)
    prepared = [prepare(bench, case) for case in request.cases]
    sensitive = sensitivity(bench, prepared)
    judge = _Judge(bench)
    baseline = run_cases(bench, "baseline", prepared, 1)
    first = run_cases(bench, "candidate", prepared, request.repeats)
    passes = [first] if first.failure is not None else [first, run_cases(bench, "candidate", prepared[::-1], 1)]
    wrong = run_cases(bench, "perturbed", prepared, 1)
    judge.candidate(prepared, passes, judge.baseline(prepared, baseline))
    proof = Check()
    if baseline.failure is not None:
        proof.add(outcome.BASELINE_FAILED, outcome.BLOCKED, detail=str(baseline.failure))
    elif first.failure is not None:
        proof.reasons.append({"code": first.failure.code, "detail": "the candidate did not run"})
    else:
        seen = {role: done.seen for role, done in (("candidate", first), ("baseline", baseline)) if done.seen}
        digest = request.artifacts["candidate"].digest
        hit.prove(proof, seen, bench.loadables, digest, _perturbed(bench, prepared, first, wrong))
    checks = {
        "sensitivity": sensitive,
        "correctness": judge.correctness,
        "isfinite": judge.isfinite,
        "hit_proof": proof,
    }
    facts = {"left_running": max(done.left_running for done in passes), "cases": len(prepared)}
    logs = {"candidate": first.log, "baseline": baseline.log, "perturbed": wrong.log}
    return {"checks": checks, "lines": judge.lines, "facts": facts, "logs": logs}
