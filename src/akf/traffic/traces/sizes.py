"""Sizes of steps, from Captures: what a trace of requests cannot say.

How prompts are cut and batched into steps is the scheduler's doing, so sizes are taken from profiles of that service
and from nowhere else; without a Capture the draft's own stay, or stay open.

Invariants:
- A Capture of one stage speaks for that stage. One that names no stage speaks for a Workload of one stage only: its
  sizes are a mixture of whatever was running.
- Calls of one size are those of the kernel that was launched most often there, summed over ranks: a callsite that
  launches two kernels a call is called once.
- Launches whose shape the profiler did not record are refused, not spread over the others.
- Weights are shares of a callsite's calls in a stage, and add up to one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from akf.contracts.loader import Document
from akf.contracts.problems import InvalidError, Problem
from akf.contracts.rules.finding import at

Sizes = tuple[tuple[str, int], ...]


def with_sizes(stages: list[dict[str, Any]], callsites: Sequence[dict[str, Any]], captures: Sequence[Document]) -> None:
    """Replace `shapes` of the stages that the Captures speak for.

    Raises:
        InvalidError: A Capture does not fit the draft.
    """
    problems: list[Problem] = []
    named = {stage["id"]: stage for stage in stages}
    known = {site["id"]: _symbols(site) for site in callsites}
    taken: dict[str, str] = {}
    for capture in captures:
        stage = capture.value.get("stage") or (stages[0]["id"] if len(stages) == 1 else None)
        if stage is None or stage not in named:
            what = f"stage {stage}, which the draft has not" if stage else "no stage, and the draft has several"
            hint = f"capture one stage at a time; the draft has {', '.join(named)}"
            problems.append(at(capture, "/stage" if stage else "", "AKF-F262", f"the Capture is of {what}", hint=hint))
        elif stage in taken:
            message = f"the Capture is of stage {stage}, and so is {taken[stage]}"
            problems.append(at(capture, "", "AKF-F262", message, hint="give one Capture a stage"))
        else:
            taken[stage] = capture.file
            problems += _misfits(capture, known)
            named[stage]["shapes"] = _shapes(capture)
    if problems:
        raise InvalidError(problems)


def _symbols(site: dict[str, Any]) -> set[str]:
    return {size["sym"] for operand in site["operands"] for size in operand["shape"] if isinstance(size, dict)}


def _misfits(capture: Document, known: dict[str, set[str]]) -> list[Problem]:
    found = []
    mapped = 0
    for index, entry in enumerate(capture.value["entries"]):
        name = entry["callsite"]
        if name is None:
            continue
        mapped += 1
        pointer = f"/entries/{index}/callsite"
        if name not in known:
            found.append(at(capture, pointer, "AKF-F262", f"the draft has no callsite {name!r}", found=name))
        elif not set(entry["symbols"]) <= known[name]:
            extra = sorted(set(entry["symbols"]) - known[name])
            message = f"callsite {name} has no symbol {', '.join(extra)}"
            found.append(
                at(capture, f"/entries/{index}/symbols", "AKF-F262", message, expected=sorted(known[name]), found=extra)
            )
        elif known[name] and not entry["symbols"]:
            message = f"{entry['calls']} launches of {name} have no sizes; the profiler recorded no shape"
            found.append(at(capture, pointer, "AKF-F262", message, hint="capture with shapes recorded"))
    if not mapped:
        message = "no entry of the Capture belongs to a callsite"
        hint = "ingest the profile with the map of callsites of its framework"
        found.append(at(capture, "/entries", "AKF-F262", message, hint=hint))
    return found


def _shapes(capture: Document) -> list[dict[str, Any]]:
    launches: dict[tuple[str, Sizes], Counter[str | None]] = defaultdict(Counter)
    for entry in capture.value["entries"]:
        if entry["callsite"] is not None:
            sizes = tuple(sorted(entry["symbols"].items()))
            launches[entry["callsite"], sizes][entry.get("kernel")] += entry["calls"]
    calls = {key: max(kernels.values()) for key, kernels in launches.items()}
    totals: Counter[str] = Counter()
    for (name, _), number in calls.items():
        totals[name] += number
    return [
        {"callsite": name, "symbols": dict(sizes), "calls": number, "weight_ratio": number / totals[name]}
        for (name, sizes), number in sorted(calls.items())
    ]
