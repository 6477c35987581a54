"""This machine: whether it has the devices that somebody wants to register as its own, and where services keep state.

Invariants:
- Only device nodes are looked at; no tool is started, and no library of a vendor is loaded.
- Remote workers are never asked about here: their machine is another one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from akf.contracts.problems import BlockedError

DEV = Path("/dev")
NODES = {"ascend": ("davinci{}",), "cuda": ("nvidia{}", "dxg")}
"""Device nodes by backend, any of which will do; a backend without an entry needs none."""


def demand(backend: str, devices: Sequence[int]) -> None:
    """Refuse devices that are not here.

    Raises:
        BlockedError: names all that are missing.
    """
    names = NODES.get(backend, ())
    missing = [each for each in devices if names and not any((DEV / name.format(each)).exists() for name in names)]
    if missing:
        listed = ", ".join(str(DEV / names[0].format(each)) for each in missing)
        hint = "run the worker on the machine that has the devices, and register it by its address"
        raise BlockedError.of("AKF-E605", f"this machine has no {listed}", found=missing, hint=hint)


def state_folder() -> Path:
    """Where services of this user keep what must outlive them: ``$AKF_STATE``, else the user's state folder."""
    state = os.environ.get("AKF_STATE")
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return Path(state) if state else home / "akf"
