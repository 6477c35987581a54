"""A run as a report: what it is about, each attempt, the machine, and the chain of digests.

Invariants:
- Nothing is drawn that does not hold: an attempt whose evidence is broken, or whose Decision is another than the
  evidence gives, is an IntegrityError.
- Made of the run's files alone, the journal left out: the same run gives the same report, on any machine.
- A run of any stage has a report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from akf.contracts.canonical import digest
from akf.contracts.gates import GATES
from akf.contracts.problems import IntegrityError
from akf.judge.decide import decided as decide
from akf.judge.evidence import Evidence, read
from akf.report import attempt as attempts
from akf.report.measured import outcome
from akf.report.model import Block, Cell, Fact, Facts, Mark, Prose, Quantity, Report, Section, Table
from akf.store import layout, ledger
from akf.store.collect import attempt_files
from akf.store.run import Run, checked

_LONGEST = 200


class Attempt(NamedTuple):
    """One attempt: its evidence, and the Decision that it gives."""

    candidate: str
    evidence: Evidence
    decision: Mapping[str, Any]
    decided: bool


def attempts_of(run: Run) -> list[Attempt]:
    """All attempts of a run, in the order of their submission.

    Raises:
        IntegrityError: what stands in the run does not hold.
    """
    book = run.foreseen()[0]
    lines = ledger.read(book, digest(run.read("run.json")))
    names = [line.path.split("/")[1] for line in lines if line.event == "candidate"]
    return [_attempt(run, name, book) for name in names]


def report_of(run: Run, found: list[Attempt]) -> Report:
    """The report of a run and its attempts."""
    campaign = run.campaign
    sections = [
        Section(title="The run", blocks=tuple(_overview(run, found))),
        *(attempts.section(each.evidence, each.decision, decided=each.decided) for each in found),
        Section(title="Machine and toolkit", blocks=tuple(_machine(campaign, found))),
        Section(title="Chain of digests", blocks=tuple(_chain(run))),
    ]
    subtitle = f"Campaign {campaign['id']}, {campaign['platform']}, arm {campaign['arm']}, {campaign['model']['name']}"
    return Report(title=f"Run {run.load('run.json').value['id']}", subtitle=subtitle, sections=tuple(sections))


def _attempt(run: Run, name: str, book: bytes) -> Attempt:
    files = {**attempt_files(run.path, name), layout.LEDGER: book}
    evidence = read(files, name)
    decision = decide(evidence, name)
    path = f"attempts/{name}/decision.json"
    decided = path in files
    if decided and run.load(path).source != checked(decision):
        message = f"{path} is not what the evidence gives"
        raise IntegrityError.of("AKF-I220", message, file=path, expected=decision["verdict"])
    return Attempt(name, evidence, decision, decided)


def _overview(run: Run, found: list[Attempt]) -> Iterator[Block]:
    campaign, lines = run.campaign, run.lines(torn=True)
    acceptance = campaign["acceptance"]
    limit = campaign["noise"]["noise_limit_ratio"]
    yield Facts(
        facts=(
            Fact(name="trust", value=campaign["trust"]["mode"]),
            Fact(name="confidence", value=Quantity(value=acceptance["confidence"], unit="share")),
            Fact(name="pairs in the operator gate", value=Quantity(value=acceptance["pairs"]["operator"], unit="count"),
                 note=f"{acceptance['pairs']['blocks']} blocks each"),
            Fact(name="noise limit", value=None if limit is None else Quantity(value=limit, unit="share")),
            Fact(name="attempts", value=Quantity(value=len(found), unit="count")),
            Fact(name="lines of the ledger", value=Quantity(value=len(lines), unit="count")),
        )
    )  # fmt: skip
    yield Table(
        caption="What has to be shown.", columns=("rule", "gate", "metric", "limit"), rows=tuple(_rules(acceptance))
    )
    tasks = sorted({line.path for line in lines if line.event == "task"})
    if tasks:
        yield Table(
            caption="Tasks.", columns=("task", "operator", "callsite", "rows", "opportunity"),
            rows=tuple(map(_task, (run.load(path).value for path in tasks))),
        )  # fmt: skip
    if found:
        rows = tuple(map(_line, found))
        yield Table(
            caption="Attempts, in the order of their submission. A dash is a gate that is not there.",
            columns=("candidate", "build", *GATES, "verdict"), rows=rows,
        )  # fmt: skip
    else:
        yield Prose(text="Nothing was submitted yet.")


def _rules(acceptance: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for each in acceptance["gains"]:
        yield f"gain `{each['id']}`", each["gate"], _metric(each), _gain(each["threshold_ratio"])
    for each in acceptance.get("guards", ()):
        yield f"guard `{each['id']}`", each["gate"], _metric(each), _gain(each["margin_ratio"], -1)
    yield "every row", "operator", "latency", _gain(acceptance["row_margin_ratio"], -1)


def _metric(rule: Mapping[str, Any]) -> str:
    statistic = rule["statistic"] if rule.get("quantile") is None else f"{rule['quantile']:g} quantile"
    return f"{rule['metric']}, {statistic}, {rule['better']} is better"


def _gain(limit: float | None, sign: int = 1) -> Quantity | None:
    return None if limit is None else Quantity(value=sign * limit, unit="gain")


def _task(task: Mapping[str, Any]) -> tuple[Cell, ...]:
    rows = [row["id"] for row in task.get("rows", ())]
    opportunity = task["opportunity"]
    share = None if opportunity is None else opportunity.get("share_ratio")
    cell = Mark(word="stated by hand", tone="plain") if share is None else Quantity(value=share, unit="share")
    return f"`{task['id']}`", task.get("op"), task.get("callsite"), ", ".join(rows) or None, cell


def _line(each: Attempt) -> tuple[Cell, ...]:
    build = each.evidence.build
    gates = each.evidence.gates
    return (
        each.candidate,
        None if build is None else Mark(word=build["outcome"], tone="good" if build["outcome"] == "built" else "bad"),
        *(outcome(gates[gate]["status"]) if gate in gates else None for gate in GATES),
        attempts.verdict(each.decision["verdict"], decided=each.decided),
    )


def _machine(campaign: Mapping[str, Any], found: list[Attempt]) -> Iterator[Block]:
    facts = [(name, value) for name, value in _leaves(campaign["environment"], "") if value is not None]
    yield Table(
        caption="The environment that the Campaign froze, field by field.",
        columns=("fact", "value"),
        rows=tuple((name, _shown(value)) for name, value in facts),
    )
    identities = [
        (each.candidate, gate, each.evidence.gates[gate])
        for each in found
        for gate in GATES
        if gate in each.evidence.gates
    ]
    if identities:
        yield Table(
            caption="What was read where the work ran, by gate; the judge compares it with the Campaign's.",
            columns=("candidate", "gate", "machine", "baseline", "harness"),
            rows=tuple(
                (name, gate, f"`{value['identity']['machine_digest']}`", f"`{value['identity']['incumbent_digest']}`",
                 f"`{value['harness_digest']}`")
                for name, gate, value in identities
            ),
        )  # fmt: skip


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every fact with its dotted name."""
    if isinstance(value, Mapping):
        for key in value:
            yield from _leaves(value[key], f"{name}.{key}" if name else key)
    elif isinstance(value, list) and any(isinstance(each, Mapping | list) for each in value):
        for index, each in enumerate(value):
            yield from _leaves(each, f"{name}[{index}]")
    else:
        yield name, value


def _shown(value: Any) -> str:
    words = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    words = words.replace("`", "'")
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}\N{HORIZONTAL ELLIPSIS} ({len(words):,} characters)"


def _chain(run: Run) -> Iterator[Block]:
    lines = run.lines(torn=True)
    signed = run.trust.keys is not None
    rows = tuple(
        (
            Quantity(value=line.seq + 1, unit="count"),
            line.event,
            f"`{line.path}`",
            f"`{line.digest}`",
            _owner(line) if signed else None,
        )
        for line in lines
    )
    yield Table(
        caption=f"Every line of the ledger, each chained to the one before. The head is `{ledger.head(lines)}`.",
        columns=("line", "event", "artifact", "digest of its bytes", "signed by" if signed else "unsigned run"),
        rows=rows,
    )
    yield Prose(
        text="`akf audit` derives all of this again, and `sha256sum` of a file gives the digest beside its name."
    )


def _owner(line: ledger.Line) -> str | None:
    """The role that signs what a line names; a resumption has no signature of its own."""
    place = layout.place(line.path)
    return None if place is None or line.event == "resume" else place.slot.role
