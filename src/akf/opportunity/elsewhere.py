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
from akf.opportunity.complete import computing, kernel_of
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
    ops = {site["id"]: (site["op"], *_work(site)) for site in sites}
    found: list[tuple[int, str, str, dict[str, Any]]] = []
    for measured, reference in [(capture, None), *others]:
        for kernel, theirs in _rivals(measured, ops):
            mine = _by_shape([entry for entry in spot.entries if kernel_of(entry) != kernel], ops)
            common = [name for name in mine if name in theirs]
            spent = sum(mine[name][1] for name in common)
            would = sum(theirs[name][1] * mine[name][0] // theirs[name][0] for name in common)
            if would <= 0 or spent < policy.least_provider_ratio * would:
                continue
            part = min(spent / spot.time_ns, 1.0)
            value: dict[str, Any] = {
                "kernel": kernel,
                "speedup_ratio": spent / would,
                "common_ratio": part,
                "bound_ratio": bound(min(spot.share * part, 1.0), spent / would),
            }
            if reference is not None:
                value["capture"] = reference
            found.append((would - spent, kernel, "" if reference is None else reference["digest"], value))
    return min(found, key=lambda each: each[:3])[3] if found else None


def _work(site: Value) -> Key:
    """What a callsite does at given sizes: element type and shape of its first operand, and shape of its result."""
    first = site["operands"][0]
    result = next((operand for operand in site["operands"] if operand.get("access") == "out"), first)
    shapes = [
        tuple(size if isinstance(size, int) else size["sym"] for size in each["shape"]) for each in (first, result)
    ]
    return first["dtype"], *shapes


def _rivals(capture: Value, ops: Mapping[str, Key]) -> Iterator[tuple[str, Mapping[Key, tuple[int, int]]]]:
    """What each kernel of a Capture takes, by operator and shape."""
    kernels: dict[str, list[Value]] = {}
    for entry in capture["entries"]:
        if computing(entry):
            kernels.setdefault(kernel_of(entry), []).append(entry)
    for kernel in sorted(kernels):
        yield kernel, _by_shape(kernels[kernel], ops)


def _by_shape(entries: Sequence[Value], ops: Mapping[str, Key]) -> dict[Key, tuple[int, int]]:
    """Calls and device time by operator and shape, where these are known."""
    found: dict[Key, tuple[int, int]] = {}
    for entry in entries:
        key = _shape(entry, ops)
        if key is not None:
            calls, time = found.get(key, (0, 0))
            found[key] = (calls + entry["calls"], time + entry["time_ns"])
    return found


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
