"""The floor under a row's time: no kernel moves bytes or does operations faster than the hardware can.

Invariants:
- The peaks are the Campaign's capability tuple's; without peaks there is no floor.
- The floor is the most generous one: of the levels that hold the row's bytes the fastest, else the largest; so a row
  that lives in a cache may be faster than main memory.
- Exact fractions; only the candidate's raw times are read.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import orjson

from akf import stats

_NS = 10**9


def floor_ns(row: dict[str, Any], capability: dict[str, Any]) -> Fraction | None:
    """Least nanoseconds of one launch of a Task's row, or None when no peak is known."""
    peaks = capability.get("peaks", ())
    if not peaks:
        return None
    fitting = [peak["bytes_per_s"] for peak in peaks if peak["capacity_bytes"] >= row["bytes"]]
    largest = max(peaks, key=lambda peak: (peak["capacity_bytes"], peak["bytes_per_s"]))
    floor = Fraction(row["bytes"] * _NS, max(fitting, default=largest["bytes_per_s"]))
    rates = [peak["operations_per_s"] for peak in peaks if peak.get("operations_per_s") is not None]
    return max(floor, Fraction(row["operations"] * _NS, max(rates))) if rates else floor


def launch_ns(row: str, planned: dict[str, Any], data: bytes) -> Fraction:
    """Median nanoseconds of the candidate's launches of a row."""
    samples = [orjson.loads(line) for line in data.splitlines()]  # reduced before, so whole and well-formed
    values = [each["values"] for each in samples if each["row"] == row and each["side"] == "B"]
    launches: int = next(each["launches"] for each in planned["rows"] if each["id"] == row)
    return Fraction(stats.median([value for batch in values for value in batch])) / launches
