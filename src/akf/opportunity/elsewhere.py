"""Whether the same operator is measured faster under another kernel, in this Capture or another one.

Invariants:
- Compared are the same shapes and element types of the same operator: a callsite's operator at the same sizes, or the
  same operator type with the same operands. A kernel is never compared with itself.
- Times are mean device times per call; what one kernel saves is counted at the shapes that both have, and nowhere else.
- The same input gives the same winner: the largest saving, then the smaller name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from akf.opportunity.amdahl import bound
from akf.opportunity.complete import computing
from akf.opportunity.policy import Policy
from akf.opportunity.shares import Spot

Value = Mapping[str, Any]
Key = tuple[Any, ...]


def elsewhere(
    spot: Spot, capture: Value, others: Sequence[tuple[Value, Value]], workload: Value | None, policy: Policy
) -> dict[str, Any] | None:
    """The faster kernel that would save most of the hotspot, as a Triage states it; None where there is none.

    Args:
        spot: the hotspot.
        capture: the Capture that it is from.
        others: further Captures, each with the reference that a Triage names it by.
        workload: the Workload, for the operators of callsites.
        policy: the least speed-up that counts.
    """
    if not spot.entries or not spot.share:
        return None
    sites = workload["callsites"] if workload is not None else ()
    ops = {site["id"]: (site["op"], site["operands"][0]["dtype"]) for site in sites}
    own = _by_shape(spot.entries, ops)
    found: list[tuple[int, str, str, dict[str, Any]]] = []
    for measured, reference in [(capture, None), *others]:
        for kernel, theirs in _rivals(measured, ops):
            mine = {name: value for name, value in own.items() if kernel not in value[2] and name in theirs}
            if not mine:
                continue
            spent = sum(time for _, time, _ in mine.values())
            would = sum(theirs[name][1] * calls // theirs[name][0] for name, (calls, _, _) in mine.items())
            if would <= 0 or spent < policy.provider_gain_ratio * would:
                continue
            common = spent / spot.time_ns
            value: dict[str, Any] = {
                "kernel": kernel,
                "speedup_ratio": spent / would,
                "common_ratio": min(common, 1.0),
                "bound_ratio": bound(min(spot.share * common, 1.0), spent / would),
            }
            if reference is not None:
                value["capture"] = reference
            found.append((would - spent, kernel, "" if reference is None else reference["digest"], value))
    return min(found, key=lambda each: each[:3])[3] if found else None


def _by_shape(entries: Sequence[Value], ops: Mapping[str, Key]) -> dict[Key, tuple[int, int, frozenset[str]]]:
    """Calls, device time and kernels by operator and shape."""
    found: dict[Key, tuple[int, int, frozenset[str]]] = {}
    for entry in entries:
        key = _shape(entry, ops)
        if key is not None:
            calls, time, kernels = found.get(key, (0, 0, frozenset()))
            found[key] = (calls + entry["calls"], time + entry["time_ns"], kernels | {_kernel(entry)})
    return found


def _rivals(capture: Value, ops: Mapping[str, Key]) -> Iterator[tuple[str, dict[Key, tuple[int, int, frozenset[str]]]]]:
    """What each kernel of a Capture takes, by operator and shape."""
    kernels: dict[str, list[Value]] = {}
    for entry in capture["entries"]:
        if computing(entry):
            kernels.setdefault(_kernel(entry), []).append(entry)
    for kernel in sorted(kernels):
        yield kernel, _by_shape(kernels[kernel], ops)


def _shape(entry: Value, ops: Mapping[str, Key]) -> Key | None:
    """What makes two launches the same work; None when it is not known."""
    if entry["callsite"] is not None:
        if entry["callsite"] not in ops or not entry["symbols"]:
            return None
        return ("op", *ops[entry["callsite"]], tuple(sorted(entry["symbols"].items())))
    seen = [*entry.get("inputs", ()), *entry.get("outputs", ())]
    if entry.get("op_type") is None or not seen or any(each["shape"] is None for each in seen):
        return None
    return ("type", entry["op_type"], tuple((tuple(each["shape"]), each["dtype"]) for each in seen))


def _kernel(entry: Value) -> str:
    return str(entry.get("kernel") or entry.get("op_type") or entry["core_type"])
