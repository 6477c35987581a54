"""One attempt of a run as a section of its report: verdict, what would decide, checks, measurements, envelope.

Invariants:
- Everything shown is what the judge derives from the attempt's bytes; an attempt that is not decided is shown as it
  would be decided now, and is said to be open.
- Text of a candidate is text: it is never code, never a link.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from akf.judge.checks import JudgedGate, judge_gates
from akf.judge.evidence import Evidence
from akf.judge.planned import Planned
from akf.report import measured, numbers
from akf.report.measured import outcome
from akf.report.model import (
    Block,
    Cell,
    Fact,
    Facts,
    Item,
    Items,
    Mark,
    Prose,
    Quantity,
    Section,
    Table,
    Tone,
    Verdict,
)

VERDICTS: dict[str, Tone] = {
    "promotable": "good", "inventory": "info", "rejected": "bad", "incomplete": "warn", "incomparable": "warn",
    "blocked": "warn",
}  # fmt: skip
_MOST_FIGURES = 200


def section(evidence: Evidence, decision: Mapping[str, Any], *, decided: bool) -> Section:
    """The section of one attempt.

    Args:
        evidence: what the judge read.
        decision: what the judge makes of it.
        decided: whether the Decision is published.
    """
    judged = judge_gates(evidence)
    return Section(
        title=f"Candidate {evidence.candidate['id']}",
        blocks=(*_verdict(decision, decided=decided), *_about(evidence, decision), *_gates(evidence, judged, decision)),
    )


def verdict(word: str, *, decided: bool) -> Mark:
    """A verdict as a word with its colour; one that is not published is not shown as if it were."""
    return Mark(word=word if decided else f"{word} so far", tone=VERDICTS[word] if decided else "plain")


def _verdict(decision: Mapping[str, Any], *, decided: bool) -> Iterator[Block]:
    first, *others = decision["reasons"]
    state = "" if decided else " Not decided: this is what `akf judge` would say now."
    rule = f"Row {first['row']} of the table, `{first['code']}`.{state}"
    yield Verdict(mark=verdict(decision["verdict"], decided=decided), sentence=first["text"], rule=rule)
    shown = [each for each in others if each["code"] != "GATE_MISSING"]
    if shown:
        yield Items(tone="plain", items=tuple(Item(code=each["code"], text=each["text"]) for each in shown))
    missing = decision.get("missing", ())
    absent = ", ".join(each["gate"] for each in missing if "check" not in each)
    needs = [
        f"`{each['gate']}` {each['check']}: about {each['pairs_to_decide']} pairs in all would decide it"
        for each in missing
        if "pairs_to_decide" in each
    ]
    if decision["verdict"] != "incomplete":
        needs = []  # more pairs or gates would not change it
        absent = f"Gates that are not there: {absent}." if absent else ""
    elif absent:
        needs.append(f"the gates that are missing: {absent}")
        absent = ""
    if needs or absent:
        yield Prose(text=f"What would decide: {'; '.join(needs)}." if needs else absent)


def _about(evidence: Evidence, decision: Mapping[str, Any]) -> Iterator[Block]:
    claim, build = evidence.candidate["claim"], evidence.build
    hypothesis = claim["hypothesis"]
    facts = [
        Fact(name="task", value=evidence.task["id"], note=evidence.task["op"]),
        Fact(name="route", value=claim["route"], note=f"ABI {claim['abi']}"),
        Fact(name="build", value=_built(build), note=None if build is None else build["stage"]),
        Fact(name="tries of the Task (k)", value=Quantity(value=decision["tries"], unit="count")),
        Fact(name="isolation", value=decision.get("isolation")),
        Fact(name="expected change", value=_expected(hypothesis), note=f"active bound: {hypothesis['active_bound']}"),
    ]
    yield Facts(facts=tuple(facts))
    yield Table(
        caption="What the candidate claims, in its own words.",
        columns=("claim", "text"),
        rows=(
            ("change of the data flow", _plain(claim["data_flow_change"])),
            ("falsified by", _plain(hypothesis["falsified_by"])),
            ("failure boundary", _plain(claim["failure_boundary"])),
        ),
    )
    if build is not None and build["outcome"] != "built":
        items = tuple(Item(text=_plain(each)) for each in build.get("reasons", ())) or (
            Item(text="It did not compile."),
        )
        yield Items(tone="bad", items=items)


def _expected(hypothesis: Mapping[str, Any]) -> str:
    low, high = (numbers.percent(hypothesis[name]) for name in ("size_low_ratio", "size_high_ratio"))
    return f"{hypothesis['metric']} {hypothesis['direction']} by {low} to {high}"


def _built(build: Mapping[str, Any] | None) -> Cell:
    if build is None:
        return Mark(word="not built", tone="plain")
    return Mark(word=build["outcome"], tone="good" if build["outcome"] == "built" else "bad")


def _plain(words: str) -> str:
    """Text of others without marks of code."""
    return words.replace("`", "'")


def _gates(evidence: Evidence, judged: tuple[JudgedGate, ...], decision: Mapping[str, Any]) -> Iterator[Block]:
    planned = Planned(evidence)
    for gate in judged:
        plan = evidence.plans.get(gate.gate)
        if gate.present:
            yield _checks(evidence, gate)
            yield from measured.blocks(evidence, gate, planned)
            yield from _figures(evidence.gates[gate.gate])
        elif plan is not None:
            yield _planned(gate.gate, plan)
    if decision["envelope"]["rows"]:
        yield _envelope(evidence, decision["envelope"])


def _checks(evidence: Evidence, gate: JudgedGate) -> Table:
    """Each check: what the gate says of it, and what the judge makes of it."""
    value = evidence.gates[gate.gate]
    said: dict[str, list[Mapping[str, Any]]] = {}
    for check in value["checks"]:
        said.setdefault(check["name"], []).append(check)
    rows: list[tuple[Cell, ...]] = []
    for each in gate.checks:
        claims = said.get(each.check, [])
        notes = [*(claim.get("note") for claim in claims), each.note]
        codes = dict.fromkeys((*each.codes, *(code for claim in claims for code in claim.get("reasons", ()))))
        words = "; ".join(dict.fromkeys(_plain(note) for note in notes if note))
        rows.append(
            (
                f"`{each.check}`",
                outcome(claims[0]["outcome"]) if claims else None,
                outcome(each.outcome),
                ", ".join(f"`{code}`" for code in codes) or None,
                words or None,
            )
        )
    differs = f" Its identity differs from the Campaign's: {', '.join(gate.differs)}." if gate.differs else ""
    isolation = f", isolation {value['isolation']}" if gate.gate not in {"environment", "release"} else ""
    resumes = value.get("resumes", 0)
    again = f", resumed {resumes}\N{MULTIPLICATION SIGN}" if resumes else ""
    return Table(
        caption=f"The {gate.gate} gate: evidence {value['evidence']}{isolation}{again}.{differs}",
        columns=("check", "the gate says", "judged", "reasons", "in words"),
        rows=tuple(rows),
    )


def _planned(gate: str, plan: Mapping[str, Any]) -> Prose:
    samples = sum(len(each["samples"]) for each in plan.get("measurements", ()))
    text = (
        f"The {gate} gate is planned and not measured: {samples:,} samples, {plan['estimate']['wall_s']:g} s expected."
    )
    return Prose(text=text)


def _figures(gate: Mapping[str, Any]) -> Iterator[Block]:
    """Figures that the evaluator wrote beside its checks."""
    rows: list[tuple[Cell, ...]] = [
        (f"`{check['name']}`", each["name"], str(each["value"]))
        for check in gate["checks"]
        for each in check.get("figures", ())
    ]
    if rows:
        yield Table(
            caption=f"Figures of the {gate['gate']} gate's checks.", columns=("check", "figure", "value"),
            rows=tuple(rows[:_MOST_FIGURES]),
        )  # fmt: skip


def _envelope(evidence: Evidence, envelope: Mapping[str, Any]) -> Prose:
    names = ", ".join(row["id"] for row in envelope["rows"])
    whole, gain = len(evidence.task["rows"]), envelope.get("gain")
    text = f"The largest part of the Task's domain that passes: {len(envelope['rows'])} of {whole} rows ({names})."
    if gain is not None:
        ends = numbers.interval(gain["low"] - 1, gain["high"] - 1, "gain")
        text += f" Over these rows alone the gain is {numbers.gain(gain['estimate'] - 1)} {ends}."
    return Prose(text=text)
