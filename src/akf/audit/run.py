"""The audit of one run.

Invariants:
- It reads only the run's folder, and a trust root from outside where one is given; it writes nothing without `--clean`.
- Every file of the run is accounted for: an artifact, its signature, what an artifact names, or a known plain file.
- Every Decision is recomputed from its evidence.
- All breaks are listed in the order of the files; the first one is named.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from akf.contracts.canonical import digest
from akf.contracts.documents import load
from akf.contracts.problems import AkfError, IntegrityError, Problem
from akf.judge import decide
from akf.judge.evidence import read as read_evidence
from akf.store import layout, ledger
from akf.store.collect import attempt_files, plain_files
from akf.store.lock import LOCK, RunLock
from akf.store.publish import clean as remove
from akf.store.publish import stale
from akf.store.run import Run, checked
from akf.store.verify import signature_path
from akf.trust.keys import pinned

_T = TypeVar("_T")
_PLAIN = (layout.LEDGER, layout.JOURNAL, LOCK)
_WRITABLE = 0o222


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
    problems: list[Problem] = []
    trusted = _trust(run, trust, problems)
    lines = _try(run.lines, problems) or ()
    attempts = sorted(each.name for each in _folders(path / layout.ATTEMPTS))
    tasks = sorted(each.stem for each in (path / layout.TASKS).glob("*.json") if not each.name.endswith(".sig.json"))
    for name in ("run.json", *(slot.template for slot in layout.ARTIFACTS[1:5])):
        _try(lambda name=name: run.load(name), problems)  # type: ignore[misc]
    for task in tasks:
        _try(lambda task=task: run.load(f"tasks/{task}.json"), problems)  # type: ignore[misc]
    decisions = [_attempt(run, attempt, problems) for attempt in attempts]
    pending = [] if problems else run.pending({line.path: line.digest for line in lines})
    _entries(run, lines, problems)
    _files(run, attempts, problems)
    leftovers = stale(path)
    if clean and leftovers:
        with RunLock(path):
            remove(leftovers)
    if problems:
        raise IntegrityError(_unique(problems))
    return {
        "run": path.name,
        "trust": trusted,
        "tasks": len(tasks),
        "attempts": len(attempts),
        "decisions": [each for each in decisions if each is not None],
        "ledger_lines": len(lines),
        "ledger_head": ledger.head(lines) if lines else None,
        "pending": pending,
        "leftovers": [layout.relative(path, each) for each in leftovers],
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


def _attempt(run: Run, attempt: str, problems: list[Problem]) -> dict[str, Any] | None:
    """Verify one attempt's evidence, and recompute its Decision where it has one."""
    files = _try(lambda: attempt_files(run.path, attempt), problems)
    if files is None:
        return None
    relative = f"attempts/{attempt}/decision.json"
    if relative not in files:
        _try(lambda: read_evidence(files, attempt), problems)
        return None
    document = _try(lambda: run.load(relative), problems)
    value = _try(lambda: decide(files, attempt), problems)
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
    """Every line's artifact is there with its bytes."""
    for line in lines:
        path = run.path / line.path
        if not path.is_file():
            problems.append(Problem("AKF-I202", f"{line.path} is missing; the ledger names it", line.path))
        elif digest(path.read_bytes()) != line.digest:
            problems.append(
                Problem(
                    "AKF-I211", f"{line.path} has other bytes than the ledger names", line.path, expected=line.digest
                )
            )


def _files(run: Run, attempts: list[str], problems: list[Problem]) -> None:
    """No file is unaccounted for, and canonical files are read-only."""
    inside = {f"{layout.ATTEMPTS}/{attempt}/{part}/" for attempt in attempts for part in ("source", "build", "samples")}
    for relative in plain_files(run.path, run.path):
        if relative.startswith(f"{layout.INBOX}/") or relative in _PLAIN or Path(relative).name == LOCK:
            continue
        mode = os.lstat(run.path / relative).st_mode
        if stat.S_ISREG(mode) and mode & _WRITABLE:
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
    return (
        [each for each in path.iterdir() if each.is_dir() and not each.name.startswith(".akf-")]
        if path.is_dir()
        else []
    )


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
