"""Which planned measurement stands behind a rule of the Campaign, and what its samples say.

Invariants:
- Exactly one measurement serves a purpose of a rule in a plan: two of them would be a choice made afterwards.
- A plan that departs from the Campaign or the Task (metric, statistic, design, pairs, rows, weights) measures something
  else: what it planned is incomparable.
- Measurements share a file only where it holds the same samples of the same thing; A/A never shares one with the rest.
- A/A is taken from the gate itself or else from the gate of the rule, and only from measured evidence of this identity.
- Reproduction is fresh: no two files of measured times in an attempt have the same bytes.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from akf.contracts.canonical import digest
from akf.contracts.gates import routes_of
from akf.contracts.identity import capability_of, differing, expected
from akf.contracts.measured import Measured, measure
from akf.judge.evidence import Artifact, Evidence, Lender

DESIGNS = {"operator": "abba", "model": "legs", "serving": "legs"}
TIMES = frozenset({"ns", "us", "ms", "s"})


class Found(NamedTuple):
    """A rule's measurement: its plan's entry, if there is one, and what the samples say."""

    planned: Artifact | None
    measured: Measured

    @property
    def differs(self) -> bool:
        """Whether the plan measured something else than the Campaign asks for."""
        return self.measured.code == "PLAN_DIFFERS"


def rule_of(campaign: Artifact, rule: str) -> Artifact | None:
    """The one gain or guard of this id; None when there is none, or more than one."""
    acceptance = campaign["acceptance"]
    found = [each for each in (*acceptance["gains"], *acceptance.get("guards", ())) if each["id"] == rule]
    return found[0] if len(found) == 1 else None


class Planned:
    """The measurements of one attempt, each reduced once."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._reduced: dict[tuple[str, str, str], Found] = {}
        self._differs = {gate: tuple(_differences(evidence, value)) for gate, value in evidence.gates.items()}

    def differs(self, gate: str) -> tuple[str, ...]:
        """What about a gate's evidence is not the Campaign's, in names; empty when its identity holds."""
        return self._differs[gate]

    def behind(self, gate: str, purpose: str, rule: str) -> Found:
        """The measurement that serves this purpose of this rule in a gate of the attempt."""
        key = (gate, purpose, rule)
        if key not in self._reduced:
            self._reduced[key] = _behind(self._evidence, *key)
        return self._reduced[key]

    def noise(self, gate: str, rule: Artifact, planned: Artifact) -> Measured:
        """A/A for a planned measurement: of the gate itself, or else of the rule's own gate."""
        for source in dict.fromkeys((gate, rule["gate"])):
            found = self.behind(source, "aa", rule["id"])
            if found.planned is not None:
                wrong = self._unfit(source, found.planned, planned, beside=source == gate)
                return Measured(None, "AA_MISSING", wrong) if wrong else found.measured
        return Measured(None, "AA_MISSING", "no A/A was planned")

    def _unfit(self, source: str, noise: Artifact, planned: Artifact, *, beside: bool) -> str:
        """Why the A/A of a gate says nothing about a measurement (`beside`: in the same plan), or an empty text."""
        lender = self._evidence.lenders.get(noise["path"])
        if self._differs[source] or self._evidence.gates[source]["evidence"] != "measured":
            return f"the {source} gate's A/A is not measured evidence of this identity"
        if lender is not None and not _lends(self._evidence, lender, noise):
            return "the shared A/A was measured on something else"
        if not same_rows(noise, planned) or noise["design"] != planned["design"]:
            return "A/A has other rows, weights or another design"
        if beside and _launches(noise) != _launches(planned):
            return "A/A has other launches in a batch"
        return ""


def _behind(evidence: Evidence, gate: str, purpose: str, rule: str) -> Found:
    plan, value = evidence.plans.get(gate), evidence.gates.get(gate)
    planned = [] if plan is None or value is None else plan.get("measurements", ())
    mine = [each for each in planned if (each["purpose"], each["rule"]) == (purpose, rule)]
    if value is None or not mine:
        return Found(None, Measured(None, "SAMPLES_MISSING", "no planned measurement stands behind it"))
    wrong = "" if len(mine) == 1 else f"{len(mine)} measurements serve as {purpose} of {rule}"
    wrong = wrong or _departs(evidence, gate, mine[0]) or _shares(planned, mine[0])
    if wrong:
        return Found(mine[0], Measured(None, "PLAN_DIFFERS", wrong))
    path = mine[0]["path"]
    files = {each["path"]: each["digest"] for each in value.get("samples", ())}
    if path not in files:
        return Found(mine[0], Measured(None, "SAMPLES_MISSING", f"{path} is not among the gate's files"))
    twin = _twin(evidence, mine[0], files[path])
    if twin is not None:
        return Found(mine[0], Measured(None, "SAMPLES_REUSED", f"{path} has the bytes of {twin}"))
    return Found(mine[0], measure(mine[0], evidence.files[path], evidence.campaign["acceptance"]["confidence"]))


