"""The audit of one run.

Invariants:
- It reads only the run's folder, and a trust root from outside where one is given; it writes nothing without `--clean`.
- Every file of the run is accounted for: an artifact, its signature, what an artifact names, a known plain file, or
  what an interrupted command left behind.
- Every line of the ledger is what its artifact makes it; every Triage is recomputed from the run's inputs, every metric
  of a gate from its raw samples, every Decision from its evidence.
- What a killed command left is no break: a pending artifact is judged with the line that it will get, a last line that
  was never confirmed does not count.
- A command that works meanwhile is no break either: what was found while the run changed is looked at again.
- All breaks are listed in the order of the files; where there is one, nothing is cleaned.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import orjson

from akf.audit.metrics import metric_problems
from akf.contracts.canonical import digest
from akf.contracts.documents import load
from akf.contracts.gates import GATES
from akf.contracts.justified import justified_problems, triage_of
from akf.contracts.problems import AkfError, IntegrityError, Problem
from akf.judge.decide import decided
from akf.judge.evidence import read as read_evidence
from akf.judge.lines import line_problems
from akf.opportunity.artifact import recomputed_problems
from akf.store import layout, ledger
from akf.store.collect import attempt_files, plain_files, read_plain
from akf.store.left import clean as remove
from akf.store.left import left_behind, orphans
from akf.store.leftovers import is_temporary
from akf.store.lock import LOCK
from akf.store.run import EVENTS, Run, checked, facts_of
from akf.store.verify import signature_path
from akf.trust.keys import pinned

_T = TypeVar("_T")
_PLAIN = (layout.LEDGER, layout.JOURNAL)
_PARTS = ("source", "build", *(f"samples/{gate}" for gate in GATES))
_WRITABLE = 0o222
_LOOKS = 8


def audit(path: Path, trust: Path | None, *, clean: bool = False) -> dict[str, Any]:
    """Audit a run.

    Args:
        path: the run's folder.
        trust: a trust root from outside, or None.
        clean: remove what interrupted commands left behind.

    Returns:
        What was checked.

    Raises:
        IntegrityError: everything that does not hold.
    """
    run = Run.open(path)
    for _ in range(_LOOKS - 1):
        before = _state(run)
        try:
            return _look(run, trust, clean=clean)
        except IntegrityError:
            if _state(run) == before:
                raise
    return _look(run, trust, clean=clean)


def _state(run: Run) -> tuple[list[str], bytes | None]:
    """What a command that works meanwhile changes; a ledger that cannot be read is said elsewhere."""
    return plain_files(run.path, run.path), _try(lambda: read_plain(run.path, layout.LEDGER), [])


def _look(run: Run, trust: Path | None, *, clean: bool) -> dict[str, Any]:
    """Audit the run as it stands."""
    path = run.path
    problems: list[Problem] = []
    trusted = _trust(run, trust, problems)
    lines = _try(lambda: run.lines(torn=True), problems) or ()
    book, pending = _try(run.foreseen, problems) or (None, [])
    attempts = sorted(each.name for each in _folders(path / layout.ATTEMPTS))
    tasks = sorted(each.stem for each in (path / layout.TASKS).glob("*.json") if not each.name.endswith(".sig.json"))
    for name in ("run.json", *(slot.template for slot in layout.ARTIFACTS[1:5])):
        _try(lambda name=name: run.load(name), problems)  # type: ignore[misc]
    for name in plain_files(path, path / layout.CAPTURES):
        if layout.place(name) is not None:
            _try(lambda name=name: run.load(name), problems)  # type: ignore[misc]
    triages = [name for name in plain_files(path, path / layout.TRIAGE) if layout.place(name) is not None]
    for name in triages:
        document = _try(lambda name=name: run.load(name), problems)  # type: ignore[misc]
        if document is not None:
            problems += _try(lambda value=document.value: recomputed_problems(value, run), problems) or []  # type: ignore[misc]
    for task in tasks:
        _task(run, task, problems)
    decisions = [_attempt(run, attempt, book, problems) for attempt in attempts]
    _entries(run, lines, problems)
    _files(run, attempts, problems)
    leftovers = left_behind(run)
    if problems:
        raise IntegrityError(_unique(problems))
    if clean:
        remove(run)
    return {
        "run": path.absolute().name,
        "trust": trusted,
        "triages": len(triages),
        "tasks": len(tasks),
        "attempts": len(attempts),
        "decisions": [each for each in decisions if each is not None],
        "ledger_lines": len(lines),
        "ledger_head": ledger.head(lines) if lines else None,
        "pending": pending,
        "leftovers": leftovers,
        "cleaned": clean,
        "problems": [],
    }


def _trust(run: Run, root: Path | None, problems: list[Problem]) -> str:
    """`unsigned`, `self_asserted`, or `pinned` when the Campaign's keys are those of the trust root."""
    if run.trust.keys is None:
        if root is not None:
            problems.append(
                Problem("AKF-T020", "the run is unsigned, so no trust root can hold for it", file="campaign.json")
            )
        return "unsigned"
    if root is None:
        return "self_asserted"
    keys = pinned(load(root, "TrustRoot").value["keys"], str(root))
    for role, key in sorted(run.trust.keys.items()):
        if role not in keys or keys[role] != key:
            message = f"the Campaign pins another {role} key than the trust root"
            found, wanted = key.key_id, keys[role].key_id if role in keys else None
            problems.append(
                Problem("AKF-T020", message, "campaign.json", f"/trust/keys/{role}", expected=wanted, found=found)
            )
    return "pinned"


