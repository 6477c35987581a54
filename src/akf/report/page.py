"""A report as one HTML page.

Invariants:
- The page is complete by itself: its style is inside, and its security policy forbids scripts and everything fetched.
- Every chart has a text alternative, and its numbers stand beside it as text.
- The same report gives the same bytes, here and on any machine.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from akf.contracts.text import counted
from akf.report import charts, numbers, plots
from akf.report.markup import Markup, joined, tag
from akf.report.model import (
    Bar,
    Cell,
    Command,
    Comparison,
    Comparisons,
    Curve,
    Curves,
    Facts,
    Items,
    Mark,
    Prose,
    Quantity,
    RankTime,
    Report,
    Section,
    Shares,
    Spread,
    Spreads,
    Table,
    Timeline,
    Verdict,
)

_SIGNS = {"good": "✓", "warn": "!", "bad": "✕", "info": "→", "plain": "·"}
_CODE = re.compile(r"`([^`]+)`")
_CONTENTS_FROM = 3


def render(report: Report) -> bytes:
    """The page, in UTF-8."""
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=f"default-src 'none'; style-src '{_style()[1]}'"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", report.title),
        tag("style", _style()[0]),
    ]
    sections = [_section(section, f"s{number}") for number, section in enumerate(report.sections, 1)]
    body = [tag("header", tag("h1", report.title), _maybe("p", report.subtitle, "subtitle"), _contents(report))]
    page = tag("html", tag("head", *head), tag("body", *body, tag("main", *sections)), lang="en")
    return f"<!DOCTYPE html>\n{page}\n".encode()


@cache
def _style() -> tuple[Markup, str]:
    """The style and its digest, which is all that the policy lets through."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return Markup(style), f"sha256-{digest}"


def _contents(report: Report) -> Markup:
    if len(report.sections) < _CONTENTS_FROM:
        return Markup()
    links = (
        tag("li", tag("a", section.title, href=f"#s{number}")) for number, section in enumerate(report.sections, 1)
    )
    return tag("nav", tag("ul", *links), aria_label="Sections")


def _section(section: Section, name: str) -> Markup:
    blocks = (_DRAWN[block.block](block) for block in section.blocks)
    return tag("section", tag("h2", section.title, id=name), *blocks, aria_labelledby=name)


def _prose(block: Prose) -> Markup:
    return joined(*(tag("p", _coded(part)) for part in re.split(r"\n\s*\n", block.text.strip())))


def _verdict(block: Verdict) -> Markup:
    word = tag("p", f"{_SIGNS[block.mark.tone]} {block.mark.word}", class_="word")
    rule = tag("p", _coded(block.rule), class_="rule") if block.rule else Markup()
    return tag("div", word, tag("p", _coded(block.sentence)), rule, class_=f"verdict {block.mark.tone}")


def _facts(block: Facts) -> Markup:
    rows = (tag("div", tag("dt", fact.name), tag("dd", _cell(fact.value), _note(fact.note))) for fact in block.facts)
    return tag("dl", *rows, class_="facts")


def _table(block: Table) -> Markup:
    right = [any(isinstance(row[at], Quantity) for row in block.rows) and at > 0 for at in range(len(block.columns))]
    head = (tag("th", name, scope="col", class_=_right(right[at])) for at, name in enumerate(block.columns))
    rows = [
        tag("tr", tag("th", _cell(row[0]), scope="row"),
            *(tag("td", _cell(cell), class_=_right(right[at])) for at, cell in enumerate(row[1:], 1)))
        for row in block.rows
    ]  # fmt: skip
    return _scrolling(block.caption, None, head, rows)


def _scrolling(caption: str, kind: str | None, head: Iterable[Markup], rows: Iterable[Markup]) -> Markup:
    """A table that may be wider than a small screen; a keyboard can scroll it too."""
    table = tag("table", tag("caption", _coded(caption)), tag("thead", tag("tr", *head)), tag("tbody", *rows),
                class_=kind)  # fmt: skip
    return tag("div", table, class_="scroll", role="region", aria_label=caption, tabindex="0")


def _shares(block: Shares) -> Markup:
    end = charts.scale(block.bars)
    axis = tag("span", tag("span", "0"), tag("span", numbers.percent(end)), class_="end")
    head = [
        tag("th", "part", scope="col"),
        tag("th", tag("span", f"share of {block.whole}"), axis, scope="col"),
        tag("th", "share", scope="col", class_="right"),
    ]
    marked = any(bar.mark for bar in block.bars)
    if marked:
        head.append(tag("th", "answer", scope="col"))
    return _scrolling(block.caption, "shares", head, [_share(bar, end, marked) for bar in block.bars])


