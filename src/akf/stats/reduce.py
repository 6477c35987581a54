"""From planned raw samples to ratios and intervals; what evaluates and what judges both call this.

Invariants:
- Complete or nothing: exactly the planned samples, each in a place of its own, or `Incomplete` with all that
  is off.
- The order of the samples is no input; rows are taken in the order of their names.
- Ratios are oriented: above 1 means that the candidate is better, whichever direction is better for the
  metric.
- The total is reduced as if it were a row: its segments are the weighted sums of the rows' segments.

Cost: linear in samples and values; quadratic in pairs (the Walsh values), of which there are few.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from akf.stats.interval import Interval, signed_rank_interval
from akf.stats.samples import Design, Incomplete, Sample, TooFewSamples, values_hold
from akf.stats.summaries import block_ratio, median, pair_ratio, quantile, quantile_support


@dataclass(frozen=True, slots=True)
class Reduction:
    """The ratios of one row, or of the total.

    Attributes:
        ratios: one ratio a pair, in the order of the pairs.
        interval: estimate and interval, or None when there are too few pairs for the confidence.
    """

    ratios: tuple[float, ...]
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Reduced:
    """All figures of one measurement.

    Attributes:
        rows: one reduction a row, by name in rising order.
        total: the weighted total over the rows.
    """

    rows: dict[str, Reduction]
    total: Reduction


def reduce_samples(design: Design, samples: Sequence[Sample]) -> Reduced | Incomplete | TooFewSamples:
    """Compute the ratios and intervals of all rows and of their weighted total.

    Args:
        design: how the measurement was planned.
        samples: what was measured, in any order.

    Returns:
        The figures; or `Incomplete` when the samples are not exactly the planned ones; or `TooFewSamples`
        when a quantile has too few samples behind it.
    """
    placed = _place(design, samples)
    if isinstance(placed, Incomplete):
        return placed
    shortage = _shortage(design, placed)
    if shortage:
        return shortage
    summaries = {row: _summarise(design, placed[row]) for row in sorted(design.rows)}
    return Reduced(
        rows={row: _reduction(design, summary) for row, summary in summaries.items()},
        total=_reduction(design, _weighted(design, summaries)),
    )


def _place(design: Design, samples: Sequence[Sample]) -> dict[str, list[Sample]] | Incomplete:
    """Order the samples of each row by time, or say all that keeps them from being complete."""
    found = Counter(sample.id for sample in samples)
    planned = set(design.planned)
    places: dict[tuple[str, int], list[Sample]] = {}
    invalid: set[str] = set()
    for sample in samples:
        if found[sample.id] > 1 or sample.id not in planned:
            continue
        place = design.place(sample)
        if place is None or not values_hold(sample.values):
            invalid.add(sample.id)
        else:
            places.setdefault((sample.row, place), []).append(sample)
    invalid |= {sample.id for shared in places.values() if len(shared) > 1 for sample in shared}
    faults = Incomplete(
        missing=tuple(sorted(planned - found.keys())),
        unplanned=tuple(sorted(found.keys() - planned)),
        duplicated=tuple(sorted(name for name, times in found.items() if times > 1)),
        invalid=tuple(sorted(invalid)),
    )
    if faults.missing or faults.unplanned or faults.duplicated or faults.invalid:
        return faults
    # As many valid samples as places, no two in one: each place is taken.
    each = range(design.pairs * design.blocks * design.segments)
    return {row: [places[row, place][0] for place in each] for row in design.rows}


def _shortage(design: Design, placed: Mapping[str, Sequence[Sample]]) -> TooFewSamples | None:
    """Find the row and arm with the fewest pooled samples, where a quantile needs more."""
    if design.statistic == "median":
        return None
    needed = quantile_support(design.statistic[1])
    pooled = [
        (sum(len(sample.values) for sample in samples if sample.side == side), row, side)
        for row, samples in placed.items()
        for side in "AB"
    ]
    found, row, side = min(pooled)
    return TooFewSamples(needed, found, row, side) if found < needed else None


def _summarise(design: Design, samples: Sequence[Sample]) -> list[float]:
    if design.statistic == "median":
        return [median(sample.values) for sample in samples]
    q = design.statistic[1]
    return [float(quantile(sample.values, q)) for sample in samples]


def _weighted(design: Design, summaries: Mapping[str, Sequence[float]]) -> list[float]:
    """Add the rows' segments by weight, row after row in the order of their names."""
    total = [0.0] * (design.pairs * design.blocks * design.segments)
    for row, summary in summaries.items():
        weight = float(design.rows[row])
        total = [so_far + weight * value for so_far, value in zip(total, summary, strict=True)]
    return total


def _reduction(design: Design, segments: Sequence[float]) -> Reduction:
    step = design.blocks * design.segments
    ratios = tuple(_ratio(design, pair, segments[pair * step : (pair + 1) * step]) for pair in range(design.pairs))
    return Reduction(ratios, signed_rank_interval(ratios, design.confidence))


def _ratio(design: Design, pair: int, segments: Sequence[float]) -> float:
    """Return the oriented ratio of one pair from the summaries of its segments or legs."""
    if design.kind == "legs":
        first, second = segments
        return first / second if (design.side(pair, 0) == "A") == (design.better == "lower") else second / first
    blocks: list[float] = []
    for at in range(0, len(segments), design.segments):
        a1, b1, b2, a2 = segments[at : at + design.segments]
        blocks.append(block_ratio(a1, b1, b2, a2) if design.better == "lower" else block_ratio(b1, a1, a2, b2))
    return pair_ratio(blocks)
