"""What every command needs: sealed artifacts, the oracle, and how children are confined.

Invariants:
- Artifacts are sealed and their digests checked before any input is drawn.
- The isolation level is found once and then demanded of every child; what holds is in the report.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional, Union

from . import outcome
from .cases import Layout
from .confine import unpack
from .memory import Arena, DigestMismatch, SealedFile
from .oracle import Oracle
from .outcome import ChildFailure, HarnessError
from .process import Child, Confinement, Loadable
from .request import Artifact, Request
from .template import Template
from .tree import Bundle, sealed_tree

PRIORITY = -20
SPIN_NS = 300_000
_SMALL = 1 << 16


def _sealed(artifact: Artifact) -> Union[Loadable, Bundle]:
    try:
        if artifact.abi == "python":
            return sealed_tree(artifact.path, artifact.digest, artifact.entry)
        return Loadable(
            SealedFile.of(artifact.path, artifact.digest),
            SealedFile.of(artifact.launcher, artifact.launcher_digest),
            artifact.entry,
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

    def __init__(self, request: Request, *, pin: bool = False, template: Optional[Template] = None) -> None:
        self.request = request
        self.loadables = {role: _sealed(artifact) for role, artifact in request.artifacts.items()}
        self.oracle = Oracle(request.reference)
        self.facts: dict[str, Any] = {}
        self._folders: list[tempfile.TemporaryDirectory[str]] = []
        self._own = template is None
        self.template = template
        if template is None and any(isinstance(each, Bundle) for each in self.loadables.values()):
            self.template = Template(request.device, request.threads)
        if self.template is not None:
            self.facts["template"] = self.template.facts
        cpu = self._pin() if pin else None
        spin_ns = 0 if cpu is None else SPIN_NS
        self.confinement = Confinement(request.isolation, request.limits, cpu, spin_ns, request.device)
        level = self._isolation()
        self.confinement = replace(self.confinement, isolation=level)
        self.facts["isolation"] = self.confinement.isolation

    def child(self, role: str, arena: Arena) -> Child:
        """A fresh process with one artifact loaded."""
        child = Child(self.loadables[role], arena, self.confinement, self.template)
        if self.facts.get("ahead"):
            _ahead(child.session)
        return child

    def is_python(self, role: str) -> bool:
        """Whether an artifact is a module, not a shared object."""
        return isinstance(self.loadables[role], Bundle)

    def binding(self, role: str, layout: Layout, keep: int) -> dict[str, Any]:
        """The bind command of a role; `keep` results of a module are held, as far as memory allows."""
        if not self.is_python(role):
            return layout.columns(role)
        size = sum(operand.nbytes for operand in layout.case.outputs)
        most = int(self.request.limits["memory_bytes"]) // (8 * max(1, size))
        return layout.tensors(max(1, min(keep, most)), recheck=keep > 1)

    def close(self) -> None:
        """End the template, remove what was written out."""
        if self.template is not None and self._own:
            self.template.close()
        for folder in self._folders:
            folder.cleanup()

    def _written_out(self) -> dict[str, str]:
        """Where a child without a name space of its own finds its files: copies that go with this command."""
        trees = {}
        for bundle in self.loadables.values():
            if isinstance(bundle, Bundle) and bundle.key not in trees:
                folder = tempfile.TemporaryDirectory(prefix="akf-candidate-")
                self._folders.append(folder)
                unpack(bundle.files.fd, folder.name)
                trees[bundle.key] = folder.name
        return trees

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
            if level == "none":
                self.confinement = replace(self.confinement, trees=self._written_out())
            try:
                tried = replace(self.confinement, isolation=level)
                child = Child(self.loadables["baseline"], arena, tried, self.template)
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
