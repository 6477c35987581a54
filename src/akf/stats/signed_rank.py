"""The exact null distribution of Wilcoxon's signed-rank statistic.

Invariants:
- Every probability is a ratio of integers; a confidence becomes the decimal that it prints as (0.95 is
  95/100).
- A rank is critical only if the stated error is kept exactly; where that cannot be, there is no rank (None).

Source: Wilcoxon (1945); the counts are the coefficients of (1 + x)(1 + x^2)...(1 + x^n).
"""

from fractions import Fraction
from functools import lru_cache

MAX_PAIRS = 500
"""Most pairs of one interval: the counts take n^3 memory and n^4 time, and no budget buys as many pairs."""

_BITS_PER_BYTE = 8


def exact_share(share: float | Fraction, name: str = "confidence") -> Fraction:
    """Return a share as the exact decimal that it prints as.

    Args:
        share: a number strictly between 0 and 1, such as a confidence.
        name: what to call it in the error.

    Raises:
        ValueError: when it is not strictly between 0 and 1 (NaN included).
    """
    if not 0 < share < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, not {share}")
    return Fraction(str(share))


def claim_error(confidence: float | Fraction, candidates: int = 1) -> Fraction:
    """Return the one-sided error of a claim about the best of several candidates: (1 - confidence) / 2 / k.

    Args:
        confidence: two-sided confidence, strictly between 0 and 1.
        candidates: k, how many candidates were tried so far, this one included.

    Raises:
        ValueError: when the confidence is no share or k is below 1.
    """
    if candidates < 1:
        raise ValueError(f"candidates must be at least 1, not {candidates}")
    return (1 - exact_share(confidence)) / (2 * candidates)


def min_pairs(confidence: float | Fraction, candidates: int = 1) -> int:
    """Return the fewest pairs with which an interval, or a claim about the best of k candidates, exists.

    Args:
        confidence: two-sided confidence, strictly between 0 and 1.
        candidates: k, 1 for an interval.

    Raises:
        ValueError: when the confidence is no share or k is below 1.
    """
    return fewest_pairs(claim_error(confidence, candidates))


def fewest_pairs(error: Fraction) -> int:
    """Return the least n with P(T <= 0) = 2^-n <= error, a one-sided error above 0."""
    return (-(-error.denominator // error.numerator) - 1).bit_length()


@lru_cache(maxsize=8)
def signed_rank_counts(n: int) -> tuple[int, ...]:
    """Return, for each t from 0 to n(n+1)/2, how many of the 2^n sign assignments give the statistic t.

    All coefficients are carried in one large integer, each in its own whole number of bytes (a count is at
    most 2^n, so none spills over), because one shift and one addition then do the work of a pass over the
    list.

    Raises:
        ValueError: when n is negative or above `MAX_PAIRS`.
    """
    if not 0 <= n <= MAX_PAIRS:
        raise ValueError(f"the number of pairs must lie between 0 and {MAX_PAIRS}, not {n}")
    width = n // _BITS_PER_BYTE + 1
    packed = 1
    for rank in range(1, n + 1):
        packed += packed << (rank * width * _BITS_PER_BYTE)
    data = packed.to_bytes((n * (n + 1) // 2 + 1) * width, "little")
    return tuple(int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width))


@lru_cache(maxsize=1024)
def critical_rank(n: int, error: Fraction) -> int | None:
    """Return the largest r with P(T <= r) <= error for n pairs, or None when even P(T <= 0) exceeds it.

    Args:
        n: number of pairs, up to `MAX_PAIRS`.
        error: one-sided error, above 0 and below 1/2.

    Raises:
        ValueError: when the error or n is out of range.
    """
    if not 0 < error < Fraction(1, 2):
        raise ValueError(f"a one-sided error must lie strictly between 0 and 1/2, not {error}")
    allowed = (error.numerator << n) // error.denominator
    seen = 0
    for statistic, count in enumerate(signed_rank_counts(n)):
        seen += count
        if seen > allowed:
            return statistic - 1 if statistic else None
    return None  # unreachable: all 2^n assignments together exceed half of them
