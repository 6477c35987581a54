"""Calls that a capture should hold, against those it holds.

Invariants:
1. A forward step calls a callsite as often as the Workload says; a capture of N whole steps holds N times that.
2. A callsite whose name begins with `prefill-` or `decode-` is called by such steps alone. The calls seen say how many
   steps were of which kind, rounded up to whole steps; a step that mixes requests may be of both. Steps of neither
   kind are missing decodes.
3. A callsite that was never seen is listed with 0 calls, not left out; one entry per rank, in the order of rank and id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_PREFILL, _DECODE = "prefill-", "decode-"


def completeness(
    workload: Mapping[str, Any],
    arm: str,
    entries: Iterable[Mapping[str, Any]],
    steps: Mapping[int, int],
) -> list[dict[str, Any]]:
    """Return the Capture's `completeness`.

    Args:
        workload: the Workload whose callsites the entries name.
        arm: the arm that was captured.
        entries: the Capture's entries; without a rank they belong to the only one.
        steps: whole forward steps that were captured, by rank.
    """
    seen: dict[tuple[int, str], int] = {}
    only = next(iter(steps), 0)
    for entry in entries:
        if entry["callsite"] is not None:
            rank = entry.get("rank")
            key = (only if rank is None else rank, entry["callsite"])
            seen[key] = seen.get(key, 0) + entry["calls"]
    listed = []
    for rank in sorted(steps):
        calls = {callsite: count for (at, callsite), count in seen.items() if at == rank}
        for callsite, expected in sorted(expected_calls(workload, arm, steps[rank], calls).items()):
            line = {"callsite": callsite, "expected_calls": expected, "seen_calls": calls.get(callsite, 0)}
            listed.append(line if len(steps) == 1 else {"rank": rank, **line})
    return listed


def expected_calls(workload: Mapping[str, Any], arm: str, steps: int, seen: Mapping[str, int]) -> dict[str, int]:
    """Return how often each callsite of the arm should have been called in this many steps.

    Args:
        workload: the Workload.
        arm: the arm; callsites without one are every arm's.
        steps: whole forward steps.
        seen: calls seen by callsite, by which steps of prefill and of decode are told apart.
    """
    per_step = {site["id"]: site["calls_per_step"] for site in workload["callsites"] if site.get("arm") in {None, arm}}
    prefills, decodes = (_steps(per_step, seen, kind) for kind in (_PREFILL, _DECODE))
    if any(_is(name, _PREFILL) for name in per_step):
        decodes = max(decodes, steps - prefills)
    return {
        name: calls * (prefills if _is(name, _PREFILL) else decodes if _is(name, _DECODE) else steps)
        for name, calls in per_step.items()
    }


def _steps(per_step: Mapping[str, int], seen: Mapping[str, int], kind: str) -> int:
    """Return how many steps of a kind the calls seen amount to."""
    return max((-(-seen.get(name, 0) // calls) for name, calls in per_step.items() if _is(name, kind)), default=0)


def _is(callsite: str, kind: str) -> bool:
    """Say whether a callsite, whose id may begin with its arm's, is of this kind of step."""
    return callsite.rpartition(".")[2].startswith(kind)