def _share(bar: Bar, end: float, marked: bool) -> Markup:
    ends = numbers.interval(bar.low_ratio, bar.high_ratio, "share")
    cells = [
        tag("th", bar.name, _note(bar.detail), scope="row", role="rowheader"),
        tag("td", charts.bar(bar, end), role="cell"),
        tag("td", tag("span", numbers.percent(bar.share_ratio), class_="number"), _maybe("span", ends, "ends"),
            class_="right", role="cell"),
    ]  # fmt: skip
    if marked:
        cells.append(tag("td", _cell(bar.mark) if bar.mark else "", role="cell"))
    return tag("tr", *cells, role="row")


def _timeline(block: Timeline) -> Markup:
    longest = max((time for rank in block.ranks for time in rank.steps_ns), default=0)
    keys = [
        tag("li", _swatch(kind), name)
        for kind, name, _ in block.ranks[0].lines
        if any(time for rank in block.ranks for key, _, time in rank.lines if key == kind)
    ]
    rows = [_rank(rank, longest) for rank in block.ranks]
    names = [name for _, name, _ in block.ranks[0].lines]
    figure = tag("figure", tag("figcaption", _coded(block.caption)), tag("ul", *keys, class_="legend"), *rows)
    columns = ("rank", "steps", *names, "all")
    table = Table(caption="Time of all steps, by line", columns=columns, rows=tuple(map(_times, block.ranks)))
    return joined(figure, _table(table))


def _rank(rank: RankTime, longest: int) -> Markup:
    parts = [tag("div", f"rank {rank.rank}"), tag("div", charts.stack(rank))]
    if rank.steps_ns:
        ends = " to ".join(dict.fromkeys(numbers.number(end(rank.steps_ns), "ns") for end in (min, max)))
        note = tag("div", f"{counted(len(rank.steps_ns), 'step')} of {ends}", class_="soft")
        parts.append(tag("div", charts.steps(rank, longest), note))
    return tag("div", *parts, class_="rank")


def _times(rank: RankTime) -> tuple[Cell, ...]:
    times = [Quantity(value=time, unit="ns") for _, _, time in rank.lines]
    whole = Quantity(value=sum(time for _, _, time in rank.lines), unit="ns")
    return (f"rank {rank.rank}", Quantity(value=rank.steps, unit="count"), *times, whole)


def _swatch(kind: str) -> Markup:
    square = tag("rect", class_=kind, width="11", height="11", rx="2")
    return tag("svg", square, width="11", height="11", aria_hidden="true")


def _curves(block: Curves) -> Markup:
    end = charts.top(block.curves, block.target_ratio)
    plots = (_curve(curve, block.target_ratio, end) for curve in block.curves)
    return tag("figure", tag("figcaption", _coded(block.caption)), tag("div", *plots, class_="plots"))


def _curve(curve: Curve, target: float | None, end: float) -> Markup:
    said = [
        f"share {numbers.percent(curve.share_ratio)} {numbers.interval(curve.low_ratio, curve.high_ratio, 'share')}"
    ]
    if curve.ceiling_ratio is not None:
        said.append(f"ceiling {numbers.number(float(curve.ceiling_ratio), 'times')}")
    if curve.needed_ratio is not None:
        said.append(f"needs {numbers.number(float(curve.needed_ratio), 'times')}")
    elif target is not None:
        said.append(f"{numbers.number(float(target), 'times')} is out of reach")
    mark = joined(" ", _cell(curve.mark)) if curve.mark else Markup()
    caption = tag("figcaption", tag("strong", curve.name), mark, tag("span", ", ".join(said), class_="soft"))
    return tag("figure", caption, charts.curve(curve, target, end))


def _comparisons(block: Comparisons) -> Markup:
    over = plots.scale(block)
    keys = [("pair", "ratio of a pair, in order"), ("interval", "estimate and interval")]
    if any(row.aa_pair_gains for row in block.rows):
        keys.append(("ring", "A/A pair"))
    if any(row.aa is not None for row in block.rows):
        keys.append(("aa-band", "A/A interval"))
    if block.noise_limit is not None:
        keys.append(("noise", f"noise limit \u00b1{numbers.percent(float(block.noise_limit.value))}"))
    keys += [("target", name) for name in dict.fromkeys(row.limit_name for row in block.rows if row.limit is not None)]
    marked = any(row.mark for row in block.rows)
    head = [tag("th", words, scope="col") for words in ("what", "gain of every pair", "gain")]
    if marked:
        head.append(tag("th", "outcome", scope="col"))
    rows = [_comparison(row, block.noise_limit, over, marked) for row in block.rows]
    return joined(_legend(keys), _scrolling(block.caption, "shares", head, rows))


