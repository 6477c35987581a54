"""Which checks each gate must hold, as data.

Invariants:
- A Campaign can drop no gate and no check; it adds its own gains, guards and accuracy suites.
- Names with a colon are made from the Campaign and the Task: `gain:RULE`, `guard:RULE`, `row:ROW`, `accuracy:SUITE`.
- A check of `PER_RANK` must hold on every rank.
"""

from __future__ import annotations

from typing import Any

GATES = ("environment", "operator", "model", "serving", "reproduction", "release")
PER_RANK = ("hit_proof",)
BINARY_STAGES = ("shared_object", "cubin", "device_object")
"""Stages of a Build whose outputs can be loaded."""
PYTHON = "python"
"""Where a route would stand: a module that is called as it is; its Build compiles nothing."""

_ENVIRONMENT = {
    "ascend": ("identity", "leases", "exclusive", "clock", "toolkit_unmodified", "baseline_health"),
    "cuda": ("identity", "leases", "exclusive", "clock", "baseline_health"),
    "host": ("identity", "leases", "toolkit_unmodified", "baseline_health"),
}
_FIXED = {
    "operator": ("sensitivity", "correctness", "isfinite", "hit_proof", "timing"),
    "model": ("accuracy_smoke", "hit_proof", "graph", "peak_hbm"),
    "serving": ("hit_proof", "error_rate", "peak_hbm", "kv_capacity", "max_concurrency", "stability"),
    "reproduction": ("load", "hit_proof", "replay", "cleanup"),
    "release": ("owner", "license", "rollback", "cleanup", "envelope", "fallback", "incumbent"),
}


def required_checks(gate: str, campaign: dict[str, Any], rows: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the checks that this gate must hold for this Campaign.

    Args:
        gate: one of `GATES`.
        campaign: the Campaign as a JSON value.
        rows: the Task's row ids; the operator gate guards each of them.
    """
    acceptance = campaign["acceptance"]
    names = list(_ENVIRONMENT[campaign["platform"]] if gate == "environment" else _FIXED[gate])
    if gate == "model":
        names += [f"accuracy:{suite['name']}" for suite in acceptance.get("accuracy", ())]
    gains = [rule["id"] for rule in acceptance["gains"] if gate in {rule["gate"], "reproduction"}]
    names += [f"gain:{rule}" for rule in gains]
    names += [f"guard:{rule['id']}" for rule in acceptance.get("guards", ()) if rule["gate"] == gate]
    if gate == "operator":
        names += [f"row:{row}" for row in rows]
    return tuple(names)


def loadable(build: dict[str, Any]) -> bool:
    """Whether something can be run of a Build; no gate but `environment` takes another one."""
    return build["stage"] in BINARY_STAGES or build["route"] == PYTHON


def routes_of(task: dict[str, Any]) -> tuple[str, ...]:
    """What a candidate of the Task may name as its route."""
    python = task["abi"] is not None and task["abi"]["kind"] == PYTHON
    return (PYTHON,) if python else tuple(task["routes"])


def fold(outcomes: list[str]) -> str:
    """The status of a gate from its checks' outcomes: the first of this order that occurs."""
    for outcome in ("fail", "incomparable", "blocked", "no_gain", "not_run", "inconclusive"):
        if outcome in outcomes:
            return outcome
    return "pass" if outcomes else "not_run"
