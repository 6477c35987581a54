"""The opportunity of a Task, as the Triage behind it and the frozen Capture make it.

Invariants:
- Every number of a Task's `opportunity` is a function of the Triage, the Capture and the Task's own domain: nobody
  writes one.
- A Task has an opportunity exactly when it has a Triage among its parents, and names the same one in both places.
"""

from __future__ import annotations

from akf.contracts.coverage import by_domain, covered
from akf.contracts.problems import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Value = Mapping[str, Any]


def triage_of(task: Value) -> Value | None:
    """The Triage among a Task's parents, or None."""
    return next((parent for parent in task["parents"] or () if parent["kind"] == "Triage"), None)


def opportunity_of(triage: Value, reference: Value, hotspot: str | None, task: Value, capture: Value) -> dict[str, Any]:
    """What a Task about this hotspot of the Triage states as its opportunity.

    Args:
        triage: the Triage.
        reference: how a child names it.
        hotspot: name of the hotspot, or None for the whole baseline.
        task: the Task, for the domain of its symbols.
        capture: the Capture whose calls are counted.
    """
    found = next((each for each in triage["hotspots"] if each["name"] == hotspot), None)
    spot = found if found is not None else dict.fromkeys(_FIELDS)
    interval = spot["interval"] or {"low_ratio": None, "high_ratio": None}
    coverage = spot["coverage_ratio"]
    if spot["callsite"] is not None and task["abi"] is not None:
        mine = (entry for entry in capture["entries"] if entry["callsite"] == spot["callsite"])
        coverage = covered(mine, by_domain(task["domain"]))[0]
    return {
        "triage": dict(reference),
        "hotspot": hotspot,
        "share_ratio": spot["share_ratio"],
        "share_low_ratio": interval["low_ratio"],
        "share_high_ratio": interval["high_ratio"],
        "ceiling_ratio": spot["ceiling_ratio"],
        "needed_speedup_ratio": spot["needed_speedup_ratio"],
        "coverage_ratio": coverage,
    }


def justified_problems(task: Value, triage: Value | None, capture: Value, file: str) -> list[Problem]:
    """What does not hold between a frozen Task and the Triage that it names.

    Args:
        task: the Task.
        triage: the verified Triage among its parents, or None when it has none.
        capture: the run's Capture.
        file: the Task's path in messages.
    """
    stated, parent = task["opportunity"], triage_of(task)
    if stated is None and parent is None:
        return []
    if stated is None or parent is None or triage is None:
        message = f"{file} states an opportunity and names a Triage as its parent, or neither"
        return [Problem("AKF-F387", message, file, "/opportunity")]
    names = {each["name"] for each in triage["hotspots"]} | {None}
    hotspot = stated["hotspot"]
    wanted = opportunity_of(triage, parent, hotspot, task, capture) if hotspot in names else None
    if wanted is None or wanted != stated or not _about(task, triage, hotspot):
        message = f"{file} states another opportunity than the Triage gives"
        return [Problem("AKF-F387", message, file, "/opportunity", expected=wanted, found=stated)]
    return []


def _about(task: Value, triage: Value, hotspot: str | None) -> bool:
    """Whether the Triage answers this hotspot with the Task's type, for the Task's callsite."""
    if hotspot is None:
        return bool(triage["answer"]["hotspot"] is None and triage["answer"]["answer"] == task["type"])
    spot = next(each for each in triage["hotspots"] if each["name"] == hotspot)
    return bool(spot["answer"] == task["type"] and spot["callsite"] == task["callsite"])


_FIELDS = ("callsite", "share_ratio", "interval", "ceiling_ratio", "needed_speedup_ratio", "coverage_ratio")
