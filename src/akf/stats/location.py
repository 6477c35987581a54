"""Estimate and interval of a share from its values over steps: the additive twin of `akf.stats.interval`.

Invariants:
- Only sums, halves and order statistics: the same bits on every machine, and the order of the values is no input.
- low <= estimate <= high, all within the values' own range; the interval holds the stated confidence exactly or there
  is none.

Source: Hodges and Lehmann (1963); the interval inverts the exact signed-rank test, [W(r+1), W(M-r)] of the M
= n(n+1)/2 ordered Walsh averages. Ratios of two measurements are multiplicative and belong to `akf.stats.interval`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from akf.stats.signed_rank import claim_error, critical_rank

_LARGEST = 2.0**500


@dataclass(frozen=True, slots=True)
class Location:
    """Where values lie, with a two-sided interval.

    Attributes:
        estimate: Hodges-Lehmann estimate, in the values' own unit.
        low: lower end of the interval.
        high: upper end of the interval.
        n: number of values behind it.
        confidence: stated two-sided confidence; the exact coverage is at least this.
    """

    estimate: float
    low: float
    high: float
    n: int
    confidence: float


def walsh_averages(values: Sequence[float]) -> list[float]:
    """Return the averages (x_i + x_j) / 2 (i <= j) in rising order.

    Raises:
        ValueError: naming the index of a value that is not finite.
    """
    for index, value in enumerate(values):
        if not -_LARGEST <= value <= _LARGEST:
            raise ValueError(f"values[{index}] must be finite, not {value}")
    ordered = sorted(values)
    return sorted([(first + second) / 2 for at, first in enumerate(ordered) for second in ordered[at:]])


def signed_rank_location(values: Sequence[float], confidence: float | Fraction) -> Location | None:
    """Return estimate and interval, or None when there are too few values for this confidence.

    Args:
        values: one value a step, in any order, at most `akf.stats.MAX_PAIRS`.
        confidence: two-sided confidence, strictly between 0 and 1.

    Raises:
        ValueError: naming a value that is not finite, or when the confidence is no share.
    """
    rank = critical_rank(len(values), claim_error(confidence))
    averages = walsh_averages(values)
    if rank is None:
        return None
    lower, upper = averages[(len(averages) - 1) // 2], averages[len(averages) // 2]
    return Location(
        estimate=(lower + upper) / 2,
        low=averages[rank],
        high=averages[-1 - rank],
        n=len(values),
        confidence=float(confidence),
    )
