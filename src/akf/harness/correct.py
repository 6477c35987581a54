"""The command `check`: sensitivity, correctness, isfinite, hit proof.

Invariants:
- Every case runs `repeats` times in one process and once more in a fresh process, in the opposite order. There a python
  candidate is watched for exceptions that it swallows.
- A published case has a twin: the same objects, addresses, shapes and values but for one secret element. Who remembers
  answers gives the old one.
- Cases that were held back come last; who is right on all others and wrong there claims too much.
- A baseline that fails blocks the checks; it never fails the candidate.
"""

# ruff: noqa: B905 - zip has no strict= in Python 3.9
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Optional

import numpy as np

from . import draw, hit, outcome, product
from .bench import Bench
from .cases import Layout
from .dtypes import DTYPES, encode
from .memory import Arena
from .oracle import COPY, Errors, compare, forgeries, within
from .outcome import Check, ChildFailure, HarnessError
from .request import Case
from .steps import steps, worst

TWIN_TRIES = 8
HELD_CALLS = 256


@dataclass
class Prepared:
    """A case with its inputs as stored and the oracle's answer."""

    case: Case
    layout: Layout
    inputs: dict[str, Any]
    image: bytes
    expected: list[Any]
    twin: bool = False

    @property
    def key(self) -> str:
        """Its name among the results."""
        return f"{self.case.id} twin" if self.twin else self.case.id


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
    swallowed: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    log: str = ""

    @property
    def misbehaviour(self) -> str:
        """What it did beside writing its outputs."""
        if self.left_running:
            return f"it leaves {self.left_running} tasks running"
        return "it changes memory that is not its output"


def prepare(bench: Bench, cases: Sequence[Case]) -> list[Prepared]:
    """Draw inputs and ask the oracle; published cases and their twins, whose changed operands take turns."""
    found: list[Prepared] = []
    turn = int(draw.stream(cases[0].seed, "turn").integers(len(cases[0].inputs)))
    for case in cases:
        pair = _with_twin(bench, case, turn)
        turn += len(pair) - 1
        found += pair
    return found


def _with_twin(bench: Bench, case: Case, turn: int) -> list[Prepared]:
    inputs = {operand.name: draw.draw(operand, draw.stream(case.seed, operand.name), 1)[0] for operand in case.inputs}
    base = _prepared(bench, case, inputs)
    return [base] if case.held_back or not case.control else [base, *_twin(bench, base, turn)]


def _prepared(bench: Bench, case: Case, inputs: dict[str, Any]) -> Prepared:
    layout = Layout(case, 1, guard=True)
    image = layout.image({name: array.tobytes() for name, array in inputs.items()})
    expected = bench.oracle.expected(case, inputs)
    if bench.request.product is not None:
        product.confirm(bench.request.product, case, inputs, expected)
    return Prepared(case, layout, inputs, image, expected)


