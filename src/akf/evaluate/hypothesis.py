"""What profiled sessions of baseline and candidate say of the Candidate's one hypothesis.

Invariants:
- The answer never changes an outcome or a status. No time of a session enters a measurement.
- `unobserved` wherever the sessions cannot say it: there are none, they are of another platform or of other sizes, the
  clock changed, or no metric of the stated bound is in both.
- `confirmed` when the baseline was held by the stated bound, the candidate's launches are shorter, and a metric of the
  bound moved its way; `falsified` when one of the three is observed not to be so.
- Sums are integers, compared as products. What moves by less than `LEAST_CHANGE_PERCENT` has not moved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from akf.contracts.canonical import digest
from akf.contracts.documents import load
from akf.opportunity.bounds import COMPUTE, TRANSFER, active_bound
from akf.opportunity.policy import policy_of
from akf.opportunity.shares import Spot

Value = Mapping[str, Any]
Said = Literal["confirmed", "falsified", "unobserved"]
LEAST_CHANGE_PERCENT = 2
_MEMORY = "main_memory"


class Sessions(NamedTuple):
    """Captures of the baseline's and of the candidate's kernels, made with a profiler on."""

    baseline: Value
    candidate: Value
    digests: tuple[str, str]


class Answer(NamedTuple):
    """What was observed, and why it says so."""

    said: Said
    why: str


class _Figure(NamedTuple):
    """A sum over launches, and what it is divided by; more or less of it is better."""

    name: str
    total: int
    over: int
    fewer: bool = True


def sessions(paths: tuple[Path, Path]) -> Sessions:
    """Read two Captures, the baseline's first.

    Raises:
        InvalidError: one of them is no Capture.
    """
    baseline, candidate = (load(path, "Capture") for path in paths)
    return Sessions(baseline.value, candidate.value, (digest(baseline.source), digest(candidate.source)))


def observe(task: Value, candidate: Value, symbol: str, campaign: Value, found: Sessions | None) -> Answer:
    """What the sessions say.

    Args:
        task: the Task, whose callsite the baseline's kernels answer.
        candidate: the Candidate with its hypothesis.
        symbol: the candidate's kernel.
        campaign: the Campaign: its platform, and its thresholds of the bounds.
        found: the sessions, where there are any.
    """
    if found is None:
        return Answer("unobserved", "no profiled sessions were given")
    bound = candidate["claim"]["hypothesis"]["active_bound"]
    before, after = _entries(found.baseline, task["callsite"], None), _entries(found.candidate, None, symbol)
    reason = _not_comparable(campaign["platform"], found, before, after)
    if reason is not None:
        return Answer("unobserved", reason)
    pairs = _pairs(_FIGURES[bound](before, found.baseline), _FIGURES[bound](after, found.candidate))
    if not pairs:
        return Answer("unobserved", f"the sessions hold no metric of the bound {bound}")
    spot = Spot("baseline", "kernel", task["callsite"], tuple(before), _time(before), None, None, None, None, None)
    held = active_bound(spot, found.baseline, policy_of(found.baseline, campaign))["bound"]
    if held != bound:
        seen = "by no bound" if held == "unobserved" else f"by {held}"
        return Answer("falsified", f"the baseline is held {seen}, not by {bound}")
    latency = _Figure("time of a launch", _time(before), _calls(before)), _Figure("", _time(after), _calls(after))
    if not _moved(*latency):
        return Answer("falsified", f"launches are not shorter by {LEAST_CHANGE_PERCENT} %")
    moved = [one.name for one, other in pairs if _moved(one, other)]
    if not moved:
        names = ", ".join(one.name for one, _ in pairs)
        return Answer("falsified", f"launches are shorter, but {names} did not move by {LEAST_CHANGE_PERCENT} %")
    return Answer("confirmed", f"launches are shorter, and so moved {', '.join(moved)}")


def _entries(capture: Value, callsite: str | None, symbol: str | None) -> list[Value]:
    """The kernels of a callsite or of a symbol; of a session that holds one kernel only, that one."""
    entries: list[Value] = list(capture["entries"])
    if symbol is not None:
        return [each for each in entries if _is(each.get("kernel", ""), symbol)]
    own = [each for each in entries if each["callsite"] == callsite]
    alone = {each.get("kernel") for each in entries}
    return own or (entries if len(alone) == 1 and all(each["callsite"] is None for each in entries) else [])


def _is(kernel: str, symbol: str) -> bool:
    """Compilers append what a kernel became, behind an underscore."""
    return kernel == symbol or kernel.startswith(f"{symbol}_")


def _not_comparable(platform: str, found: Sessions, before: Sequence[Value], after: Sequence[Value]) -> str | None:
    for name, capture, entries in (("baseline", found.baseline, before), ("candidate", found.candidate, after)):
        if capture["platform"] != platform:
            return f"the {name}'s session is of platform {capture['platform']}, the Campaign of {platform}"
        if not entries:
            return f"the {name}'s session holds none of its kernels"
        if capture.get("clock") == "changed":
            return f"the clock changed during the {name}'s session"
    clocks = {tuple(capture.get("clocks_mhz", ())) for capture in (found.baseline, found.candidate)}
    if len(clocks) > 1:
        return "the sessions ran at different clocks"
    sizes = [sorted({tuple(sorted(each["symbols"].items())) for each in entries}) for entries in (before, after)]
    return None if sizes[0] == sizes[1] else "the sessions are of different sizes"


def _busy(units: frozenset[str], what: str) -> Callable[[Sequence[Value], Value], list[_Figure]]:
    """Busy time of some pipes, by launch and as a part of the launches' time."""

    def figures(entries: Sequence[Value], _: Value) -> list[_Figure]:
        counters = [each for entry in entries for each in entry.get("counters", ())]
        own = [each["time_ns"] for each in counters if each["name"].rsplit("_", 1)[-1] in units]
        if not own:
            return []
        spent = _Figure(f"time of {what} pipes", sum(own), _calls(entries))
        return [spent, _Figure(f"share of {what} pipes", sum(own), _time(entries), fewer=False)]

    return figures


