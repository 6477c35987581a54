"""A representative part of a trace: the window that is least wrong.

Invariants:
- A sample is requests that follow one another. Requests drawn one by one (or by strata of length) match the lengths
  better, but the gaps between them, the bursts, the sessions and the blocks that come back are then no longer those of
  the service, and these are what a replay is for.
- At most `WINDOWS` windows (fewer of long ones), evenly spaced from the first to the last, are compared by their worst
  error against the whole trace; the earliest of the best is taken. No random numbers.
- Every error is stated. Shares (stages, reuse) differ by points; anything else by its share of the whole trace's value;
  lengths besides by the Kolmogorov-Smirnov distance, an exact fraction.
- A sample of everything has no error.
- A window starts cold: blocks that came back from before it count as new. A replay has that error, so it is stated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from akf.contracts.problems import UsageError
from akf.traffic.traces.figures import gaps, number, quantile, reuse, root
from akf.traffic.traces.requests import Requests

WINDOWS = 256
_WORK, _REQUEST, _FEWEST = 60_000_000, 25, 16
"""Blocks that are looked at in all windows together (a request costs as much as 25), but for the fewest windows."""
_QUANTILES = (50, 90, 99)

Number = Fraction | None


class Statistics(NamedTuple):
    """What is compared: numbers by name, which of them are shares, and the lengths."""

    values: dict[str, Number]
    shares: frozenset[str]
    inputs: Counter[int]
    outputs: Counter[int]


class Window(NamedTuple):
    """A sample and its errors."""

    start: int
    end: int
    tried: int
    errors: list[tuple[str, Fraction, Number, Number]]
    input_distance: Fraction
    output_distance: Fraction
    worst: Number


def statistics(requests: Requests, stage_of: Sequence[int], names: Sequence[str], start: int, end: int) -> Statistics:
    """The statistics of a stretch of requests."""
    inputs, outputs = Counter(requests.inputs[start:end]), Counter(requests.outputs[start:end])
    found = gaps(requests.times[start:end])
    values: dict[str, Number] = {"rate-per-s": found.rate_per_s, "gap-cv-ratio": _exact(root(found.cv_squared))}
    for what, counts in (("input", inputs), ("output", outputs)):
        values |= {
            f"{what}-p{percent}-tokens": Fraction(quantile(counts, Fraction(percent, 100))) for percent in _QUANTILES
        }
    shares: dict[str, Number] = {}
    stages = Counter(stage_of[start:end])
    for place, name in enumerate(names):
        shares[f"weight-ratio.{name}"] = Fraction(stages[place], end - start)
    if len(requests.blocks):
        blocks = reuse(requests, start, end)
        shares["reuse-ratio"] = Fraction(blocks.reused, blocks.blocks) if blocks.blocks else None
        shares["leading-ratio"] = Fraction(blocks.leading, blocks.blocks) if blocks.blocks else None
    return Statistics(values | shares, frozenset(shares), inputs, outputs)


def distance(whole: Counter[int], part: Counter[int]) -> Fraction:
    """Kolmogorov-Smirnov distance of two samples: the largest difference of their distribution functions."""
    all_of, some_of = whole.total(), part.total()
    above = below = most = 0
    for value in sorted(whole | part):
        above += whole[value]
        below += part[value]
        most = max(most, abs(above * some_of - below * all_of))
    return Fraction(most, all_of * some_of)


def best_window(requests: Requests, stage_of: Sequence[int], names: Sequence[str], size: int) -> Window:
    """The window of `size` requests with the smallest worst error.

    Raises:
        UsageError: There are fewer requests.
    """
    total = len(requests)
    if not 1 <= size <= total:
        message = f"--subset: {size} of {total} requests inside the stages"
        raise UsageError.of(
            "AKF-F260", message, expected=f"1 to {total}", found=size, hint="leave --subset out for all"
        )
    whole = statistics(requests, stage_of, names, 0, total)
    cost = size * (_REQUEST + len(requests.blocks) // total)
    starts = _starts(total - size, max(_FEWEST, min(WINDOWS, _WORK // cost)))
    best: Window | None = None
    for start in starts:
        part = statistics(requests, stage_of, names, start, start + size)
        window = _window(whole, part, start, start + size, len(starts))
        if best is None or (window.worst is not None and (best.worst is None or window.worst < best.worst)):
            best = window
    assert best is not None  # noqa: S101 - there is at least one start
    return best


def _starts(room: int, most: int) -> list[int]:
    wanted = min(most, room + 1)
    return [0] if wanted == 1 else [index * room // (wanted - 1) for index in range(wanted)]


def _window(whole: Statistics, part: Statistics, start: int, end: int, tried: int) -> Window:
    inputs, outputs = distance(whole.inputs, part.inputs), distance(whole.outputs, part.outputs)
    errors = [
        (name, value, part.values[name], _error(value, part.values[name], name in whole.shares))
        for name, value in whole.values.items()
        if value is not None
    ]
    known = [error for *_, error in errors]
    worst = None if None in known else max([inputs, outputs, *(error for error in known if error is not None)])
    return Window(start, end, tried, errors, inputs, outputs, worst)


def _error(whole: Fraction, part: Number, share: bool) -> Number:
    if part is None:
        return None
    difference = abs(part - whole)
    if share or not difference:
        return difference
    return difference / whole if whole else None


def described(window: Window, requests: Requests) -> dict[str, Any]:
    """`Sample` of the Workload."""
    return {
        "method": "window",
        "requests": window.end - window.start,
        "windows": window.tried,
        "start_ns": requests.times[window.start] - requests.times[0],
        "worst_ratio": _plain(window.worst),
        "input_distance": _fraction(window.input_distance),
        "output_distance": _fraction(window.output_distance),
        "errors": [
            {
                "statistic": name,
                "whole_value": _plain(whole),
                "sample_value": _plain(part),
                "error_ratio": _plain(error),
            }
            for name, whole, part, error in window.errors
        ],
    }


def _plain(value: Number) -> float | int | None:
    return int(value) if value is not None and value.denominator == 1 else number(value)


def _exact(value: float | None) -> Number:
    return None if value is None else Fraction(value)


def _fraction(value: Fraction) -> dict[str, int]:
    return {"numerator": value.numerator, "denominator": value.denominator}
