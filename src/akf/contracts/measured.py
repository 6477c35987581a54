"""From a planned measurement and its sample file to figures; the evaluator and the judge both call this.

Invariants:
- Every line of a sample file is a canonical JSON object of exactly a sample's fields, so that no line can be read in
  two ways.
- A raw value is the time of a whole batch: a row enters the total with its weight over its launches, and so do A/A.
- A segment has as many values as its plan has batches: none is left out, and none was tried once more.
- What cannot be reduced says why, with a reason code; it never becomes a figure.
- A/A outside the noise limit matters for a threshold or margin that it could swallow, and for no other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from akf import stats
from akf.contracts.canonical import jcs
from akf.contracts.problems import AkfError

_FIELDS: dict[str, type] = {
    "id": str, "row": str, "pair": int, "block": int, "segment": int, "side": str, "values": list,
}  # fmt: skip


class Measured(NamedTuple):
    """A measurement, reduced; or the reason code and a note why it could not be."""

    reduced: stats.Reduced | None
    code: str = ""
    note: str = ""


def measure(measurement: dict[str, Any], data: bytes, confidence: float) -> Measured:
    """Reduce the raw samples of one planned measurement.

    Args:
        measurement: an entry of a Plan's `measurements`.
        data: bytes of its sample file.
        confidence: two-sided confidence of the Campaign.
    """
    statistic: Any = "median"
    if measurement["statistic"] == "quantile":
        statistic = ("quantile", measurement.get("quantile") or 0)
    try:
        samples = _samples(data)
        design = stats.Design(
            kind=measurement["design"],
            rows={row["id"]: float(row["weight"]) / row["launches"] for row in measurement["rows"]},
            pairs=measurement["pairs"],
            planned=tuple(measurement["samples"]),
            blocks=measurement["blocks"],
            better=measurement["better"],
            statistic=statistic,
            confidence=confidence,
        )
        reduced = stats.reduce_samples(design, samples)
    except (ValueError, AkfError) as error:
        return Measured(None, "SAMPLES_MALFORMED", str(error))
    if isinstance(reduced, stats.Incomplete):
        faults = ("missing", "unplanned", "duplicated", "invalid")
        counts = ", ".join(f"{len(getattr(reduced, fault))} {fault}" for fault in faults if getattr(reduced, fault))
        return Measured(None, "SAMPLES_MISSING", f"samples: {counts}")
    if isinstance(reduced, stats.TooFewSamples):
        note = f"{reduced.found} samples on side {reduced.side}, the quantile needs {reduced.needed}"
        return Measured(None, "SAMPLES_TOO_FEW", note)
    batches = measurement.get("batches")
    others = sum(len(each.values) != batches for each in samples)
    if measurement["design"] == "abba" and others:
        return Measured(None, "SAMPLES_MISSING", f"samples: {others} without one value per planned batch ({batches})")
    return Measured(reduced)


def part(measurement: dict[str, Any], data: bytes, rows: set[str]) -> tuple[dict[str, Any], bytes]:
    """A measurement and its samples, cut down to some rows; what it is of must have been reduced before."""
    lines = [(orjson.loads(line), line) for line in data.splitlines()]
    kept = {record["id"]: line for record, line in lines if record["row"] in rows}
    planned = [each for each in measurement["rows"] if each["id"] in rows]
    samples = [each for each in measurement["samples"] if each in kept]
    return {**measurement, "rows": planned, "samples": samples}, b"".join(line + b"\n" for line in kept.values())


def swallows(noise: stats.Interval, limit: float, noise_limit: float) -> bool:
    """Whether A/A is outside its limit and wide enough to pass for an effect of size `limit`."""
    valid = noise_limit <= limit and stats.aa_valid(noise, noise_limit)
    return not valid and max(noise.high - 1, 1 - noise.low) >= limit


def _samples(data: bytes) -> list[stats.Sample]:
    if data and not data.endswith(b"\n"):
        raise ValueError("the last line has no newline")
    found = []
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        record = orjson.loads(line)
        if not isinstance(record, dict) or jcs(record) != line:
            raise ValueError(f"line {number} is not a canonical JSON object")
        if {name: type(value) for name, value in record.items()} != _FIELDS:
            raise ValueError(f"line {number} does not have exactly the fields of a sample")
        found.append(stats.Sample.of(record))
    return found
