"""The answer about each hotspot, and the one about the whole.

Invariants:
- Rules are tried in the order of `_kernel` and `_line`; the first that holds answers, with the comparison that decided.
- What cannot be told yet has the answer None: no-go is a conclusion, and a share without a high end allows none.
- A hotspot is given up by its ceiling only at the high end of the share's interval, so that chance gives none up.
- On an unhealthy baseline no hotspot is comparable: the answer is `configuration`, whatever the shares say.
- The whole is answered by the first hotspot, in the order of shares, that has a Task; where none has, it is given up
  only when all are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from akf.opportunity.amdahl import bound, ceiling, needed_speedup, reaches
from akf.opportunity.bounds import HOST
from akf.opportunity.policy import Policy
from akf.opportunity.shares import Spot

Value = Mapping[str, Any]

_LONGEST_REMARK = 500

LINE_RULES = {
    "communication": "COMMUNICATION_EXPOSED",
    "waiting": "RANKS_WAIT",
    "host_gap": "HOST_GAP",
    "idle": "DEVICE_IDLE",
}
LEVERS = {
    "COMMUNICATION_EXPOSED": "Communication: overlap with computing, the parallel layout, the collective's algorithm.",
    "RANKS_WAIT": "Balance between ranks: what makes one rank slower than the others.",
    "HOST_GAP": "The host's part of a step: scheduling, launches, sampling, work between two steps.",
    "DEVICE_IDLE": "Scheduling and batching: why the device has nothing to do.",
    "PROVIDER_WINS": "The binding: dispatch the callsite to the provider that is faster already.",
    "FALLBACK_SEEN": "Dispatch: why the callsite falls back, so that its own kernel is used.",
    "LAUNCH_BOUND": "Launching: host tiling, ahead-of-time binaries, graph capture of the callsite.",
}
"""What a Task that is none of a kernel may change, by the rule that answered."""


class Facts(NamedTuple):
    """What is known of a hotspot besides its share."""

    spot: Spot
    site: Value | None
    known: bool
    coverage: float | None
    covered_time: float | None
    offered: bool | None
    active: Value
    rival: Value | None
    remarks: Sequence[str]


class Said(NamedTuple):
    """An answer with the rule that gave it; None is: it cannot be told yet."""

    answer: str | None
    rule: str
    text: str


def numbers(spot: Spot, policy: Policy) -> dict[str, Any]:
    """Ceiling, bound and needed speed-up of a share."""
    share, high = spot.share, spot.high
    return {
        "share_ratio": share,
        "total_share_ratio": spot.total_share,
        "interval": spot.interval,
        "ceiling_ratio": None if share is None else ceiling(share),
        "ceiling_high_ratio": None if high is None else ceiling(high),
        "bound_ratio": None if share is None else bound(share, policy.local_speedup_ratio),
        "needed_speedup_ratio": None if share is None else needed_speedup(share, policy.target_ratio),
    }


def answer_of(facts: Facts, health: Value, cost: Value, policy: Policy) -> Said:
    """What is said of one hotspot."""
    if not health["healthy"]:
        finding = health["findings"][0]
        return Said("configuration", finding["rule"], finding["text"])
    if facts.spot.high is None:
        return _unknown(facts.spot)
    hopeless = _hopeless(facts.spot.high, cost, policy)
    if hopeless is not None:
        return hopeless
    return _line(facts.spot, cost, policy) if facts.spot.what == "line" else _kernel(facts, cost, policy)


def whole(hotspots: Sequence[Value], health: Value) -> dict[str, Any]:
    """The answer about the whole, as a Triage states it."""
    if not health["healthy"]:
        finding = health["findings"][0]
        return {"answer": "configuration", "rule": finding["rule"], "hotspot": None, "text": finding["text"]}
    tasks = (each for each in hotspots if each["answer"] not in {"no_go", None})
    open_ = (each for each in hotspots if each["answer"] is None)
    first = next(tasks, None) or next(open_, None) or hotspots[0]
    return {"answer": first["answer"], "rule": first["rule"], "hotspot": first["name"], "text": first["text"]}


def _unknown(spot: Spot) -> Said:
    """What is said of a share that allows no conclusion."""
    what = "is not known" if spot.share is None else f"is {spot.share:.5f} in what was captured, and has no interval"
    return Said(None, "SHARE_UNKNOWN", f"It cannot be told yet: the share of {spot.name} {what}. See the blockers.")


def _hopeless(high: float, cost: Value, policy: Policy) -> Said | None:
    """What no kind of Task could change."""
    target = policy.target_ratio
    most = ceiling(high)
    if most is not None and not reaches(high, target):
        text = f"With a share of at most {high:.5f} the ceiling is {most:.5f}, below the target {target:.5f}"
        return Said("no_go", "CEILING_TOO_LOW", f"{text}, however fast it becomes.")
    least = cost["detectable_gain_ratio"]
    if least is None:
        text = f"{policy.serving_pairs} pairs give no interval at confidence {policy.confidence}"
        return Said("no_go", "GAIN_UNDETECTABLE", f"{text}, so no gain could be shown.")
    if most is not None and most - 1 < least:
        text = f"At most {most - 1:.5f} can be gained; with this noise {policy.serving_pairs} pairs show a gain"
        return Said("no_go", "GAIN_UNDETECTABLE", f"{text} above the target from {least:.5f} on.")
    return None


def _affordable(name: str, cost: Value) -> Said | None:
    spent, budget = cost[name], cost["budget_s"]
    if spent <= budget:
        return None
    text = f"The proof costs {spent} s of the board ({spent / 3600:.1f} h), the budget holds {budget} s"
    return Said("no_go", "VERIFICATION_OVER_BUDGET", f"{text} ({budget / 3600:.1f} h).")


def _line(spot: Spot, cost: Value, policy: Policy) -> Said:
    text = f"The line {spot.name} is {spot.share or 0:.5f} of the steps; {_above(spot, policy)}"
    return _affordable("service_s", cost) or Said("pipeline", LINE_RULES[spot.name], f"{text}.")


def _kernel(facts: Facts, cost: Value, policy: Policy) -> Said:
    spot, target = facts.spot, policy.target_ratio
    integration = _integration(facts, policy)
    if integration is not None:
        return _affordable("service_s", cost) or integration
    if facts.site is None and facts.known:
        return Said("no_go", "SCOPE_UNBOUNDED", f"{spot.name} belongs to no callsite, so its scope cannot be bounded.")
    if facts.offered is False:
        op = facts.site["op"] if facts.site is not None else spot.name
        return Said("no_go", "NO_EDITABLE_PATH", f"No capability tuple of the Campaign names the operator {op}.")
    if facts.coverage is not None and facts.covered_time is not None:
        if not facts.coverage:
            return Said("no_go", "SCOPE_UNBOUNDED", f"No call of {spot.name} lies inside the support domain.")
        part = (spot.high or 0.0) * facts.covered_time
        if not reaches(part, target):
            text = f"The support domain covers {facts.covered_time:.4f} of the time of {spot.name}"
            return Said("no_go", "COVERAGE_TOO_LOW", f"{text}: a ceiling of {ceiling(part):.5f}, below {target:.5f}.")
    text = f"{_above(spot, policy)}; the active bound is {facts.active['bound']}"
    return _affordable("kernel_s", cost) or Said("kernel", "KERNEL_WORTHWHILE", f"{text[0].upper()}{text[1:]}.")


def _integration(facts: Facts, policy: Policy) -> Said | None:
    spot, rival = facts.spot, facts.rival
    if rival is not None and rival["bound_ratio"] >= policy.target_ratio:
        where = "another Capture" if "capture" in rival else "this Capture"
        text = f"{rival['kernel']} is {rival['speedup_ratio']:.4f} times as fast in {where}"
        text += f" and gives {rival['bound_ratio']:.5f}, at least the target {policy.target_ratio:.5f}."
        return Said("integration", "PROVIDER_WINS", text)
    if facts.remarks:
        text = f"The framework's log speaks of {spot.name}: {facts.remarks[0][:_LONGEST_REMARK]}"
        return Said("integration", "FALLBACK_SEEN", text)
    if facts.active["bound"] == "launch_graph":
        value = next(each["value"] for each in facts.active["metrics"] if each["name"] == HOST)
        text = f"A call of {spot.name} takes {value:.4f} times its device time on the host"
        return Said("integration", "LAUNCH_BOUND", f"{text}, at least {policy.least_launch_ratio}.")
    return None


def _above(spot: Spot, policy: Policy) -> str:
    """The comparison of the ceiling with the target, as text."""
    most = ceiling(spot.high or 0.0)
    needed = needed_speedup(spot.share or 0.0, policy.target_ratio)
    shown = "without bound" if most is None else f"{most:.5f}"
    text = f"the ceiling {shown} reaches the target {policy.target_ratio:.5f}"
    return text if needed is None else f"{text}, for which it must be {needed:.4f} times as fast"
