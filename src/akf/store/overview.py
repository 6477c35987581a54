"""`status`: where a run stands, for people and for scripts; nothing here is evidence.

Invariants:
- It reads names and statuses only, takes no lock and writes nothing.
- A run that was interrupted, or that came without its empty folders, is shown all the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from akf.contracts.canonical import digest
from akf.contracts.gates import GATES
from akf.contracts.problems import AkfError
from akf.store import layout
from akf.store.collect import read_plain
from akf.store.left import left_behind
from akf.store.leftovers import is_temporary
from akf.store.run import Run


def overview(path: Path) -> dict[str, Any]:
    """Triages, Tasks, attempts with their gates and verdicts, waiting submissions, pending artifacts and leftovers."""
    run = Run.open(path)
    known = {line.path: line.digest for line in run.lines(torn=True)}
    return {
        "run": path.absolute().name,
        "campaign": run.campaign["id"],
        "arm": run.campaign["arm"],
        "triages": [name.removesuffix(".json") for name in _names(path / layout.TRIAGE) if _is_triage(name)],
        "tasks": [name.removesuffix(".json") for name in _names(path / layout.TASKS) if _is_task(name)],
        "attempts": [_attempt(path, name) for name in _names(path / layout.ATTEMPTS) if _is_attempt(path, name)],
        "waiting": [name for name in _names(path / layout.INBOX) if not _taken(path, name)],
        "pending": run.pending(known),
        "leftovers": left_behind(run),
    }


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []


def _taken(run: Path, name: str) -> bool:
    """Whether a folder of the inbox has the manifest of a Candidate: `intake` took it before."""
    try:
        manifest = digest(read_plain(run, f"{layout.INBOX}/{name}/candidate.json"))
    except AkfError:
        return False
    return any(
        _field(run, f"{layout.ATTEMPTS}/{each}/candidate.json", "manifest_digest") == manifest
        for each in _names(run / layout.ATTEMPTS)
    )


def _is_triage(name: str) -> bool:
    return layout.place(f"{layout.TRIAGE}/{name}") is not None


def _is_task(name: str) -> bool:
    return layout.place(f"{layout.TASKS}/{name}") is not None


def _is_attempt(run: Path, name: str) -> bool:
    return not is_temporary(name) and (run / layout.ATTEMPTS / name).is_dir()


def _attempt(run: Path, name: str) -> dict[str, Any]:
    base = f"{layout.ATTEMPTS}/{name}"
    gates = {gate: _field(run, f"{base}/gates/{gate}.json", "status") for gate in GATES}
    return {
        "candidate": name,
        "build": _field(run, f"{base}/build.json", "outcome"),
        **gates,
        "verdict": _field(run, f"{base}/decision.json", "verdict"),
    }


def _field(run: Path, relative: str, name: str) -> str | None:
    try:
        value = orjson.loads(read_plain(run, relative)).get(name)
    except (AkfError, ValueError, AttributeError):
        return None
    return value if isinstance(value, str) else None
