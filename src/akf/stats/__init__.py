"""Exact A/B statistics: from raw samples to ratios, intervals and outcomes.

Invariants:
- The standard library only, and in what decides only integers, + - * /, square roots and order statistics in
  a fixed order. No random numbers, no clock, no logarithm: the same input gives the same bits on every
  machine.
- An interval keeps its stated confidence exactly (Wilcoxon's signed-rank test, inverted) or does not exist.
- A ratio above 1 means that the candidate is better; gain = ratio - 1.

`samples` and `reduce` turn planned samples into figures, `interval`, `location` and `signed_rank` hold the test,
`outcomes` the rules, `planning` and `chances` the estimates for plans. Names are loaded when they are first used:
validation needs one of them and must start fast.
"""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from akf.stats.interval import Interval, hodges_lehmann, signed_rank_interval, signed_rank_lower_bound
    from akf.stats.location import Location, signed_rank_location
    from akf.stats.outcomes import GainOutcome, GuardOutcome, aa_valid, gain_outcome, guard_outcome
    from akf.stats.planning import (
        detectable_gain,
        joint_power,
        pairs_for_power,
        pairs_to_decide,
        power,
        spread,
        spread_of_interval,
    )
    from akf.stats.reduce import Reduced, Reduction, reduce_samples
    from akf.stats.samples import Better, Design, Incomplete, Kind, Sample, Side, Statistic, TooFewSamples
    from akf.stats.signed_rank import (
        MAX_PAIRS,
        claim_error,
        critical_rank,
        exact_share,
        min_pairs,
        signed_rank_counts,
    )
    from akf.stats.summaries import (
        block_ratio,
        lag1_correlation,
        median,
        pair_ratio,
        quantile,
        quantile_support,
    )

_HOMES = {
    "interval": ("Interval", "hodges_lehmann", "signed_rank_interval", "signed_rank_lower_bound"),
    "location": ("Location", "signed_rank_location"),
    "outcomes": ("GainOutcome", "GuardOutcome", "aa_valid", "gain_outcome", "guard_outcome"),
    "planning": (
        "detectable_gain",
        "joint_power",
        "pairs_for_power",
        "pairs_to_decide",
        "power",
        "spread",
        "spread_of_interval",
    ),
    "reduce": ("Reduced", "Reduction", "reduce_samples"),
    "samples": ("Better", "Design", "Incomplete", "Kind", "Sample", "Side", "Statistic", "TooFewSamples"),
    "signed_rank": ("MAX_PAIRS", "claim_error", "critical_rank", "exact_share", "min_pairs", "signed_rank_counts"),
    "summaries": ("block_ratio", "lag1_correlation", "median", "pair_ratio", "quantile", "quantile_support"),
}

__all__ = [
    "MAX_PAIRS",
    "Better",
    "Design",
    "GainOutcome",
    "GuardOutcome",
    "Incomplete",
    "Interval",
    "Kind",
    "Location",
    "Reduced",
    "Reduction",
    "Sample",
    "Side",
    "Statistic",
    "TooFewSamples",
    "aa_valid",
    "block_ratio",
    "claim_error",
    "critical_rank",
    "detectable_gain",
    "exact_share",
    "gain_outcome",
    "guard_outcome",
    "hodges_lehmann",
    "joint_power",
    "lag1_correlation",
    "median",
    "min_pairs",
    "pair_ratio",
    "pairs_for_power",
    "pairs_to_decide",
    "power",
    "quantile",
    "quantile_support",
    "reduce_samples",
    "signed_rank_counts",
    "signed_rank_interval",
    "signed_rank_location",
    "signed_rank_lower_bound",
    "spread",
    "spread_of_interval",
]


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"akf.stats.{module}"), name)
    raise AttributeError(f"module 'akf.stats' has no attribute {name!r}")
