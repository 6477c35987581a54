"""Properties of estimates and intervals for any ratios."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akf.stats import (
    aa_valid,
    gain_outcome,
    guard_outcome,
    hodges_lehmann,
    quantile,
    signed_rank_interval,
    signed_rank_lower_bound,
    spread,
)

ratios = st.floats(min_value=0.01, max_value=100, allow_nan=False)
runs = st.lists(ratios, min_size=8, max_size=16)
levels = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.98, 0.99])


@given(runs, levels)
def test_the_interval_contains_its_estimate_and_lies_within_the_pairs(run: list[float], level: float) -> None:
    interval = signed_rank_interval(run, level)
    assert interval is not None
    assert interval.low <= interval.estimate <= interval.high
    assert min(run) <= interval.low <= interval.high <= max(run)
    assert interval.estimate == hodges_lehmann(run)


@given(runs, levels, st.integers(min_value=-8, max_value=8))
def test_scaling_by_a_power_of_two_scales_exactly(run: list[float], level: float, exponent: int) -> None:
    factor = 2.0**exponent
    one, other = signed_rank_interval(run, level), signed_rank_interval([ratio * factor for ratio in run], level)
    assert one is not None
    assert other is not None
    assert (other.low, other.estimate, other.high) == (one.low * factor, one.estimate * factor, one.high * factor)


@given(runs, levels, ratios)
def test_scaling_scales(run: list[float], level: float, factor: float) -> None:
    one, other = signed_rank_interval(run, level), signed_rank_interval([ratio * factor for ratio in run], level)
    assert one is not None
    assert other is not None
    assert other.low == pytest.approx(one.low * factor, rel=1e-14)
    assert other.estimate == pytest.approx(one.estimate * factor, rel=1e-14)
    assert other.high == pytest.approx(one.high * factor, rel=1e-14)


@given(runs, levels)
def test_exchanging_the_arms_gives_the_reciprocal(run: list[float], level: float) -> None:
    one, other = signed_rank_interval(run, level), signed_rank_interval([1 / ratio for ratio in run], level)
    assert one is not None
    assert other is not None
    assert other.low == pytest.approx(1 / one.high, rel=1e-14)
    assert other.estimate == pytest.approx(1 / one.estimate, rel=1e-14)
    assert other.high == pytest.approx(1 / one.low, rel=1e-14)


@given(runs, levels, st.randoms(use_true_random=False))
def test_the_order_of_pairs_is_no_input(run: list[float], level: float, rng: st.DataObject) -> None:
    shuffled = list(run)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert repr(signed_rank_interval(shuffled, level)) == repr(signed_rank_interval(run, level))
    assert spread(shuffled) == spread(run)


@given(runs, levels, levels)
def test_more_confidence_is_no_narrower(run: list[float], level: float, other: float) -> None:
    narrow, wide = signed_rank_interval(run, min(level, other)), signed_rank_interval(run, max(level, other))
    assert narrow is not None
    assert wide is not None
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


@given(runs, st.integers(min_value=1, max_value=12))
def test_more_candidates_lower_the_bound(run: list[float], candidates: int) -> None:
    one = signed_rank_lower_bound(run, Fraction(1, 20))
    many = signed_rank_lower_bound(run, Fraction(1, 20 * candidates))
    assert one is not None
    assert many is not None
    assert many <= one


@given(runs, st.integers(min_value=0, max_value=7), st.floats(min_value=1, max_value=4))
def test_a_better_pair_makes_nothing_worse(run: list[float], at: int, factor: float) -> None:
    better = [ratio * factor if index == at else ratio for index, ratio in enumerate(run)]
    one, other = signed_rank_interval(run, 0.95), signed_rank_interval(better, 0.95)
    assert one is not None
    assert other is not None
    assert (one.low, one.estimate, one.high) <= (other.low, other.estimate, other.high)
    assert one.high <= other.high


@given(runs, levels, st.floats(min_value=0, max_value=0.5))
def test_outcomes_agree_with_each_other(run: list[float], level: float, limit: float) -> None:
    interval = signed_rank_interval(run, level)
    assert interval is not None
    gain, guard = gain_outcome(interval, limit), guard_outcome(interval, limit)
    if gain == "pass":
        assert guard == "pass"
    if guard == "fail":
        assert gain == "fail"
    if aa_valid(interval, limit):
        assert gain in {"no_gain", "inconclusive"}
        assert guard != "fail"


@given(st.lists(st.integers(min_value=1, max_value=2**53 - 1), min_size=1, max_size=60), st.integers(1, 99))
def test_a_quantile_has_its_share_at_or_below_it(values: list[int], percent: int) -> None:
    found = quantile(values, percent / 100)
    assert found in values
    below = sum(value < found for value in values)
    upto = sum(value <= found for value in values)
    assert below * 100 < percent * len(values) <= upto * 100
    assert math.isfinite(found)
