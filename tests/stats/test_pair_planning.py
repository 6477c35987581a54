"""The estimates behind a plan, held to exact cases and to simulation."""

import math
import random
from fractions import Fraction

import pytest

from akf.stats import (
    claim_error,
    critical_rank,
    detectable_gain,
    gain_outcome,
    guard_outcome,
    joint_power,
    min_pairs,
    pairs_for_power,
    pairs_to_decide,
    power,
    signed_rank_counts,
    signed_rank_interval,
    spread,
    spread_of_interval,
)


def _normal(rng: random.Random, n: int, centre: float, deviation: float) -> list[float]:
    return [centre * (1 + deviation * rng.gauss(0, 1)) for _ in range(n)]


def test_ten_rows_hold_in_a_quarter_of_cases_with_6_pairs_and_nearly_always_with_12() -> None:
    assert power(0.02, 0.01, 6, 0.95) ** 10 == pytest.approx(0.25, abs=0.005)
    assert power(0.02, 0.01, 12, 0.95) ** 10 > 0.99


def _share_shown(runs: int, gain: float, deviation: float, pairs: int) -> float:
    """Draw pairs that are faster by the gain as often as not, spread as factors, and count what shows a gain."""
    rng, shown = random.Random(pairs), 0
    for _ in range(runs):
        ratios = [(1 + gain) * math.exp(deviation * rng.gauss(0, 1)) for _ in range(pairs)]
        interval = signed_rank_interval(ratios, 0.95)
        assert interval is not None
        shown += gain_outcome(interval, 0.0) == "pass"
    return shown / runs


def _away(gain: float) -> float:
    """How far a gain is from none, as plans measure it."""
    return gain / math.sqrt(1 + gain)


def _error(chance: float, runs: int) -> float:
    """Four standard errors of a simulated share, and 0.003 for what the grid and the normal's tails leave."""
    return 0.003 + 4 * math.sqrt(chance * (1 - chance) / runs)


TWO_PERCENT = [(6, 0.01), (8, 0.02), (12, 0.02), (12, 0.03), (20, 0.03)]


@pytest.mark.parametrize(("pairs", "deviation"), TWO_PERCENT)
def test_a_gain_of_2_percent_is_shown_as_often_as_was_printed(pairs: int, deviation: float) -> None:
    printed = power(_away(0.02), deviation, pairs, 0.95)
    assert _share_shown(500, 0.02, deviation, pairs) == pytest.approx(printed, abs=_error(printed, 500))


@pytest.mark.soak
@pytest.mark.parametrize(("pairs", "deviation"), TWO_PERCENT)
def test_a_gain_of_2_percent_is_shown_as_often_as_was_printed_in_10_000_runs(pairs: int, deviation: float) -> None:
    printed = power(_away(0.02), deviation, pairs, 0.95)
    assert _share_shown(10_000, 0.02, deviation, pairs) == pytest.approx(printed, abs=_error(printed, 10_000))


def test_rows_together_hold_as_often_as_was_printed() -> None:
    rows = [(0.02, 0.01), (0.02, 0.015), (0.02, 0.015), (0.02, 0.02)]
    printed = joint_power(rows, 9, 0.95)
    rng, held, runs = random.Random(5), 0, 600
    for _ in range(runs):
        intervals = [signed_rank_interval(_normal(rng, 9, 1.0, deviation), 0.95) for _, deviation in rows]
        held += all(interval and guard_outcome(interval, 0.02) == "pass" for interval in intervals)
    assert 0.2 < printed < 0.8
    assert held / runs == pytest.approx(printed, abs=_error(printed, runs))


def test_the_pairs_for_all_rows_are_the_fewest_that_reach_the_chance() -> None:
    rows = [(0.02, 0.01)] * 10
    assert joint_power(rows, 6, 0.95) == pytest.approx(0.25, abs=0.005)
    needed = pairs_for_power(rows, 0.95, 500)
    assert needed is not None
    assert joint_power(rows, needed - 1, 0.95) < 0.8 <= joint_power(rows, needed, 0.95)
    assert pairs_for_power(rows, 0.95, needed) == needed
    assert pairs_for_power(rows, 0.95, needed - 1) is None
    assert pairs_for_power(rows[:1], 0.95, 500) == 6 < needed


def test_rows_that_cannot_hold_or_always_do() -> None:
    assert joint_power([], 6, 0.95) == 1.0
    assert joint_power([(0.02, 0.0)], 6, 0.95) == 1.0
    assert joint_power([(0.0, 0.0)], 6, 0.95) == 0.0
    assert joint_power([(0.02, 0.0)], 5, 0.95) == 0.0  # no interval exists
    assert pairs_for_power([(0.02, 0.0)], 0.95, 5) is None
    assert pairs_for_power([(0.0, 0.01)], 0.95, 500) is None
    assert pairs_for_power([(0.001, 0.01)], 0.95, 500) is None  # about 840 pairs


def test_the_spread_of_an_interval_is_that_of_its_pairs() -> None:
    rng, widths = random.Random(3), 0.0
    for _ in range(400):
        interval = signed_rank_interval(_normal(rng, 12, 1.0, 0.01), 0.95)
        assert interval is not None
        widths += (interval.high - interval.low) / 2 / 400
    assert spread_of_interval(widths, 12) == pytest.approx(0.01, rel=0.2)


