"""What an interval says about a threshold, a margin or a noise limit.

Invariants:
- A ratio above 1 means that the candidate is better; gain = ratio - 1.
- What the data neither show nor exclude is `inconclusive`; touching a limit shows nothing.
- Thresholds, margins and limits are shares (0.05 is 5 %), finite and not negative.
"""

from typing import Literal

from akf.stats.interval import Interval

GainOutcome = Literal["pass", "fail", "no_gain", "inconclusive"]
GuardOutcome = Literal["pass", "fail", "inconclusive"]


def gain_outcome(interval: Interval, threshold: float) -> GainOutcome:
    """Judge a gain check.

    Returns:
        `pass` when the lower end exceeds the threshold; else `fail` when a loss is shown (the upper end is
        below 1); else `no_gain` when the threshold is excluded; else `inconclusive`.

    Raises:
        ValueError: when the threshold is not within [0, 1000].
    """
    _require("threshold", threshold, 1000)
    if interval.low - 1 > threshold:
        return "pass"
    if interval.high < 1:
        return "fail"
    return "no_gain" if interval.high - 1 < threshold else "inconclusive"


def guard_outcome(interval: Interval, margin: float) -> GuardOutcome:
    """Judge a guard check (non-inferiority).

    Returns:
        `pass` when the interval excludes a regression beyond the margin, `fail` when it lies wholly beyond
        it, else `inconclusive`.

    Raises:
        ValueError: when the margin is not within [0, 1].
    """
    _require("margin", margin, 1)
    if interval.low > 1 - margin:
        return "pass"
    return "fail" if interval.high < 1 - margin else "inconclusive"


def aa_valid(interval: Interval, noise_limit: float) -> bool:
    """Say whether baseline against baseline shows none: 1 inside, and all of it within 1 +- noise_limit.

    Raises:
        ValueError: when the limit is not within [0, 1].
    """
    _require("noise_limit", noise_limit, 1)
    return 1 - noise_limit <= interval.low <= 1 <= interval.high <= 1 + noise_limit


def _require(name: str, share: float, most: float) -> None:
    if not 0 <= share <= most:
        raise ValueError(f"{name} must lie between 0 and {most}, not {share}")
