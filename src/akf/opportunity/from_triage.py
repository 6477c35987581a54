"""`open-task` with a triage answer: the Task of the answer's type.

Invariants:
- A kernel Task takes its semantics (ABI, reference, perturbed kernels, tolerance) from a Task file and its numbers from
  the Triage: opportunity, and rows with the weights of the traffic. Where the two contradict each other it is refused.
- Bytes and operations of a row follow from the callsite's sizes where a formula is known; else they are the Task
  file's, and a shape without them is refused.
- Any other Task asks for no kernel; its `problem` is the triage's rule, evidence and lever.
"""

from __future__ import annotations

from typing import Any

from akf.contracts.coverage import by_domain
from akf.contracts.ids import is_relative_path
from akf.contracts.loader import Document
from akf.contracts.problems import PreconditionError, Problem
from akf.contracts.rules.finding import at
from akf.frameworks.costs import cost
from akf.opportunity import answer, health
from akf.opportunity.answered import Answered

MOST_ROWS = 16
"""Rows of a Task; each is measured in every pair."""
_BUDGET_TOKENS = 0
_LONGEST_ID = 63

Value = dict[str, Any]


def without_kernel(answered: Answered) -> Value:
    """A Task that asks for no kernel."""
    spot, whole = answered.spot, answered.value["answer"]
    said = spot if spot is not None else whole
    site = _site(answered)
    subject = answered.name or "baseline"
    task: Value = {
        "kind": "Task",
        "schema_version": 1,
        "id": _id(answered.type, subject),
        "parents": answered.parents(),
        "title": f"{answered.type.capitalize()}: {subject}",
        "type": answered.type,
        "op": None if site is None else site["op"],
        "callsite": None if site is None else site["id"],
        "graph": None if site is None else site["graph"]["mode"],
        "routes": [],
        "abi": None,
        "domain": [],
        "rows": [],
        "cases": [],
        "tolerance": None,
        "reference": None,
        "perturbed": [],
        "problem": {
            "subject": subject,
            "rule": said["rule"],
            "lever": {**answer.LEVERS, **health.LEVERS}[said["rule"]],
            "evidence": _evidence(answered),
            "allowed_paths": _paths(site),
        },
        "budget": _budget(answered),
        "write_paths": ["inbox"],
    }
    return {**task, "opportunity": answered.opportunity(task)}


def filled(answered: Answered, template: Document) -> Document:
    """A kernel Task of a Task file's semantics, with the Triage's numbers; problems name the Task file.

    Raises:
        PreconditionError: Task file and triage contradict each other.
    """
    site = _site(answered)
    assert site is not None  # noqa: S101 - a kernel answer has a callsite
    problems = [*_contradictions(template, site, answered.type)]
    rows, missing = _rows(answered, template, site) if not problems else ([], [])
    problems += missing
    if problems:
        raise PreconditionError(problems)
    task = {**template.value, "rows": rows, "parents": answered.parents()}
    task["opportunity"] = answered.opportunity(task)
    return Document(task, template.file, template.source)


def _contradictions(template: Document, site: Value, kind: str) -> list[Problem]:
    """Where the Task file says other things of the callsite than the Workload."""
    task = template.value
    wanted = {"type": kind, "op": site["op"], "callsite": site["id"], "graph": site["graph"]["mode"]}
    found = [
        at(
            template,
            f"/{name}",
            "AKF-F380",
            f"`{name}` is {task[name]}, the triage's is {value}",
            expected=value,
            found=task[name],
        )
        for name, value in wanted.items()
        if task[name] != value
    ]
    if task["opportunity"] is not None:
        found.append(at(template, "/opportunity", "AKF-F380", "the numbers are the triage's", hint="set it to null"))
    operands = {operand["name"]: operand for operand in site["operands"]}
    for place, mine in enumerate(task["abi"]["operands"] if task["abi"] is not None else ()):
        theirs = operands.pop(mine["name"], None)
        if theirs is None or not _agrees(mine, theirs):
            message = f"operand {mine['name']} is not the callsite's"
            found.append(at(template, f"/abi/operands/{place}", "AKF-F380", message, expected=theirs, found=mine))
    if operands and task["abi"] is not None:
        message = f"the ABI lacks operands of the callsite: {', '.join(sorted(operands))}"
        found.append(at(template, "/abi/operands", "AKF-F380", message, expected=sorted(operands)))
    values = {each["name"]: each["values"] for each in (task["abi"] or {}).get("attributes", ())}
    for attribute in site.get("attributes", ()):
        if attribute["value"] not in values.get(attribute["name"], ()):
            message = f"the attribute {attribute['name']} = {attribute['value']} of the callsite is outside the ABI"
            found.append(at(template, "/abi/attributes", "AKF-F380", message, expected=attribute))
    return found