@pytest.mark.parametrize("n", [6, 7, 9, 12, 16, 20, 24])
def test_without_an_effect_the_power_is_the_exact_error(n: int) -> None:
    rank = critical_rank(n, claim_error(0.95))
    assert rank is not None
    exact = Fraction(sum(signed_rank_counts(n)[: rank + 1]), 2**n)
    assert power(0.0, 1.0, n, 0.95) == pytest.approx(float(exact), abs=1e-4)


@pytest.mark.parametrize("n", [6, 8, 12, 20, 32])
def test_the_detectable_gain_is_shown_in_80_percent_of_runs(n: int) -> None:
    gain = detectable_gain(0.01, n, 0.95, threshold=0.02)
    assert gain is not None
    rng, shown, runs = random.Random(n), 0, 1500
    for _ in range(runs):
        interval = signed_rank_interval(_normal(rng, n, 1 + gain, 0.01), 0.95)
        assert interval is not None
        shown += gain_outcome(interval, 0.02) == "pass"
    assert shown / runs == pytest.approx(0.8, abs=0.04)


def test_more_pairs_detect_less() -> None:
    found = [detectable_gain(0.01, n, 0.95) for n in (6, 7, 8, 10, 12, 24, 25, 50, 100)]
    assert all(gain is not None for gain in found)
    assert found == sorted(found, key=lambda gain: -(gain or 0))


def test_too_few_pairs_detect_nothing() -> None:
    assert detectable_gain(0.01, 5, 0.95) is None
    assert power(1.0, 0.01, 5, 0.95) == 0.0
    assert detectable_gain(0.0, 6, 0.95) == 0.0


def test_planning_holds_at_the_error_of_the_best_of_many() -> None:
    confidence = 1 - 2 * claim_error(0.95, 10_000)
    fewest = min_pairs(confidence)
    assert fewest == 19
    assert power(0.05, 0.01, fewest, confidence) > 0.99
    assert detectable_gain(0.01, fewest, confidence) == pytest.approx(0.0229, abs=0.002)  # Phi(2.26)^19 = 0.8


@pytest.mark.parametrize("n", [8, 12, 20])
def test_the_spread_is_that_of_the_pairs_and_ignores_outliers(n: int) -> None:
    rng = random.Random(n)
    plain, spoilt = 0.0, 0.0
    for _ in range(400):
        ratios = _normal(rng, n, 1.3, 0.01)
        plain += spread(ratios) / 400
        spoilt += spread([*ratios[1:], ratios[0] * 3]) / 400
    assert plain == pytest.approx(0.01, rel=0.12)
    assert spoilt < 0.03


def test_pairs_that_decide_already_are_enough() -> None:
    gained = [1.1, 1.11, 1.09, 1.1, 1.12, 1.08]
    assert pairs_to_decide(gained, 0.05, 0.95, 100) == 6
    assert pairs_to_decide([1 / ratio for ratio in gained], 0.05, 0.95, 100) == 6
    assert pairs_to_decide([0.99, 1.01, 1.0, 0.995, 1.005, 1.0], -0.05, 0.95, 100) == 6  # a guard's margin


def test_pairs_are_missing() -> None:
    ratios = [1.0, 1.03, 1.01, 1.06, 1.02, 0.99, 1.04, 1.03]
    needed = pairs_to_decide(ratios, 0.01, 0.95, 1000)
    assert needed is not None
    assert 16 < needed < 100
    assert pairs_to_decide(ratios, 0.01, 0.95, needed) == needed
    assert pairs_to_decide(ratios, 0.01, 0.95, needed - 1) is None
    assert pairs_to_decide(ratios, 0.0, 0.95, 100) < needed  # type: ignore[operator]


def test_fewer_pairs_than_an_interval_needs_can_be_planned_from() -> None:
    assert pairs_to_decide([1.1, 1.1, 1.1], 0.0, 0.95, 100) == 6
    assert pairs_to_decide([1.1, 1.11], 0.0, 0.95, 100) == 6
    assert pairs_to_decide([1.1, 1.1, 1.1], 0.0, 0.95, 5) is None


def test_an_estimate_on_the_threshold_is_decided_by_no_number_of_pairs() -> None:
    assert pairs_to_decide([1.0] * 8, 0.0, 0.95, 10_000) is None
    assert pairs_to_decide([0.5, 2.0, 1.0 + 2**-52], 0.0, 0.95, 10**9) is None


def test_a_planned_number_decides_in_most_runs() -> None:
    rng, decided, runs = random.Random(11), 0, 300
    planned = pairs_to_decide(_normal(random.Random(2), 400, 1.03, 0.02), 0.05, 0.95, 10_000)
    assert planned == 400
    effect = detectable_gain(0.02, 12, 0.95)
    assert effect is not None
    for _ in range(runs):
        interval = signed_rank_interval(_normal(rng, 12, (1.05) / (1 + effect), 0.02), 0.95)
        assert interval is not None
        decided += gain_outcome(interval, 0.05) in {"no_gain", "fail"}
    assert decided / runs > 0.72


def test_arguments_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="two ratios"):
        spread([1.0])
    with pytest.raises(ValueError, match="spread above 0"):
        power(0.1, 0.0, 12, 0.95)
    with pytest.raises(ValueError, match="at least 0"):
        power(-0.1, 0.1, 12, 0.95)
    with pytest.raises(ValueError, match="spread of at least 0"):
        detectable_gain(float("nan"), 12, 0.95)
    with pytest.raises(ValueError, match="half-width"):
        spread_of_interval(-0.1, 12)
    with pytest.raises(ValueError, match="threshold must be finite"):
        pairs_to_decide([1.0, 1.1], float("nan"), 0.95, 12)
