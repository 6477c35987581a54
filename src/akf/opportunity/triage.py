"""Triage: from a Workload and a Capture to an answer, by arithmetic alone.

Invariants, in the order in which the work is done:
- An incomplete Capture is refused; no other one is put in its place.
- The baseline's health comes first: on an unhealthy one nothing is comparable.
- Then shares, ceilings, coverage, active bounds and rivals of every hotspot, and its answer.
- The same input and the same Policy give the same value: no clock, no environment, no random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from akf.contracts.coverage import by_capabilities, by_domain, covered, dimensions
from akf.opportunity.answer import Facts, answer_of, numbers, whole
from akf.opportunity.bounds import active_bound
from akf.opportunity.complete import kernel_of, require_complete
from akf.opportunity.cost import cost_of
from akf.opportunity.elsewhere import elsewhere
from akf.opportunity.health import health_of
from akf.opportunity.policy import Policy
from akf.opportunity.shares import Spot, lines_of, spots, steps_of, timed_steps
from akf.stats import min_pairs

RULES_VERSION = 1
MOST_HOTSPOTS = 512
INGEST = "akf ingest profile PATH --workload WORKLOAD --arm ARM --out CAPTURE"
FRAMEWORK = "akf ingest framework --arm ARM --model-config FILE --out WORKLOAD"
_SHORTEST_NAME = 4  # letters of a name that a line of a log may be matched by

Value = Mapping[str, Any]


def triage(
    workload: Value | None,
    capture: Value,
    policy: Policy,
    others: Sequence[tuple[Value, Value]] = (),
    *,
    file: str | None = None,
) -> dict[str, Any]:
    """The body of a Triage: everything but `kind`, `schema_version`, `id` and `parents`.

    Args:
        workload: the Workload, or None when no callsites are known.
        capture: the Capture.
        policy: what to go by.
        others: further Captures to look for faster providers in, each with its reference.
        file: the Capture's name in messages.

    Raises:
        PreconditionError: the Capture is not complete.
    """
    completeness = require_complete(capture, workload, policy, file)
    health = health_of(capture, workload, policy)
    cost = cost_of(policy)
    sites = {site["id"]: site for site in workload["callsites"]} if workload is not None else {}
    found = spots(capture, policy)[:MOST_HOTSPOTS]
    hotspots = [
        _hotspot(spot, _facts(spot, capture, workload, sites, others, policy), health, cost, policy) for spot in found
    ]
    answer = whole(hotspots, health)
    blocked = list(_blockers(capture, workload, policy, completeness, health, hotspots, answer))
    steps, wall = steps_of(capture)
    return {
        "platform": capture["platform"],
        "stage": policy.stage,
        "others": [reference for _, reference in others],
        "policy": policy.listed(),
        "completeness": completeness,
        "health": health,
        "denominator": "step_wall",
        "steps": steps,
        "step_ns": wall,
        "lines": lines_of(capture),
        "hotspots": hotspots,
        "cost": cost,
        "answer": answer,
        "blockers": blocked,
        "ready": answer["answer"] not in {"no_go", None} and not blocked,
        "rules_version": RULES_VERSION,
    }


def _facts(
    spot: Spot,
    capture: Value,
    workload: Value | None,
    sites: Mapping[str, Value],
    others: Sequence[tuple[Value, Value]],
    policy: Policy,
) -> Facts:
    site = sites.get(spot.callsite or "")
    coverage = covered_time = offered = None
    if site is not None:
        inside = by_domain(dimensions(site))
        if policy.capabilities is not None:
            offered = any(each["op"] == site["op"] for each in policy.capabilities)
            inside = by_capabilities(site, policy.capabilities)
        coverage, covered_time = covered(spot.entries, inside)
    return Facts(
        spot=spot,
        site=site,
        known=workload is not None,
        coverage=coverage,
        covered_time=covered_time,
        offered=offered,
        active=active_bound(spot, capture, policy),
        rival=elsewhere(spot, capture, others, workload, policy),
        remarks=_remarks(spot, site, capture),
    )


def _remarks(spot: Spot, site: Value | None, capture: Value) -> list[str]:
    """Lines of the framework's log about a fallback that name the hotspot's operator, provider or kernel."""
    names = {str(entry[key]) for entry in spot.entries for key in ("kernel", "op_type") if entry.get(key)}
    if site is not None:
        names |= {site["op"], site["provider"]}
    names = {name.casefold() for name in names if len(name) >= _SHORTEST_NAME}
    stated = (capture.get("health") or {}).get("remarks", ())
    return [line for line in stated if any(name in line.casefold() for name in names)]


def _hotspot(spot: Spot, facts: Facts, health: Value, cost: Value, policy: Policy) -> dict[str, Any]:
    said = answer_of(facts, health, cost, policy)
    kernels = set(map(kernel_of, spot.entries))
    value = {
        "name": spot.name,
        "what": spot.what,
        "callsite": spot.callsite,
        "kernels": sorted(kernels),
        "calls": sum(entry["calls"] for entry in spot.entries),
        "time_ns": spot.time_ns,
        "exposed_ns": spot.exposed_ns,
        **numbers(spot, policy),
        "note": spot.note,
        "coverage_ratio": facts.coverage,
        "covered_time_ratio": facts.covered_time,
        "active_bound": facts.active,
        "elsewhere": facts.rival,
        "comparable": health["healthy"],
        "answer": said.answer,
        "rule": said.rule,
        "text": said.text,
    }
    return {name: item for name, item in value.items() if item is not None or name not in {"note", "elsewhere"}}


def _blockers(
    capture: Value,
    workload: Value | None,
    policy: Policy,
    completeness: Value,
    health: Value,
    hotspots: Sequence[Value],
    answer: Value,
) -> Iterator[dict[str, str]]:
    """What is missing before the answer can become a Task."""
    least = min_pairs(policy.confidence)
    fewest, most = timed_steps(capture)
    if fewest < least:
        expected = f"At least {least} steps with their wall times, for an interval of the share; it has {fewest}."
        yield _blocker("Capture", "/breakdown/0/steps_ns", expected, INGEST)
    elif fewest != most:
        expected = f"The same steps of every rank, for an interval of the share; there are {fewest} to {most}."
        yield _blocker("Capture", "/breakdown", expected, INGEST)
    elif any(each["interval"] is None and each["what"] != "line" for each in hotspots if each["answer"] != "no_go"):
        expected = "The exposed time of every kernel, step by step."
        yield _blocker("Capture", "/entries", expected, INGEST)
    if completeness["calls"] == "unknown":
        expected = "Calls expected from the model's config, to compare with the calls that were seen."
        if workload is None:
            yield _blocker("Workload", "/callsites", expected, FRAMEWORK)
        else:
            yield _blocker("Capture", "/completeness", expected, INGEST)
    if "eager_share" in health["unseen"]:
        expected = "Whether graphs were replayed, as the arm does: a profile with Model ID, or the framework's log."
        yield _blocker("Capture", "/health/eager_share_ratio", expected, f"{INGEST} --log LOG")
    kernels = [each for each in hotspots if each["answer"] == "kernel"]
    if capture["platform"] == "ascend" and any(not each["active_bound"]["metrics"] for each in kernels):
        expected = "Counters of the kernels' pipes, for the active bound: profile at Level1 with PipeUtilization."
        yield _blocker("Capture", "/entries", expected, INGEST)
    chosen = next((each for each in hotspots if each["name"] == answer["hotspot"]), None)
    if chosen is not None and chosen["what"] == "kernel" and chosen["answer"] not in {"no_go", None}:
        yield _blocker("Capture", "/entries", f"A callsite for the kernel {chosen['name']}.", INGEST)


def _blocker(artifact: str, pointer: str, expected: str, command: str) -> dict[str, str]:
    return {"artifact": artifact, "pointer": pointer, "expected": expected, "command": command}