def _agrees(mine: Value, theirs: Value) -> bool:
    """Whether an operand is the callsite's, over a domain that may be narrower."""
    same = all(mine[name] == theirs[name] for name in ("access", "dtype", "layout"))
    shapes = mine["shape"], theirs["shape"]
    return same and len(shapes[0]) == len(shapes[1]) and all(map(_size_agrees, *shapes))


def _size_agrees(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, int) or isinstance(theirs, int):
        return bool(mine == theirs)
    inside = theirs["min"] <= mine["min"] and mine["max"] <= theirs["max"]
    return bool(inside and mine["sym"] == theirs["sym"] and mine["multiple_of"] % theirs["multiple_of"] == 0)


def _rows(answered: Answered, template: Document, site: Value) -> tuple[list[Value], list[Problem]]:
    """The shapes of the traffic inside the Task's domain, weighted, the `MOST_ROWS` with most weight."""
    inside = by_domain(template.value["domain"])
    weights = {key: weight for key, weight in _weights(answered, site).items() if weight > 0 and inside(dict(key))}
    if not weights:
        message = "no shape of the traffic lies inside the Task's domain"
        return [], [at(template, "/domain", "AKF-F381", message)]
    kept = sorted(weights, key=lambda key: (-weights[key], key))[:MOST_ROWS]
    known = {_symbols(row["symbols"]): place for place, row in enumerate(template.value["rows"])}
    rows, problems, missing = [], [], []
    for key in sorted(kept):
        place = known.get(key)
        row = _row(site, dict(key)) if place is None else template.value["rows"][place]
        least = cost(site, dict(key))
        figures = {"bytes": least.bytes, "operations": least.operations}
        if place is None and None in figures.values():
            missing.append(", ".join(f"{name} = {size}" for name, size in key))
            continue
        for name, value in figures.items():
            if value is not None and row.get(name, value) != value:
                message = f"{row['id']} has {row[name]} {name}, a call of these sizes takes {value}"
                more = {"expected": value, "found": row[name]}
                problems.append(at(template, f"/rows/{place}/{name}", "AKF-F380", message, **more))
        known_figures = {name: value for name, value in figures.items() if value is not None}
        rows.append({**row, **known_figures, "weight": weights[key]})
    if missing:
        message = f"the traffic has shapes whose bytes and operations are not known: {'; '.join(missing)}"
        hint = "add a row for each, with its bytes and operations; or narrow the domain"
        problems.append(at(template, "/rows", "AKF-F381", message, expected=missing, hint=hint))
    return rows, problems


def _row(site: Value, symbols: dict[str, int]) -> Value:
    """A row that the Task file lacks, without its figures."""
    return {
        "id": "-".join(f"{name.lower()}-{size}" for name, size in symbols.items()) or "only",
        "symbols": symbols,
        "attributes": {each["name"]: each["value"] for each in site.get("attributes", ())},
    }


def _weights(answered: Answered, site: Value) -> dict[tuple[tuple[str, int], ...], float]:
    """Share of the callsite's calls by sizes: of the Workload's stage, else as seen in the Capture; by size."""
    stage = answered.value["stage"]
    stages = [each for each in answered.workload["stages"] if stage in {None, each["id"]}]
    if len(stages) == 1 and stages[0]["shapes"]:
        found = {
            _symbols(each["symbols"]): float(each["weight_ratio"])
            for each in stages[0]["shapes"]
            if each["callsite"] == site["id"]
        }
        if found:
            return dict(sorted(found.items()))
    calls: dict[tuple[tuple[str, int], ...], int] = {}
    for entry in answered.capture["entries"]:
        if entry["callsite"] == site["id"]:
            key = _symbols(entry["symbols"])
            calls[key] = calls.get(key, 0) + entry["calls"]
    total = sum(calls.values())
    return {key: count / total for key, count in sorted(calls.items())}


def _symbols(symbols: Value) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(symbols.items()))


def _site(answered: Answered) -> Value | None:
    callsite = None if answered.spot is None else answered.spot["callsite"]
    return next((site for site in answered.workload["callsites"] if site["id"] == callsite), None)


def _evidence(answered: Answered) -> list[str]:
    """The comparison that decided; on an unhealthy baseline everything that is wrong with it."""
    if answered.spot is None:
        return [finding["text"] for finding in answered.value["health"]["findings"]]
    return [answered.spot["text"]]


def _paths(site: Value | None) -> list[str]:
    """The file of the framework that holds the callsite, where its description begins with a path."""
    first = "" if site is None else site["site"].split(" ", 1)[0]
    return [first] if is_relative_path(first) else []


def _budget(answered: Answered) -> Value:
    policy = {each["name"]: each["value"] for each in answered.value["policy"]}
    return {"attempts": policy["candidates"], "evaluation_s": policy["evaluation_s"], "tokens": _BUDGET_TOKENS}


def _id(kind: str, subject: str) -> str:
    """An id from type and subject: what may not stand in one becomes `-`."""
    kept = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in subject.lower())
    return f"{kind}-{kept}"[:_LONGEST_ID]
