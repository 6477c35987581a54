"""The interval against independent definitions: enumeration of signs, and scipy's test."""

import math
import random
from fractions import Fraction
from itertools import pairwise

import pytest

from akf.stats import (
    Interval,
    claim_error,
    critical_rank,
    hodges_lehmann,
    min_pairs,
    signed_rank_counts,
    signed_rank_interval,
    signed_rank_lower_bound,
)


def _draw(n: int, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [1.02 * math.exp(rng.gauss(0, 0.03)) for _ in range(n)]


def _statistic(ratios: list[float], theta: float) -> int:
    """Sum the ranks of the ratios above theta, ranked by their exact distance from it as a factor."""
    factors = [(Fraction(ratio) / Fraction(theta), ratio > theta) for ratio in ratios]
    ordered = sorted((max(factor, 1 / factor), above) for factor, above in factors)
    return sum(rank for rank, (_, above) in enumerate(ordered, 1) if above)


def _null(n: int) -> list[int]:
    """Enumerate all 2^n sign assignments: the signs are the bits of a number."""
    sums = [0]
    for rank in range(1, n + 1):
        sums += [before + rank for before in sums]
    return sums


def _probes(ratios: list[float]) -> list[float]:
    """Points between all neighbouring Walsh values and outside them, where no rank is tied."""
    walsh = sorted({math.sqrt(x * y) for x in ratios for y in ratios})
    inner = [(low + high) / 2 for low, high in pairwise(walsh) if high / low > 1 + 1e-9]
    return [walsh[0] / 2, walsh[0] * (1 - 1e-9), *inner, walsh[-1] * (1 + 1e-9), walsh[-1] * 2]


@pytest.mark.parametrize("n", range(1, 13))
@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95, 0.99])
def test_a_ratio_is_inside_exactly_if_the_test_over_all_signs_keeps_it(n: int, confidence: float) -> None:
    ratios = _draw(n, seed=n)
    interval = signed_rank_interval(ratios, confidence)
    sums = _null(n)
    allowed = (1 - Fraction(str(confidence))) * 2**n
    kept_any = False
    for theta in _probes(ratios):
        observed = _statistic(ratios, theta)
        tail = min(sum(other <= observed for other in sums), sum(other >= observed for other in sums))
        kept = 2 * tail > allowed
        kept_any |= not kept
        if interval is not None:
            assert (interval.low < theta < interval.high) == kept
    assert (interval is not None) == kept_any  # no interval exactly if the test can reject nothing at all


@pytest.mark.parametrize("n", [6, 9, 12, 20])
def test_p_values_are_those_of_scipy(n: int) -> None:
    from scipy.stats import wilcoxon  # noqa: PLC0415 (over a second to import)

    ratios = _draw(n, seed=100 + n)
    counts = signed_rank_counts(n)
    for theta in _probes(ratios)[:: max(1, n // 4)]:
        observed = _statistic(ratios, theta)
        smaller = min(observed, n * (n + 1) // 2 - observed)
        ours = min(1.0, 2 * sum(counts[: smaller + 1]) / 2**n)
        theirs = wilcoxon([math.log(ratio / theta) for ratio in ratios], method="exact").pvalue
        assert ours == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize("n", range(6, 21))
def test_the_interval_covers_as_often_as_it_says(n: int) -> None:
    rank = critical_rank(n, claim_error(0.95))
    assert rank is not None
    missed = Fraction(2 * sum(signed_rank_counts(n)[: rank + 1]), 2**n)
    assert missed <= Fraction(5, 100)


def test_six_pairs_span_their_interval() -> None:
    interval = signed_rank_interval([1.04, 1.01, 1.02, 1.05, 1.03, 0.99], 0.95)
    assert interval is not None
    assert (interval.low, interval.high, interval.n, interval.confidence) == (0.99, 1.05, 6, 0.95)


def test_the_estimate_is_the_median_of_the_walsh_values() -> None:
    assert hodges_lehmann([2.0]) == 2.0
    assert hodges_lehmann([1.0, 4.0]) == 2.0  # 1, 2, 4
    assert hodges_lehmann([1.0, 4.0, 16.0]) == 4.0  # 1, 2, 4, 4, 8, 16
    assert hodges_lehmann([1.0, 1.0, 4.0]) == math.sqrt(2.0)  # 1, 1, 1, 2, 2, 4


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_too_few_pairs_give_no_interval_and_never_a_wider_guess(confidence: float) -> None:
    fewest = min_pairs(confidence)
    for n in range(fewest):
        assert signed_rank_interval(_draw(n, seed=1), confidence) is None
        assert signed_rank_lower_bound(_draw(n, seed=1), claim_error(confidence)) is None
    assert signed_rank_interval(_draw(fewest, seed=1), confidence) is not None


def test_the_lower_bound_is_the_lower_end_at_the_same_one_sided_error() -> None:
    ratios = _draw(12, seed=7)
    interval = signed_rank_interval(ratios, 0.95)
    assert interval is not None
    assert signed_rank_lower_bound(ratios, Fraction(1, 40)) == interval.low
    bounds = [signed_rank_lower_bound(ratios, claim_error(0.95, k)) for k in (1, 2, 5, 20, 100)]
    assert bounds == sorted(bounds, key=lambda bound: -(bound or 0))
    assert signed_rank_lower_bound(ratios, claim_error(0.95, 102)) == min(ratios)  # 1/4080 >= 1/4096
    assert signed_rank_lower_bound(ratios, claim_error(0.95, 103)) is None


def test_equal_ratios_give_a_point() -> None:
    interval = signed_rank_interval([1.1] * 8, 0.95)
    assert interval == Interval(1.1, 1.1, 1.1, 8, 0.95)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, -math.inf, 1e300, 5e-324])
def test_a_ratio_that_is_none_is_named(bad: float) -> None:
    with pytest.raises(ValueError, match=r"ratios\[2\] must be finite and above 0"):
        hodges_lehmann([1.0, 1.0, bad])
    with pytest.raises(ValueError, match=r"ratios\[0\]"):
        signed_rank_interval([bad], 0.95)
    with pytest.raises(ValueError, match=r"ratios\[1\]"):
        signed_rank_lower_bound([1.0, bad], Fraction(1, 40))


def test_no_ratios_give_no_estimate() -> None:
    with pytest.raises(ValueError, match="at least one"):
        hodges_lehmann([])


def test_an_interval_that_is_none_cannot_be_built() -> None:
    for estimate, low, high in ((1.0, 1.1, 1.2), (1.0, 0.9, math.nan), (math.nan, 1, 1), (1, 0, 1), (1, 1, math.inf)):
        with pytest.raises(ValueError, match="low <= estimate <= high"):
            Interval(estimate, low, high, 6, 0.95)
