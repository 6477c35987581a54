"""The active bound of a hotspot, from what was observed of it.

Invariants:
- A bound is named only when a metric reaches the policy's threshold; without counters it is `unobserved`.
- A core that was busier than its launches lasted, by more than rounding, was not observed: profilers count cycles, and
  take the clock for steady.
- Busy times are compared with the launches' own device time; printed ratios of profilers have changing denominators and
  are not read.
- Each bound permits one family of moves; seed of the table: compute, transfer, balance, launch and graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from akf.opportunity.policy import Policy
from akf.opportunity.shares import Spot

Value = Mapping[str, Any]

MOVES: dict[str, tuple[str, ...]] = {
    "compute": ("cube and vector split", "tile and block mapping", "fusion", "pipelining"),
    "transfer": ("tiling", "data reuse", "double buffering", "overlap of transfer and compute"),
    "balance": ("balance between cores", "specialised tail blocks", "aligned access"),
    "launch_graph": ("fewer launches", "ahead-of-time compilation", "graph compatibility", "stream semantics"),
    "unobserved": (),
}
COMPUTE = frozenset({"mac", "cube", "vec"})
TRANSFER = frozenset({"mte1", "mte2", "mte3", "fixpipe"})
HOST = "host time per device time"
_MOST_BUSY = 1.05
_TILING = "_Tiling"


def active_bound(spot: Spot, capture: Value, policy: Policy) -> dict[str, Any]:
    """The bound with its metrics and its moves, as a Triage states it."""
    busy, idle, launch = _busy(spot), _idle(spot), _launch(spot, capture)
    found = _bound(busy, idle, launch, policy)
    metrics = [*sorted(busy.items()), *sorted(idle.items())]
    if launch is not None:
        metrics.append((HOST, launch))
    return {
        "bound": found,
        "metrics": [{"name": name, "value": value} for name, value in metrics],
        "moves": list(MOVES[found]),
    }


def _bound(busy: Mapping[str, float], idle: Mapping[str, float], launch: float | None, policy: Policy) -> str:
    """The host first, then the busiest pipe; cores that wait for one another show where no pipe is full."""
    if launch is not None and launch >= policy.least_launch_ratio:
        return "launch_graph"
    reached = [
        (value, bound)
        for bound, units, least in (
            ("compute", COMPUTE, policy.least_compute_ratio),
            ("transfer", TRANSFER, policy.least_transfer_ratio),
        )
        for name, value in busy.items()
        if name.rsplit("_", 1)[-1] in units and value >= least
    ]
    if reached:
        return max(reached)[1]
    return "balance" if any(value >= policy.least_balance_ratio for value in idle.values()) else "unobserved"


def _busy(spot: Spot) -> dict[str, float]:
    """Busy share of each pipe over the launches of the entries that have counters."""
    times: dict[str, int] = {}
    whole = 0
    for entry in spot.entries:
        if entry.get("counters"):
            whole += entry["time_ns"]
        for counter in entry.get("counters", ()):
            times[counter["name"]] = times.get(counter["name"], 0) + counter["time_ns"]
    busy = {name: time / whole for name, time in times.items()} if whole else {}
    return busy if all(share <= _MOST_BUSY for share in busy.values()) else {}


def _idle(spot: Spot) -> dict[str, float]:
    """Share of the longest block's time in which an average block has ended, by kind of core."""
    mean: dict[str, int] = {}
    longest: dict[str, int] = {}
    for entry in spot.entries:
        for each in entry.get("balance", ()):
            mean[each["unit"]] = mean.get(each["unit"], 0) + each["mean_ns"]
            longest[each["unit"]] = longest.get(each["unit"], 0) + each["longest_ns"]
    return {f"idle cores of {unit}": 1 - mean[unit] / longest[unit] for unit in mean if longest[unit] >= mean[unit] > 0}


def _launch(spot: Spot, capture: Value) -> float | None:
    """Host time of tiling per device time, for launches outside graphs; None where the host was not recorded."""
    if any(entry.get("graph") == "graph" for entry in spot.entries):
        return None
    types = {f"{entry['op_type']}{_TILING}" for entry in spot.entries if entry.get("op_type")}
    host = [each for each in capture.get("host", ()) if each["api"] in types]
    calls: int = sum(each["calls"] for each in host)
    launches: int = sum(entry["calls"] for entry in spot.entries)
    if not calls or not spot.time_ns:
        return None
    spent: int = sum(each["time_ns"] for each in host)
    return spent * launches / (calls * spot.time_ns)