def same_rows(mine: Artifact, other: Artifact) -> bool:
    """Whether two planned measurements weigh the same rows in the same way."""
    return _rows(mine) == _rows(other)


def _differences(evidence: Evidence, gate: Artifact) -> list[str]:
    campaign, task, claim = evidence.campaign, evidence.task, evidence.candidate["claim"]
    found = differing(_wanted(evidence), gate["identity"])
    if capability_of(campaign, task, claim["route"]) is None:
        found.append("capability")
    if claim["route"] not in routes_of(task) or claim["abi"] != task["abi"]["kind"]:
        found.append("task")
    build = evidence.build
    environment = campaign["environment"]
    wanted = {
        "outcome": "built",
        "route": claim["route"],
        "soc": environment["soc"]["name"],
        "toolkit": environment["toolkit"],
    }
    if build is None or any(build[name] != value for name, value in wanted.items()):
        found.append("build")
    return found


def _wanted(evidence: Evidence) -> dict[str, Any]:
    workload = digest(evidence.files["workload.json"])
    return expected(evidence.campaign, workload, evidence.task, evidence.candidate)


def _departs(evidence: Evidence, gate: str, measurement: Artifact) -> str:
    """How a planned measurement departs from what the Campaign and the Task froze, or an empty text."""
    acceptance = evidence.campaign["acceptance"]
    rule = rule_of(evidence.campaign, measurement["rule"])
    pairs = acceptance["pairs"].get(gate)
    if rule is None:
        return f"rule {measurement['rule']} is not exactly one of the Campaign's"
    for name in ("metric", "unit", "better", "statistic", "quantile"):
        if measurement.get(name) != rule.get(name):
            return f"{name} is {measurement.get(name)}, the Campaign says {rule.get(name)}"
    wanted = {"pairs": pairs, "design": DESIGNS[rule["gate"]]}
    wanted["blocks"] = acceptance["pairs"]["blocks"] if wanted["design"] == "abba" else 1
    for name, value in wanted.items():
        if measurement[name] != value:
            return f"{name} is {measurement[name]}, the Campaign says {value}"
    rows = [row["id"] for row in measurement["rows"]]
    if len(set(rows)) != len(rows):
        return "a row is planned twice"
    if rule["gate"] == "operator" and _rows(measurement) != _rows(evidence.task):
        return "rows or weights are not the Task's"
    return ""


def _rows(value: Artifact) -> list[tuple[str, Fraction]]:
    return sorted((row["id"], Fraction(str(row["weight"]))) for row in value["rows"])


def _launches(value: Artifact) -> dict[str, int]:
    return {row["id"]: row["launches"] for row in value["rows"]}


def _shares(planned: list[Artifact], measurement: Artifact) -> str:
    """Why the measurement may not stand beside the plan's others, or an empty text."""
    for other in planned:
        if other is measurement:
            continue
        if other["id"] == measurement["id"]:
            return f"two measurements are named {measurement['id']}"
        if other["path"] == measurement["path"]:
            same = ("metric", "unit", "design", "rows", "pairs", "blocks", "batches", "samples")
            aa = {other["purpose"] == "aa", measurement["purpose"] == "aa"}
            if len(aa) > 1 or any(other.get(name) != measurement.get(name) for name in same):
                return f"{measurement['path']} serves measurements of different things"
    return ""


def _twin(evidence: Evidence, measurement: Artifact, wanted: str) -> str | None:
    """Another file of this attempt with the very same bytes; measured times never repeat to the nanosecond."""
    if measurement["unit"] not in TIMES:
        return None
    for gate in evidence.gates.values():
        for each in gate.get("samples", ()):
            if each["digest"] == wanted and each["path"] != measurement["path"]:
                return str(each["path"])
    return None


def _lends(evidence: Evidence, lender: Lender, measurement: Artifact) -> bool:
    """Whether the A/A of another attempt's gate was planned there as it is here, under this identity."""
    differs = set(differing(_wanted(evidence), lender.gate["identity"])) - {"route"}
    planned = lender.plan.get("measurements", ())
    return not differs and lender.gate["evidence"] == "measured" and measurement in planned
