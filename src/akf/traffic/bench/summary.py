"""Figures of measured times, computed exactly.

Invariants:
1. Values are whole nanoseconds; every figure is exact rational arithmetic and one rounding, halves to even.
2. The rule for quantiles is that of `akf.stats`: the value of nearest rank ceil(q * n), which was measured. `linear`,
   the default of numpy and so of vLLM, sglang and aiperf, is computed only to check what such a tool printed.
3. A quantile q needs 10 / min(q, 1 - q) samples: for p99 1,000, as in `akf.stats.quantile_support`; and so has the
   p1, which lies as far out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

_TAIL_SAMPLES = 10


def share(statistic: str) -> Fraction | None:
    """The quantile that a statistic names (`p99.9` is 999/1000), or None for a mean, a spread or an extreme."""
    return Fraction(statistic[1:]) / 100 if statistic[:1] == "p" else None


def name(q: Fraction) -> str:
    """How a quantile is called: `p99.9`."""
    percent = q * 100
    if percent.denominator == 1:
        return f"p{percent.numerator}"
    return trimmed(f"p{float(percent):.6f}")


def trimmed(statistic: str) -> str:
    """The name without zeros at its end: `p99.0` is `p99`."""
    return statistic.rstrip("0").rstrip(".") if "." in statistic else statistic


def support(q: Fraction) -> int:
    """How many samples quantile q needs."""
    return math.ceil(_TAIL_SAMPLES / min(q, 1 - q))


def nearest_rank(ordered: Sequence[int], q: Fraction) -> int:
    """The value of rank ceil(q * n) of sorted values."""
    return ordered[max(math.ceil(q * len(ordered)), 1) - 1]


def linear(ordered: Sequence[int], q: Fraction) -> int:
    """The value at place q * (n - 1) of sorted values, between two of them in proportion."""
    place = q * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return round(ordered[low] + (ordered[high] - ordered[low]) * (place - low))


def figure(ordered: Sequence[int], statistic: str, rule: str = "nearest_rank") -> int:
    """One figure of sorted values."""
    q = share(statistic)
    if q is not None:
        return linear(ordered, q) if rule == "linear" else nearest_rank(ordered, q)
    if statistic == "mean":
        return round(Fraction(sum(ordered), len(ordered)))
    if statistic == "std":
        n = len(ordered)
        spread = n * sum(value * value for value in ordered) - sum(ordered) ** 2
        return (math.isqrt(4 * spread) + n) // (2 * n)
    return ordered[0] if statistic == "min" else ordered[-1]
