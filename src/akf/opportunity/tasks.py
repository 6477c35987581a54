"""`open-task`: a Task folder becomes a frozen Task of a run.

Invariants:
- The frozen Task carries the text of its reference and of every perturbed kernel: one digest covers them all.
- Files are read as plain files inside the Task's folder; a link or a path out of it is refused.
- A Task without triage keeps `opportunity: null` and cannot lead past inventory; numbers that a hand wrote are refused.
- The Task is covered by a capability tuple of the Campaign, or refused: unknown fails closed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from akf.contracts.documents import load
from akf.contracts.identity import capability_of
from akf.contracts.loader import Document, parse, read_input
from akf.contracts.problems import ConflictError, InvalidError, PreconditionError, Problem
from akf.contracts.rules.finding import at
from akf.contracts.rules.task import task_problems
from akf.store.run import Run, checked, ref, signer_for
from akf.store.untrusted import plain_path, read_tree


def open_task(run_path: Path, file: Path, keys: Path) -> dict[str, Any]:
    """Put a Task under a run; returns the frozen Task.

    Raises:
        InvalidError: the Task is invalid.
        PreconditionError: no capability tuple covers it, or its callsite is not the Workload's.
        ConflictError: the run has a Task of this id.
    """
    run = Run.open(run_path)
    document = load(file, "Task")
    problems = task_problems(document)
    if document.value["opportunity"] is not None:
        message = "this version has no triage, so nothing stands behind these numbers"
        problems.append(at(document, "/opportunity", "AKF-M034", message, hint="set opportunity to null"))
    if problems:
        raise InvalidError(problems)
    task = _frozen(document, file.parent, run)
    _covered(document, task, run)
    relative = f"tasks/{task['id']}.json"
    with run.locked():
        if (run.path / relative).exists():
            raise ConflictError.of(
                "AKF-C106", f"the run has a Task {task['id']!r} already", file=str(run.path / relative)
            )
        run.record(relative, task, signer_for(run, "supervisor", keys))
    return task


def _frozen(document: Document, folder: Path, run: Run) -> dict[str, Any]:
    data = run.read("run.json")
    value = {name: item for name, item in document.value.items() if name != "$schema"}
    reference = dict(value["reference"])
    reference["text"] = _text(folder, reference["path"])
    perturbed = []
    for kernel in value["perturbed"]:
        place = plain_path(folder, kernel["path"])
        files = read_tree(place, str(place))
        texts = [{"path": each.path, "text": _decode(each.data, each.path)} for each in files]
        perturbed.append({**kernel, "files": texts})
    parents = [ref(parse(data, "run.json").value, data)]
    frozen = {**value, "reference": reference, "perturbed": perturbed, "parents": parents}
    checked(frozen)
    return frozen


def _covered(document: Document, task: dict[str, Any], run: Run) -> None:
    problems: list[Problem] = []
    for index, route in enumerate(task["routes"]):
        if capability_of(run.campaign, task, route) is None:
            message = f"no capability tuple of the Campaign covers {task['op']} on route {route} over this domain"
            hint = "unknown combinations fail closed: narrow the Task, or add a tuple that was shown to work"
            problems.append(at(document, f"/routes/{index}", "AKF-P103", message, hint=hint))
    workload = parse(run.read("workload.json"), "workload.json").value
    callsites = [site["id"] for site in workload["callsites"]]
    if task["callsite"] not in callsites:
        message = f"callsite {task['callsite']!r} is not one of the Workload's"
        problems.append(at(document, "/callsite", "AKF-P104", message, expected=callsites, found=task["callsite"]))
    if problems:
        raise PreconditionError(problems)


def _text(folder: Path, path: str) -> str:
    return _decode(read_input(plain_path(folder, path)), path)


def _decode(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidError.of("AKF-S102", f"{path} is not UTF-8 text", file=path) from error
