"""Estimate and interval of an A/B ratio from the ratios of its pairs.

Invariants:
- Only products, square roots and order statistics in a fixed order: the same bits on every machine, and the
  order of the pairs is no input.
- low <= estimate <= high; the interval holds the stated confidence exactly or there is none.
- Exchanging A and B turns every end into its reciprocal (up to rounding), because Walsh values are geometric
  means.

Source: Hodges and Lehmann (1963); the interval inverts the exact signed-rank test, [W(r+1), W(M-r)] of the M
= n(n+1)/2 ordered Walsh values.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from akf.stats.signed_rank import claim_error, critical_rank

_LARGEST = 2.0**500
"""Ratios within [1/this, this] have products that neither overflow nor lose digits."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate of a ratio with a two-sided interval.

    Attributes:
        estimate: Hodges-Lehmann estimate of the ratio (no unit; above 1 means that the candidate is better).
        low: lower end of the interval.
        high: upper end of the interval.
        n: number of pairs behind it.
        confidence: stated two-sided confidence; the exact coverage is at least this.
    """

    estimate: float
    low: float
    high: float
    n: int
    confidence: float

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.estimate <= self.high < math.inf:
            raise ValueError(
                f"an interval needs 0 < low <= estimate <= high, not {self.low}, {self.estimate}, {self.high}"
            )


def walsh_products(ratios: Sequence[float]) -> list[float]:
    """Return the products x_i * x_j (i <= j) in rising order; their square roots are the Walsh values.

    Raises:
        ValueError: naming the index of a ratio that is not finite and above 0.
    """
    for index, ratio in enumerate(ratios):
        if not 1 / _LARGEST <= ratio <= _LARGEST:
            raise ValueError(f"ratios[{index}] must be finite and above 0, not {ratio}")
    ordered = sorted(ratios)
    return sorted([first * second for at, first in enumerate(ordered) for second in ordered[at:]])


def hodges_lehmann(ratios: Sequence[float]) -> float:
    """Return the median of the Walsh values: the middle one, or the geometric mean of the two middle ones.

    Raises:
        ValueError: when there are no ratios, or naming one that is not finite and above 0.
    """
    if not ratios:
        raise ValueError("an estimate needs at least one ratio")
    return _centre(walsh_products(ratios))


def signed_rank_interval(ratios: Sequence[float], confidence: float | Fraction) -> Interval | None:
    """Return estimate and interval, or None when there are too few pairs for this confidence.

    Args:
        ratios: one ratio a pair, in any order.
        confidence: two-sided confidence, strictly between 0 and 1.

    Raises:
        ValueError: naming a ratio that is not finite and above 0, or when the confidence is no share.
    """
    rank = critical_rank(len(ratios), claim_error(confidence))
    products = walsh_products(ratios)
    if rank is None:
        return None
    return Interval(
        estimate=_centre(products),
        low=math.sqrt(products[rank]),
        high=math.sqrt(products[-1 - rank]),
        n=len(ratios),
        confidence=float(confidence),
    )


def signed_rank_lower_bound(ratios: Sequence[float], alpha: Fraction) -> float | None:
    """Return the one-sided lower end at error alpha, or None when there are too few pairs for it.

    Args:
        ratios: one ratio a pair, in any order.
        alpha: one-sided error, above 0 and below 1/2; `claim_error` computes it for the best of k candidates.

    Raises:
        ValueError: naming a ratio that is not finite and above 0, or when alpha is out of range.
    """
    rank = critical_rank(len(ratios), alpha)
    products = walsh_products(ratios)
    return None if rank is None else math.sqrt(products[rank])


def _centre(products: list[float]) -> float:
    lower, upper = math.sqrt(products[(len(products) - 1) // 2]), math.sqrt(products[len(products) // 2])
    return math.sqrt(lower * upper)
