"""What a survey answers: one document, and the same as a report.

Invariants:
- The ranked table is whole even where no answer can be given; what stands in the way is then in `problems`.
- Whatever nobody stated is `assumed`; whatever was not given is in `missing`, with what it is for and how to get it.
- `next` is a command that can be typed as it stands, but for words in capitals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.problems import PreconditionError
from akf.frameworks.arms import ARMS
from akf.opportunity.complete import computing
from akf.opportunity.policy import policy_of
from akf.opportunity.survey.gather import Asked, Gathered
from akf.opportunity.survey.paths import Walk
from akf.opportunity.triage import triage

Value = dict[str, Any]
_ROW = ("name", "what", "calls", "time_ns", "share_ratio", "low_ratio", "high_ratio", "ceiling_ratio",
        "needed_speedup_ratio", "active_bound", "answer", "rule")  # fmt: skip
_LINES = ("computing_ns", "communication_ns", "waiting_ns", "host_gap_ns", "idle_ns")
_SHOWN = ("mean", "p50", "p90", "p99")
PROFILE = "akf survey PROFILE_FOLDER"


class Surveyed(NamedTuple):
    """A survey's outcome.

    Attributes:
        document: what the command prints.
        triage: the body of the Triage; None where none could be made.
        refused: why not.
    """

    document: Value
    triage: Value | None
    refused: PreconditionError | None


def answer(walk: Walk, gathered: Gathered, asked: Asked, words: Sequence[str]) -> Surveyed:
    """Triage what was gathered.

    Args:
        walk: what was recognised.
        gathered: the artifacts.
        asked: what the person said.
        words: the command line, without what comes before the paths.
    """
    body, refused = _triage(gathered, asked)
    document: Value = {
        "recognised": [{"path": str(each.path), "kind": each.kind, "layout": each.layout} for each in walk.found],
        "passed_over_files": walk.passed,
        "answer": None if body is None else body["answer"],
        "ready": body is not None and body["ready"],
        "next": _next(body or {}, refused, gathered, asked, words),
        "missing": missing(gathered, asked),
        "blockers": [] if body is None else [{"file": each["artifact"], **each} for each in body["blockers"]],
        "hotspots": _unanswered(gathered) if body is None else [_row(each) for each in body["hotspots"]],
        "lines": [] if body is None else body["lines"],
        "captures": [_capture(each) for each in gathered.captures],
        "apart": list(_apart(gathered)),
        "workload": _workload(gathered),
        "benchmarks": _benchmarks(gathered),
        "comparisons": gathered.comparisons,
        "health": None if body is None else body["health"],
        "completeness": None if body is None else body["completeness"],
        "cost": None if body is None else body["cost"],
        "policy": [] if body is None else body["policy"],
        "problems": [] if refused is None else [problem.to_json() for problem in refused.problems],
    }
    return Surveyed(document, body, refused)


def _triage(gathered: Gathered, asked: Asked) -> tuple[Value | None, PreconditionError | None]:
    if not gathered.captures:
        message = "no profile was given, so nothing is known of where the time goes"
        hint = f"profile some steps and name the folder: {PROFILE}"
        return None, PreconditionError.of("AKF-F405", message, hint=hint)
    capture, *others = gathered.captures
    references = gathered.refs()[1:]
    policy = policy_of(capture, None, asked.policy, stage=asked.stage)._replace(arm=asked.arm)
    callsites = gathered.framework.workload if gathered.framework is not None else None
    try:
        return triage(callsites, capture, policy, list(zip(others, references, strict=True)), file="capture.json"), None
    except PreconditionError as error:
        return None, error


def missing(gathered: Gathered, asked: Asked) -> list[Value]:
    """What was not given, what it is for, and how to get it."""
    found = []
    if not gathered.captures:
        found.append(_lack("profile", "where the time goes", "profile some steps: docs/commands/ingest-profile.md"))
    if gathered.framework is None:
        arms = ", ".join(ARMS)
        remedy = f"add the model's config.json, and --arm with one of {arms}"
        found.append(_lack("callsites", "which operator a kernel belongs to, and whether all calls were seen", remedy))
    elif asked.revision is None:
        remedy = "name it with --revision"
        found.append(_lack("revision", "whether the map of callsites holds for this framework", remedy))
    if gathered.traffic is None:
        remedy = "add a trace of requests: docs/commands/ingest-trace.md"
        found.append(_lack("traffic", "what the service is asked to do, and how often", remedy))
    if gathered.benchmark is None:
        remedy = "add the result of a benchmark client: docs/commands/ingest-bench.md"
        found.append(_lack("benchmark", "how fast the service is today", remedy))
    if "target_ratio" not in asked.policy:
        found.append(_lack("target", "which speed-up of the service is worth a Task", "name it with --target"))
    return found


def _lack(what: str, needed_for: str, remedy: str) -> Value:
    return {"what": what, "needed_for": needed_for, "remedy": remedy}


def _next(
    body: Value, refused: PreconditionError | None, gathered: Gathered, asked: Asked, words: Sequence[str]
) -> Value:
    again = " ".join(["akf survey", *words])
    if not gathered.captures:
        return {"command": f"{again} PROFILE_FOLDER", "purpose": "The same with a profile."}
    if refused is not None:
        return {
            "command": PROFILE,
            "purpose": f"A new profile: {refused.problems[0].hint or refused.problems[0].message}.",
        }
    if body["answer"]["answer"] is None:
        return {"command": PROFILE, "purpose": f"A new profile: {body['blockers'][0]['expected']}"}
    if gathered.framework is None:
        arm = "" if asked.arm is not None else " --arm ARM"
        return {
            "command": f"{again}{arm} --model-config CONFIG_JSON",
            "purpose": "The same with callsites: without them no Task can be opened.",
        }
    if body["answer"]["answer"] == "no_go":
        return {"command": f"akf explain {body['answer']['rule']}", "purpose": "Why nothing here is worth a Task."}
    if body["blockers"]:
        return {"command": body["blockers"][0]["command"], "purpose": body["blockers"][0]["expected"]}
    return {
        "command": "akf triage CAMPAIGN",
        "purpose": "The same answer for a Campaign that names this Workload and this Capture, then akf open-task: "
        "docs/from-traffic-to-task.md.",
    }


def _row(spot: Mapping[str, Any]) -> Value:
    row = {**spot, **(spot["interval"] or {}), "active_bound": spot["active_bound"]["bound"]}
    return {name: row.get(name) for name in _ROW}


def _unanswered(gathered: Gathered) -> list[Value]:
    """The ranked table by device time alone: an incomplete Capture has no shares of its steps."""
    totals: dict[str, list[int]] = {}
    for entry in gathered.captures[0]["entries"] if gathered.captures else ():
        if computing(entry):
            name = entry["callsite"] or entry.get("op_type") or entry.get("kernel") or entry["core_type"]
            held = totals.setdefault(name, [0, 0])
            held[0] += entry["calls"]
            held[1] += entry["time_ns"]
    ranked = sorted(totals.items(), key=lambda each: (-each[1][1], each[0]))
    return [{**dict.fromkeys(_ROW), "name": name, "calls": calls, "time_ns": time} for name, (calls, time) in ranked]


def _capture(capture: Mapping[str, Any]) -> Value:
    ranks = capture.get("breakdown", ())
    return {
        "id": capture["id"],
        "tool": f"{capture['tool']['name']} {capture['tool']['version']}",
        "platform": capture["platform"],
        "stage": capture.get("stage"),
        "ranks": len(ranks),
        "steps": min((line["steps"] for line in ranks), default=0),
        "bounds": ranks[0].get("bounds") if ranks else None,
        "step_ns": sum(line["step_ns"] for line in ranks),
        **{name: sum(line[name] for line in ranks) for name in _LINES},
        "kernels": len(capture["entries"]),
        "clock": capture["clock"],
        "checks_that_fail": sum(not check["holds"] for check in capture.get("checks", ())),
    }


def _apart(gathered: Gathered) -> Iterator[Value]:
    """Captures that were not taken together with the first one, and why."""
    for capture in gathered.captures[1:]:
        first, own = (gathered.groups[each["id"]] for each in (gathered.captures[0], capture))
        differ = [
            f"{name} is {own.recorded.get(name, 'not stated')}, not {first.recorded.get(name, 'not stated')}"
            for name in sorted(own.recorded.keys() | first.recorded.keys())
            if own.recorded.get(name) != first.recorded.get(name)
        ]
        profiles = ", ".join(path.name for path in own.paths)
        yield {"capture": capture["id"], "profiles": profiles, "because": "; ".join(differ)}


def _workload(gathered: Gathered) -> Value | None:
    workload = gathered.workload
    if workload is None and gathered.traffic is None:
        return None
    return {
        "id": None if workload is None else workload["id"],
        "model": None if workload is None else workload["model"],
        "callsites": 0 if workload is None else len(workload["callsites"]),
        "stages": [
            {key: stage.get(key) for key in ("id", "requests", "weight_ratio")}
            for stage in (() if workload is None else workload["stages"])
        ],
        "traffic": gathered.traffic,
    }


def _benchmarks(gathered: Gathered) -> list[Value]:
    return [_benchmark(result) for result in (gathered.benchmark or {"results": ()})["results"]]


def _benchmark(result: Mapping[str, Any]) -> Value:
    facts = {fact["name"]: fact["value"] for fact in result.get("identity", ())}
    figures = {
        f"{metric['concept']}_{metric['statistic']}_ns": metric["value_ns"]
        for metric in result["metrics"]
        if metric["statistic"] in _SHOWN
    }
    return {
        "id": result["id"],
        "file": ", ".join(Path(source["name"]).name for source in result["sources"]),
        "tool": result["harness"]["name"],
        "model": facts.get("model"),
        "completed": result["requests"]["completed"],
        "failed": result["requests"]["failed"],
        "output_tokens_per_s": result["throughput"].get("output_tokens_per_s"),
        **figures,
        "refused": len(result.get("refused", ())),
    }
