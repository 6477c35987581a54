"""What every command needs: sealed artifacts, the oracle, and how children are confined.

Invariants:
- Artifacts are sealed and their digests checked before any input is drawn.
- The isolation level is found once and then demanded of every child; what holds is in the report.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

from . import outcome
from .memory import Arena, DigestMismatch, SealedFile
from .oracle import Oracle
from .outcome import ChildFailure, HarnessError
from .process import Child, Confinement, Loadable
from .request import Artifact, Request

PRIORITY = -20
SPIN_NS = 300_000
_SMALL = 1 << 16


def _sealed(artifact: Artifact) -> Loadable:
    try:
        return Loadable(
            SealedFile.of(artifact.path, artifact.digest),
            SealedFile.of(artifact.launcher, artifact.launcher_digest),
            artifact.symbol,
        )
    except DigestMismatch as error:
        raise HarnessError("ARTIFACT_CHANGED", str(error), 3) from error
    except OSError as error:
        raise HarnessError("ARTIFACT_UNREADABLE", str(error), 3) from error


def _ahead(session: int) -> bool:
    """Run a session's processes before others, where the system allows it; both sides get the same.

    A session is a scheduling group of its own under autogroup, and nice counts inside it only. A session that
    is not ours alone is left as it is.
    """
    if os.getsid(session) != session:
        return False
    try:
        os.setpriority(os.PRIO_PGRP, session, PRIORITY)
        Path(f"/proc/{session}/autogroup").write_text(str(PRIORITY), encoding="ascii")
    except PermissionError:
        return False
    except OSError:  # a kernel without autogroup: nice alone counts
        return True
    return True


class Bench:
    """The trusted side's tools for one command."""

    def __init__(self, request: Request, *, pin: bool = False) -> None:
        self.request = request
        self.loadables = {role: _sealed(artifact) for role, artifact in request.artifacts.items()}
        self.oracle = Oracle(request.reference)
        self.facts: dict[str, Any] = {}
        cpu = self._pin() if pin else None
        self.confinement = Confinement(request.isolation, request.limits, cpu, 0 if cpu is None else SPIN_NS)
        self.confinement = replace(self.confinement, isolation=self._isolation())
        self.facts["isolation"] = self.confinement.isolation

    def child(self, role: str, arena: Arena) -> Child:
        """A fresh process with one artifact loaded."""
        child = Child(self.loadables[role], arena, self.confinement)
        if self.facts.get("ahead"):
            _ahead(child.session)
        return child

    def _pin(self) -> Optional[int]:
        """One core for this process, another for its children, ahead of others where the system allows it."""
        cores = sorted(os.sched_getaffinity(0))
        self.facts["cores"] = len(cores)
        self.facts["ahead"] = _ahead(os.getpid())
        if len(cores) == 1:
            return None
        os.sched_setaffinity(0, {cores[0]})
        return cores[-1]

    def _isolation(self) -> str:
        """The strongest level that works here, tried with the trusted baseline."""
        wanted = self.request.isolation
        for level in ("userns", "none") if wanted == "auto" else (wanted,):
            arena = Arena(_SMALL)
            try:
                child = Child(self.loadables["baseline"], arena, replace(self.confinement, isolation=level))
            except ChildFailure as error:
                if error.code != outcome.ISOLATION_UNAVAILABLE:
                    raise HarnessError(outcome.BASELINE_FAILED, str(error), 6) from error
                self.facts["isolation_refused"] = error.detail
                continue
            finally:
                arena.close()
            self.facts["confinement"] = child.facts
            child.close()
            return level
        raise HarnessError(outcome.ISOLATION_UNAVAILABLE, str(self.facts.get("isolation_refused")), 6)
