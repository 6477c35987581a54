"""Rows 1 to 7 of the decision table.

Invariants:
- Rows are tried in order; the first that matches decides. Every row that matches is reported, the deciding one first.
- Every required check that does not pass makes a row match, so that only evidence can lead to the last row.
- Only a gate whose identity holds can reject; an unknown never promotes: what is not shown is missing.
- `promotable` needs all six gates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from akf import stats
from akf.contracts.gates import PYTHON
from akf.judge.checks import Judged, JudgedGate
from akf.judge.evidence import Evidence

VERDICTS = {
    1: "rejected", 2: "incomparable", 3: "blocked", 4: "inventory", 5: "incomplete", 6: "inventory", 7: "promotable",
}  # fmt: skip
STRENGTH = ("none", "uid", "container", "userns", "bwrap")
SERVICE = ("model", "serving")
ANSWERED = frozenset({"pass", "fail", "incomparable", "blocked"})


class Reason(NamedTuple):
    """One rule that fired."""

    row: int
    code: str
    text: str
    gate: str | None = None
    check: str | None = None


def fired(evidence: Evidence, gates: Sequence[JudgedGate]) -> list[Reason]:
    """All rules that fire, in the order of rows; the first one's row is the verdict's."""
    reasons = [
        *_failed(gates),
        *_with_outcome(gates, "incomparable", 2),
        *_with_outcome(gates, "blocked", 3),
        *_inventory(evidence, gates),
    ]
    if evidence.build is not None and evidence.build["outcome"] != "built":
        reasons.append(Reason(5, "BUILD_FAILED", "The candidate was not built, so no gate could measure it."))
    said = {(reason.gate, reason.check) for reason in reasons}
    reasons += [reason for reason in _incomplete(gates) if (reason.gate, reason.check) not in said]
    if not any(reason.row in {2, 3, 5} for reason in reasons):
        reasons += _forbidden(evidence)
    if not reasons:
        reasons = [
            Reason(7, "ALL_GATES_HOLD", "All six gates hold and every primary gain is shown in reproduction data.")
        ]
    return reasons


def weakest_isolation(evidence: Evidence) -> str | None:
    """The weakest isolation among the gates that ran a candidate."""
    found = [gate["isolation"] for name, gate in evidence.gates.items() if name not in {"environment", "release"}]
    return min(found, key=STRENGTH.index) if found else None


def _failed(gates: Sequence[JudgedGate]) -> Iterator[Reason]:
    for gate in gates:
        for check in gate.checks:
            if check.outcome == "fail":
                code = check.codes[0] if check.codes else "CHECK_FAILED"
                yield Reason(1, code, _sentence(check), gate.gate, check.check)
            elif _excluded(check) and gate.gate == "operator":
                yield Reason(1, check.codes[0], _sentence(check), gate.gate, check.check)


def _with_outcome(gates: Sequence[JudgedGate], outcome: str, row: int) -> Iterator[Reason]:
    for gate in gates:
        if outcome == "incomparable" and gate.differs:
            text = (
                f"The {gate.gate} gate is about something else: {', '.join(gate.differs)} differ from the Campaign's."
            )
            yield Reason(row, "IDENTITY_MISMATCH", text, gate.gate)
            continue
        for check in gate.checks:
            if check.required and check.outcome == outcome:
                code = check.codes[0] if check.codes else outcome.upper()
                yield Reason(row, code, _sentence(check), gate.gate, check.check)


def _excluded(check: Judged) -> bool:
    """Whether a gain that this gate must show is excluded by its data."""
    return check.required and check.outcome == "no_gain" and check.check.startswith("gain:")


def _inventory(evidence: Evidence, gates: Sequence[JudgedGate]) -> Iterator[Reason]:
    operator = next(gate for gate in gates if gate.gate == "operator")
    holds = operator.present and all(check.outcome == "pass" for check in operator.checks if check.required)
    if not holds:
        return
    for gate in gates:
        for check in gate.checks:
            if _excluded(check) and gate.gate in SERVICE:
                yield Reason(4, check.codes[0], _sentence(check), gate.gate, check.check)
    yield from _ceiling(evidence, operator)


def _ceiling(evidence: Evidence, operator: JudgedGate) -> Iterator[Reason]:
    """The bound of the whole service, recomputed with the speed-up that was measured."""
    opportunity = evidence.task["opportunity"]
    gains = [
        check.interval.high
        for check in operator.checks
        if check.required and check.check.startswith("gain:") and check.interval
    ]
    wanted = [
        rule["threshold_ratio"]
        for rule in evidence.campaign["acceptance"]["gains"]
        if rule["gate"] != "operator" and rule["threshold_ratio"] is not None
    ]
    if opportunity is None or opportunity["share_high_ratio"] is None or not gains or not wanted:
        return
    share = min(opportunity["share_high_ratio"], 1)
    speedup = max(gains)
    bound = 1 / ((1 - share) + share / speedup)
    if bound - 1 < min(wanted):
        text = f"With share {share:.4f} and speed-up {speedup:.4f} the service can gain {bound - 1:.4f} at most."
        yield Reason(4, "CEILING_TOO_LOW", text, "operator")


def _incomplete(gates: Sequence[JudgedGate]) -> Iterator[Reason]:
    for gate in gates:
        if not gate.present:
            yield Reason(5, "GATE_MISSING", f"The {gate.gate} gate is missing.", gate.gate)
            continue
        for check in gate.checks:
            if check.required and check.outcome not in ANSWERED:
                code = check.codes[0] if check.codes else check.outcome.upper()
                yield Reason(5, code, _sentence(check), gate.gate, check.check)


def _forbidden(evidence: Evidence) -> Iterator[Reason]:
    campaign = evidence.campaign
    isolation = weakest_isolation(evidence)
    minimum = campaign["promotion"]["min_isolation"]
    grounds = []
    if campaign["trust"]["mode"] == "unsigned":
        grounds.append("the run is unsigned")
    python = "python" in {evidence.candidate["claim"]["abi"], evidence.task["abi"]["kind"]}
    if python and not campaign["promotion"]["python_abi"]:
        grounds.append("the Campaign does not promote candidates of the python ABI")
    if evidence.task["opportunity"] is None:
        grounds.append("no triage stands behind the Task")
    if isolation is not None and _too_weak(isolation, minimum):
        grounds.append(f"the isolation {isolation} is weaker than {minimum}")
    ran = evidence.build is not None and evidence.build["route"] != PYTHON  # nothing runs to build a module
    built = evidence.build["isolation"] if evidence.build is not None and ran else None
    if built is not None and _too_weak(built, minimum):
        grounds.append(f"the isolation {built} of the Build is weaker than {minimum}")
    for ground in grounds:
        yield Reason(6, "PROMOTION_FORBIDDEN", f"Promotion is forbidden: {ground}.")


def _too_weak(isolation: str, minimum: str) -> bool:
    """Whether it is less than what was demanded; none at all never leads to promotion."""
    return isolation == "none" or STRENGTH.index(isolation) < STRENGTH.index(minimum)


def pairs_to_decide(evidence: Evidence, check: Judged) -> int | None:
    """How many pairs would probably decide a check that is not decided; None when it cannot be told."""
    if check.outcome not in {"inconclusive", "not_run"} or len(check.ratios) < 2 or check.limit is None:  # noqa: PLR2004
        return None
    limit = check.limit if check.check.startswith("gain:") else -check.limit
    confidence, tries = evidence.campaign["acceptance"]["confidence"], 1
    if check.gate == "reproduction":
        tries = max(evidence.tries, 1)
    paid = 1 - 2 * stats.claim_error(confidence, tries)
    found = stats.pairs_to_decide(check.ratios, limit, paid, stats.MAX_PAIRS)
    return found if found is not None and found > len(check.ratios) else None


def _sentence(check: Judged) -> str:
    what = f"{check.check} is {check.outcome.replace('_', ' ')}"
    if check.interval is not None:
        low, high = check.interval.low - 1, check.interval.high - 1
        bound = (
            ""
            if check.limit is None
            else f", against {'a threshold' if check.check.startswith('gain:') else 'a margin'} of {check.limit}"
        )
        what += f": [{low:+.4f}, {high:+.4f}] over {check.interval.n} pairs{bound}"
    if check.note:
        what += f" ({check.note})"
    return f"{what}."
