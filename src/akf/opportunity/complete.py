"""Whether a Capture holds all of what ran; nothing else is looked at before.

Invariants, in the order in which they are checked:
- There are steps, with as many exposed times as steps, and no step holds more exposed time than its wall time. Nothing
  is there twice: no rank, no entry, no counter. A part is not longer than the whole.
- The lines of every rank add up to its step time, within what the profiler's rounding explains. Where they are known
  by step, they add up to each step, and over the steps to the rank's, exactly.
- Cross-checks between the profiler's files hold.
- Calls expected and calls seen agree; most of the computing time belongs to callsites, where callsites are known.
- What does not hold is refused, all of it at once; no other Capture is ever put in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from akf.contracts.canonical import canonical_bytes
from akf.contracts.problems import PreconditionError, Problem
from akf.frameworks.calls import completeness
from akf.opportunity.policy import Policy

LINES = ("computing", "communication", "waiting", "host_gap", "idle")
COMMUNICATION = frozenset({"HCCL", "COMMUNICATION", "communication"})
_SLACK = 0.02  # profilers round every line
_MANY = 20
_WHOLE_STEPS = frozenset({"profiler", "marker"})
_IDENTITY = (
    "rank", "callsite", "kernel", "op_type", "core_type", "communicates", "graph", "blocks", "symbols", "inputs",
    "outputs",
)  # fmt: skip
EAGER = "take a separate Capture of an eager run and label it: profiles of replayed graphs often miss kernel rows"
OTHER = "was this the model, and this the framework, that were profiled? If so, " + EAGER

Value = Mapping[str, Any]


def require_complete(capture: Value, workload: Value | None, policy: Policy, file: str | None = None) -> dict[str, Any]:
    """Refuse an incomplete Capture; returns what was checked, as a Triage states it.

    Args:
        capture: the Capture.
        workload: the Workload, or None when no callsites are known.
        policy: how much may be missing.
        file: the Capture's name in messages.

    Raises:
        PreconditionError: lists what does not hold.
    """
    problems = [*_steps(capture), *_lines(capture), *_split(capture), *_checks(capture)]
    found = counted(capture, workload, policy) if capture.get("breakdown") else []
    problems += _calls(found, policy, stated=bool(capture.get("completeness")))
    share = unmapped(capture)
    if workload is not None and share > policy.most_unmapped_ratio:
        message = f"{share:.4f} of the computing time has no callsite, at most {policy.most_unmapped_ratio} may"
        hint = "name the framework's revision and model config: akf ingest framework; an unknown revision is unmapped"
        problems.append(Problem("AKF-F354", message, pointer="/entries", hint=hint))
    if problems:
        if len(problems) > _MANY:
            hidden = len(problems) - _MANY
            problems = problems[:_MANY]
            last = problems[-1]
            problems[-1] = last.replace(message=f"{last.message}; {hidden} more problems are not listed")
        raise PreconditionError(problem.replace(file=file) for problem in problems)
    return {
        "calls": "agree" if found else "unknown",
        "checks": len(capture.get("checks", ())),
        "unmapped_ratio": share,
    }


def computing(entry: Value) -> bool:
    """Whether an entry is a kernel, not a collective."""
    return not entry.get("communicates") and entry["core_type"] not in COMMUNICATION


def kernel_of(entry: Value) -> str:
    """What the profiler calls a kernel; its operator, or the kind of its core, where it calls it nothing."""
    return str(entry.get("kernel") or entry.get("op_type") or entry["core_type"])


def unmapped(capture: Value) -> float:
    """Share of the kernels' device time without a callsite."""
    total = sum(entry["time_ns"] for entry in capture["entries"] if computing(entry))
    without = sum(entry["time_ns"] for entry in capture["entries"] if computing(entry) and entry["callsite"] is None)
    return without / total if total else 0.0


def counted(capture: Value, workload: Value | None, policy: Policy) -> list[dict[str, Any]]:
    """Calls expected and seen by callsite: as stated, else by the Workload in one rank's whole steps; [] if unknown."""
    stated = capture.get("completeness")
    if stated:
        return list(stated)
    ranks = capture["breakdown"]
    if workload is None or policy.arm is None or len(ranks) > 1 or ranks[0].get("bounds") not in _WHOLE_STEPS:
        return []
    return completeness(workload, policy.arm, capture["entries"], {ranks[0]["rank"]: ranks[0]["steps"]})


def _steps(capture: Value) -> Iterator[Problem]:
    ranks = {line["rank"]: line for line in capture.get("breakdown", ())}
    if not ranks:
        hint = "capture whole steps: akf ingest profile cuts them by the profiler's own steps or by a marker kernel"
        message = "no step was captured, so no share of step time can be stated"
        yield Problem("AKF-F355", message, pointer="/breakdown", hint=hint)
        return
    yield from _walls(capture)
    filled = {rank: [0] * len(line.get("steps_ns", ())) for rank, line in ranks.items()}
    yield from _twice(capture)
    for place, entry in enumerate(capture["entries"]):
        yield from _exposed(entry, f"/entries/{place}", filled)
    for rank, line in ranks.items():
        for step, (used, most) in enumerate(zip(filled[rank], line.get("steps_ns", ()), strict=True)):
            if used > most:
                message = f"rank {rank}, step {step}: {used} ns are exposed in a step of {most} ns"
                yield Problem("AKF-F353", message, pointer="/entries")


