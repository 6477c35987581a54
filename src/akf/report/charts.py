"""The charts of a triage, as SVG that grows with the page: shares, time of steps, bounds.

Invariants:
- Coordinates along the page are percentages, so that bars grow with the page and text does not.
- Arithmetic is the four operations on the model's numbers, written with two decimals.
- Colours are classes, so that light, dark and paper have their own; no meaning is in a colour alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from akf.contracts.text import counted
from akf.report import numbers
from akf.report.markup import Markup, tag
from akf.report.model import Bar, Curve, RankTime
from akf.report.shapes import fixed as _fixed
from akf.report.shapes import label as _label
from akf.report.shapes import percent as _percent
from akf.report.shapes import picture as _svg
from akf.report.shapes import upright as _line

_FULL = 100.0
_NICE = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_BAR = 22
_STACK = 26
_STEPS = 44
_PLOT_LEFT, _PLOT_WIDTH = 15.0, 81.0
_PLOT_TOP, _PLOT_HEIGHT = 10, 150
_POINTS = 96
_SPEEDUPS = (1.0, 1.5, 2.0, 3.0, 5.0)
_QUARTERS = 4
_GAP = 0.12
_HALF = 50
_LEAST, _MOST = 0.001, 4.0


def nice(value: float) -> float:
    """The next round number at or above one that is not tiny."""
    size = 1.0
    while value > 10 * size:
        size *= 10
    while value <= size / 10 or value < size:
        size /= 10
    return next(step * size for step in (*_NICE, 20.0) if step * size >= value)


def scale(bars: Sequence[Bar]) -> float:
    """The share at the right end of all bars of a block."""
    longest = max(max(bar.share_ratio, bar.high_ratio or 0) for bar in bars)
    return min(nice(max(longest, _LEAST)), 1.0)


def bar(one: Bar, end: float) -> Markup:
    """One share with its interval."""
    parts = [tag("rect", class_="track", x="0", y="4", width="100%", height="14")]
    parts += [_line(_FULL * at / _QUARTERS, 4, 18, "grid") for at in range(1, _QUARTERS)]
    kind = "value muted" if one.muted else "value"
    parts.append(tag("rect", class_=kind, x="0", y="4", width=_percent(one.share_ratio / end), height="14"))
    if one.low_ratio is not None and one.high_ratio is not None:
        low, high = one.low_ratio / end, one.high_ratio / end
        parts.append(tag("line", class_="whisker", x1=_percent(low), x2=_percent(high), y1="11", y2="11"))
        parts += [_line(_FULL * at, 7, 15, "whisker") for at in (low, high)]
    label = numbers.percent(one.share_ratio)
    ends = numbers.interval(one.low_ratio, one.high_ratio, "share")
    return _svg(f"{one.name}: {label}{' ' + ends if ends else ''}", _BAR, *parts)


def stack(rank: RankTime) -> Markup:
    """The five lines of one rank, side by side over the whole width."""
    whole = sum(time for _, _, time in rank.lines) or 1
    parts: list[Markup] = []
    at = 0
    for kind, name, time in rank.lines:
        if not time:
            continue
        title = tag("title", f"{name}: {numbers.percent(time / whole)}")
        parts.append(
            tag("rect", title, class_=f"line {kind}", x=_percent(at / whole), width=_percent(time / whole), y="0",
                height=str(_STACK))
        )  # fmt: skip
        at += time
    said = ", ".join(f"{name} {numbers.percent(time / whole)}" for _, name, time in rank.lines)
    return _svg(f"rank {rank.rank}: {said}", _STACK, *parts)


def steps(rank: RankTime, longest_ns: int) -> Markup:
    """Each step of one rank as a column, made of its lines where they are known."""
    count = len(rank.steps_ns)
    wide = 1 / count
    parts = [_level(y, "grid") for y in (0.5, _STEPS / 2, _STEPS - 0.5)]
    for index, time in enumerate(rank.steps_ns):
        split = rank.splits[index].lines if rank.splits else (("column", "", time),)
        said = ", ".join(f"{name} {numbers.number(part, 'ns')}" for _, name, part in split if name and part)
        blocks = [tag("title", f"step {index + 1}: {numbers.number(time, 'ns')}{': ' if said else ''}{said}")]
        top = float(_STEPS)
        for kind, _, part in split:
            height = _STEPS * part / (longest_ns or 1)
            top -= height
            if part:
                place = {"x": _percent(wide * (index + _GAP)), "width": _percent(wide * (1 - 2 * _GAP))}
                blocks.append(tag("rect", class_=kind, **place, y=_fixed(top), height=_fixed(height)))
        parts.append(tag("g", *blocks))
    ends = f"{numbers.number(min(rank.steps_ns), 'ns')} to {numbers.number(max(rank.steps_ns), 'ns')}"
    return _svg(f"rank {rank.rank}: {counted(count, 'step')} of {ends}", _STEPS, *parts)


def top(curves: Sequence[Curve], target: float | None) -> float:
    """The bound at the upper end of all charts of a block; a ceiling far above the target is cut, and said to be."""
    most = max(1 / (1 - curve.high_ratio) - 1 if curve.high_ratio < 1 else _MOST for curve in curves)
    wanted = target - 1 if target else 0.0
    if wanted <= 0:
        return 1 + nice(max(_LEAST, min(most * 1.15, _MOST)))
    return 1 + nice(max(_LEAST, 1.6 * wanted, min(most * 1.15, 3 * wanted)))


def curve(one: Curve, target: float | None, end: float) -> Markup:
    """Bound over local speed-up s; the axis is 1 - 1/s, so that s without limit is its right end."""
    marks: list[Markup] = []
    for quarter in range(_QUARTERS + 1):
        value = 1 + (end - 1) * quarter / _QUARTERS
        y = _height(value, end)
        marks.append(_across(y, "axis" if not quarter else "grid"))
        marks.append(_label(_PLOT_LEFT - 1.5, y + 3.5, f"{value:.3f}".rstrip("0").ljust(4, "0"), "end"))
    for speed in _SPEEDUPS:
        marks += _tick(1 - 1 / speed, numbers.times(f"{speed:g}"))
    marks += _tick(1.0, "∞")
    marks.append(_inner(one, end))
    marks += _target(one, target, end)
    marks += _ceiling(one, end)
    marks.append(_label(_PLOT_LEFT + _PLOT_WIDTH, _PLOT_TOP + _PLOT_HEIGHT + 32, "speed-up of the part", "end"))
    said = f"{one.name}: share {numbers.percent(one.share_ratio)}"
    if one.ceiling_ratio is not None:
        said += f", ceiling {numbers.number(float(one.ceiling_ratio), 'times')}"
    return _svg(said, _PLOT_TOP + _PLOT_HEIGHT + 38, *marks)


def _inner(one: Curve, end: float) -> Markup:
    """What needs numbers instead of percentages: the curve and the band of its interval."""
    share = _points(float(one.share_ratio), end)
    band = [*_points(float(one.high_ratio), end), *reversed(_points(float(one.low_ratio), end))]
    return tag(
        "svg",
        tag("polygon", class_="band", points=" ".join(band)),
        tag("path", class_="curve", d="M" + "L".join(share), vector_effect="non-scaling-stroke"),
        x=f"{_PLOT_LEFT:g}%", y=str(_PLOT_TOP), width=f"{_PLOT_WIDTH:g}%", height=str(_PLOT_HEIGHT),
        viewBox=f"0 0 100 {_PLOT_HEIGHT}", preserveAspectRatio="none",
    )  # fmt: skip


def _points(share: float, end: float) -> list[str]:
    found = []
    for index in range(_POINTS + 1):
        left = 1 - share * index / _POINTS
        value = min(1 / left, 2 * end) if left > 0 else 2 * end
        found.append(f"{_fixed(_FULL * index / _POINTS)},{_fixed(_height(value, end) - _PLOT_TOP)}")
    return found


def _target(one: Curve, target: float | None, end: float) -> Iterator[Markup]:
    if target is None or target > end:
        return
    y = _height(target, end)
    yield _across(y, "target")
    yield _label(_PLOT_LEFT + 1, y - 4, f"target {numbers.number(float(target), 'times')}", "start", "target-text")
    if one.needed_ratio is None:
        return
    x, floor = _PLOT_LEFT + _PLOT_WIDTH * (1 - 1 / one.needed_ratio), _PLOT_TOP + _PLOT_HEIGHT
    at = f"{_fixed(x)}%"
    yield tag("line", class_="needed", x1=at, x2=at, y1=_fixed(y), y2=str(floor))
    yield tag("circle", class_="dot", cx=at, cy=_fixed(y), r="3.5")
    said, side = f"needs {numbers.number(float(one.needed_ratio), 'times')}", x < _HALF
    yield _label(x + (1.2 if side else -1.2), floor - 6, said, "start" if side else "end")


def _ceiling(one: Curve, end: float) -> Iterator[Markup]:
    if one.ceiling_ratio is None:
        return
    said = f"ceiling {numbers.number(float(one.ceiling_ratio), 'times')}"
    x = _PLOT_LEFT + _PLOT_WIDTH
    if one.ceiling_ratio > end:
        yield _label(x - 1, _PLOT_TOP + 11, f"↑ {said}", "end", "strong")
        return
    y = _height(float(one.ceiling_ratio), end)
    yield tag("circle", class_="dot", cx=f"{x:g}%", cy=_fixed(y), r="3.5")
    low = y < _PLOT_TOP + 16
    yield _label(x - 1, y + 18 if low else y - 8, said, "end", "strong")


def _height(value: float, end: float) -> float:
    return _PLOT_TOP + _PLOT_HEIGHT * (1 - (value - 1) / (end - 1))


def _tick(at: float, words: str) -> Iterator[Markup]:
    x = f"{_fixed(_PLOT_LEFT + _PLOT_WIDTH * at)}%"
    floor = _PLOT_TOP + _PLOT_HEIGHT
    yield tag("line", class_="axis", x1=x, x2=x, y1=str(floor), y2=str(floor + 4))
    yield _label(_PLOT_LEFT + _PLOT_WIDTH * at, floor + 16, words, "middle")


def _across(y: float, kind: str) -> Markup:
    left, right = f"{_PLOT_LEFT:g}%", f"{_PLOT_LEFT + _PLOT_WIDTH:g}%"
    return tag("line", class_=kind, x1=left, x2=right, y1=_fixed(y), y2=_fixed(y))


def _level(y: float, kind: str) -> Markup:
    return tag("line", class_=kind, x1="0", x2="100%", y1=f"{y:g}", y2=f"{y:g}")
