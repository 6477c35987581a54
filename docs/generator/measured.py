"""The plots of `docs/how-akf-measures.md`, drawn from the raw samples of a real run.

Invariants:
- `docs/measured/rmsnorm.json` holds every raw value of the run and what its Campaign demands; `docs/take_samples.py`
  wrote it.
- Every figure is computed by the code that judges: nothing here is drawn by hand.
- The same samples give the same bytes. Arithmetic is that of `akf.stats`.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from akf import stats
from akf.contracts.canonical import jcs
from akf.contracts.measured import Measured, measure
from akf.harness.plan import planned
from akf.report import numbers, page, plots
from akf.report.markup import Markup, joined, tag
from akf.report.measured import spread_of
from akf.report.model import Comparison, Comparisons, Quantity

from .pages import DOCS

Value = dict[str, Any]
FOLDER = DOCS / "measured"
SAMPLES = FOLDER / "rmsnorm.json"
WIDTH, LEFT, EDGE = 800, 210, 20
BESIDE = 150
ROW = 112
POWER_PAIRS = (6, 8, 12, 20)
POWER_SPREAD = 0.01
POWER_MOST = 0.03
POWER_POINTS = 24


def plots_of_the_page() -> dict[Path, str]:
    """Every plot by its file."""
    return {
        FOLDER / "values.svg": _values(),
        FOLDER / "blocks.svg": _blocks(),
        FOLDER / "pairs.svg": _pairs(),
        FOLDER / "power.svg": _power(),
    }


def table() -> list[str]:
    """The figures of the run, as a table."""
    value = run()
    rows = ["| what | gain | interval | A/A | lag-1 correlation |", "| --- | --- | --- | --- | --- |"]
    for row in (None, *(each["id"] for each in value["rows"])):
        gain, noise = (_reduction(purpose, row) for purpose in ("ab", "aa"))
        correlation = stats.lag1_correlation(gain.ratios)
        lag = "-" if correlation is None else f"{correlation:+.2f}"
        name = "all rows, by weight" if row is None else f"`{row}`"
        cells = (name, numbers.gain(float(_gain(gain).value)), _interval(gain), _interval(noise), lag)
        rows.append(f"| {' | '.join(cells)} |")
    count = len(planned([each["id"] for each in value["rows"]], value["pairs"], value["blocks"])) * value["batches"]
    size = f"{value['pairs']} pairs of fresh processes, {value['blocks']} blocks of four segments each"
    more = f"{value['batches']} batches a segment: {count:,} raw values for A/B, and as many for A/A."
    return [*rows, "", f"{size}, {more}"]


@cache
def run() -> Value:
    """The samples, and what their Campaign demands."""
    found: Value = json.loads(SAMPLES.read_bytes())
    return found


@cache
def reduced(purpose: str) -> stats.Reduced:
    """What the judge computes from the samples."""
    found: Measured = measure(_measurement(), _lines(purpose), run()["confidence"])
    if found.reduced is None:
        raise ValueError(f"{SAMPLES.name}: {found.code} {found.note}")
    return found.reduced


def _measurement() -> Value:
    value = run()
    ids = [each["id"] for each in planned([row["id"] for row in value["rows"]], value["pairs"], value["blocks"])]
    names = ("metric", "unit", "rows", "pairs", "blocks", "batches")
    fixed = {"design": "abba", "statistic": "median", "better": "lower", "samples": ids}
    return {**{name: value[name] for name in names}, **fixed}


def _lines(purpose: str) -> bytes:
    value = run()
    places = planned([row["id"] for row in value["rows"]], value["pairs"], value["blocks"])
    return b"".join(jcs({**each, "values": given}) + b"\n" for each, given in zip(places, value[purpose], strict=True))


def _reduction(purpose: str, row: str | None) -> stats.Reduction:
    found = reduced(purpose)
    return found.total if row is None else found.rows[row]


def _gain(reduction: stats.Reduction) -> Quantity:
    interval = reduction.interval
    if interval is None:
        raise ValueError(f"{SAMPLES.name}: too few pairs")
    return Quantity(value=interval.estimate - 1, unit="gain", low=interval.low - 1, high=interval.high - 1)


def _interval(reduction: stats.Reduction) -> str:
    value = _gain(reduction)
    return numbers.interval(value.low, value.high, "gain")


def _values() -> str:
    """How often each raw value came, row by row."""
    parts = []
    for index, row in enumerate(run()["rows"]):
        found = spread_of(row, _measurement(), _lines("ab"))
        top = 30 + ROW * index
        parts += [
            _words(EDGE, top + 26, row["id"], "strong"),
            _words(EDGE, top + 44, f"baseline {numbers.number(found.first.value, 'ns')}"),
            _words(EDGE, top + 60, f"candidate {numbers.number(found.second.value, 'ns')}"),
            _inside(top, plots.spread(found, ("baseline", "candidate"))),
        ]
    legend = [("first", "baseline, upwards"), ("second", "candidate, downwards"), ("median", "median")]
    return _picture("Raw values by row and side", 30 + ROW * len(run()["rows"]), [*_legend(legend), *parts])


def _pairs() -> str:
    """Every pair with its interval, over one scale."""
    value = run()
    limit = Quantity(value=value["noise_limit_ratio"], unit="share")
    rows = tuple(_comparison(row) for row in (None, *(each["id"] for each in value["rows"])))
    over = plots.scale(Comparisons(caption="", noise_limit=limit, rows=rows))
    parts = []
    for index, row in enumerate(rows):
        top = 30 + ROW * index
        parts += [
            _words(EDGE, top + 26, row.name, "strong"),
            _words(EDGE, top + 44, numbers.gain(float(row.gain.value))),
            _words(EDGE, top + 60, numbers.interval(row.gain.low, row.gain.high, "gain")),
            _inside(top, plots.comparison(row, limit, over)),
        ]
    legend = [
        ("pair", "a pair"),
        ("interval", "interval"),
        ("ring", "A/A pair"),
        ("aa-band", "A/A interval"),
        ("noise", "noise limit"),
        ("target", "threshold, margin"),
    ]
    return _picture("Pairs, their interval, and A/A", 30 + ROW * len(rows), [*_legend(legend), *parts])


def _comparison(row: str | None) -> Comparison:
    value = run()
    gain, noise = (_reduction(purpose, row) for purpose in ("ab", "aa"))
    limit = value["threshold_ratio"] if row is None else -value["row_margin_ratio"]
    return Comparison(
        name=row or "all rows, by weight",
        gain=_gain(gain),
        pair_gains=tuple(ratio - 1 for ratio in gain.ratios),
        aa=_gain(noise),
        aa_pair_gains=tuple(ratio - 1 for ratio in noise.ratios),
        limit=Quantity(value=limit, unit="gain"),
    )


def _blocks() -> str:
    """One pair of one row in the order of time: each batch, the segments' medians, the ratio of each block."""
    value = run()
    row = value["rows"][-1]
    places = planned([each["id"] for each in value["rows"]], value["pairs"], value["blocks"])
    mine: list[tuple[str, list[float]]] = [
        (place["side"], [raw / row["launches"] for raw in given])
        for place, given in zip(places, value["ab"], strict=True)
        if place["row"] == row["id"] and place["pair"] == 0
    ]
    most: float = max(max(given) for _, given in mine) * 1.05
    top, floor, wide = 40, 240, (WIDTH - BESIDE - EDGE) / len(mine)

    def height(time: float) -> float:
        return floor - (floor - top) * time / most

    parts: list[Markup] = [
        tag("line", class_="axis", x1=str(BESIDE), x2=str(WIDTH - EDGE), y1=str(floor), y2=str(floor)),
        _words(EDGE, top + 72, f"{row['id']}, first pair", "strong"),
        _words(EDGE, top + 88, "time of a launch"),
    ]
    for quarter in range(5):
        y = height(most * quarter / 4)
        parts.append(tag("line", class_="grid", x1=str(BESIDE), x2=str(WIDTH - EDGE), y1=f"{y:.1f}", y2=f"{y:.1f}"))
        parts.append(_words(BESIDE - 8, y + 4, numbers.number(most * quarter / 4, "ns"), None, "end"))
    for index, (side, given) in enumerate(mine):
        left = BESIDE + wide * index
        middle = height(sorted(given)[len(given) // 2])
        kind = "first" if side == "A" else "second"
        parts.append(
            tag("rect", class_=kind, x=f"{left + 3:.1f}", width=f"{wide - 6:.1f}", y=f"{middle:.1f}",
                height=f"{floor - middle:.1f}")
        )  # fmt: skip
        for at, time in enumerate(given, 1):
            x = left + wide * at / (len(given) + 1)
            parts.append(tag("circle", class_="ring", cx=f"{x:.1f}", cy=f"{height(time):.1f}", r="3"))
        parts.append(_words(left + wide / 2, floor + 16, side, "strong", "middle"))
    for block in range(value["blocks"]):
        a1, b1, b2, a2 = (sorted(given)[len(given) // 2] for _, given in mine[4 * block : 4 * block + 4])
        ratio = stats.block_ratio(a1, b1, b2, a2)
        left, under = BESIDE + wide * 4 * block, str(floor + 24)
        parts.append(
            tag("line", class_="axis", x1=f"{left + 4:.1f}", x2=f"{left + 4 * wide - 4:.1f}", y1=under, y2=under)
        )
        words = f"block {block + 1}: {ratio:.3f}"
        parts.append(_words(left + 2 * wide, floor + 40, words, None, "middle"))
    legend = [("first", "A, baseline"), ("second", "B, candidate"), ("ring", "a batch")]
    return _picture("One pair in the order of time", floor + 52, [*_legend(legend), *parts])


def _power() -> str:
    """The chance that a true gain is shown, by its size and the number of pairs."""
    top, floor, right = 40, 250, WIDTH - 90
    span = right - BESIDE
    parts: list[Markup] = [_words(EDGE, top + 22, "chance that", "strong"), _words(EDGE, top + 38, "it is shown")]
    for quarter in range(5):
        y = floor - (floor - top) * quarter / 4
        kind = "grid" if quarter else "axis"
        parts.append(tag("line", class_=kind, x1=str(BESIDE), x2=str(right), y1=f"{y:.1f}", y2=f"{y:.1f}"))
        parts.append(_words(BESIDE - 8, y + 4, numbers.percent(quarter / 4), None, "end"))
    for step in range(4):
        at = POWER_MOST * step / 3
        parts.append(_words(BESIDE + span * step / 3, floor + 16, numbers.gain(at), None, "middle"))
    y = floor - (floor - top) * 0.8
    parts.append(tag("line", class_="target", x1=str(BESIDE), x2=str(right), y1=f"{y:.1f}", y2=f"{y:.1f}"))
    for count in POWER_PAIRS:
        points = []
        for index in range(POWER_POINTS + 1):
            effect = POWER_MOST * index / POWER_POINTS
            chance = stats.power(effect, POWER_SPREAD, count, 0.95)
            points.append((BESIDE + span * index / POWER_POINTS, floor - (floor - top) * chance))
        parts.append(tag("path", class_="curve", d="M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)))
        half = next((x, y) for x, y in points if y <= floor - (floor - top) / 2)
        parts.append(_words(half[0] + 4, half[1] + 14, str(count), "strong"))
    parts.append(
        _words(right, floor + 34, "true gain above the threshold, at a spread of 1 % between pairs", None, "end")
    )
    return _picture("Power by pairs", floor + 44, parts)


def _inside(top: int, drawn: Markup) -> Markup:
    return tag("svg", drawn, x=str(LEFT), y=str(top), width=str(WIDTH - LEFT - EDGE), height=str(ROW - 6))


def _legend(keys: list[tuple[str, str]]) -> list[Markup]:
    parts, x = [], EDGE
    for kind, words in keys:
        sign = plots.key(kind)
        parts += [tag("svg", sign, x=str(x), y="8", width="14", height="12"), _words(x + 20, 18, words)]
        x += 34 + 7 * len(words)
    return parts


def _words(x: float, y: float, words: str, kind: str | None = None, anchor: str = "start") -> Markup:
    return tag("text", words, class_=kind, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)


def _picture(title: str, height: int, parts: list[Markup]) -> str:
    ground = tag("rect", class_="ground", x="0", y="0", width=str(WIDTH), height=str(height))
    inner = joined(tag("style", _style()), ground, *parts)
    whole = tag("svg", inner, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH} {height}", width=str(WIDTH),
                height=str(height), role="img", aria_label=title)  # fmt: skip
    return f"{whole}\n"


@cache
def _style() -> Markup:
    """The report's own colours and chart rules."""
    css = Path(page.__file__).with_name("page.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{.*?\}", css, re.DOTALL)[:2]
    rules = css[css.index("svg { display") : css.index("@media (max-width")]
    font = 'svg { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }'
    ground = ".ground { fill: var(--ground); }"
    return Markup(f"{light} @media (prefers-color-scheme: dark) {{ {dark} }} {rules.strip()} {font} {ground}")