def _comparison(row: Comparison, noise_limit: Quantity | None, over: plots.Scale, marked: bool) -> Markup:
    figures = [_figure(row.gain)]
    if row.limit is not None:
        figures.append(tag("div", f"{row.limit_name} {numbers.number(row.limit.value, row.limit.unit)}", class_="soft"))
    if row.aa is not None:
        figures.append(tag("div", "A/A ", _figure(row.aa), class_="soft"))
    cells = [
        tag("th", row.name, _note(row.detail), scope="row", role="rowheader"),
        tag("td", plots.comparison(row, noise_limit, over), role="cell"),
        tag("td", *figures, class_="right", role="cell"),
    ]
    if marked:
        cells.append(tag("td", _cell(row.mark) if row.mark else "", role="cell"))
    return tag("tr", *cells, role="row")


def _figure(value: Quantity) -> Markup:
    ends = numbers.interval(value.low, value.high, value.unit)
    return joined(tag("span", numbers.number(value.value, value.unit), class_="number"), _maybe("span", ends, "ends"))


def _spreads(block: Spreads) -> Markup:
    keys = [("first", f"{block.sides[0]}, upwards"), ("second", f"{block.sides[1]}, downwards"), ("median", "median")]
    head = [tag("th", words, scope="col") for words in ("what", "how often each value", "median")]
    return joined(
        _legend(keys), _scrolling(block.caption, "shares", head, [_spread(row, block.sides) for row in block.rows])
    )


def _spread(row: Spread, sides: tuple[str, str]) -> Markup:
    figures = [
        tag("div", f"{side} ", _figure(value)) for side, value in zip(sides, (row.first, row.second), strict=True)
    ]
    cells = [
        tag("th", row.name, _note(row.note), scope="row", role="rowheader"),
        tag("td", plots.spread(row, sides), role="cell"),
        tag("td", *figures, class_="right", role="cell"),
    ]
    return tag("tr", *cells, role="row")


def _legend(keys: Iterable[tuple[str, str]]) -> Markup:
    return tag("ul", *(tag("li", plots.key(kind), words) for kind, words in keys), class_="legend")


def _items(block: Items) -> Markup:
    rows = []
    for item in block.items:
        code = tag("code", item.code, class_="code") if item.code else Markup()
        remedy = tag("p", _coded(item.remedy), class_="soft") if item.remedy else Markup()
        rows.append(tag("li", tag("p", code, _coded(item.text)), remedy, class_=block.tone))
    return tag("ul", *rows, class_="items")


def _command(block: Command) -> Markup:
    purpose = tag("p", _coded(block.purpose), class_="purpose") if block.purpose else Markup()
    return joined(purpose, tag("pre", tag("code", block.command)))


def _cell(cell: Cell) -> Markup:
    if cell is None:
        return tag("span", "\N{EN DASH}", class_="soft")
    if isinstance(cell, Quantity):
        ends = numbers.interval(cell.low, cell.high, cell.unit)
        text = tag("span", numbers.number(cell.value, cell.unit), class_="number")
        return joined(text, " ", tag("span", ends, class_="ends")) if ends else text
    if isinstance(cell, Mark):
        return tag("span", f"{_SIGNS[cell.tone]} {cell.word}", class_=f"mark {cell.tone}")
    return _coded(cell)


def _coded(words: str) -> Markup:
    """Text with `code` in it; line ends are spaces."""
    parts = _CODE.split(" ".join(words.split("\n")))
    return joined(*(tag("code", part) if at % 2 else part for at, part in enumerate(parts)))


def _note(words: str | None) -> Markup:
    return tag("div", _coded(words), class_="soft") if words else Markup()


def _maybe(name: str, words: str | None, kind: str) -> Markup:
    return tag(name, words, class_=kind) if words else Markup()


def _right(wanted: bool) -> str | None:
    return "right" if wanted else None


_DRAWN: dict[str, Callable[[Any], Markup]] = {
    "prose": _prose,
    "verdict": _verdict,
    "facts": _facts,
    "table": _table,
    "shares": _shares,
    "timeline": _timeline,
    "curves": _curves,
    "comparisons": _comparisons,
    "spreads": _spreads,
    "items": _items,
    "command": _command,
}
