"""The metrics that a gate states, computed again from the raw samples that its plan names.

Invariants:
- An interval is, to the last bit, what the samples of its check give: of the row for `row:`, of the total otherwise.
- The measurement is the one that the check is about: a gain's or a guard's own, for a row that of the operator's gain.
  A right number of another measurement is a break.
- An interval that no samples stand behind is a break.

The judge reads none of these numbers. People and other programs do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from akf import stats
from akf.contracts.measured import measure
from akf.contracts.problems import Problem
from akf.judge.evidence import Evidence

Value = Mapping[str, Any]


def metric_problems(evidence: Evidence, candidate: str) -> Iterator[Problem]:
    """What the gates of an attempt state and their samples do not give.

    Args:
        evidence: the attempt, verified.
        candidate: its id.
    """
    for gate, value in sorted(evidence.gates.items()):
        path = f"attempts/{candidate}/gates/{gate}.json"
        reduced: dict[str, stats.Reduced | None] = {}
        for index, check in enumerate(value["checks"]):
            stated = check.get("interval")
            if stated is None:
                continue
            planned = _planned(evidence, gate, check)
            found = None
            if planned is not None:
                if planned["id"] not in reduced:
                    data = evidence.files.get(planned["path"], b"")
                    reduced[planned["id"]] = measure(planned, data, _confidence(evidence)).reduced
                found = _interval(reduced[planned["id"]], check["name"])
            if dict(stated) != found:
                message = f"{path} states another interval of {check['name']} than its samples give"
                yield Problem(
                    "AKF-I225", message, path, f"/checks/{index}/interval", expected=found, found=dict(stated)
                )


def _planned(evidence: Evidence, gate: str, check: Value) -> dict[str, Any] | None:
    """The measurement that a check is about, when it is the one that the check names and a file of the gate."""
    kind, _, subject = check["name"].partition(":")
    rule = subject if kind in {"gain", "guard"} else _operator_gain(evidence) if kind == "row" else None
    purpose = "guard" if kind == "guard" else "gain"
    paths = {each["path"] for each in evidence.gates[gate].get("samples", ())}
    for each in evidence.plans[gate].get("measurements", ()) if gate in evidence.plans else ():
        if (each["rule"], each["purpose"], each["id"]) == (rule, purpose, check.get("measurement")):
            return each if each["path"] in paths else None
    return None


def _operator_gain(evidence: Evidence) -> str | None:
    gains = evidence.campaign["acceptance"]["gains"]
    return next((rule["id"] for rule in gains if rule["gate"] == "operator"), None)


def _confidence(evidence: Evidence) -> float:
    return float(evidence.campaign["acceptance"]["confidence"])


def _interval(reduced: stats.Reduced | None, check: str) -> dict[str, Any] | None:
    """The interval as a gate states it."""
    if reduced is None:
        return None
    kind, _, row = check.partition(":")
    reduction = reduced.rows.get(row) if kind == "row" else reduced.total
    interval = None if reduction is None else reduction.interval
    if interval is None:
        return None
    return {
        "estimate": interval.estimate, "low": interval.low, "high": interval.high, "pairs": interval.n,
        "confidence": interval.confidence,
    }  # fmt: skip
