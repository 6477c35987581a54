"""A survey as a report: the triage's sections, between what was given and what is missing.

Invariants:
- The report is made of the document that the command prints, with files named without their folders.
- Where no answer could be given, the page says why, and still shows where device time goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from akf.contracts.text import counted
from akf.report.model import (
    Block,
    Cell,
    Command,
    Item,
    Items,
    Mark,
    Report,
    Section,
    Table,
    Timeline,
    Verdict,
)
from akf.report.triage import quantity, rank_times, sections, words

Value = Mapping[str, Any]
_MOST_ROWS = 40


def report_of(document: Value, triage: Value | None, capture: Value | None) -> Report:
    """The report of a survey.

    Args:
        document: what the command prints.
        triage: the body of the Triage, or None where none could be made.
        capture: the Capture that it is about.
    """
    names = [each["path"] for each in document["recognised"] if each["kind"] == "profile"]
    titled = ", ".join(names[:3]) or "files without a profile"
    made = sections(triage, capture) if triage is not None else tuple(_unanswered(document, capture))
    first, rest = made[:1], made[1:]
    found = (
        *first,
        *_section("What to do next", _missing(document)),
        *rest,
        *_section("Benchmarks", _benchmarks(document["benchmarks"], document["comparisons"])),
        *_section("Traffic", _traffic(document["workload"])),
        *_section("What was read", _read(document)),
    )
    return Report(title=f"Survey of {titled}", subtitle=_subtitle(document), sections=found)


def _section(title: str, blocks: Iterator[Block]) -> Iterator[Section]:
    listed = tuple(blocks)
    if listed:
        yield Section(title=title, blocks=listed)


def _subtitle(document: Value) -> str:
    captures = [
        f"{each['tool']}, {counted(each['ranks'], 'rank')}, {counted(each['steps'], 'step')}"
        for each in document["captures"][:1]
    ]
    workload = document["workload"]
    model = [] if workload is None or workload["model"] is None else [workload["model"]]
    return " · ".join([*model, *captures]) or "Nothing was profiled."


def _unanswered(document: Value, capture: Value | None) -> Iterator[Section]:
    problems = tuple(
        Item(code=each["code"], text=each["message"], remedy=each["hint"]) for each in document["problems"]
    )
    sentence = "No answer can be given; what stands in the way is listed here."
    verdict = Verdict(mark=Mark(word="no answer", tone="warn"), sentence=sentence)
    yield Section(title="Answer", blocks=(verdict, Items(tone="warn", items=problems)))
    blocks: list[Block] = []
    if capture is not None and capture.get("breakdown"):
        blocks.append(Timeline(caption="Steps, as far as they were captured.", ranks=rank_times(capture)))
    if document["hotspots"]:
        rows = tuple(
            (spot["name"], quantity(spot["calls"], "count"), quantity(spot["time_ns"], "ns"))
            for spot in document["hotspots"][:_MOST_ROWS]
        )
        caption = "Kernels by device time. Without whole steps these are no shares of a step."
        blocks.append(Table(caption=caption, columns=("kernel", "calls", "device time"), rows=rows))
    if blocks:
        yield Section(title="Where device time goes", blocks=tuple(blocks))


def _missing(document: Value) -> Iterator[Block]:
    if document["missing"]:
        items = tuple(
            Item(text=f"{each['what']}: {each['needed_for']}", remedy=each["remedy"]) for each in document["missing"]
        )
        yield Items(tone="info", items=items)
    if document.get("next"):
        yield Command(command=document["next"]["command"], purpose=document["next"]["purpose"])


def _benchmarks(results: Sequence[Value], comparisons: Sequence[Value]) -> Iterator[Block]:
    if not results:
        return
    figures = list(dict.fromkeys(key for result in results for key in result if key.endswith("_ns")))
    rows: list[tuple[Cell, ...]] = [(name, *(result[name] for result in results)) for name in ("file", "tool", "model")]
    rows += [(name, *(quantity(result[name], "count") for result in results)) for name in ("completed", "failed")]
    rows += [(_figure(key), *(quantity(result.get(key), "ns") for result in results)) for key in figures]
    columns = ("figure", *(result["id"] for result in results))
    yield Table(caption="Results of benchmark clients, in one meaning.", columns=columns, rows=tuple(rows))
    for each in comparisons:
        yield Table(
            caption=f"`{each['b']}` against `{each['a']}`: {'comparable' if each['comparable'] else 'not comparable'}",
            columns=("figure", each["a"], each["b"], "change"),
            rows=tuple(
                (
                    f"{pair['concept']} {pair['statistic']}",
                    quantity(pair["a_ns"], "ns"),
                    quantity(pair["b_ns"], "ns"),
                    quantity(pair["change_ratio"], "times"),
                )
                for pair in each["pairs"]
            ),
        )
        if each["remarks"]:
            items = tuple(Item(code=remark["name"], text=remark["text"]) for remark in each["remarks"])
            yield Items(tone="plain", items=items)


def _traffic(workload: Value | None) -> Iterator[Block]:
    if workload is None:
        return
    if workload["stages"]:
        rows = tuple(
            (words(stage["id"]), quantity(stage["requests"], "count"), quantity(stage["weight_ratio"], "share"))
            for stage in workload["stages"]
        )
        yield Table(caption="Requests by stage.", columns=("stage", "requests", "share"), rows=rows)
    traffic = workload["traffic"]
    if traffic is not None:
        sides = [(side, traffic[side]) for side in ("input", "output")]
        figures = [key for key in sides[0][1] if key.endswith("_tokens")]
        yield Table(
            caption=f"{traffic['requests']:,} requests: tokens of prompts and answers.",
            columns=("tokens", *(key.removesuffix("_tokens") for key in figures)),
            rows=tuple((side, *(quantity(spread[key], "count") for key in figures)) for side, spread in sides),
        )


def _read(document: Value) -> Iterator[Block]:
    rows = tuple((each["path"], each["kind"], each["layout"]) for each in document["recognised"])
    passed = document["passed_over_files"]
    if document["apart"]:
        items = (
            f"{each['profiles']} is the Capture `{each['capture']}` by itself: {each['because']}"
            for each in document["apart"]
        )
        yield Items(tone="info", items=tuple(Item(text=text) for text in items))
    caption = f"Files and folders that were read; {passed:,} others in the folders were passed over."
    yield Table(caption=caption, columns=("path", "kind", "layout"), rows=rows)


def _figure(key: str) -> str:
    return words(key.removesuffix("_ns"))