def _task(run: Run, task: str, problems: list[Problem]) -> None:
    """Verify a Task, and the opportunity that a Triage gives it."""
    document = _try(lambda: run.load(f"tasks/{task}.json"), problems)
    capture = _try(lambda: run.load("capture.json"), [])
    if document is None or capture is None:
        return
    parent = triage_of(document.value)
    path = f"{layout.TRIAGE}/{parent['id']}.json" if parent is not None else None
    triage = _try(lambda: run.load(path), []) if path is not None else None
    if (triage is None) is (parent is None):
        value = None if triage is None else triage.value
        problems += justified_problems(document.value, value, capture.value, document.file)


def _attempt(run: Run, attempt: str, book: bytes | None, problems: list[Problem]) -> dict[str, Any] | None:
    """Verify one attempt's evidence, and recompute its Decision where it has one."""
    files = _try(lambda: attempt_files(run.path, attempt), problems)
    if files is None:
        return None
    if book is not None:
        files[layout.LEDGER] = book
    relative = f"attempts/{attempt}/decision.json"
    evidence = _try(lambda: read_evidence(files, attempt), problems)
    if evidence is not None:
        problems += metric_problems(evidence, attempt)
    if relative not in files:
        return None
    document = _try(lambda: run.load(relative), problems)
    value = _try(lambda: decided(evidence, attempt), problems) if evidence is not None else None
    if document is None or value is None:
        return None
    if checked(value) != document.source:
        problems.append(
            Problem(
                "AKF-I220",
                f"{relative} is not what the evidence gives",
                relative,
                "/verdict",
                expected=value["verdict"],
                found=document.value["verdict"],
            )
        )
    return {"candidate": attempt, "verdict": document.value["verdict"], "digest": digest(document.source)}


def _entries(run: Run, lines: tuple[ledger.Line, ...], problems: list[Problem]) -> None:
    """Every line's artifact is there with its bytes, and the line says what the artifact makes it say."""
    files = {}
    for path in dict.fromkeys(line.path for line in lines):
        if not os.path.lexists(run.path / path):
            problems.append(Problem("AKF-I202", f"{path} is missing; the ledger names it", path))
            continue
        data = _try(lambda path=path: read_plain(run.path, path), problems)  # type: ignore[misc]
        if data is not None:
            files[path] = data
    problems += line_problems(lines, files, {}, "")
    for line in lines:
        data = files.get(line.path, b"")
        if line.event == "resume" or digest(data) != line.digest:
            continue
        wanted = _try(lambda data=data: _facts(data), problems)  # type: ignore[misc]
        if wanted is not None and dict(line.facts) != wanted:
            message = f"line {line.seq + 1} of the ledger says other things of {line.path} than the artifact"
            found = dict(line.facts)
            problems.append(Problem("AKF-I230", message, layout.LEDGER, expected=wanted, found=found))


def _facts(data: bytes) -> dict[str, str | int] | None:
    """What the line of these bytes binds; None for bytes that are no artifact, which is said elsewhere."""
    try:
        value = orjson.loads(data)
        return facts_of(value) if value["kind"] in EVENTS else None
    except (ValueError, KeyError, TypeError):
        return None


def _files(run: Run, attempts: list[str], problems: list[Problem]) -> None:
    """No file is unaccounted for, all are plain, and canonical files are read-only."""
    inside = {f"{layout.ATTEMPTS}/{attempt}/{part}/" for attempt in attempts for part in _PARTS}
    beside = orphans(run)
    for relative in plain_files(run.path, run.path):
        if relative.startswith(f"{layout.INBOX}/") or relative == LOCK:
            continue
        try:
            mode = os.lstat(run.path / relative).st_mode
        except FileNotFoundError:  # an orphan that its publisher took back; what the ledger names is missed elsewhere
            continue
        if not stat.S_ISREG(mode):
            problems.append(Problem("AKF-I221", f"{relative} is no regular file", relative))
            continue
        if relative in _PLAIN or any(relative == each or relative.startswith(f"{each}/") for each in beside):
            continue
        if mode & _WRITABLE:
            message = f"{relative} can be written; canonical files are read-only"
            problems.append(
                Problem("AKF-I222", message, relative, found=f"{stat.S_IMODE(mode):04o}", hint=f"chmod a-w {relative}")
            )
        if any(relative.startswith(folder) for folder in inside):
            continue  # compared with the artifacts that name them, attempt by attempt
        artifact = relative.removesuffix(".sig.json") + ".json" if relative.endswith(".sig.json") else relative
        if layout.place(artifact) is None or not (run.path / artifact).is_file():
            problems.append(Problem("AKF-I208", f"{relative} is named by no artifact", relative))
        elif (
            run.trust.keys is not None and artifact == relative and not (run.path / signature_path(relative)).is_file()
        ):
            problems.append(Problem("AKF-I206", f"{relative}: its signature is missing", relative))


def _folders(path: Path) -> list[Path]:
    return [each for each in path.iterdir() if each.is_dir() and not is_temporary(each.name)] if path.is_dir() else []


def _unique(problems: list[Problem]) -> list[Problem]:
    return list(
        {(problem.code, problem.file, problem.pointer, problem.message): problem for problem in problems}.values()
    )


def _try(step: Callable[[], _T], problems: list[Problem]) -> _T | None:
    try:
        return step()
    except AkfError as error:
        problems.extend(error.problems)
        return None
