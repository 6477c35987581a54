"""What each check of each gate really says: outcomes recomputed from raw samples, identities compared.

Invariants:
- A gain, guard or row outcome comes from the plan, the samples and the Campaign's rule, never from the gate's summary.
- The summary counts only where it says what samples cannot: that the machine, the clock or the run was at fault.
- A plan that differs from the Campaign (pairs, design, statistic, rows, weights) makes its checks incomparable.
- A/A outside the noise limit makes those checks incomparable whose threshold or margin it could swallow.
- The operator gate's hit proof counts as far as its figures are those of the Build.
- A gate whose identity differs from the Campaign's counts as incomparable, neither pass nor fail.
- The reproduction gate's gains are claimed at error alpha/k, k the tries of the Task so far.
"""

from __future__ import annotations

from typing import NamedTuple

from akf import stats
from akf.contracts.gates import GATES, PER_RANK, required_checks
from akf.contracts.identity import capability_of
from akf.contracts.measured import Measured, swallows
from akf.judge.evidence import Artifact, Evidence
from akf.judge.hit import unproved
from akf.judge.planned import Found, Planned, rule_of, same_rows
from akf.judge.roofline import floor_ns, launch_ns

STATISTICAL = frozenset({"LOSS_SHOWN", "GUARD_BROKEN", "ROW_REGRESSED"})
WORST_FIRST = ("fail", "incomparable", "blocked", "no_gain", "not_run", "inconclusive", "pass")
NO_GAIN = {"operator": "NO_LOCAL_GAIN", "model": "NO_MODEL_GAIN", "serving": "NO_SERVING_GAIN"}
LARGEST_THRESHOLD = 1000
FAULTS = {
    ("environment", "identity"): "incomparable",
    ("environment", "toolkit_unmodified"): "incomparable",
    ("environment", "baseline_health"): "incomparable",
    ("operator", "sensitivity"): "blocked",
    ("release", "incumbent"): "incomparable",
}
"""What a failure means that is the machine's, the Task's or the service's fault and never the candidate's."""


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


def judge_gates(evidence: Evidence) -> tuple[JudgedGate, ...]:
    """Judge the checks of all gates, in order."""
    planned = Planned(evidence)
    return tuple(_gate(evidence, gate, planned) for gate in GATES)


def _gate(evidence: Evidence, gate: str, planned: Planned) -> JudgedGate:
    rows = tuple(row["id"] for row in evidence.task["rows"])
    required = tuple(dict.fromkeys(required_checks(gate, evidence.campaign, rows)))
    value = evidence.gates.get(gate)
    if value is None:
        return JudgedGate(gate, False, (), ())
    differs = planned.differs(gate)
    checks = []
    for name in [*required, *sorted({check["name"] for check in value["checks"]} - set(required))]:
        judged = _check(evidence, value, name, planned)._replace(required=name in required)
        if differs:
            judged = judged._replace(outcome="incomparable", codes=("IDENTITY_MISMATCH",))
        elif value["evidence"] != "measured":
            judged = judged._replace(outcome="not_run", codes=("EVIDENCE_NOT_MEASURED",))
        checks.append(judged)
    return JudgedGate(gate, True, differs, tuple(checks))


def _check(evidence: Evidence, gate: Artifact, name: str, planned: Planned) -> Judged:
    claimed = [check for check in gate["checks"] if check["name"] == name]
    blank = Judged(gate["gate"], name, "not_run", ("CHECK_MISSING",))
    kind, _, subject = name.partition(":")
    if not claimed:
        return blank
    if kind not in {"gain", "guard", "row"} or any(map(_beyond_samples, claimed)):
        return _claimed(evidence, blank, claimed)
    if any(check.get("profiler") == "on" for check in claimed):
        return blank._replace(codes=("PROFILER_ON",))
    if kind == "row":
        return _row(evidence, blank, subject, planned)
    return _ruled(evidence, blank, kind, subject, planned)


def _beyond_samples(check: Artifact) -> bool:
    """Whether a check that samples answer says something that they cannot; it never makes the answer better."""
    if check["outcome"] == "fail":
        return bool(set(check.get("reasons", ())) - STATISTICAL)
    return check["outcome"] in {"blocked", "incomparable", "not_run"}


