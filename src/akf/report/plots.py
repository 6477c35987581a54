"""The charts of a measurement, as SVG that grows with the page: pairs with their interval, and single values by side.

Invariants:
- Coordinates along the page are percentages; arithmetic is the four operations on the model's numbers.
- What lies outside the scale stands at its end; every number is in the picture's words and in the text beside it.
- The two sides differ in place and form, never in colour alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from akf.report import numbers
from akf.report.markup import Markup, joined, tag
from akf.report.model import Comparison, Comparisons, Quantity, Spread
from akf.report.shapes import FULL, fixed, label, percent, picture, upright

_TOP, _FLOOR, _HEIGHT = 4, 76, 94
_INTERVAL = 68
_PAIRS_TO = 58
_TICKS = 5
_HALF, _BINS_FLOOR, _BINS_HEIGHT = 40, 84, 102
_STEPS = (1.0, 2.0, 5.0, 10.0)
_EDGE = 0.06
_LEAST = 0.001


class Scale(NamedTuple):
    """The gains at both ends of all charts of a block."""

    left: float
    right: float

    def at(self, gain: float) -> float:
        """The place of a gain, from 0 to 1."""
        return min(max((gain - self.left) / (self.right - self.left), 0.0), 1.0)

    def ticks(self) -> Iterator[float]:
        """Round gains inside, 0 among them where it is inside."""
        size, span = 1.0, (self.right - self.left) / _TICKS
        while size * 10 <= span:
            size *= 10
        while size > span:
            size /= 10
        step = next(size * each for each in _STEPS if size * each >= span)
        first = int(self.left / step) - 1
        for number in range(first, first + 4 * _TICKS):
            if self.left <= number * step <= self.right:
                yield number * step


def scale(block: Comparisons) -> Scale:
    """Wide enough for intervals, A/A, noise limit and limits, and for the pairs unless one lies far outside."""
    found = [0.0]
    for row in block.rows:
        found += [*_ends(row.gain), *_ends(row.aa), *_ends(row.limit)]
    if block.noise_limit is not None:
        found += [block.noise_limit.value, -block.noise_limit.value]
    least, most = min(found), max(found)
    room = max(most - least, _LEAST)
    for row in block.rows:
        pairs = [gain for gain in (*row.pair_gains, *row.aa_pair_gains) if least - room <= gain <= most + room]
        least, most = min([least, *pairs]), max([most, *pairs])
    edge = max(most - least, _LEAST) * _EDGE
    return Scale(least - edge, most + edge)


def comparison(one: Comparison, noise_limit: Quantity | None, over: Scale) -> Markup:
    """Pairs from top to bottom as they were measured, A/A hollow; below them the interval; bands behind."""
    parts: list[Markup] = []
    if one.aa is not None and one.aa.low is not None and one.aa.high is not None:
        parts.append(_band(over.at(one.aa.low), over.at(one.aa.high), "aa-band"))
    for tick in over.ticks():
        parts.append(upright(FULL * over.at(tick), _TOP, _FLOOR, "grid" if tick else "axis"))
        parts.append(label(FULL * over.at(tick), _FLOOR + 14, numbers.gain(tick), "middle"))
    if noise_limit is not None:
        parts += [upright(FULL * over.at(side * noise_limit.value), _TOP, _FLOOR, "noise") for side in (-1, 1)]
    if one.limit is not None:
        parts.append(upright(FULL * over.at(one.limit.value), _TOP, _FLOOR, "target"))
    parts += _dots(one.aa_pair_gains, over, "ring", 2.5)
    parts += _dots(one.pair_gains, over, "pair", 3.0)
    if one.gain.low is not None and one.gain.high is not None:
        low, high = over.at(one.gain.low), over.at(one.gain.high)
        parts.append(
            tag("line", class_="interval", x1=percent(low), x2=percent(high), y1=str(_INTERVAL), y2=str(_INTERVAL))
        )
        parts += [upright(FULL * at, _INTERVAL - 4, _INTERVAL + 4, "interval") for at in (low, high)]
    parts.append(_dot(over.at(float(one.gain.value)), _INTERVAL, "dot", 4.0))
    return picture(_said(one), _HEIGHT, *parts)


def spread(one: Spread, sides: tuple[str, str]) -> Markup:
    """Counts of the first side upwards, of the second downwards, with their medians."""
    most = max(*one.first_counts, *one.second_counts, 1)
    count = len(one.first_counts)
    parts: list[Markup] = []
    for counts, kind, up in ((one.first_counts, "first", True), (one.second_counts, "second", False)):
        for index, number in enumerate(counts):
            if number:
                height = (_HALF - _TOP) * number / most
                y = _HALF - height if up else float(_HALF)
                parts.append(
                    tag("rect", class_=kind, x=percent(index / count), width=percent(1 / count), y=fixed(y),
                        height=fixed(height))
                )  # fmt: skip
    parts.append(tag("line", class_="axis", x1="0", x2="100%", y1=str(_HALF), y2=str(_HALF)))
    room = one.most.value - one.least.value
    for median, top, floor in ((one.first, _TOP, _HALF), (one.second, _HALF, _BINS_FLOOR - _TOP)):
        if room:
            parts.append(
                upright(FULL * min(max((median.value - one.least.value) / room, 0.0), 1.0), top, floor, "median")
            )
    for at, anchor, value in (
        (0.0, "start", one.least.value),
        (0.5, "middle", one.least.value + room / 2),
        (1.0, "end", one.most.value),
    ):
        parts.append(label(FULL * at, _BINS_FLOOR + 12, numbers.number(value, one.least.unit), anchor))
    first, second = (", ".join(f"{number:,}" for number in counts) for counts in (one.first_counts, one.second_counts))
    ends = f"{numbers.number(one.least.value, one.least.unit)} to {numbers.number(one.most.value, one.most.unit)}"
    said = f"{one.name}: counts over {count} bins from {ends}; {sides[0]} {first}; {sides[1]} {second}"
    return picture(said, _BINS_HEIGHT, *parts)


def key(kind: str) -> Markup:
    """A sign of the legend."""
    mark = {
        "pair": tag("circle", class_="pair", cx="7", cy="6", r="3"),
        "ring": tag("circle", class_="ring", cx="7", cy="6", r="2.5"),
        "aa-band": tag("rect", class_="aa-band", x="0", y="0", width="14", height="12"),
        "noise": tag("line", class_="noise", x1="7", x2="7", y1="0", y2="12"),
        "target": tag("line", class_="target", x1="7", x2="7", y1="0", y2="12"),
        "interval": joined(
            tag("line", class_="interval", x1="0", x2="14", y1="6", y2="6"),
            tag("circle", class_="dot", cx="7", cy="6", r="4"),
        ),
        "median": tag("line", class_="median", x1="7", x2="7", y1="0", y2="12"),
        "first": tag("rect", class_="first", x="2", y="0", width="10", height="12"),
        "second": tag("rect", class_="second", x="2", y="0", width="10", height="12"),
    }[kind]
    return tag("svg", mark, width="14", height="12", aria_hidden="true")


def _ends(value: Quantity | None) -> tuple[float, ...]:
    if value is None:
        return ()
    return tuple(float(end) for end in (value.value, value.low, value.high) if end is not None)


def _band(left: float, right: float, kind: str) -> Markup:
    return tag(
        "rect", class_=kind, x=percent(left), width=percent(right - left), y=str(_TOP), height=str(_FLOOR - _TOP)
    )


def _dots(gains: Sequence[float], over: Scale, kind: str, radius: float) -> Iterator[Markup]:
    step = (_PAIRS_TO - _TOP) / max(len(gains), 1)
    for index, gain in enumerate(gains):
        yield _dot(over.at(float(gain)), _TOP + step * (index + 0.5), kind, radius)


def _dot(x: float, y: float, kind: str, radius: float) -> Markup:
    return tag("circle", class_=kind, cx=percent(x), cy=fixed(y), r=f"{radius:g}")


def _said(one: Comparison) -> str:
    said = f"{one.name}: gain {numbers.gain(float(one.gain.value))}"
    if one.gain.low is not None and one.gain.high is not None:
        said += f" [{numbers.gain(float(one.gain.low))}, {numbers.gain(float(one.gain.high))}]"
    for words, gains in (("pairs", one.pair_gains), ("A/A pairs", one.aa_pair_gains)):
        if gains:
            said += f"; {words} {', '.join(numbers.gain(float(gain)) for gain in gains)}"
    return said