def _walls(capture: Value) -> Iterator[Problem]:
    """Problems of the steps' wall times by themselves."""
    for place, line in enumerate(capture["breakdown"]):
        found, wall = sum(line.get("steps_ns", ())), line["step_ns"]
        if found not in {0, wall}:
            message = f"rank {line['rank']}: its steps take {found} ns together, its step time is {wall} ns"
            yield Problem("AKF-F353", message, pointer=f"/breakdown/{place}/steps_ns")
        if line["steps"] < len(line.get("steps_ns", ())):
            message = f"rank {line['rank']}: {len(line['steps_ns'])} steps have a time, {line['steps']} were captured"
            yield Problem("AKF-F353", message, pointer=f"/breakdown/{place}/steps")
        if not wall or 0 in line.get("steps_ns", ()):
            message = f"rank {line['rank']}: a step takes no time"
            yield Problem("AKF-F355", message, pointer=f"/breakdown/{place}")


def _twice(capture: Value) -> Iterator[Problem]:
    """Problems of what would be counted twice."""
    for name, values in (
        ("breakdown", [line["rank"] for line in capture["breakdown"]]),
        ("entries", [canonical_bytes({key: entry.get(key) for key in _IDENTITY}) for entry in capture["entries"]]),
        *(
            (f"entries/{place}/counters", [counter["name"] for counter in entry.get("counters", ())])
            for place, entry in enumerate(capture["entries"])
        ),
    ):
        seen: dict[Any, int] = {}
        for place, value in enumerate(values):
            first = seen.setdefault(value, place)
            if first != place:
                yield Problem("AKF-F353", f"it is the same as /{name}/{first}", pointer=f"/{name}/{place}")


def _exposed(entry: Value, pointer: str, filled: dict[int, list[int]]) -> Iterator[Problem]:
    """Problems of an entry's exposed times, which are added to those of its rank."""
    rank = entry.get("rank") if entry.get("rank") is not None else next(iter(filled))
    if rank not in filled:
        message = f"{_name(entry)} ran on rank {rank}, of which no step was captured"
        yield Problem("AKF-F353", message, pointer=f"{pointer}/rank")
        return
    for part in ("exposed_ns", "longest_ns"):
        if (entry.get(part) or 0) > entry["time_ns"]:
            message = f"{_name(entry)}: {part} is {entry[part]}, all of its time is {entry['time_ns']} ns"
            yield Problem("AKF-F353", message, pointer=f"{pointer}/{part}")
    exposed = entry.get("steps_exposed_ns", ())
    if not exposed:
        return
    if len(exposed) != len(filled[rank]):
        message = f"{_name(entry)} has {len(exposed)} exposed times, rank {rank} has {len(filled[rank])} steps"
        yield Problem("AKF-F353", message, pointer=f"{pointer}/steps_exposed_ns")
        return
    if sum(exposed) != entry.get("exposed_ns"):
        message = f"{_name(entry)}: its exposed times add up to {sum(exposed)} ns, not to {entry.get('exposed_ns')} ns"
        yield Problem("AKF-F353", message, pointer=f"{pointer}/exposed_ns")
    filled[rank] = [so_far + more for so_far, more in zip(filled[rank], exposed, strict=True)]


def _lines(capture: Value) -> Iterator[Problem]:
    for place, line in enumerate(capture.get("breakdown", ())):
        total = sum(line[f"{name}_ns"] for name in LINES)
        if abs(total - line["step_ns"]) > _SLACK * line["step_ns"]:
            message = f"rank {line['rank']}: the lines add up to {total} ns, the steps took {line['step_ns']} ns"
            yield Problem("AKF-F352", message, pointer=f"/breakdown/{place}", hint="ingest the profile again")


def _split(capture: Value) -> Iterator[Problem]:
    """Problems of the lines by step."""
    for place, line in enumerate(capture.get("breakdown", ())):
        split = line.get("steps_lines")
        if split is None:
            continue
        pointer, walls = f"/breakdown/{place}/steps_lines", line.get("steps_ns", ())
        for name in (f"{each}_ns" for each in LINES):
            times = split[name]
            if len(times) != len(walls):
                message = f"rank {line['rank']}: {len(times)} steps have {name}, {len(walls)} have a time"
                yield Problem("AKF-F352", message, pointer=f"{pointer}/{name}")
            elif sum(times) != line[name]:
                message = f"rank {line['rank']}: {name} is {sum(times)} ns step by step, {line[name]} ns in all"
                yield Problem("AKF-F352", message, pointer=f"{pointer}/{name}")
        for step, (wall, *times) in enumerate(zip(walls, *(split[f"{each}_ns"] for each in LINES), strict=False)):
            if sum(times) != wall:
                message = f"rank {line['rank']}, step {step}: its lines add up to {sum(times)} ns, it took {wall} ns"
                yield Problem("AKF-F352", message, pointer=pointer)


def _checks(capture: Value) -> Iterator[Problem]:
    for place, check in enumerate(capture.get("checks", ())):
        if not check["holds"]:
            message = f"{check['name']}: one file says {check['expected_ns']} ns, the other {check['found_ns']} ns"
            yield Problem("AKF-F351", message, pointer=f"/checks/{place}", hint=EAGER)


def _calls(found: list[dict[str, Any]], policy: Policy, *, stated: bool) -> Iterator[Problem]:
    hint = EAGER if any(each["seen_calls"] for each in found) else OTHER
    for place, each in enumerate(found):
        expected, seen = each["expected_calls"], each["seen_calls"]
        if abs(seen - expected) > policy.most_missing_calls_ratio * expected:
            rank = f" on rank {each['rank']}" if each.get("rank") is not None else ""
            message = f"callsite {each['callsite']}{rank}: {expected} calls are expected, {seen} were seen"
            pointer = f"/completeness/{place}" if stated else "/entries"
            yield Problem("AKF-F350", message, pointer=pointer, expected=expected, found=seen, hint=hint)


def _name(entry: Value) -> str:
    return str(entry["callsite"] or kernel_of(entry))
