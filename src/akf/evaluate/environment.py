"""The environment gate: the machine is the Campaign's, field by field, its devices are leased, its baseline is frozen.

Invariants:
- Facts are read now, where the work runs; `machine_checks` says what follows from them.
- The checks are those that the Campaign's platform demands, in the gate's order.
- These checks never fail a candidate.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.gates import required_checks
from akf.evaluate import machine_checks
from akf.evaluate.loaded import Incumbent
from akf.evaluate.program import Program
from akf.evaluate.request import Objects, PythonObjects
from akf.evaluate.secrets import state_directory
from akf.evaluate.subject import Found, Subject
from akf.frameworks import ascend_machine, cuda_machine, host_clock, host_reference
from akf.frameworks.host_reference import Baseline
from akf.frameworks.machine import Die, Reading
from akf.frameworks.toolkit_tree import Tree, kept
from akf.lease import Holding, devices_of
from akf.store.run import Run

ESTIMATE_S = 1.0
_LOOKS, _LOOK_S = 20, 0.25
Load = Callable[[], AbstractContextManager[object]]


def plan(run: Run, subject: Subject, objects: Objects | PythonObjects, program: Program, work: Path) -> dict[str, Any]:
    """Nothing is timed here."""
    del run, subject, objects, program, work
    return {"estimate": {"wall_s": ESTIMATE_S}}


def measure(subject: Subject, arm: Baseline, incumbent: Incumbent, holding: Holding) -> Found:
    """Compare the machine with the Campaign.

    Args:
        subject: the attempt.
        arm: the arm's operator, compiled on a host.
        incumbent: what a candidate is compared with.
        holding: the lease.
    """
    campaign = subject.campaign
    machine = {"ascend": ascend, "cuda": cuda}.get(campaign["platform"], lambda _: _host(arm, incumbent))(campaign)
    side = {"clock": host_clock.clock()} if campaign["platform"] == "host" else {}
    return Found(checks(campaign, machine, holding), "none", {}, {}, side)


class Machine(NamedTuple):
    """What the checks are made of: None and nothing for what could not be read."""

    reading: Reading
    tree: Tree | None
    incumbent: str | None
    under_load: dict[str, Die]


def checks(campaign: dict[str, Any], machine: Machine, holding: Holding) -> list[dict[str, Any]]:
    """The checks of the Campaign's platform, in the gate's order."""
    devices = devices_of(campaign)
    platform = campaign["platform"]
    tree = (campaign["environment"].get(platform) or {}).get("toolkit_tree_digest", "")
    reading = machine.reading
    made = {
        "identity": lambda: machine_checks.identity({name: campaign[name] for name in reading.facts}, reading),
        "leases": lambda: machine_checks.leases(devices, holding),
        "exclusive": lambda: machine_checks.exclusive(devices, reading.dies),
        "clock": lambda: machine_checks.clock(devices, machine.under_load),
        "toolkit_unmodified": lambda: machine_checks.toolkit_unmodified(
            tree, machine.tree, kept(tree, state_directory())
        ),
        "baseline_health": lambda: machine_checks.baseline_health(
            campaign["baseline"]["incumbent_digest"], machine.incumbent
        ),
    }
    return [made[name]() for name in required_checks("environment", campaign, ())]


def ascend(campaign: dict[str, Any], root: Path = ascend_machine.ROOT, load: Load | None = None) -> Machine:
    """An Ascend host.

    Args:
        campaign: the Campaign, whose ranks say which boards are looked at.
        root: where driver, firmware and toolkit are installed.
        load: what makes the devices work while their clock is read; without one it is not read.
    """
    npus = sorted({rank["npu"] for rank in campaign["ranks"]["devices"]})
    found = ascend_machine.read(npus, root)
    if load is None:
        return Machine(found.reading, found.tree, None, {})
    with load():
        return Machine(found.reading, found.tree, None, _settled(lambda: ascend_machine.dies(npus)))


def _settled(dies: Callable[[], dict[str, Die]]) -> dict[str, Die]:
    """The dies once all run at their rated frequency, or as they are after the last look: a clock takes a moment."""
    found = dies()
    for _ in range(_LOOKS - 1):
        if found and all(die.mhz == die.rated_mhz for die in found.values()):
            break
        time.sleep(_LOOK_S)
        found = dies()
    return found


def cuda(campaign: dict[str, Any]) -> Machine:
    """A machine with NVIDIA GPUs."""
    gpus = [rank["npu"] for rank in campaign["ranks"]["devices"]]
    return Machine(cuda_machine.read(gpus, campaign["environment"]), None, None, {})


def _host(arm: Baseline, incumbent: Incumbent) -> Machine:
    facts = {"environment": host_reference.environment(arm), "ranks": host_reference.ranks()}
    return Machine(Reading(facts, {}, {}), host_reference.toolkit_tree(), incumbent.digest, {})
