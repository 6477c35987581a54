"""The interval of a share over steps against enumeration of signs and scipy's estimate of location."""

import random
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product

import pytest

from akf.stats import Location, min_pairs, signed_rank_location


def _draw(n: int, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [rng.uniform(0.05, 0.3) for _ in range(n)]


def _tail(values: list[float], theta: float) -> Fraction:
    """Enumerate all signs of the distances from theta: how often a rank sum is as extreme as the one observed."""
    distances = sorted((abs(Fraction(value) - Fraction(theta)), value > theta) for value in values)
    observed = sum(rank for rank, (_, above) in enumerate(distances, 1) if above)
    sums = [sum(rank for rank, sign in enumerate(signs, 1) if sign) for signs in product((0, 1), repeat=len(values))]
    below, above = (sum(test(each) for each in sums) for test in (observed.__ge__, observed.__le__))
    return Fraction(min(below, above), len(sums))


@pytest.mark.parametrize("n", range(5, 11))
@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95])
def test_a_value_is_inside_exactly_if_the_test_over_all_signs_keeps_it(n: int, confidence: float) -> None:
    values = _draw(n, seed=n)
    found = signed_rank_location(values, confidence)
    averages = sorted({(x + y) / 2 for x, y in combinations_with_replacement(values, 2)})
    probes = [averages[0] - 1, *[(low + high) / 2 for low, high in pairwise(averages)], averages[-1] + 1]
    kept = [theta for theta in probes if 2 * _tail(values, theta) > 1 - Fraction(str(confidence))]
    if found is None:
        assert n < min_pairs(confidence)
        return
    assert kept == [theta for theta in probes if found.low < theta < found.high]


def test_the_estimate_is_the_median_of_the_averages_by_hand() -> None:
    """Averages of 1, 2, 6: 1, 1.5, 2, 3.5, 4, 6."""
    found = signed_rank_location([6.0, 1.0, 2.0], 0.7)
    assert found == Location(2.75, 1.0, 6.0, 3, 0.7)


def test_fewer_than_six_values_give_no_interval_at_95_percent() -> None:
    assert signed_rank_location([0.1] * 5, 0.95) is None
    assert signed_rank_location([0.1] * 6, 0.95) == Location(0.1, 0.1, 0.1, 6, 0.95)
    assert signed_rank_location([], 0.95) is None


def test_zeros_are_values_and_order_is_no_input() -> None:
    values = [0.0, 0.0, 0.1, 0.2, 0.05, 0.0, 0.3]
    found = signed_rank_location(values, 0.95)
    assert found == signed_rank_location(values[::-1], 0.95)
    assert found is not None
    assert 0 == found.low <= found.estimate <= found.high <= 0.3


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_is_named(value: float) -> None:
    with pytest.raises(ValueError, match=r"values\[1\]"):
        signed_rank_location([0.1, value], 0.95)
