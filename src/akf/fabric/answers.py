"""What a worker over HTTP answered: one body, with its outcome, and nothing in it that could do harm here.

Invariants:
- Only a run of the package that came to its end says something about the candidate. An HTTP error, a broken body, a
  missing script or an unreadable package is the infrastructure's.
- A worker that gives no `outcome` (the AIKG services give none) gets it from what its log says.
- Names of artifacts are relative, below the folder they are joined to, and their number and size are bounded.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from akf.fabric.interface import OUTCOMES, Outcome

MAX_ARTIFACTS = 1000
MAX_ARTIFACT_BYTES = 16 << 20
_LONGEST_NAME = 255
_TIMED_OUT = "verification timed out after"
_INFRASTRUCTURE = ("failed to extract package", "worker not initialized")
_MISSING_SCRIPT = (".py not found.", ".py not found")


def outcome_of(body: dict[str, Any], *, succeeded: bool) -> Outcome:
    """The outcome that a body states, or the one that its log shows."""
    stated = body.get("outcome")
    if stated in OUTCOMES:
        outcome: Outcome = stated
        return outcome
    if succeeded:
        return "ok"
    log = str(body.get("log") or body.get("error") or "").strip().lower()
    if log.startswith(_TIMED_OUT):
        return "timeout"
    if log.startswith(_INFRASTRUCTURE) or (log.startswith("verification script") and log.endswith(_MISSING_SCRIPT)):
        return "infra_error"
    return "candidate_failed"


def verified(body: dict[str, Any]) -> dict[str, Any]:
    """The answer of `verify` and `generate_reference`, whole."""
    succeeded = body.get("success") is True
    answer = {**body, "success": succeeded, "log": str(body.get("log") or ""), "artifacts": artifacts(body)}
    return answer | {"outcome": outcome_of(body, succeeded=succeeded)}


def profiled(body: dict[str, Any]) -> dict[str, Any]:
    """The answer of `profile`, whole: no time of the candidate is its failure, unless the worker says otherwise."""
    times = {name: _number(body.get(name)) for name in ("gen_time", "base_time")}
    speedup = _number(body.get("speedup")) or 0.0
    answer = {**body, **times, "speedup": speedup, "artifacts": artifacts(body)}
    return answer | {"outcome": outcome_of(body, succeeded=times["gen_time"] is not None)}


def timed(body: dict[str, Any]) -> dict[str, Any]:
    """The answer of `profile_single_task`, whole."""
    time_us = _number(body.get("time_us"))
    succeeded = body.get("success") is True and time_us is not None
    answer = {**body, "time_us": time_us, "success": succeeded, "log": str(body.get("log") or "")}
    return answer | {"outcome": outcome_of(body, succeeded=succeeded)}


def artifacts(body: dict[str, Any]) -> dict[str, str]:
    """The artifacts that may be written below a folder of ours."""
    kept: dict[str, str] = {}
    left = MAX_ARTIFACT_BYTES
    given = body.get("artifacts")
    for name, text in given.items() if isinstance(given, dict) else ():
        size = len(text) if isinstance(text, str) else left + 1
        if len(kept) < MAX_ARTIFACTS and size <= left and is_below(str(name)):
            kept[str(name)] = text
            left -= size
    return kept


def is_below(name: str) -> bool:
    """Whether a name, joined to a folder, is a file below it."""
    path = PurePosixPath(name)
    plain = name.isprintable() and "\\" not in name and ":" not in name and len(name) <= _LONGEST_NAME
    return bool(plain and path.parts and not path.is_absolute() and ".." not in path.parts)


def _number(value: Any) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if good and 0 <= value < float("inf") else None
