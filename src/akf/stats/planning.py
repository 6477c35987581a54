"""How many pairs a decision takes, and which effects a number of pairs can show: estimates, never evidence.

Invariants:
- The answers hold for pairs that are independent and roughly normal with a known spread; they plan a
  measurement and are printed as estimates. Verdicts come from `akf.stats.outcomes` alone.
- Effects are compared as (x - y) / sqrt(x * y), which is log(x / y) up to third order and needs no logarithm;
  it is symmetric between a ratio and its reciprocal.
- Up to 24 pairs (or 8 more than the fewest, if more) the chance is computed; above, effects shrink by the
  root of the number of pairs.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from akf.stats.chances import low_end_power
from akf.stats.interval import hodges_lehmann, signed_rank_interval, walsh_products
from akf.stats.signed_rank import claim_error, critical_rank, fewest_pairs, min_pairs

POWER = 0.8
"""The chance of deciding that a plan aims at."""

_EXACT_PAIRS = 24
_PAIRS_BEYOND_FEWEST = 8
_WALSH_QUARTILES = 0.954  # distance of the quartiles of (z_i + z_j) / 2: 2 * 0.6745 / sqrt(2)
_LARGEST_EFFECT = 16.0
_DETECTED = 4.0  # spreads: even the least of 500 normal pairs lies above the limit in more than 80 % of runs
_HALVINGS = 12  # down to 0.001 spreads
_CERTAIN = 6.0  # spreads: a pair lies beyond it once in 10^9
_INTERVAL_SPREADS = 2  # a 95 % interval of n pairs reaches about 2 spreads over the root of n to either side


def spread(ratios: Sequence[float]) -> float:
    """Estimate the standard deviation of the pairs' ratios relative to their centre (0.01 is 1 %).

    Taken from the quartiles of the Walsh values, so that outliers do not count while at most one pair in eight is
    one; 0 for equal ratios.

    Raises:
        ValueError: for fewer than two ratios, or naming one that is not finite and above 0.
    """
    if len(ratios) < 2:  # noqa: PLR2004 (one value has no spread)
        raise ValueError(f"a spread needs at least two ratios, not {len(ratios)}")
    products = walsh_products(ratios)
    at = (len(products) - 1) // 4
    return _distance(math.sqrt(products[-1 - at]), math.sqrt(products[at])) / _WALSH_QUARTILES


def spread_of_interval(half_width: float, pairs: int) -> float:
    """Estimate the standard deviation of one pair's ratio from the half-width of a 95 % interval over its pairs.

    Raises:
        ValueError: when an argument is out of range.
    """
    if not (0 <= half_width < math.inf and pairs >= 1):
        raise ValueError(f"an interval has a half-width of at least 0 and pairs, not {half_width} and {pairs}")
    return float(half_width * math.sqrt(pairs) / _INTERVAL_SPREADS)


def power(effect: float, spread: float, pairs: int, confidence: float | Fraction) -> float:
    """Return the chance that the interval's end clears a limit from which the true ratio is `effect` away.

    Args:
        effect: distance of the true ratio from the threshold or margin (0.02 is 2 %), on the side of success.
        spread: standard deviation of the pairs' ratios, in the same unit, above 0.
        pairs: number of pairs.
        confidence: two-sided confidence.

    Returns:
        A chance; 0 when there is no interval from so few pairs.

    Raises:
        ValueError: when an argument is out of range.
    """
    if not (0 <= effect < math.inf and 0 < spread < math.inf):
        raise ValueError(f"power needs an effect of at least 0 and a spread above 0, not {effect} and {spread}")
    return _power(min(effect / spread, _LARGEST_EFFECT), pairs, claim_error(confidence))


def joint_power(rows: Sequence[tuple[float, float]], pairs: int, confidence: float | Fraction) -> float:
    """Return the chance that all rows clear their limits at once, each of them independent of the others.

    Args:
        rows: effect and spread of each row, as `power` takes them; a spread of 0 always clears.
        pairs: number of pairs.
        confidence: two-sided confidence.

    Raises:
        ValueError: when an argument is out of range.
    """
    if pairs < min_pairs(confidence):
        return 0.0
    chance = 1.0
    for effect, scale in sorted(rows):
        chance *= power(effect, scale, pairs, confidence) if scale else float(effect > 0)
    return chance


def pairs_for_power(
    rows: Sequence[tuple[float, float]], confidence: float | Fraction, max_pairs: int, chance: float = POWER
) -> int | None:
    """Return the fewest pairs with which all rows clear their limits in this share of runs; None above `max_pairs`.

    Args:
        rows: effect and spread of each row, as `joint_power` takes them.
        confidence: two-sided confidence.
        max_pairs: the most pairs that may be answered.
        chance: share of runs, above 0 and below 1.

    Raises:
        ValueError: when an argument is out of range.
    """
    low = min_pairs(confidence)
    if joint_power(rows, low, confidence) >= chance:
        return low if low <= max_pairs else None
    if max_pairs <= low or joint_power(rows, max_pairs, confidence) < chance:
        return None
    high = max_pairs
    while high - low > 1:
        middle = (low + high) // 2
        if joint_power(rows, middle, confidence) < chance:
            low = middle
        else:
            high = middle
    return high


def detectable_gain(spread: float, pairs: int, confidence: float | Fraction, threshold: float = 0.0) -> float | None:
    """Estimate the smallest gain that 80 % of runs show to exceed the threshold; None for too few pairs.

    Args:
        spread: standard deviation of the pairs' ratios relative to their centre, at least 0.
        pairs: number of pairs.
        confidence: two-sided confidence.
        threshold: what the gain has to exceed.

    Raises:
        ValueError: when an argument is out of range.
    """
    if not (0 <= spread < math.inf and -1 < threshold < math.inf):
        raise ValueError(f"a gain needs a spread of at least 0 and a threshold above -1, not {spread}, {threshold}")
    if pairs < min_pairs(confidence):
        return None
    distance = _detectable_effect(pairs, claim_error(confidence)) * spread
    root = (distance + math.sqrt(distance * distance + 4)) / 2  # (x - y) / sqrt(x y) = distance at x = y root^2
    return (1 + threshold) * root * root - 1


def pairs_to_decide(
    ratios: Sequence[float], threshold: float, confidence: float | Fraction, max_pairs: int
) -> int | None:
    """Estimate how many pairs in all leave the threshold outside the interval in 80 % of runs.

    It takes the observed estimate for the true ratio and the observed spread for the pairs', so it is as
    uncertain as they are: an estimate close to the threshold gives a large number or none. For a guard the
    threshold is -margin.

    Returns:
        The number of pairs there are when they decide already; else a larger one; None when it would exceed
        `max_pairs`.

    Raises:
        ValueError: for fewer than two ratios, a bad ratio, or another argument out of range.
    """
    if not -1 < threshold < math.inf:
        raise ValueError(f"the threshold must be finite and above -1, not {threshold}")
    interval, scale = signed_rank_interval(ratios, confidence), spread(ratios)
    if interval and (interval.low - 1 > threshold or interval.high - 1 < threshold):
        return len(ratios)
    distance = abs(_distance(hodges_lehmann(ratios), 1 + threshold))
    if distance == 0:
        return None
    effect = _LARGEST_EFFECT if distance >= _LARGEST_EFFECT * scale else distance / scale
    error = claim_error(confidence)
    first, exact = max(len(ratios) + 1, min_pairs(confidence)), _exact_pairs(error)
    for pairs in range(first, min(exact, max_pairs) + 1):
        if _power(effect, pairs, error) >= POWER:
            return pairs
    growth = _detectable_effect(exact, error) / effect
    needed = exact * growth * growth
    if needed > max_pairs:
        return None
    decided = max(math.ceil(needed), first, exact + 1)
    return decided if decided <= max_pairs else None


def _distance(x: float, y: float) -> float:
    return (x - y) / math.sqrt(x * y)


def _exact_pairs(error: Fraction) -> int:
    """Return up to how many pairs the chance is computed; the root law takes over above."""
    return max(_EXACT_PAIRS, fewest_pairs(error) + _PAIRS_BEYOND_FEWEST)


@lru_cache(maxsize=1024)
def _power(effect: float, pairs: int, error: Fraction) -> float:
    """Return the chance for an effect in units of the spread."""
    exact = min(pairs, _exact_pairs(error))
    rank = critical_rank(exact, error)
    if rank is None:
        return 0.0
    grown = effect * math.sqrt(pairs / exact)
    return 1.0 if grown >= _CERTAIN else low_end_power(grown, exact, rank)


@lru_cache(maxsize=256)
def _detectable_effect(pairs: int, error: Fraction) -> float:
    """Return the least effect with a chance of `POWER`, in units of the spread, found by halving."""
    exact = min(pairs, _exact_pairs(error))
    low, high = 0.0, _DETECTED
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _power(middle, exact, error) < POWER:
            low = middle
        else:
            high = middle
    return high * math.sqrt(exact / pairs)