def _twin(bench: Bench, base: Prepared, turn: int) -> list[Prepared]:
    """The case with one element changed, such that the old answer is wrong; none where no such element is found.

    The element is one of the operand whose turn it is, or of the next one where none of it matters enough.
    """
    generator = draw.stream(base.case.seed, "twin")
    old = [encode(value, operand.dtype) for operand, value in zip(base.case.outputs, base.expected)]
    for attempt in range(TWIN_TRIES):
        inputs = {name: array.copy() for name, array in base.inputs.items()}
        operand = base.case.inputs[(turn + 2 * attempt // TWIN_TRIES) % len(base.case.inputs)]
        index = tuple(int(generator.integers(length)) for length in operand.shape)
        into = draw.in_shape(operand, inputs[operand.name])
        into[index] = draw.changed(operand, into[index].reshape(1), generator)[0]
        twin = _prepared(bench, base.case, inputs)
        if not _accepted(bench, twin, old):
            twin.twin = True
            return [twin]
    return []


def run_cases(bench: Bench, role: str, prepared: Sequence[Prepared], repeats: int, *, traced: bool = False) -> Pass:
    """Run every case in one fresh process, `repeats` times, or once and watched; a twin once."""
    done = Pass()
    arena = Arena(max(item.layout.size for item in prepared))
    child = bound = None
    try:
        child = bench.child(role, arena)
        for item in prepared:
            done.failed_case = item.key
            if bound is not item.case:
                child.ask(b"B", bench.binding(role, item.layout, HELD_CALLS))
                bound = item.case
            for _ in range(1 if item.twin or traced else repeats):
                child.freeze()
                arena.write(0, _address(item.image), len(item.image))
                child.thaw()
                if traced:
                    done.swallowed[item.key] = child.trace()
                else:
                    child.run(0, 1)
                child.freeze()
                _collect(done, item, arena)
                child.thaw()
        if bench.is_python(role):
            child.ask(b"K", {})
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
        done.mutated[item.key] = mutated
    if outside:
        done.outside.append(item.key)
    outputs = [arena.read(item.layout.regions[operand.name].offset, operand.nbytes) for operand in item.case.outputs]
    done.outputs.setdefault(item.key, []).append(outputs)


def _tensors(item: Prepared, outputs: Sequence[bytes]) -> list[Any]:
    """Outputs as they lie in the arena, in their shapes."""
    return [
        draw.in_shape(operand, np.frombuffer(data, dtype=DTYPES[operand.dtype].store))
        for operand, data in zip(item.case.outputs, outputs)
    ]


def _errors(bench: Bench, item: Prepared, tensors: Sequence[Any]) -> list[Errors]:
    return [
        compare(tensor, expected, bench.request.tolerances[operand.dtype], operand.dtype)
        for operand, tensor, expected in zip(item.case.outputs, tensors, item.expected)
    ]


def _accepted(bench: Bench, item: Prepared, tensors: Sequence[Any]) -> bool:
    """Whether every error would be accepted, without its figures."""
    return all(
        within(tensor, expected, bench.request.tolerances[operand.dtype], operand.dtype)
        for operand, tensor, expected in zip(item.case.outputs, tensors, item.expected)
    )


def sensitivity(bench: Bench, prepared: Sequence[Prepared]) -> Check:
    """The oracle and the tolerances must reject results that are wrong on purpose.

    A copy of an input is no forgery where it is the answer, bit by bit, in every case: then the operator copies.
    """
    check = Check()
    tried = 0
    copies: dict[str, bool] = {}
    for item in prepared:
        if not item.case.control or item.twin:
            continue
        for name, arrays in forgeries(item.case, item.inputs, item.expected):
            tried += 1
            accepted = _accepted(bench, item, arrays)
            if name == COPY:
                exact = accepted and not any(error.max_abs for error in _errors(bench, item, arrays))
                copies[item.case.id] = exact
            if accepted and not copies.get(item.case.id if name == COPY else ""):
                check.add(outcome.INSENSITIVE_ORACLE, outcome.BLOCKED, case=item.case.id, forgery=name)
    if not all(copies.values()):
        for case in sorted(case for case, exact in copies.items() if exact):
            check.add(outcome.INSENSITIVE_ORACLE, outcome.BLOCKED, case=case, forgery=COPY)
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
            errors[item.key] = _errors(self._bench, item, _tensors(item, done.outputs[item.key][0]))
            self._note("baseline", item, errors[item.key])
            if not all(error.accepted for error in errors[item.key]):
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
            runs = [run for done in passes for run in done.outputs.get(item.key, [])]
            distinct = sorted(set(map(tuple, runs)), key=lambda run: runs.index(list(run)))
            for run in distinct:
                self._case(item, run, reference.get(item.key), partial(self._shown, item, prepared, passes))
            if len(distinct) > 1 and self._bench.request.determinism == "bitwise":
                self.correctness.add(outcome.NONDETERMINISTIC, case=item.case.id, runs=len(distinct))
        self._envelope(prepared)
        self.correctness.settle()
        self.isfinite.settle()

    def _envelope(self, prepared: Sequence[Prepared]) -> None:
        """Wrong in nothing but what was held back: the claim is too wide, and that is the reason that helps."""
        held = {item.case.id for item in prepared if item.case.held_back}
        places = [reason.get("case", "").partition(" ")[0] for reason in self.correctness.reasons]
        if self.correctness.outcome == outcome.FAIL and all(place in held for place in places):
            first = self.correctness.reasons[0]
            sizes = next(
                {operand.name: list(operand.shape) for operand in item.case.operands}
                for item in prepared
                if item.case.id == places[0]
            )
            detail = f"{first['code']} for shapes that were held back: {sizes}"
            self.correctness.reasons.insert(
                0, {"code": outcome.ENVELOPE_OVERCLAIM, "case": places[0], "detail": detail}
            )

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

    def _case(
        self,
        item: Prepared,
        run: Sequence[bytes],
        reference: Optional[list[Errors]],
        shown: Callable[[], list[list[bytes]]],
    ) -> None:
        errors = _errors(self._bench, item, _tensors(item, run))
        self._note("candidate", item, errors)
        request = self._bench.request
        if not all(error.accepted for error in errors) and list(run) in shown():
            self.correctness.add(outcome.RESULT_REPLAY, case=item.key, detail="the answer to a similar input")
            return
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

    def _shown(self, item: Prepared, prepared: Sequence[Prepared], passes: Sequence[Pass]) -> list[list[bytes]]:
        """Right answers to the case that a twin resembles, and the other way round: an answer that is kept is one."""
        return [
            list(run)
            for other in prepared
            if other.case.id == item.case.id and other.twin != item.twin
            for done in passes
            for run in done.outputs.get(other.key, [])[:1]
            if _accepted(self._bench, other, _tensors(other, run))
        ]

    def _note(self, side: str, item: Prepared, errors: Sequence[Errors]) -> None:
        more = {"twin": True} if item.twin else {}
        for operand, error in zip(item.case.outputs, errors):
            self.lines.append({"case": item.case.id, "side": side, "output": operand.name, **more, **error.as_json()})


def _perturbed(bench: Bench, prepared: Sequence[Prepared], candidate: Pass, done: Pass) -> dict[str, Any]:
    """Whether the wrong kernel's outputs differ from the candidate's and fail the oracle, on every control case."""
    digest = bench.request.artifacts["perturbed"].digest
    if done.failure is not None:
        return {"object_digest": digest, "rejected": False, "differs": False, "failure": str(done.failure)}
    cases = [item for item in prepared if item.case.control and not item.twin]
    rejected = differs = bool(cases)
    for item in cases:
        run = done.outputs[item.key][0]
        rejected = rejected and not _accepted(bench, item, _tensors(item, run))
        differs = differs and run not in candidate.outputs.get(item.key, [])
    return {"object_digest": digest, "rejected": rejected, "differs": differs, "cases": len(cases)}


def check(bench: Bench) -> dict[str, Any]:
    """Run the command. Returns checks, lines of correctness and logs beside the report's facts."""
    request = bench.request
    if "candidate" not in request.artifacts:
        raise HarnessError("REQUEST_INVALID", "check needs the artifact candidate", 2)
    if not request.cases:
        raise HarnessError("REQUEST_INVALID", "/cases is empty", 2)
    cases = sorted(request.cases, key=lambda case: case.held_back)
    prepared = prepare(bench, cases)
    sensitive = sensitivity(bench, prepared)
    judge = _Judge(bench)
    baseline = run_cases(bench, "baseline", prepared, 1)
    first = run_cases(bench, "candidate", prepared, request.repeats)
    passes = [first]
    if first.failure is None:
        watched = bench.is_python("candidate")
        passes.append(run_cases(bench, "candidate", prepared[::-1], 1, traced=watched))
    reference = judge.baseline(prepared, baseline)
    if reference:
        judge.candidate(prepared, passes, reference)
    logs = {"candidate": first.log, "baseline": baseline.log}
    proof = Check()
    _fallbacks(proof, passes)
    if baseline.failure is not None:
        proof.add(outcome.BASELINE_FAILED, outcome.BLOCKED, detail=str(baseline.failure))
    elif first.failure is not None:
        proof.reasons.append({"code": first.failure.code, "detail": "the candidate did not run"})
    elif "perturbed" not in request.artifacts:
        proof.reasons.append({"code": "NOT_RUN", "detail": "no perturbed artifact was given"})
    else:
        wrong = run_cases(bench, "perturbed", prepared, 1)
        logs["perturbed"] = wrong.log
        seen = {role: done.seen for role, done in (("candidate", first), ("baseline", baseline)) if done.seen}
        digest = request.artifacts["candidate"].digest
        hit.prove(proof, seen, bench.loadables["candidate"], digest, _perturbed(bench, prepared, first, wrong))
    proof.settle()
    checks = {
        "sensitivity": sensitive,
        "correctness": judge.correctness,
        "isfinite": judge.isfinite,
        "hit_proof": proof,
    }
    stopped = any(done.failure is not None for done in passes)
    judge.correctness.facts.update(
        {
            "steps": steps(judge.correctness, stopped=stopped),
            "published": sum(not item.case.held_back and not item.twin for item in prepared),
            "twins": sum(item.twin for item in prepared),
            "held_back": sum(item.case.held_back for item in prepared),
            "calls": sum(len(runs) for done in passes for runs in done.outputs.values()),
            "errors": worst(judge.lines),
        }
    )
    facts = {"left_running": max(done.left_running for done in passes), "cases": len(request.cases)}
    return {"checks": checks, "samples": {"correctness": judge.lines}, "facts": facts, "side": {"logs": logs}}


def _fallbacks(proof: Check, passes: Sequence[Pass]) -> None:
    """Exceptions that the candidate swallowed: what it declares did not do the work."""
    for done in passes:
        for case, found in done.swallowed.items():
            if found:
                proof.add(outcome.HIDDEN_FALLBACK, case=case, **found[0])
