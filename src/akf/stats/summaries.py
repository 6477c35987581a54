"""From raw values to the ratio of one pair, and how far neighbouring pairs depend on each other.

Invariants:
- Values are integers (nanoseconds, bytes, counts); a median of two middle values is their exact half sum.
- One rule for quantiles: nearest rank on the sorted values, rank ceil(q * n), so that a quantile is always a
  value that was measured.
- Ratios here are A over B; who wants more to be better exchanges the two.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from akf.stats.signed_rank import exact_share

_TAIL_SAMPLES = 10
_LEAST_FOR_LAG = 3


def median(values: Sequence[int]) -> float:
    """Return the middle value, or half the sum of the two middle ones, in the unit of the values.

    Raises:
        ValueError: when there are no values.
    """
    if not values:
        raise ValueError("a median needs at least one value")
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def quantile(values: Sequence[int], q: float) -> int:
    """Return the value of nearest rank ceil(q * n), in the unit of the values.

    Raises:
        ValueError: when there are no values or q is not strictly between 0 and 1.
    """
    if not values:
        raise ValueError("a quantile needs at least one value")
    return sorted(values)[math.ceil(exact_share(q, "q") * len(values)) - 1]


def quantile_support(q: float) -> int:
    """Return how many samples per arm quantile q needs: 10 / (1 - q), rounded up (p95: 200, p99: 1,000).

    Raises:
        ValueError: when q is not strictly between 0 and 1.
    """
    return math.ceil(_TAIL_SAMPLES / (1 - exact_share(q, "q")))


def block_ratio(a1: float, b1: float, b2: float, a2: float) -> float:
    """Return the ratio of one ABBA block, sqrt((a1 * a2) / (b1 * b2)), from its four segments' summaries.

    A drift that grows by the same factor from segment to segment cancels exactly, a linear one in the first
    order.

    Raises:
        ValueError: when a summary is not finite and above 0.
    """
    for name, value in (("a1", a1), ("b1", b1), ("b2", b2), ("a2", a2)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be finite and above 0, not {value}")
    return math.sqrt((a1 * a2) / (b1 * b2))


def pair_ratio(block_ratios: Sequence[float]) -> float:
    """Return the median of an odd number of block ratios.

    Raises:
        ValueError: when their number is even (or zero).
    """
    if len(block_ratios) % 2 == 0:
        raise ValueError(f"a pair needs an odd number of blocks, not {len(block_ratios)}")
    return sorted(block_ratios)[len(block_ratios) // 2]


def lag1_correlation(ratios: Sequence[float]) -> float | None:
    """Return the correlation of each pair's ratio with the next one's, in the order of measurement.

    The usual estimate, biased towards below zero by about 1 / n; None for fewer than three pairs or equal
    ratios. Reported beside an interval, because dependence between pairs inflates its error.
    """
    if len(ratios) < _LEAST_FOR_LAG:
        return None
    offsets = [ratio - ratios[0] for ratio in ratios]
    mean = _sum(offsets) / len(offsets)
    deviations = [offset - mean for offset in offsets]
    scale = _sum([deviation * deviation for deviation in deviations])
    if scale == 0:
        return None
    return _sum([this * after for this, after in pairwise(deviations)]) / scale


def _sum(values: Sequence[float]) -> float:
    """Add from left to right: the built-in sum compensates rounding from Python 3.12 on, and not before."""
    total = 0.0
    for value in values:
        total += value
    return total
