"""Medians, quantiles, block and pair ratios, correlation of neighbours."""

import math
import random

import pytest

from akf.stats import block_ratio, lag1_correlation, median, pair_ratio, quantile, quantile_support


def test_median() -> None:
    assert median([5, 1, 9]) == 5
    assert median([4, 1, 2, 9]) == 3
    assert median([1, 2]) == 1.5
    assert median([2**53 - 1]) == 2**53 - 1
    with pytest.raises(ValueError, match="at least one"):
        median([])


@pytest.mark.parametrize(("q", "expected"), [(0.01, 10), (0.1, 10), (0.11, 20), (0.5, 50), (0.95, 100), (0.9, 90)])
def test_a_quantile_has_the_nearest_rank(q: float, expected: int) -> None:
    values = list(range(100, 0, -10))
    assert quantile(values, q) == expected


def test_a_quantile_takes_the_decimal_as_written() -> None:
    values = list(range(1, 1001))
    for per_mille in range(1, 1000):
        assert quantile(values, per_mille / 1000) == per_mille  # 0.29 * 100 is 28.999... in binary


@pytest.mark.parametrize(
    ("q", "needed"), [(0.5, 20), (0.9, 100), (0.95, 200), (0.99, 1000), (0.999, 10_000), (0.97, 334)]
)
def test_samples_behind_a_quantile(q: float, needed: int) -> None:
    assert quantile_support(q) == needed


@pytest.mark.parametrize("q", [0, 1, 1.0, -0.5, math.nan, 95])
def test_what_is_no_quantile_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match="q must lie"):
        quantile([1], q)
    with pytest.raises(ValueError, match="q must lie"):
        quantile_support(q)


def test_no_values_have_no_quantile() -> None:
    with pytest.raises(ValueError, match="at least one"):
        quantile([], 0.5)


def test_a_block_ratio_cancels_drift() -> None:
    assert block_ratio(200, 100, 100, 200) == 2.0
    assert block_ratio(100, 110, 121, 133.1) == pytest.approx(1.0, abs=1e-15)  # grows by a tenth each time
    assert block_ratio(1000, 1010, 1020, 1030) == pytest.approx(1.0, abs=2e-4)  # 1 % a segment, left: its square


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf])
def test_a_summary_that_is_none_is_named(bad: float) -> None:
    with pytest.raises(ValueError, match="b2 must be finite and above 0"):
        block_ratio(1, 1, bad, 1)


def test_a_pair_is_the_median_of_an_odd_number_of_blocks() -> None:
    assert pair_ratio([1.5]) == 1.5
    assert pair_ratio([1.5, 9.0, 1.0]) == 1.5
    for blocks in ([], [1.0, 2.0]):
        with pytest.raises(ValueError, match="odd number"):
            pair_ratio(blocks)


def test_correlation_of_neighbours() -> None:
    rng = random.Random(5)
    level, dependent = 0.0, []
    for _ in range(4000):
        level = 0.6 * level + 0.01 * rng.gauss(0, 1)
        dependent.append(1 + level)
    found, none = lag1_correlation(dependent), lag1_correlation([1 + rng.gauss(0, 0.01) for _ in range(4000)])
    assert found == pytest.approx(0.6, abs=0.05)
    assert none == pytest.approx(0.0, abs=0.05)
    assert lag1_correlation([1.0, 2.0, 1.0, 2.0]) == pytest.approx(-0.75)


def test_too_little_to_correlate() -> None:
    assert lag1_correlation([1.0, 2.0]) is None
    assert lag1_correlation([1.1] * 12) is None
