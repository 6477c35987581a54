"""`open-task`: a Task folder, or a triage answer, becomes a frozen Task of a run.

Invariants:
- The frozen Task carries the text of its reference and of every perturbed kernel: one digest covers them all.
- Files are read as plain files inside the Task's folder; a link or a path out of it is refused.
- A Task without triage keeps `opportunity: null` and cannot lead past inventory; numbers that a hand wrote are refused.
- With a triage answer the further Captures that it looked at are recorded first, then the Triage, then the Task that
  names it; a crash between leaves what was recorded, and the same command goes on from there.
- A Task that asks for a kernel is covered by a capability tuple of the Campaign, or refused: unknown fails closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from akf.contracts.documents import load
from akf.contracts.gates import routes_of
from akf.contracts.identity import capability_of
from akf.contracts.loader import Document, parse, read_input
from akf.contracts.problems import ConflictError, InvalidError, PreconditionError, Problem, UsageError
from akf.contracts.rules.finding import at
from akf.contracts.rules.task import asks_for_kernel, task_problems
from akf.opportunity.answered import Answered
from akf.opportunity.from_triage import filled, without_kernel
from akf.store.run import Run, checked, ref, signer_for
from akf.store.untrusted import plain_path, read_tree

Value = dict[str, Any]


def open_task(
    run_path: Path,
    file: Path,
    keys: Path,
    *,
    callsite: str | None = None,
    template: Path | None = None,
    captures: Sequence[Path] = (),
) -> Value:
    """Put a Task under a run; returns the frozen Task.

    Args:
        run_path: the run.
        file: a Task file, or a Triage of this run.
        keys: folder of the role keys; the supervisor's signs.
        callsite: hotspot of the Triage that the Task is about; the answer's when None.
        template: Task file with the semantics of a kernel Task, for a Triage.
        captures: further Captures that the Triage looked at, as far as the run does not hold them.

    Raises:
        InvalidError: the Task is invalid.
        UsageError: an option does not fit the file.
        IntegrityError: the Triage is not what the run's inputs give.
        PreconditionError: no capability tuple covers it, its callsite is not the Workload's, or the triage does not
            answer with a Task.
        ConflictError: the run has a Task of this id, or another Triage.
    """
    run = Run.open(run_path)
    answered = None
    if _kind(file) == "Triage":
        answered = Answered(run, load(file, "Triage"), callsite, [load(each, "Capture") for each in captures])
        task = _answer(run, answered, template)
    else:
        for name, given in (("--callsite", callsite), ("--from", template), ("--capture", captures or None)):
            if given is not None:
                message = f"{name} goes with a triage answer, {file} is none"
                raise UsageError.of("AKF-F389", message, file=str(file))
        task = _by_hand(run, load(file, "Task"))
    relative = f"tasks/{task['id']}.json"
    with run.locked():
        if (run.path / relative).exists():
            raise ConflictError.of(
                "AKF-C106", f"the run has a Task {task['id']!r} already", file=str(run.path / relative)
            )
        if answered is not None:
            answered.record(keys)
        run.record(relative, task, signer_for(run, "supervisor", keys))
    return task


def _kind(file: Path) -> object:
    return parse(read_input(file), str(file)).value.get("kind")


def _by_hand(run: Run, document: Document) -> Value:
    problems = task_problems(document)
    if document.value["opportunity"] is not None:
        message = "these numbers were written by hand: no triage of this run stands behind them"
        hint = "set opportunity to null, or let a triage fill it: akf open-task RUN TRIAGE --from FILE"
        problems.append(at(document, "/opportunity", "AKF-M034", message, hint=hint))
    if problems:
        raise InvalidError(problems)
    data = run.read("run.json")
    task = _frozen(document, [ref(parse(data, "run.json").value, data)])
    _covered(document, task, run)
    return task


def _answer(run: Run, answered: Answered, template: Path | None) -> Value:
    if template is None:
        if answered.type == "kernel":
            message = (
                f"a kernel Task for {answered.name} needs its semantics: ABI, reference, perturbed kernels, tolerance"
            )
            hint = "name a Task file that has them: --from TASK_FILE"
            raise UsageError.of("AKF-F389", message, file=answered.document.file, hint=hint)
        task = without_kernel(answered)
        checked(task)
        return task
    if answered.type not in {"kernel", "integration"}:
        message = f"--from goes with a kernel or an integration answer, this one is {answered.type}"
        raise UsageError.of("AKF-F389", message, file=str(template))
    document = load(template, "Task")
    problems = task_problems(document)
    if not problems and not asks_for_kernel(document.value):
        message = "a Task file that a triage fills states how kernels are called"
        problems = [at(document, "/abi", "AKF-F370", message)]
    if problems:
        raise InvalidError(problems)
    whole = filled(answered, document)
    task = _frozen(whole, whole.value["parents"])
    _covered(document, task, run)
    return task


def _frozen(document: Document, parents: list[dict[str, str]]) -> Value:
    value = with_texts(document) | {"parents": parents}
    checked(value)
    return value


def with_texts(document: Document) -> Value:
    """A Task file's value with the texts of its reference and its kernels.

    Raises:
        InvalidError: a file is missing, is a link, leaves the folder or is no text.
    """
    value = {name: item for name, item in document.value.items() if name != "$schema"}
    folder = Path(document.file).parent
    if value["reference"] is not None:
        value["reference"] = {**value["reference"], "text": _text(folder, value["reference"]["path"])}
    for name in [name for name in ("perturbed", "plain") if name in value]:
        value[name] = [{**kernel, "files": _files(folder, kernel["path"])} for kernel in value[name]]
    return value


def _covered(document: Document, task: Value, run: Run) -> None:
    problems: list[Problem] = []
    for index, route in enumerate(routes_of(task)):
        if capability_of(run.campaign, task, route) is None:
            message = f"no capability tuple of the Campaign covers {task['op']} on route {route} over this domain"
            hint = "unknown combinations fail closed: narrow the Task, or add a tuple that was shown to work"
            pointer = f"/routes/{index}" if task["routes"] else "/abi/kind"
            problems.append(at(document, pointer, "AKF-P103", message, hint=hint))
    workload = parse(run.read("workload.json"), "workload.json").value
    callsites = [site["id"] for site in workload["callsites"]]
    if task["callsite"] is not None and task["callsite"] not in callsites:
        message = f"callsite {task['callsite']!r} is not one of the Workload's"
        problems.append(at(document, "/callsite", "AKF-P104", message, expected=callsites, found=task["callsite"]))
    if problems:
        raise PreconditionError(problems)


def _files(folder: Path, path: str) -> list[dict[str, str]]:
    place = plain_path(folder, path)
    return [{"path": each.path, "text": _decode(each.data, each.path)} for each in read_tree(place, str(place))]


def _text(folder: Path, path: str) -> str:
    return _decode(read_input(plain_path(folder, path)), path)


def _decode(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidError.of("AKF-S102", f"{path} is not UTF-8 text", file=path) from error
