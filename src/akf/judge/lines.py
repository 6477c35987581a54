"""What the ledger must say of an attempt, as row 0 of the decision table demands.

Invariants:
- A line's event is the kind that stands at its path, no path has two lines (a plan that is resumed apart), and wherever
  a line's file is at hand it has the line's bytes and facts.
- Every artifact of the attempt has its line, every line of the attempt its artifact, parents before children.
- A gate's line comes after its plan's, and the gate says how often its evaluation was started again.
- A plan says how many evaluations of its Task came before it and a Candidate how many tries of its sources, so that
  none can be taken out of the ledger unseen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from akf.contracts.canonical import digest
from akf.contracts.problems import Problem
from akf.store import layout
from akf.store.ledger import Line
from akf.store.verify import parent_path, tries

LEDGER = "ledger.jsonl"
_BOUND = frozenset({"candidate", "plan", "gate", "resume"})


def prefix(lines: tuple[Line, ...], base: str) -> tuple[Line, ...]:
    """The ledger up to the last gate line of the attempt, or else up to its last line before a decision."""
    mine = [line for line in lines if line.path.startswith(f"{base}/") and line.event != "decision"]
    gates = [line for line in mine if line.event == "gate"]
    last = (gates or mine or list(lines[:1]))[-1]
    return lines[: last.seq + 1]


def line_problems(
    lines: Sequence[Line], files: Mapping[str, bytes], mine: Mapping[str, dict[str, Any]], base: str
) -> list[Problem]:
    """What does not hold between the ledger and the files.

    Args:
        lines: the whole ledger, its chain verified.
        files: the run's files.
        mine: the attempt's artifacts and its Task, verified, by path.
        base: the attempt's folder.
    """
    problems: list[Problem] = []
    seen: set[str] = set()
    for line in lines:
        problems += _one(line, files, seen, base)
        seen.add(line.path)
        if line.path in mine and line.event not in {"resume", "decision"}:
            problems += _child(line, mine[line.path], lines, seen)
    return [
        *problems,
        *(_problem("AKF-I210", f"{path} has no line in the ledger", path) for path in sorted(set(mine) - seen)),
    ]


def _one(line: Line, files: Mapping[str, bytes], seen: set[str], base: str) -> list[Problem]:
    """Problems of one line by itself and against the file that it names."""
    problems = []
    place = layout.place(line.path)
    again = line.event == "resume"
    kind = "plan" if again else line.event
    if place is None or place.slot.kind.lower() != kind or (again and line.path not in seen):
        message = f"line {line.seq + 1} of the ledger says {line.event} of {line.path}"
        problems.append(_problem("AKF-I230", message, LEDGER))
    if line.path in seen and not again:
        problems.append(_problem("AKF-I209", f"the ledger names {line.path} twice", LEDGER))
    data = files.get(line.path)
    if data is None:
        if line.path.startswith(f"{base}/") and line.event != "decision":
            problems.append(_problem("AKF-I202", f"{line.path} is missing; the ledger names it", line.path))
    elif digest(data) != line.digest:
        message = f"{line.path} has other bytes than the ledger names"
        problems.append(_problem("AKF-I211", message, line.path, expected=line.digest, found=digest(data)))
    else:
        wanted = _facts(data, line.event) if line.event in _BOUND else {}
        if any(line.facts.get(name) != value for name, value in wanted.items()):
            message = f"line {line.seq + 1} of the ledger says other things of {line.path} than the artifact"
            problems.append(_problem("AKF-I230", message, LEDGER, expected=wanted, found=dict(line.facts)))
    if line.event == "gate" and line.path.replace("/gates/", "/plan/") not in seen:
        problems.append(_problem("AKF-I207", f"{line.path} was never planned", line.path))
    return problems


def _child(line: Line, value: dict[str, Any], lines: Sequence[Line], seen: set[str]) -> list[Problem]:
    """Problems of an artifact of the attempt against the lines before its own."""
    place = layout.place(line.path)
    candidate, gate = (place.candidate, place.gate) if place else (None, None)
    problems = []
    for ref in value["parents"]:
        parent = parent_path(ref["kind"], ref["id"], candidate, gate)
        if "/" in parent and parent not in seen:  # the root artifacts stand before the first line
            message = f"{line.path} stands in the ledger before its parent {parent}"
            problems.append(_problem("AKF-I231", message, LEDGER))
    said, found, what = _counted(line, value, lines[: line.seq])
    if said != found:
        message = f"{line.path} counts other {what} before it than the ledger holds"
        problems.append(_problem("AKF-I232", message, LEDGER, expected=said, found=found))
    return problems


def _counted(line: Line, value: dict[str, Any], before: Sequence[Line]) -> tuple[int, int, str]:
    """What a signed artifact says of the lines before its own, and what they are."""
    task = next((ref["id"] for ref in value["parents"] if ref["kind"] == "Task"), None)
    if value["kind"] == "Plan":
        return value["tries_before"], tries(before, str(task)), "evaluations of its Task"
    if value["kind"] == "Gate":
        plan = line.path.replace("/gates/", "/plan/")
        return (
            value.get("resumes", 0),
            sum((each.event, each.path) == ("resume", plan) for each in before),
            "resumptions",
        )
    if value["kind"] == "Candidate":
        wanted = {"task": task, "source_digest": value["source_digest"]}.items()
        same = sum(each.event == "candidate" and wanted <= dict(each.facts).items() for each in before)
        return value["try_number"], same + 1, "tries of its sources"
    return 0, 0, ""


def _facts(data: bytes, event: str) -> dict[str, Any]:
    """The facts of a line that bear on the judgement, as the artifact itself states them."""
    try:
        value = orjson.loads(data)
        parents = {ref["kind"]: ref["id"] for ref in value["parents"]}
        if event == "candidate":
            return {"task": parents["Task"], "source_digest": value["source_digest"]}
        facts = {"task": parents["Task"], "candidate": parents["Candidate"], "gate": value["gate"]}
        return {**facts, "secret_digest": value["secret_digest"]} if event == "plan" else facts
    except (ValueError, KeyError, TypeError):
        return {"task": None}


def _problem(code: str, message: str, file: str, **more: Any) -> Problem:
    return Problem(code, message, file=file, **more)
