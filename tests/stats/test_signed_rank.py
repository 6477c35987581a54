"""The null distribution, the critical ranks and the fewest pairs."""

import itertools
from fractions import Fraction

import pytest

from akf.stats import MAX_PAIRS, claim_error, critical_rank, exact_share, min_pairs, signed_rank_counts


@pytest.mark.parametrize("n", range(11))
def test_counts_are_those_of_all_sign_assignments(n: int) -> None:
    found = [0] * (n * (n + 1) // 2 + 1)
    for signs in itertools.product((0, 1), repeat=n):
        found[sum(rank for rank, positive in enumerate(signs, 1) if positive)] += 1
    assert signed_rank_counts(n) == tuple(found)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 40, 63, 64, 65])
def test_counts_are_symmetric_and_complete(n: int) -> None:
    counts = signed_rank_counts(n)
    assert counts == counts[::-1]
    assert sum(counts) == 2**n


@pytest.mark.parametrize(
    ("n", "rank", "coverage"),
    [
        (6, 0, 0.96875),
        (7, 2, 0.95312),
        (8, 3, 0.96094),
        (10, 8, 0.95117),
        (12, 13, 0.95752),
        (20, 52, 0.95156),
    ],
)
def test_ranks_and_coverage_at_95_percent(n: int, rank: int, coverage: float) -> None:
    assert critical_rank(n, claim_error(0.95)) == rank
    kept = 1 - Fraction(2 * sum(signed_rank_counts(n)[: rank + 1]), 2**n)
    assert float(kept) == pytest.approx(coverage, abs=6e-6)
    assert 1 - Fraction(2 * sum(signed_rank_counts(n)[: rank + 2]), 2**n) < Fraction(95, 100) <= kept


@pytest.mark.parametrize(("confidence", "pairs"), [(0.9, 5), (0.95, 6), (0.99, 8)])
def test_fewest_pairs_of_an_interval(confidence: float, pairs: int) -> None:
    assert min_pairs(confidence) == pairs
    assert critical_rank(pairs, claim_error(confidence)) is not None
    assert critical_rank(pairs - 1, claim_error(confidence)) is None


def test_fewest_pairs_of_a_claim_about_the_best_of_several() -> None:
    assert [min_pairs(0.95, candidates) for candidates in range(1, 8)] == [6, 7, 7, 8, 8, 8, 9]


def test_an_error_that_is_met_exactly_is_met() -> None:
    assert critical_rank(5, Fraction(1, 32)) == 0
    assert critical_rank(5, Fraction(1, 32) - Fraction(1, 10**12)) is None
    assert min_pairs(0.9375) == 5  # (1 - 0.9375) / 2 = 1/32


def test_a_confidence_is_the_decimal_that_it_prints_as() -> None:
    assert exact_share(0.95) == Fraction(95, 100)
    assert exact_share(1e-07) == Fraction(1, 10**7)
    assert exact_share(Fraction(39, 40)) == Fraction(39, 40)
    assert claim_error(0.95, 3) == Fraction(1, 120)


def test_a_hundred_tries_find_a_false_gain_in_79_percent_of_cases() -> None:
    one = Fraction(signed_rank_counts(6)[0], 2**6)
    assert float(1 - (1 - one) ** 100) == pytest.approx(0.793, abs=5e-4)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, 95, float("nan"), float("inf")])
def test_what_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="confidence must lie strictly between 0 and 1"):
        exact_share(share)


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="candidates must be at least 1"):
        claim_error(0.95, 0)
    with pytest.raises(ValueError, match="one-sided error"):
        critical_rank(6, Fraction(1, 2))
    for n in (-1, MAX_PAIRS + 1):
        with pytest.raises(ValueError, match="number of pairs"):
            signed_rank_counts(n)