def _claimed(evidence: Evidence, blank: Judged, claimed: list[Artifact]) -> Judged:
    """An outcome that only the evaluator can know; the worst over ranks and repetitions counts."""
    worst = min(claimed, key=lambda check: WORST_FIRST.index(check["outcome"]))
    outcome = worst["outcome"]
    if outcome in {"fail", "no_gain"}:
        outcome = FAULTS.get((blank.gate, blank.check), "blocked" if blank.gate == "environment" else outcome)
    codes = tuple(dict.fromkeys([*worst.get("reasons", ()), *(c for each in claimed for c in each.get("reasons", ()))]))
    if any(check["category"] in {"gain", "guard"} and check.get("profiler") == "on" for check in claimed):
        outcome, codes = "not_run", ("PROFILER_ON",)
    elif blank.check in PER_RANK and outcome == "pass":
        missing = _not_hit(evidence, blank.gate, claimed)
        lacking = next(filter(None, (unproved(evidence.build, check) for check in claimed)), "")
        if missing:
            outcome, codes = "not_run", (missing,)
        elif lacking and blank.gate == "operator":
            return blank._replace(outcome="not_run", codes=("HIT_NOT_PROVED",), note=lacking)
    return blank._replace(outcome=outcome, codes=codes, note=worst.get("note") or "")


def _not_hit(evidence: Evidence, gate: str, claimed: list[Artifact]) -> str:
    """Why the proofs do not cover every rank and, inside the engine, every captured graph size; or an empty text."""
    ranks = evidence.campaign["ranks"]
    world = set(range(ranks["tp"] * ranks["pp"] * ranks["dp"]))
    if {check.get("rank") or 0 for check in claimed} != world:
        return "RANK_MISSING"
    seen = {(check.get("rank") or 0, check.get("bucket_tokens")) for check in claimed}
    if gate not in {"model", "serving"} or evidence.task["graph"] != "graph":
        return ""
    wanted = _buckets(evidence)
    missing = wanted is None or {(rank, size) for rank in world for size in wanted} - seen
    return "BUCKET_MISSING" if missing else ""


def _buckets(evidence: Evidence) -> set[int] | None:
    """Captured graph sizes of the Task's callsite; None when the Workload does not know the callsite."""
    sites = [site for site in evidence.workload["callsites"] if site["id"] == evidence.task["callsite"]]
    mine = [site["graph"] for site in sites if site.get("arm") in {None, evidence.campaign["arm"]}]
    if not mine:
        return None
    captured = {size for graph in mine for size in graph.get("capture_sizes_tokens", ())}
    return captured | {bucket["size_tokens"] for graph in mine for bucket in graph.get("buckets", ())}


def _ruled(evidence: Evidence, blank: Judged, kind: str, rule_id: str, planned: Planned) -> Judged:
    rule = rule_of(evidence.campaign, rule_id)
    group = "gains" if kind == "gain" else "guards"
    if rule is None or rule not in evidence.campaign["acceptance"].get(group, ()):
        return blank._replace(codes=("RULE_UNKNOWN",))
    limit = rule["threshold_ratio"] if kind == "gain" else rule["margin_ratio"]
    if limit is None or not (limit <= LARGEST_THRESHOLD if kind == "gain" else limit < 1):
        return blank._replace(codes=("LIMIT_INVALID",))
    found = planned.behind(blank.gate, kind, rule_id)
    if found.planned is None or found.measured.reduced is None:
        return _unmeasured(blank, found)
    reduction = found.measured.reduced.total
    swallowed = _swallowed(evidence, blank, planned.noise(blank.gate, rule, found.planned), None, limit)
    if swallowed is not None:
        return swallowed
    if blank.gate == "reproduction" and kind == "gain":
        first = planned.behind(rule["gate"], kind, rule_id).planned
        if first is not None and not same_rows(found.planned, first):
            note = f"rows or weights are not those of the {rule['gate']} gate"
            return blank._replace(outcome="incomparable", codes=("PLAN_DIFFERS",), note=note)
        return _claim(evidence, blank, reduction, limit)
    if reduction.interval is None:
        return _result(blank, "not_run", reduction, limit, ("SAMPLES_TOO_FEW",))
    if kind == "gain":
        outcome: str = stats.gain_outcome(reduction.interval, limit)
        codes = {"fail": ("LOSS_SHOWN",), "inconclusive": ("GAIN_INCONCLUSIVE",), "no_gain": (NO_GAIN[rule["gate"]],)}
    else:
        outcome = stats.guard_outcome(reduction.interval, limit)
        codes = {"fail": ("GUARD_BROKEN",), "inconclusive": ("GUARD_INCONCLUSIVE",)}
    return _result(blank, outcome, reduction, limit, codes.get(outcome, ()))


