"""A check of the harness as a gate, and a trial, record it.

Invariants:
- Codes are named once each, in the order in which they were found; the note tells where the first one was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from akf.evaluate.hit_figures import figures

_WORST = ("fail", "incomparable", "blocked", "not_run", "pass")
_LONGEST = 1000


def evidence(name: str, check: dict[str, Any]) -> dict[str, Any]:
    """One check of a harness's report."""
    codes = list(dict.fromkeys(reason["code"] for reason in check["reasons"]))
    value: dict[str, Any] = {"name": name, "category": "evidence", "outcome": check["outcome"], "profiler": "off"}
    if name == "hit_proof" and (shown := figures(check["facts"])):
        value["figures"] = shown
    if codes:
        value["reasons"] = codes
        where = ", ".join(f"{key} {item}" for key, item in check["reasons"][0].items() if key != "code" and item != "")
        value["note"] = where[:_LONGEST] or codes[0]
    return value


def timing(checks: dict[str, Any], runs: Sequence[str]) -> dict[str, Any]:
    """One check over all runs: both clocks agree and every timed output is right; the worst counts.

    Rows whose outputs were checked at secret places and by Freivalds, and not whole, are named.
    """
    worst = min((checks[name] for name in runs), key=lambda check: _WORST.index(check["outcome"]))
    value = evidence("timing", worst)
    if worst["facts"].get("folded"):
        value["figures"] = [{"name": f"checked_by_folds:{row}", "value": True} for row in worst["facts"]["folded"]]
    return value
