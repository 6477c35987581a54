"""What a plan says beforehand: time, cost, the smallest gain that shows, whether every row would hold, and the tries.

Invariants:
- Estimates for a plan, never evidence: no outcome reads them.
- The spread of one pair comes from the best that is known: A/A samples of this Task on this machine, row by row, else
  the Capture's A/A, else the noise limit. Which one it was is said.
- A row is taken to be as fast as the baseline, and to hold or break its margin independently of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from akf import stats
from akf.contracts.measured import Measured

CHECK_S = 6.0
SEGMENT_S = 0.03
_BATCHES = 4  # those of a segment, and one after a change of sides
_SEGMENTS = 4  # of a block
_LAUNCHES = 2  # least of a batch


class Noise(NamedTuple):
    """The spread of one pair's ratio: of the total and of each row, with the place that it comes from."""

    total: float
    rows: Mapping[str, float]
    source: str


def noise_of(campaign: Mapping[str, Any], capture: Mapping[str, Any], rows: list[str], aa: Measured | None) -> Noise:
    """The best that is known of the noise of the operator's gain.

    Args:
        campaign: the ready Campaign.
        capture: its Capture.
        rows: ids of the Task's rows.
        aa: reduced A/A samples of an earlier gate of this Task on this machine, or None.
    """
    if aa is not None and aa.reduced is not None:
        spreads = {row: stats.spread(reduction.ratios) for row, reduction in aa.reduced.rows.items()}
        return Noise(stats.spread(aa.reduced.total.ratios), spreads, "aa_samples")
    metric = operator_gain(campaign)["metric"]
    found = [
        stats.spread_of_interval(max(1 - each["low_ratio"], each["high_ratio"] - 1, 0.0), each["pairs"])
        for each in capture.get("noise", ())
        if each["metric"] == metric
    ]
    source = "capture" if found else "noise_limit"
    limit = stats.spread_of_interval(
        campaign["noise"]["noise_limit_ratio"] or 0.0, campaign["acceptance"]["pairs"]["operator"]
    )
    total = max(found, default=limit)
    return Noise(total, dict.fromkeys(rows, total), source)


def segments_s(campaign: Mapping[str, Any], capture: Mapping[str, Any], task: Mapping[str, Any]) -> float:
    """Time of the segments of one measurement; a row is as long as the Capture saw its launches, where they are long.

    Args:
        campaign: the ready Campaign.
        capture: its Capture.
        task: the Task.
    """
    pairs = campaign["acceptance"]["pairs"]
    total = 0.0
    for row in task["rows"]:
        launch_ns = max(
            (
                each["time_ns"] / each["calls"]
                for each in capture.get("entries", ())
                if (each["callsite"], each["symbols"]) == (task["callsite"], row["symbols"])
            ),
            default=0.0,
        )
        total += max(SEGMENT_S, _BATCHES * _LAUNCHES * launch_ns / 1e9)
    return total * float(pairs["operator"] * pairs["blocks"] * _SEGMENTS)


def estimate(campaign: Mapping[str, Any], noise: Noise, segments_s: float, *, shared: bool) -> dict[str, Any]:
    """What the operator gate will take and can show.

    Args:
        campaign: the ready Campaign.
        noise: what `noise_of` found.
        segments_s: time of the segments of one measurement, in seconds.
        shared: whether A/A is lent by an earlier gate.
    """
    acceptance = campaign["acceptance"]
    pairs, confidence = acceptance["pairs"]["operator"], acceptance["confidence"]
    device_s = segments_s * (1 if shared else 2)
    rows = [(acceptance["row_margin_ratio"], spread) for spread in noise.rows.values()]
    found = {
        "wall_s": round(CHECK_S + device_s, 1),
        "device_s": round(device_s, 1),
        "spread_ratio": noise.total,
        "spread_from": noise.source,
        "detectable_gain_ratio": stats.detectable_gain(
            noise.total, pairs, confidence, operator_gain(campaign)["threshold_ratio"]
        ),
        "rows_power_ratio": stats.joint_power(rows, pairs, confidence),
        "pairs_for_rows": stats.pairs_for_power(rows, confidence, stats.MAX_PAIRS),
    }
    return {name: value for name, value in found.items() if value is not None}


def claim(campaign: Mapping[str, Any], tries: int) -> dict[str, Any]:
    """What a promotable claim about this candidate would pay for the tries of its Task, this one included."""
    acceptance = campaign["acceptance"]
    confidence = acceptance["confidence"]
    return {
        "tries": tries,
        "one_sided_error_ratio": float(stats.claim_error(confidence, tries)),
        "fewest_pairs": stats.min_pairs(confidence, tries),
        "reproduction_pairs": acceptance["pairs"]["reproduction"],
    }


def operator_gain(campaign: Mapping[str, Any]) -> dict[str, Any]:
    """The gain rule that the operator gate is measured for."""
    return next(each for each in campaign["acceptance"]["gains"] if each["gate"] == "operator")
