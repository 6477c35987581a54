"""The environment gate: the machine is the Campaign's, field by field, and its baseline is the one that was frozen.

Invariants:
- Facts are read now, where the work runs; a difference is `incomparable` and names the field.
- These checks never fail a candidate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from akf.evaluate.program import Program
from akf.evaluate.request import Objects
from akf.evaluate.subject import Found, Subject
from akf.frameworks import host_reference
from akf.store.run import Run

ESTIMATE_S = 1.0
_SHOWN = 8


def plan(run: Run, subject: Subject, objects: Objects, program: Program, work: Path) -> dict[str, Any]:
    """Nothing is timed here."""
    del run, subject, objects, program, work
    return {"estimate": {"wall_s": ESTIMATE_S}}


def measure(
    run: Run, subject: Subject, objects: Objects, program: Program, work: Path, plan: dict[str, Any], secret: bytes
) -> Found:
    """Compare the machine with the Campaign."""
    del run, program, work, plan, secret
    environment = host_reference.environment(objects.baseline)
    wanted = subject.campaign["environment"]
    differences = sorted(_differences(wanted, environment, ""))
    ranks = host_reference.ranks()
    differences += sorted(_differences(subject.campaign["ranks"], ranks, "/ranks"))
    incumbent = subject.campaign["baseline"]["incumbent_digest"]
    healthy = objects.baseline.digest == incumbent
    checks = [
        _check("identity", differences, "the machine is not the Campaign's: "),
        _check(
            "baseline_health", [] if healthy else ["/baseline/incumbent_digest"], "the baseline is not the frozen one: "
        ),
    ]
    return Found(checks, "none", {}, {})


def _check(name: str, differences: list[str], text: str) -> dict[str, Any]:
    check: dict[str, Any] = {"name": name, "category": "environment", "outcome": "pass", "profiler": "off"}
    if differences:
        shown = ", ".join(differences[:_SHOWN])
        check |= {"outcome": "incomparable", "reasons": ["IDENTITY_MISMATCH"], "note": f"{text}{shown} differ"}
    return check


def _differences(wanted: Any, found: Any, pointer: str) -> list[str]:
    """Pointers of the leaves that differ."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [
            place
            for name in sorted(wanted.keys() | found.keys())
            for place in _differences(wanted.get(name), found.get(name), f"{pointer}/{name}")
        ]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [
            place
            for index, (mine, theirs) in enumerate(zip(wanted, found, strict=True))
            for place in _differences(mine, theirs, f"{pointer}/{index}")
        ]
    return [] if wanted == found else [pointer]
