"""The environment gate: the machine is the Campaign's, field by field, its devices are leased, its baseline is frozen.

Invariants:
- Facts are read now, where the work runs; `machine_checks` says what follows from them.
- The checks are those that the Campaign's platform demands, in the gate's order.
- These checks never fail a candidate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from akf.contracts.gates import required_checks
from akf.evaluate import machine_checks
from akf.evaluate.program import Program
from akf.evaluate.request import Objects
from akf.evaluate.secrets import state_directory
from akf.evaluate.subject import Found, Subject
from akf.frameworks import host_reference, toolkit_tree
from akf.frameworks.machine import Reading
from akf.lease import Holding, devices_of
from akf.store.run import Run

ESTIMATE_S = 1.0


def plan(run: Run, subject: Subject, objects: Objects, program: Program, work: Path) -> dict[str, Any]:
    """Nothing is timed here."""
    del run, subject, objects, program, work
    return {"estimate": {"wall_s": ESTIMATE_S}}


def measure(subject: Subject, objects: Objects, holding: Holding) -> Found:
    """Compare the machine with the Campaign."""
    campaign = subject.campaign
    devices = devices_of(campaign)
    facts = {"environment": host_reference.environment(objects.baseline), "ranks": host_reference.ranks()}
    reading = Reading(facts, {}, {})
    tree = campaign["environment"]["host"]["toolkit_tree_digest"]
    incumbent = campaign["baseline"]["incumbent_digest"]
    made = {
        "identity": lambda: machine_checks.identity({name: campaign[name] for name in facts}, reading),
        "leases": lambda: machine_checks.leases(devices, holding),
        "toolkit_unmodified": lambda: machine_checks.toolkit_unmodified(
            tree, host_reference.toolkit_tree(), toolkit_tree.kept(tree, state_directory())
        ),
        "baseline_health": lambda: machine_checks.baseline_health(incumbent, objects.baseline.digest),
    }
    checks = [made[name]() for name in required_checks("environment", campaign, ())]
    return Found(checks, "none", {}, {})
