"""A triage as sections of a report.

Invariants:
- Every number of the Triage's hotspots, lines, policy and cost is in a section; nothing is computed here but sums for
  what does not fit on a chart.
- What was assumed, not seen or is missing is said where the answer is read; an answer that is not ready says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from akf.report import numbers
from akf.report.model import (
    MOST_RANKS,
    Bar,
    Block,
    Cell,
    Curve,
    Curves,
    Fact,
    Facts,
    Item,
    Items,
    Mark,
    Prose,
    Quantity,
    RankTime,
    Section,
    Shares,
    Split,
    Table,
    Timeline,
    Tone,
    Unit,
    Verdict,
)

Value = Mapping[str, Any]

TONES: dict[str, Tone] = {
    "kernel": "good",
    "integration": "info",
    "configuration": "warn",
    "pipeline": "info",
    "no_go": "plain",
}
_SOURCES = {"flag": "stated by hand", "campaign": "stated in the Campaign", "capture": "measured with the Capture"}
_BARS = 12
_CURVES = 6
_LARGEST_BOUND = 1e9
_SPLITS = 2048
"""Steps of all ranks that are drawn line by line; of more, the length alone."""


def sections(triage: Value, capture: Value | None = None) -> tuple[Section, ...]:
    """Answer, time, bounds, hotspots, what it goes by, and what is missing.

    Args:
        triage: the Triage, or its body.
        capture: the Capture it is of, for the time by rank and step.
    """
    found = (
        Section(title="Answer", blocks=tuple(_answer(triage))),
        Section(title="Where the time goes", blocks=tuple(_time(triage, capture))),
        Section(title="What a faster part could bring", blocks=tuple(_bounds(triage))),
        Section(title="All hotspots", blocks=(_hotspots(triage), _reasons(triage))),
        Section(title="What the answer goes by", blocks=tuple(_basis(triage))),
    )
    return tuple(section for section in found if section.blocks)


def _verdict(triage: Value) -> Mark:
    """The answer; one that no Task can be made of yet is not shown as if it could."""
    said = mark(triage["answer"]["answer"])
    open_still = not triage["ready"] and triage["answer"]["answer"] not in {None, "no_go"}
    return Mark(word=f"{said.word}, not ready for a Task", tone="warn") if open_still else said


def mark(answer: str | None) -> Mark:
    """An answer as a word with its colour."""
    if answer is None:
        return Mark(word="cannot be told yet", tone="warn")
    return Mark(word=words(answer), tone=TONES.get(answer, "plain"))


def words(name: str) -> str:
    """A name of the contracts as people write it."""
    return "no-go" if name == "no_go" else name.replace("_", " ")


def _answer(triage: Value) -> Iterator[Block]:
    answer = triage["answer"]
    spot = answer["hotspot"]
    about = f"`{spot}`: " if spot is not None else ""
    yield Verdict(mark=_verdict(triage), sentence=f"{about}{answer['text']}", rule=f"Rule `{answer['rule']}`")
    target, cost, unseen = _target(triage), triage["cost"], triage["health"].get("unseen", ())
    facts = [
        Fact(name="target", value=quantity(target["value"], "times"), note=_source(target)),
        Fact(name="steps", value=quantity(triage["steps"], "count"), note=triage["stage"] and words(triage["stage"])),
        Fact(name="wall time of the steps of all ranks", value=quantity(triage["step_ns"], "ns")),
        Fact(
            name="board time of a kernel Task",
            value=quantity(cost["kernel_s"], "s"),
            note=f"of {numbers.number(cost['budget_s'], 's')} in the budget",
        ),
        Fact(name="smallest gain that shows", value=quantity(cost["detectable_gain_ratio"], "share")),
        Fact(
            name="baseline",
            value=_baseline(triage["health"]["healthy"], unseen),
            note=f"{len(unseen)} facts not seen" if unseen else None,
        ),
    ]
    yield Facts(facts=tuple(facts))
    if triage.get("blockers"):
        yield Items(
            tone="warn",
            items=tuple(
                Item(text=f"{each['artifact']} `{each['pointer']}`: {each['expected']}", remedy=f"`{each['command']}`")
                for each in triage["blockers"]
            ),
        )


def _baseline(healthy: bool, unseen: Sequence[str]) -> Mark:
    """A baseline is called healthy only where everything was seen."""
    if not healthy:
        return Mark(word="unhealthy", tone="warn")
    return Mark(word="nothing wrong was seen", tone="plain") if unseen else Mark(word="healthy", tone="good")


def _time(triage: Value, capture: Value | None) -> Iterator[Block]:
    ranks = () if capture is None else rank_times(capture)
    if ranks:
        yield Timeline(caption=_caption(ranks), ranks=ranks)
    yield Table(
        caption="Lines of the step; together they are the wall time. `shared` is what several kernels cover together.",
        columns=("line", "time", "share"),
        rows=tuple(
            (words(line["name"]), quantity(line["time_ns"], "ns"), quantity(line["share_ratio"], "share"))
            for line in triage["lines"]
        ),
    )
    yield from bars(triage["hotspots"])


def rank_times(capture: Value) -> tuple[RankTime, ...]:
    """How each rank of a Capture spent its steps; each step by its lines where there are few enough to draw."""
    lines = capture.get("breakdown", ())[:MOST_RANKS]
    few = sum(len(line.get("steps_ns", ())) for line in lines) <= _SPLITS
    return tuple(_rank(line, split=few) for line in lines)


def _caption(ranks: Sequence[RankTime]) -> str:
    known = any(rank.splits for rank in ranks)
    each = "what each step was made of, and how long it was" if known else "how long each step was"
    runs = any(len(rank.steps_ns) < rank.steps for rank in ranks)
    more = " A column is a run of neighbouring steps." if runs else ""
    return f"Left: what the steps of a rank are made of. Right: {each}, all ranks on one scale.{more}"


def bars(hotspots: Sequence[Value]) -> Iterator[Block]:
    """The largest shares of the step as bars; the others together as one more."""
    known = [spot for spot in hotspots if spot["share_ratio"] is not None]
    if not known:
        return
    cut = _BARS if len(known) > _BARS + 1 else len(known)
    shown = [_bar(spot) for spot in known[:cut]]
    if known[cut:]:
        rest = min(sum(spot["share_ratio"] for spot in known[cut:]), 1.0)
        shown.append(Bar(name=f"{len(known) - cut} smaller ones together", share_ratio=rest, muted=True))
    caption = "Shares of the steps' wall time, the largest first, with their intervals over steps where there are any."
    yield Shares(caption=caption, whole="step wall time", bars=tuple(shown))


def _bar(spot: Value) -> Bar:
    detail = ", ".join(spot.get("kernels", ())) if spot["what"] != "line" else "a line of the step"
    low, high = _ends(spot)
    share = min(spot["share_ratio"], 1.0)
    return Bar(
        name=_title(spot),
        detail=detail if detail != spot["name"] else None,
        share_ratio=share,
        low_ratio=low,
        high_ratio=high,
        mark=mark(spot["answer"]),
        muted=spot["what"] == "line",
    )


def _title(spot: Value) -> str:
    name = str(spot["name"])
    return words(name) if spot["what"] == "line" else name


def _ends(spot: Value) -> tuple[float | None, float | None]:
    if spot["interval"] is None:
        return None, None
    return min(spot["interval"]["low_ratio"], 1.0), min(spot["interval"]["high_ratio"], 1.0)


def _bounds(triage: Value) -> Iterator[Block]:
    curves = [_curve(spot) for spot in triage["hotspots"] if spot["share_ratio"]][:_CURVES]
    if not curves:
        return
    target = _target(triage)["value"]
    caption = (
        "Speed-up of the service over the speed-up s of one part with share h: `1 / ((1 - h) + h / s)`. The right end "
        "is the ceiling, however fast the part becomes; the band is the interval of h; the dashed line is the target."
    )
    yield Curves(caption=caption, target_ratio=_bound(target), curves=tuple(curves))


def _curve(spot: Value) -> Curve:
    share = min(spot["share_ratio"], 1.0)
    low, high = _ends(spot)
    return Curve(
        name=_title(spot),
        share_ratio=share,
        low_ratio=share if low is None else min(low, share),
        high_ratio=share if high is None else max(high, share),
        ceiling_ratio=_bound(spot["ceiling_ratio"]),
        needed_ratio=_bound(spot["needed_speedup_ratio"]),
        mark=mark(spot["answer"]),
    )


def _hotspots(triage: Value) -> Table:
    columns = ("hotspot", "calls", "device time", "share", "ceiling", "needed", "active bound", "covered", "answer")
    return Table(caption="Every hotspot and line, the largest share first.", columns=columns,
                 rows=tuple(map(_row, triage["hotspots"])))  # fmt: skip


def _row(spot: Value) -> tuple[Cell, ...]:
    interval = spot["interval"] or {}
    share = quantity(spot["share_ratio"], "share", interval.get("low_ratio"), interval.get("high_ratio"))
    return (
        _title(spot),
        quantity(spot["calls"], "count") if spot["calls"] else None,
        quantity(spot["time_ns"], "ns"),
        share,
        quantity(spot["ceiling_ratio"], "times"),
        quantity(spot["needed_speedup_ratio"], "times"),
        words(spot["active_bound"]["bound"]),
        quantity(spot["coverage_ratio"], "share"),
        mark(spot["answer"]),
    )


def _reasons(triage: Value) -> Table:
    rows = [
        (_title(spot), f"`{spot['rule']}`", " ".join(filter(None, (spot["text"], spot.get("note")))))
        for spot in triage["hotspots"]
    ]
    return Table(caption="Why: the rule that answered and its comparison.", columns=("hotspot", "rule", "comparison"),
                 rows=tuple(rows))  # fmt: skip


def _basis(triage: Value) -> Iterator[Block]:
    findings = triage["health"].get("findings", ())
    if findings:
        yield Items(tone="warn", items=tuple(Item(code=each["rule"], text=each["text"]) for each in findings))
    if triage["health"].get("unseen"):
        unseen = ", ".join(words(name) for name in triage["health"]["unseen"])
        yield Prose(text=f"Not seen in the Capture, so not checked: {unseen}.")
    seen = triage["completeness"]
    calls = "agree" if seen["calls"] == "agree" else "are not known from a model's config"
    yield Prose(
        text=f"Calls expected and calls seen {calls}. {seen['checks']} cross-checks between the profiler's files hold."
    )
    rows = tuple((f"`{value['name']}`", str(value["value"]), _state(value)) for value in triage["policy"])
    yield Table(
        caption="The policy: every value that the answer depends on.", columns=("value", "is", "from"), rows=rows
    )


def _target(triage: Value) -> Value:
    assumed = {"name": "target_ratio", "value": None, "source": "default", "assumed": True}
    return next((value for value in triage["policy"] if value["name"] == "target_ratio"), assumed)


def _state(value: Value) -> Mark:
    return Mark(word=_source(value), tone="warn" if value["assumed"] else "plain")


def _source(value: Value) -> str:
    return "assumed" if value["assumed"] else _SOURCES.get(value["source"], str(value["source"]))


def _rank(line: Value, *, split: bool) -> RankTime:
    names, lines = ("rank", "steps"), tuple(Split.model_fields)
    by_step = line.get("steps_lines") if split else None
    times = [] if by_step is None else zip(*(by_step[name] for name in lines), strict=True)
    return RankTime(
        **{name: line[name] for name in (*names, *lines)},
        steps_ns=tuple(line.get("steps_ns", ())),
        splits=tuple(Split(**dict(zip(lines, each, strict=True))) for each in times),
    )


def quantity(value: float | None, unit: Unit, low: float | None = None, high: float | None = None) -> Quantity | None:
    """A number with its unit; None where it is not known."""
    return None if value is None else Quantity(value=value, unit=unit, low=low, high=high)


def _bound(value: float | None) -> float | None:
    """A bound that can be drawn; what no chart reaches is as good as none."""
    return None if value is None or value > _LARGEST_BOUND else max(value, 1)