def _transfer(entries: Sequence[Value], capture: Value) -> list[_Figure]:
    amounts = [each for entry in entries for each in entry.get("amounts", ())]
    moved = [each["value"] for each in amounts if each["unit"] == "bytes" and _MEMORY in each["name"]]
    traffic = [_Figure("main memory traffic", sum(moved), _calls(entries))] if moved else []
    return [*traffic, *_busy(TRANSFER, "transfer")(entries, capture)]


def _balance(entries: Sequence[Value], _: Value) -> list[_Figure]:
    mean: dict[str, int] = {}
    longest: dict[str, int] = {}
    for entry in entries:
        for each in entry.get("balance", ()):
            mean[each["unit"]] = mean.get(each["unit"], 0) + each["mean_ns"]
            longest[each["unit"]] = longest.get(each["unit"], 0) + each["longest_ns"]
    return [
        _Figure(f"idle cores of {unit}", longest[unit] - mean[unit], longest[unit])
        for unit in sorted(mean)
        if longest[unit] >= mean[unit] > 0
    ]


def _launch(entries: Sequence[Value], capture: Value) -> list[_Figure]:
    types = {f"{entry['op_type']}_Tiling" for entry in entries if entry.get("op_type")}
    host = [each for each in capture.get("host", ()) if each["api"] in types]
    found = []
    if host:
        calls = sum(each["calls"] for each in host)
        found.append(_Figure("host time of tiling", sum(each["time_ns"] for each in host), calls))
    steps = sum(each["steps"] for each in capture.get("breakdown", ()))
    if steps:
        found.append(_Figure("launches of a step", _calls(entries), steps))
        gap = sum(each["host_gap_ns"] for each in capture["breakdown"])
        found.append(_Figure("host gap of a step", gap, steps))
    return found


_FIGURES: dict[str, Callable[[Sequence[Value], Value], list[_Figure]]] = {
    "compute": _busy(COMPUTE, "compute"),
    "transfer": _transfer,
    "balance": _balance,
    "launch_graph": _launch,
}
"""The metrics of each bound: what a candidate that attacks it must move."""


def _pairs(before: Sequence[_Figure], after: Sequence[_Figure]) -> list[tuple[_Figure, _Figure]]:
    """Figures that both sessions have."""
    theirs = {each.name: each for each in after}
    return [(each, theirs[each.name]) for each in before if each.name in theirs]


def _moved(before: _Figure, after: _Figure) -> bool:
    """Whether a figure moved the right way by more than the least change."""
    old, new = before.total * after.over, after.total * before.over
    if before.fewer:
        return new * 100 < old * (100 - LEAST_CHANGE_PERCENT)
    return new * 100 > old * (100 + LEAST_CHANGE_PERCENT)


def _time(entries: Sequence[Value]) -> int:
    return sum(entry["time_ns"] for entry in entries)


def _calls(entries: Sequence[Value]) -> int:
    return sum(entry["calls"] for entry in entries)
