"""What each check of each gate really says: outcomes recomputed from raw samples, identities compared.

Invariants:
- A gain, guard or row outcome comes from the plan, the samples and the Campaign's rule, never from the gate's summary.
- A plan that differs from the Campaign (pairs, statistic, rows, weights) makes its checks incomparable.
- A/A outside the noise limit makes those checks incomparable whose threshold or margin it could swallow.
- A gate whose identity differs from the Campaign's counts as incomparable, neither pass nor fail.
- The reproduction gate's gains are claimed at error alpha/k, k the tries of the Task so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import orjson

from akf import stats
from akf.contracts.canonical import digest, jcs
from akf.contracts.gates import GATES, PER_RANK, required_checks
from akf.contracts.identity import capability_of, differing, expected
from akf.judge.evidence import Artifact, Evidence


class Judged(NamedTuple):
    """One check as the judge sees it."""

    gate: str
    check: str
    outcome: str
    codes: tuple[str, ...] = ()
    required: bool = True
    recomputed: bool = False
    interval: stats.Interval | None = None
    ratios: tuple[float, ...] = ()
    limit: float | None = None
    note: str = ""


class JudgedGate(NamedTuple):
    """One gate as the judge sees it."""

    gate: str
    present: bool
    differs: tuple[str, ...]
    checks: tuple[Judged, ...]


class _Measured(NamedTuple):
    """A measurement of a plan, reduced; or why it could not be."""

    reduced: stats.Reduced | None
    code: str
    note: str = ""


def judge_gates(evidence: Evidence) -> tuple[JudgedGate, ...]:
    """Judge the checks of all gates, in order."""
    noise: dict[str, _Measured] = {}
    return tuple(_gate(evidence, gate, noise) for gate in GATES)


def _gate(evidence: Evidence, gate: str, noise: dict[str, _Measured]) -> JudgedGate:
    rows = tuple(row["id"] for row in evidence.task["rows"])
    required = required_checks(gate, evidence.campaign, rows)
    value = evidence.gates.get(gate)
    if value is None:
        return JudgedGate(gate, False, (), ())
    differs = _differences(evidence, value)
    plan = evidence.plans[gate]
    measured = {each["id"]: _reduce(evidence, value, each) for each in plan.get("measurements", ())}
    for each in plan.get("measurements", ()):
        if each["purpose"] == "aa":
            noise[each["rule"]] = measured[each["id"]]
    checks = []
    for name in [*required, *sorted({check["name"] for check in value["checks"]} - set(required))]:
        judged = _check(evidence, value, plan, name, measured, noise)
        judged = judged._replace(required=name in required)
        if differs:
            judged = judged._replace(outcome="incomparable", codes=("IDENTITY_MISMATCH",))
        elif value["evidence"] != "measured":
            judged = judged._replace(outcome="not_run", codes=("EVIDENCE_NOT_MEASURED",))
        checks.append(judged)
    return JudgedGate(gate, True, tuple(differs), tuple(checks))


def _differences(evidence: Evidence, gate: Artifact) -> list[str]:
    workload = digest(evidence.files["workload.json"])
    wanted = expected(evidence.campaign, workload, evidence.task, evidence.candidate)
    found = differing(wanted, gate["identity"])
    if capability_of(evidence.campaign, evidence.task, evidence.candidate["claim"]["route"]) is None:
        found.append("capability")
    return found


def _check(
    evidence: Evidence,
    gate: Artifact,
    plan: Artifact,
    name: str,
    measured: Mapping[str, _Measured],
    noise: Mapping[str, _Measured],
) -> Judged:
    claimed = [check for check in gate["checks"] if check["name"] == name]
    blank = Judged(gate["gate"], name, "not_run", ("CHECK_MISSING",))
    if not claimed:
        return blank
    kind, _, subject = name.partition(":")
    if kind not in {"gain", "guard", "row"}:
        return _claimed(evidence, blank, claimed)
    if any(check["outcome"] in {"blocked", "incomparable"} for check in claimed):
        return _claimed(evidence, blank, claimed)
    if any(check.get("profiler") == "on" for check in claimed):
        return blank._replace(codes=("PROFILER_ON",))
    if kind == "row":
        return _row(evidence, blank, plan, subject, measured, noise)
    return _ruled(evidence, blank, plan, kind, subject, measured, noise)


def _claimed(evidence: Evidence, blank: Judged, claimed: list[Artifact]) -> Judged:
    """An outcome that only the evaluator can know; the worst over ranks and repetitions counts."""
    order = ("fail", "incomparable", "blocked", "no_gain", "not_run", "inconclusive", "pass")
    worst = min(claimed, key=lambda check: order.index(check["outcome"]))
    outcome = worst["outcome"]
    if blank.gate == "environment" and outcome in {"fail", "no_gain"}:
        outcome = "blocked"  # the machine's fault is never the candidate's
    codes = tuple(dict.fromkeys(code for check in claimed for code in check.get("reasons", ())))
    if blank.check in PER_RANK and outcome == "pass":
        ranks = evidence.campaign["ranks"]
        world = ranks["tp"] * ranks["pp"] * ranks["dp"]
        seen = {check.get("rank") or 0 for check in claimed}
        if seen != set(range(world)):
            outcome, codes = "not_run", ("RANK_MISSING",)
    return blank._replace(outcome=outcome, codes=codes, note=worst.get("note") or "")


def _ruled(
    evidence: Evidence,
    blank: Judged,
    plan: Artifact,
    kind: str,
    rule_id: str,
    measured: Mapping[str, _Measured],
    noise: Mapping[str, _Measured],
) -> Judged:
    acceptance = evidence.campaign["acceptance"]
    rules = acceptance["gains" if kind == "gain" else "guards"]
    rule = next((each for each in rules if each["id"] == rule_id), None)
    if rule is None:
        return blank._replace(codes=("RULE_UNKNOWN",))
    found = _measurement(blank, plan, kind, rule_id, measured)
    if isinstance(found, Judged):
        return found
    limit = rule["threshold_ratio"] if kind == "gain" else rule["margin_ratio"]
    reduction = found.total
    swallowed = _swallowed(evidence, blank, noise.get(rule_id), None, limit)
    if swallowed is not None:
        return swallowed
    if blank.gate == "reproduction":
        return _claim(evidence, blank, reduction, limit)
    if reduction.interval is None:
        return blank._replace(codes=("TOO_FEW_PAIRS",), limit=limit, ratios=reduction.ratios)
    decide = stats.gain_outcome if kind == "gain" else stats.guard_outcome
    return _result(blank, decide(reduction.interval, limit), reduction, limit)


def _row(
    evidence: Evidence,
    blank: Judged,
    plan: Artifact,
    row: str,
    measured: Mapping[str, _Measured],
    noise: Mapping[str, _Measured],
) -> Judged:
    """Non-inferiority of one row, from the measurement of the first operator gain."""
    rule = next(each["id"] for each in evidence.campaign["acceptance"]["gains"] if each["gate"] == "operator")
    found = _measurement(blank, plan, "gain", rule, measured)
    if isinstance(found, Judged):
        return found
    limit = evidence.campaign["acceptance"]["row_margin_ratio"]
    reduction = found.rows.get(row)
    if reduction is None or reduction.interval is None:
        return blank._replace(codes=("TOO_FEW_PAIRS" if reduction else "SAMPLES_MISSING",))
    swallowed = _swallowed(evidence, blank, noise.get(rule), row, limit)
    if swallowed is not None:
        return swallowed
    outcome = stats.guard_outcome(reduction.interval, limit)
    return _result(blank, outcome, reduction, limit, ("ROW_REGRESSED",) if outcome == "fail" else ())


def _claim(evidence: Evidence, blank: Judged, reduction: stats.Reduction, limit: float) -> Judged:
    """The promotable claim: one-sided, at error alpha/k, on the reproduction gate's fresh data."""
    confidence = evidence.campaign["acceptance"]["confidence"]
    low = stats.signed_rank_lower_bound(reduction.ratios, stats.claim_error(confidence, max(evidence.tries, 1)))
    if low is None:
        return blank._replace(codes=("TOO_FEW_PAIRS",), limit=limit, ratios=reduction.ratios)
    if low - 1 > limit:
        return _result(blank, "pass", reduction, limit)
    outcome = stats.gain_outcome(reduction.interval, limit) if reduction.interval else "inconclusive"
    return _result(blank, "inconclusive" if outcome == "pass" else outcome, reduction, limit, ("MANY_TRIES",))


