"""Shares of the steps' wall time.

Invariants:
- A kernel's share is its exposed time, what would go with it, over the wall time of the steps of all ranks; kernels
  that overlap are not added up. What several kernels cover together is a line of its own, `shared`.
- The lines add up to the step time exactly: what the profiler's rounding leaves is the line `unaccounted`.
- The estimate is Hodges-Lehmann over steps with its exact signed-rank interval; neighbouring steps are pooled to at
  most 128 groups. Without an interval the estimate is the ratio of totals, which always stands beside it.
- Fewer steps than an interval needs tell no high end of a share, of a line neither, so that nothing is concluded.
- A line is estimated as a share is where its time is known by step; else it is a total, whose high end is itself.
- A collective is no hotspot: communication and waiting for a slower rank are lines.
- No two hotspots have one name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from akf.opportunity.complete import LINES, computing
from akf.opportunity.policy import Policy
from akf.stats import min_pairs, signed_rank_location

GROUPS = 128

Value = Mapping[str, Any]


class Spot(NamedTuple):
    """A hotspot, or a line that no kernel fills, before anything is concluded from it.

    Attributes:
        high: the share's high end; of a line that is a total its share, where there are steps enough. None: nothing can
            be concluded.
    """

    name: str
    what: str
    callsite: str | None
    entries: tuple[Value, ...]
    time_ns: int
    exposed_ns: int | None
    share: float | None
    total_share: float | None
    interval: dict[str, Any] | None
    note: str | None
    high: float | None = None


def steps_of(capture: Value) -> tuple[int, int]:
    """How many steps every rank has at least, and the wall time of all steps of all ranks."""
    ranks = capture["breakdown"]
    return min(line["steps"] for line in ranks), sum(line["step_ns"] for line in ranks)


def timed_steps(capture: Value) -> tuple[int, int]:
    """How many steps with their own wall time a rank has, at least and at most."""
    counts = [len(line.get("steps_ns", ())) for line in capture["breakdown"]]
    return min(counts), max(counts)


def lines_of(capture: Value) -> list[dict[str, Any]]:
    """The lines of the step, as a Triage states them; their times add up to the step time."""
    _, wall = steps_of(capture)
    times = {name: sum(line[f"{name}_ns"] for line in capture["breakdown"]) for name in LINES}
    exposed = [entry["exposed_ns"] for entry in capture["entries"] if computing(entry) and _known(entry)]
    alone = min(sum(exposed), times["computing"])
    listed = {"kernels": alone, "shared": times.pop("computing") - alone, **times}
    listed["unaccounted"] = wall - sum(listed.values())
    return [{"name": name, "time_ns": time, "share_ratio": time / wall} for name, time in listed.items()]


def spots(capture: Value, policy: Policy) -> list[Spot]:
    """All hotspots and the lines that no kernel fills, the largest share first."""
    grouped: dict[tuple[str, str], list[Value]] = {}
    for entry in capture["entries"]:
        if computing(entry):
            grouped.setdefault(_key(entry), []).append(entry)
    _, wall = steps_of(capture)
    walls = _walls(capture)
    found = [_kernels(what, name, entries, wall, walls, policy) for (what, name), entries in grouped.items()]
    taken = {spot.name for spot in found if spot.what == "callsite"} | {*LINES}
    found = [
        spot._replace(name=f"{spot.name} (no callsite)") if spot.what == "kernel" and spot.name in taken else spot
        for spot in found
    ]
    found += [
        _line(line, capture, walls, policy) for line in lines_of(capture) if line["name"] in LINES and line["time_ns"]
    ]
    return sorted(found, key=lambda spot: (-(spot.share if spot.share is not None else -1), spot.what, spot.name))


def _key(entry: Value) -> tuple[str, str]:
    if entry["callsite"] is not None:
        return "callsite", entry["callsite"]
    return "kernel", str(entry.get("op_type") or entry.get("kernel") or entry["core_type"])


def _known(entry: Value) -> bool:
    return entry.get("exposed_ns") is not None


def _walls(capture: Value) -> list[int] | None:
    """Wall time of each step over all ranks; None when the ranks do not have the same steps."""
    ranks = [line.get("steps_ns", ()) for line in capture["breakdown"]]
    if not ranks[0] or len({len(steps) for steps in ranks}) != 1:
        return None
    return [sum(each) for each in zip(*ranks, strict=True)]


def _kernels(what: str, name: str, entries: list[Value], wall: int, walls: list[int] | None, policy: Policy) -> Spot:
    time = sum(entry["time_ns"] for entry in entries)
    spot = Spot(name, what, name if what == "callsite" else None, tuple(entries), time, None, None, None, None, None)
    if not all(map(_known, entries)):
        return spot._replace(note="The Capture does not tell which part of the device time is exposed.")
    exposed = sum(entry["exposed_ns"] for entry in entries)
    total = exposed / wall
    spot = spot._replace(exposed_ns=exposed, share=total, total_share=total)
    by_step = _by_step(entries, walls)
    if walls is None or by_step is None:
        note = "The Capture does not tell the exposed time step by step, so there is no interval."
        return spot._replace(note=note)
    return _estimated(spot, by_step, walls, policy)


def _line(line: Value, capture: Value, walls: list[int] | None, policy: Policy) -> Spot:
    """A line of the step that no kernel fills."""
    share, time = line["share_ratio"], line["time_ns"]
    spot = Spot(line["name"], "line", None, (), time, time, share, share, None, None)
    splits = [rank.get("steps_lines") for rank in capture["breakdown"]]
    if walls is not None and None not in splits:
        by_step = [sum(each) for each in zip(*(split[f"{spot.name}_ns"] for split in splits), strict=True)]
        return _estimated(spot, by_step, walls, policy)
    enough = timed_steps(capture)[0] >= min_pairs(policy.confidence)
    note = "The Capture holds this line as a total, so there is no interval over steps."
    return spot._replace(note=note, high=share if enough else None)


def _estimated(spot: Spot, by_step: list[int], walls: list[int], policy: Policy) -> Spot:
    """The spot with its share over steps, and the interval of it where there are steps enough."""
    total = spot.total_share
    values = [part / whole for part, whole in zip(_pooled(by_step), _pooled(walls), strict=True)]
    location = signed_rank_location(values, policy.confidence)
    if location is None:
        needed = min_pairs(policy.confidence)
        note = f"An interval at confidence {policy.confidence} needs {needed} steps; there are {len(values)}."
        return spot._replace(note=note)
    interval = {
        "low_ratio": location.low, "high_ratio": location.high, "steps": location.n, "confidence": location.confidence,
    }  # fmt: skip
    spot = spot._replace(share=location.estimate, interval=interval, high=location.high)
    if total is None or location.low <= total <= location.high:
        return spot
    return spot._replace(note=f"The ratio of totals, {total:.5f}, lies outside the interval: steps are not alike.")


def _by_step(entries: list[Value], walls: list[int] | None) -> list[int] | None:
    """Exposed time of each step; None when an entry does not tell it."""
    if walls is None or not all(entry.get("steps_exposed_ns") for entry in entries):
        return None
    return [sum(each) for each in zip(*(entry["steps_exposed_ns"] for entry in entries), strict=True)]


def _pooled(times: Sequence[int]) -> list[int]:
    """Sums over at most `GROUPS` runs of neighbouring steps, as even as they can be."""
    groups = min(len(times), GROUPS)
    edges = [place * len(times) // groups for place in range(groups + 1)]
    return [sum(times[low:high]) for low, high in pairwise(edges)]
