"""The Decision, from a run's bytes.

Invariants:
- Pure: the same files give the same Decision, in any order, on any machine.
- Every parent is named by digest, the ledger by its head and length.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from akf import stats
from akf.contracts.gates import GATES
from akf.contracts.measured import measure, part
from akf.contracts.rules.task import require_kernel
from akf.judge.checks import Judged, JudgedGate, judge_gates
from akf.judge.evidence import Evidence, read
from akf.judge.planned import Planned
from akf.judge.table import VERDICTS, Reason, fired, pairs_to_decide, weakest_isolation

RULES_VERSION = 1
LONGEST_TEXT = 4096


def decide(files: Mapping[str, bytes], candidate: str) -> dict[str, Any]:
    """Judge one attempt.

    Args:
        files: bytes of the run's files by run-relative path; the order is no input.
        candidate: id of the attempt.

    Returns:
        The Decision artifact as a JSON value.

    Raises:
        IntegrityError: row 0 of the table; there is no Decision.
        PreconditionError: the Task asks for no kernel.
    """
    return decided(read(files, candidate), candidate)


def decided(evidence: Evidence, candidate: str) -> dict[str, Any]:
    """Judge one attempt whose files are read and verified.

    Raises:
        PreconditionError: the Task asks for no kernel.
    """
    require_kernel(evidence.task)
    gates = judge_gates(evidence)
    reasons = fired(evidence, gates)
    row = reasons[0].row
    decision: dict[str, Any] = {
        "kind": "Decision",
        "schema_version": 1,
        "id": candidate,
        "verdict": VERDICTS[row],
        "row": row,
        "reasons": [_reason(reason) for reason in reasons],
        "parents": _parents(evidence, candidate),
        "ledger_head": evidence.lines[-1].chain,
        "ledger_lines": len(evidence.lines),
        "tries": evidence.tries,
        "checks": [_judged(check) for gate in gates for check in gate.checks],
        "missing": _missing(evidence, gates, reasons),
        "envelope": _envelope(evidence, gates),
        "trust": evidence.campaign["trust"]["mode"],
        "rules_version": RULES_VERSION,
    }
    isolation = weakest_isolation(evidence)
    return decision if isolation is None else {**decision, "isolation": isolation}


def _reason(reason: Reason) -> dict[str, Any]:
    value = {"row": reason.row, "code": reason.code, "gate": reason.gate, "check": reason.check}
    value["text"] = reason.text if len(reason.text) <= LONGEST_TEXT else reason.text[: LONGEST_TEXT - 1] + "\u2026"
    return {name: item for name, item in value.items() if item is not None}


def _parents(evidence: Evidence, candidate: str) -> list[dict[str, str]]:
    base = f"attempts/{candidate}"
    found = [
        evidence.reference("run.json", evidence.run),
        evidence.reference("suite.json", evidence.suite),
        evidence.reference("campaign.json", evidence.campaign),
        evidence.reference("workload.json", evidence.workload),
        evidence.reference("capture.json", evidence.capture),
        evidence.reference(f"tasks/{evidence.task['id']}.json", evidence.task),
        evidence.reference(f"{base}/candidate.json", evidence.candidate),
    ]
    if evidence.triage is not None:
        triage = evidence.reference(f"triage/{evidence.triage['id']}.json", evidence.triage)
        found.insert(5, triage)  # before the Task that it justifies
    if evidence.build is not None:
        found.append(evidence.reference(f"{base}/build.json", evidence.build))
    found += [
        evidence.reference(f"{base}/plan/{gate}.json", evidence.plans[gate]) for gate in GATES if gate in evidence.plans
    ]
    found += [
        evidence.reference(f"{base}/gates/{gate}.json", evidence.gates[gate])
        for gate in GATES
        if gate in evidence.gates
    ]
    return found


def _judged(check: Judged) -> dict[str, Any]:
    value: dict[str, Any] = {
        "gate": check.gate, "check": check.check, "outcome": check.outcome, "recomputed": check.recomputed,
    }  # fmt: skip
    if check.interval is not None:
        value["interval"] = _interval(check.interval)
        correlation = stats.lag1_correlation(check.ratios)
        if correlation is not None:
            value["lag1_correlation"] = correlation
    return value


def _interval(interval: stats.Interval) -> dict[str, Any]:
    return {
        "estimate": interval.estimate, "low": interval.low, "high": interval.high, "pairs": interval.n,
        "confidence": interval.confidence,
    }  # fmt: skip


def _missing(evidence: Evidence, gates: tuple[JudgedGate, ...], reasons: list[Reason]) -> list[dict[str, Any]]:
    checks = {(check.gate, check.check): check for gate in gates for check in gate.checks}
    found = []
    for reason in reasons:
        if reason.row != 5 or reason.gate is None:  # noqa: PLR2004 - row 5 is the one about what is missing
            continue
        value: dict[str, Any] = {"gate": reason.gate}
        if reason.check is not None:
            value["check"] = reason.check
            pairs = pairs_to_decide(evidence, checks[reason.gate or "", reason.check])
            if pairs is not None:
                value["pairs_to_decide"] = pairs
        found.append(value)
    return found


def _envelope(evidence: Evidence, gates: tuple[JudgedGate, ...]) -> dict[str, Any]:
    """The largest sub-domain that passes: rows inside the Candidate's own domain whose check holds, with their gain."""
    campaign, task = evidence.campaign, evidence.task
    passed = {
        check.check for gate in gates for check in gate.checks if gate.gate == "operator" and check.outcome == "pass"
    }
    sound = {"correctness", "isfinite", "hit_proof"} <= passed
    claimed = evidence.candidate["claim"].get("domain") or {}
    rows = [
        row
        for row in task["rows"]
        if sound
        and f"row:{row['id']}" in passed
        and all(low <= row["symbols"].get(symbol, 0) <= high for symbol, (low, high) in claimed.items())
    ]
    gain = _gain_of(evidence, {row["id"] for row in rows}) if 0 < len(rows) < len(task["rows"]) else None
    return {
        **({} if gain is None else {"gain": gain}),
        "op": task["op"],
        "rows": [{"id": row["id"], "symbols": row["symbols"], "attributes": row["attributes"]} for row in rows],
        "dtypes": [operand["dtype"] for operand in task["abi"]["operands"]],
        "layouts": [operand["layout"] for operand in task["abi"]["operands"]],
        "platform": campaign["platform"],
        "soc": campaign["environment"]["soc"]["name"],
        "toolkit": campaign["environment"]["toolkit"],
        "route": evidence.candidate["claim"]["route"],
        "graph": task["graph"],
        "arm": campaign["arm"],
        "model": campaign["model"]["name"],
    }


def _gain_of(evidence: Evidence, rows: set[str]) -> dict[str, Any] | None:
    """Interval of the operator's gain over some of its rows, or None where nothing was measured."""
    rule = next((each for each in evidence.campaign["acceptance"]["gains"] if each["gate"] == "operator"), None)
    found = None if rule is None else Planned(evidence).behind("operator", "gain", rule["id"])
    if found is None or found.planned is None or found.measured.reduced is None:
        return None
    planned, data = part(found.planned, evidence.files[found.planned["path"]], rows)
    reduced = measure(planned, data, evidence.campaign["acceptance"]["confidence"]).reduced
    interval = None if reduced is None else reduced.total.interval
    return None if interval is None else _interval(interval)