def _result(
    blank: Judged, outcome: str, reduction: stats.Reduction, limit: float, codes: tuple[str, ...] = ()
) -> Judged:
    return blank._replace(
        outcome=outcome,
        codes=codes,
        recomputed=True,
        interval=reduction.interval,
        ratios=reduction.ratios,
        limit=limit,
    )


def _measurement(
    blank: Judged, plan: Artifact, kind: str, rule: str, measured: Mapping[str, _Measured]
) -> stats.Reduced | Judged:
    for each in plan.get("measurements", ()):
        if each["purpose"] == kind and each["rule"] == rule:
            found = measured[each["id"]]
            if found.reduced is not None:
                return found.reduced
            outcome = "incomparable" if found.code == "PLAN_DIFFERS" else "not_run"
            return blank._replace(outcome=outcome, codes=(found.code,), note=found.note)
    return blank._replace(codes=("SAMPLES_MISSING",), note="no planned measurement stands behind it")


def _swallowed(
    evidence: Evidence, blank: Judged, noise: _Measured | None, row: str | None, limit: float
) -> Judged | None:
    """The check's outcome when A/A is missing, or wider than the limit that the check is about."""
    if noise is None or noise.reduced is None:
        return blank._replace(codes=("AA_MISSING",), note=noise.note if noise else "")
    reduction = noise.reduced.total if row is None else noise.reduced.rows.get(row)
    if reduction is None or reduction.interval is None:
        return blank._replace(codes=("AA_MISSING",))
    interval = reduction.interval
    if stats.aa_valid(interval, evidence.campaign["noise"]["noise_limit_ratio"]):
        return None
    if max(interval.high - 1, 1 - interval.low) < limit:
        return None
    note = f"A/A [{interval.low - 1:+.4f}, {interval.high - 1:+.4f}] could swallow {limit}"
    return blank._replace(outcome="incomparable", codes=("NOISE_TOO_HIGH",), limit=limit, note=note)


