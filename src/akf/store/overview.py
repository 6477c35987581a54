"""`status`: where a run stands, for people and for scripts; nothing here is evidence.

Invariants:
- It reads names and statuses only, takes no lock and writes nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from akf.contracts.gates import GATES
from akf.store import layout
from akf.store.publish import stale
from akf.store.run import Run


def overview(path: Path) -> dict[str, Any]:
    """Tasks, attempts with their gates and verdicts, waiting submissions, pending artifacts and leftovers."""
    run = Run.open(path)
    known = {line.path: line.digest for line in run.lines()}
    attempts = sorted(
        each for each in (path / layout.ATTEMPTS).iterdir() if each.is_dir() and not each.name.startswith(".akf-")
    )
    inbox = path / layout.INBOX
    return {
        "run": path.name,
        "campaign": run.campaign["id"],
        "arm": run.campaign["arm"],
        "tasks": sorted(
            each.stem for each in (path / layout.TASKS).glob("*.json") if not each.name.endswith(".sig.json")
        ),
        "attempts": [_attempt(each) for each in attempts],
        "waiting": sorted(each.name for each in inbox.iterdir()) if inbox.is_dir() else [],
        "pending": run.pending(known),
        "leftovers": [layout.relative(path, each) for each in stale(path)],
    }


def _attempt(path: Path) -> dict[str, Any]:
    gates = {gate: _field(path / "gates" / f"{gate}.json", "status") for gate in GATES}
    return {
        "candidate": path.name,
        "build": _field(path / "build.json", "outcome"),
        **gates,
        "verdict": _field(path / "decision.json", "verdict"),
    }


def _field(path: Path, name: str) -> str | None:
    try:
        value = orjson.loads(path.read_bytes()).get(name)
    except (OSError, ValueError, AttributeError):
        return None
    return value if isinstance(value, str) else None