def _row(evidence: Evidence, blank: Judged, row: str, planned: Planned) -> Judged:
    """Floor and non-inferiority of one row, from the measurement of the first operator gain."""
    rule = next((each for each in evidence.campaign["acceptance"]["gains"] if each["gate"] == "operator"), None)
    limit = evidence.campaign["acceptance"]["row_margin_ratio"]
    if rule is None or limit is None or limit >= 1:
        return blank._replace(codes=("RULE_UNKNOWN" if rule is None else "LIMIT_INVALID",))
    found = planned.behind(blank.gate, "gain", rule["id"])
    if found.planned is None or found.measured.reduced is None:
        return _unmeasured(blank, found)
    reduction = found.measured.reduced.rows.get(row)
    if reduction is None:
        return blank._replace(codes=("SAMPLES_MISSING",))
    if reduction.interval is None:
        return _result(blank, "not_run", reduction, limit, ("SAMPLES_TOO_FEW",))
    impossible = _faster_than_physics(evidence, row, found.planned)
    if impossible:
        return _result(blank, "fail", reduction, limit, ("ROOFLINE_EXCEEDED",))._replace(note=impossible)
    swallowed = _swallowed(evidence, blank, planned.noise(blank.gate, rule, found.planned), row, limit)
    if swallowed is not None:
        return swallowed
    outcome = stats.guard_outcome(reduction.interval, limit)
    codes = {"fail": ("ROW_REGRESSED",), "inconclusive": ("GUARD_INCONCLUSIVE",)}
    return _result(blank, outcome, reduction, limit, codes.get(outcome, ()))


def _faster_than_physics(evidence: Evidence, row: str, planned: Artifact) -> str:
    capability = capability_of(evidence.campaign, evidence.task, evidence.candidate["claim"]["route"])
    mine = next(each for each in evidence.task["rows"] if each["id"] == row)
    floor = floor_ns(mine, capability) if capability is not None else None
    if floor is None or planned["unit"] != "ns" or planned["better"] != "lower":
        return ""
    time = launch_ns(row, planned, evidence.files[planned["path"]])
    return f"{float(time):.1f} ns a launch, the hardware needs {float(floor):.1f} ns" if time < floor else ""


def _claim(evidence: Evidence, blank: Judged, reduction: stats.Reduction, limit: float) -> Judged:
    """The promotable claim: one-sided, at error alpha/k, on the reproduction gate's fresh data."""
    confidence, tries = evidence.campaign["acceptance"]["confidence"], max(evidence.tries, 1)
    low = stats.signed_rank_lower_bound(reduction.ratios, stats.claim_error(confidence, tries))
    outcome: str = stats.gain_outcome(reduction.interval, limit) if reduction.interval else "not_run"
    if low is None:
        codes: tuple[str, ...] = ("SAMPLES_TOO_FEW",)
        outcome = "not_run" if outcome == "pass" else outcome
    elif low - 1 > limit:
        return _result(blank, "pass", reduction, limit)
    else:
        codes = ("MANY_TRIES",) if outcome == "pass" else ("GAIN_INCONCLUSIVE",)
        outcome = "inconclusive" if outcome == "pass" else outcome
    if outcome in {"fail", "no_gain"}:
        code = "LOSS_SHOWN" if outcome == "fail" else "REPRODUCTION_DIFFERS"
        return _result(blank, outcome, reduction, limit, (code,))
    shown = "no lower end exists" if low is None else f"the lower end is {low - 1:+.4f}"
    return _result(blank, outcome, reduction, limit, codes)._replace(note=f"{shown} at {tries} tries of the Task")


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


def _unmeasured(blank: Judged, found: Found) -> Judged:
    outcome = "incomparable" if found.differs else "not_run"
    return blank._replace(outcome=outcome, codes=(found.measured.code,), note=found.measured.note)


def _swallowed(evidence: Evidence, blank: Judged, noise: Measured, row: str | None, limit: float) -> Judged | None:
    """The check's outcome when A/A is missing, or wider than the limit that the check is about."""
    reduction = None
    if noise.reduced is not None:
        reduction = noise.reduced.total if row is None else noise.reduced.rows.get(row)
    if reduction is None or reduction.interval is None:
        return blank._replace(codes=("AA_MISSING",), note=noise.note)
    interval, bound = reduction.interval, evidence.campaign["noise"]["noise_limit_ratio"]
    if not swallows(interval, limit, 1 if bound is None else min(bound, 1)):
        return None
    note = f"A/A [{interval.low - 1:+.4f}, {interval.high - 1:+.4f}] could swallow {limit}"
    return blank._replace(outcome="incomparable", codes=("NOISE_TOO_HIGH",), limit=limit, note=note)