def _reduce(evidence: Evidence, gate: Artifact, measurement: Artifact) -> _Measured:
    wrong = _plan_differs(evidence, gate["gate"], measurement)
    if wrong:
        return _Measured(None, "PLAN_DIFFERS", wrong)
    files = [each for each in gate.get("samples", ()) if each["path"] == measurement["path"]]
    if not files:
        return _Measured(None, "SAMPLES_MISSING", f"{measurement['path']} is not among the gate's files")
    statistic: Any = "median"
    if measurement["statistic"] == "quantile":
        statistic = ("quantile", measurement["quantile"])
    try:
        samples = _samples(evidence.files[measurement["path"]])
        design = stats.Design(
            kind=measurement["design"],
            rows={row["id"]: float(row["weight"]) for row in measurement["rows"]},
            pairs=measurement["pairs"],
            planned=tuple(measurement["samples"]),
            blocks=measurement["blocks"],
            better=measurement["better"],
            statistic=statistic,
            confidence=evidence.campaign["acceptance"]["confidence"],
        )
    except (ValueError, KeyError, TypeError) as error:
        return _Measured(None, "SAMPLES_MALFORMED", str(error))
    reduced = stats.reduce_samples(design, samples)
    if isinstance(reduced, stats.Incomplete):
        faults = ("missing", "unplanned", "duplicated", "invalid")
        counts = ", ".join(f"{len(getattr(reduced, fault))} {fault}" for fault in faults if getattr(reduced, fault))
        return _Measured(None, "SAMPLES_MISSING", f"samples: {counts}")
    if isinstance(reduced, stats.TooFewSamples):
        note = f"{reduced.found} samples on side {reduced.side}, the quantile needs {reduced.needed}"
        return _Measured(None, "TOO_FEW_SAMPLES", note)
    return _Measured(reduced, "")


def _samples(data: bytes) -> list[stats.Sample]:
    """Raw sample lines; each must be canonical, so that no line can be read in two ways."""
    found = []
    for number, line in enumerate(data.split(b"\n")[:-1] if data.endswith(b"\n") else data.split(b"\n"), 1):
        record = orjson.loads(line)
        if not isinstance(record, dict) or jcs(record) != line:
            raise ValueError(f"line {number} is not a canonical JSON object")
        found.append(stats.Sample.of(record))
    return found


def _plan_differs(evidence: Evidence, gate: str, measurement: Artifact) -> str:
    """How a planned measurement departs from what the Campaign and the Task froze, or an empty text."""
    acceptance = evidence.campaign["acceptance"]
    rules = [*acceptance["gains"], *acceptance.get("guards", ())]
    rule = next((each for each in rules if each["id"] == measurement["rule"]), None)
    if rule is None:
        return f"rule {measurement['rule']} is not the Campaign's"
    for name in ("metric", "unit", "better", "statistic", "quantile"):
        if measurement.get(name) != rule.get(name):
            return f"{name} is {measurement.get(name)}, the Campaign says {rule.get(name)}"
    if measurement["pairs"] != acceptance["pairs"][gate]:
        return f"{measurement['pairs']} pairs, the Campaign says {acceptance['pairs'][gate]}"
    if measurement["design"] == "abba" and measurement["blocks"] != acceptance["pairs"]["blocks"]:
        return f"{measurement['blocks']} blocks, the Campaign says {acceptance['pairs']['blocks']}"
    if rule["gate"] == "operator":
        wanted = {row["id"]: Fraction(str(row["weight"])) for row in evidence.task["rows"]}
        if {row["id"]: Fraction(str(row["weight"])) for row in measurement["rows"]} != wanted:
            return "rows or weights are not the Task's"
    return ""
