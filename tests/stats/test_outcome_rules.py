"""Gain, guard and A/A rules, at and around their limits."""

import math

import pytest

from akf.stats import Interval, aa_valid, gain_outcome, guard_outcome


def _interval(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, low, high, 12, 0.95)


@pytest.mark.parametrize(
    ("low", "high", "threshold", "outcome"),
    [
        (1.25, 1.31, 0.05, "pass"),
        (1.0625, 1.2, 0.0625, "inconclusive"),  # touches the threshold
        (0.995, 1.035, 0.01, "inconclusive"),
        (0.98, 1.03, 0.05, "no_gain"),
        (1.01, 1.03, 0.05, "no_gain"),
        (0.9, 0.98, 0.05, "fail"),  # a shown loss also excludes the gain, and is named first
        (0.9, 1.0, 0.05, "no_gain"),
        (0.9, 0.98, 0.0, "fail"),
        (0.9, 1.0, 0.0, "inconclusive"),
        (1.001, 1.002, 0.0, "pass"),
    ],
)
def test_gain(low: float, high: float, threshold: float, outcome: str) -> None:
    assert gain_outcome(_interval(low, high), threshold) == outcome


@pytest.mark.parametrize(
    ("low", "high", "margin", "outcome"),
    [
        (0.985, 1.03, 0.02, "pass"),
        (0.97, 0.975, 0.02, "fail"),
        (0.97, 1.1, 0.02, "inconclusive"),
        (0.75, 1.1, 0.25, "inconclusive"),  # touches the margin
        (0.6, 0.75, 0.25, "inconclusive"),
        (0.981, 0.989, 0.02, "pass"),  # a loss, but one that the margin allows
        (1.01, 1.1, 0.0, "pass"),
    ],
)
def test_guard(low: float, high: float, margin: float, outcome: str) -> None:
    assert guard_outcome(_interval(low, high), margin) == outcome


@pytest.mark.parametrize(
    ("low", "high", "valid"),
    [
        (0.99, 1.01, True),
        (0.75, 1.25, True),
        (1.0, 1.0, True),
        (1.001, 1.01, False),
        (0.9, 0.999, False),
        (0.74, 1.2, False),
    ],
)
def test_baseline_against_baseline(low: float, high: float, *, valid: bool) -> None:
    assert aa_valid(_interval(low, high), 0.25) is valid


@pytest.mark.parametrize("limit", [-0.01, math.nan, math.inf, 5000])
def test_a_limit_that_is_none_decides_nothing(limit: float) -> None:
    interval = _interval(0.9, 1.1)
    with pytest.raises(ValueError, match="threshold"):
        gain_outcome(interval, limit)
    with pytest.raises(ValueError, match="margin"):
        guard_outcome(interval, limit)
    with pytest.raises(ValueError, match="noise_limit"):
        aa_valid(interval, limit)
