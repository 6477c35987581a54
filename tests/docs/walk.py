"""The folder that documentation blocks run in: what `akf demo` leaves, stopped at a stage, without long measurements.

Invariants:
- Every artifact is made by the real steps. Only the baseline's times are given instead of measured, because a
  documentation test must not depend on how busy the machine is; nothing that a block shows depends on them.
- The stages are made once a session and copied for each page, so that pages do not see each other.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import runs

from akf.build import build
from akf.candidates import submit
from akf.cli.commands.judge import judge
from akf.evaluate import evaluate
from akf.frameworks.fill import fill_host
from akf.opportunity.tasks import open_task
from akf.store.snapshot import init_run
from akf.trust.keys import init_keys

ROOT = Path(__file__).parents[2]
LINKED = ("adapters", "docs", "env.sh", "examples", "schemas", "scripts", "suites")
CANDIDATE = "rmsnorm-fused"
START = "start"
KEYS = Path("akf-demo", "keys")


class Walk:
    """The demo's folder, stage by stage, below a folder of its own."""

    def __init__(self, shared: runs.Shared) -> None:
        self._folder = shared.make("walk", _make) if shutil.which("g++") else None
        self._start = shared.make("walk-start", _link)

    def copy(self, stage: str, target: Path) -> Path:
        """A copy of the folder as it is at a stage."""
        if stage == START:
            return runs.clone(self._start, target)
        if self._folder is None:
            pytest.skip(runs.COMPILER)
        return runs.clone(self._folder / stage, target)

    def environment(self, work: Path) -> dict[str, str]:
        """What a reader has set who follows docs/commands/README.md."""
        return {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),  # this checkout is what is documented, whatever is installed
            "HOME": str(work),
            "LANG": "C.UTF-8",
            "AKF_KEYS": str(KEYS),
            "AKF_STATE": str((self._folder or work) / "state"),
            "AKF_LEASES": os.environ["AKF_LEASES"],
            "RUN": next((str(path.relative_to(work)) for path in work.glob("akf-demo/runs/*")), ""),
        }


def _make(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AKF_STATE", str(folder / "state"))
        before = None
        for stage, step in STAGES.items():
            work = folder / stage
            if before is None:
                work.mkdir()
            else:
                runs.clone(before, work)
            step(work)
            before = work


def _link(work: Path) -> None:
    for name in LINKED:
        (work / name).symlink_to(ROOT / name)


def _ready(work: Path) -> None:
    _link(work)
    (work / "akf-demo").mkdir()
    keys = init_keys(work / KEYS)
    fill_host(runs.DRAFT, work / "akf-demo" / "suite", keys, lambda *_: runs.MEASURED)


def _run(work: Path) -> None:
    run = init_run(work / "akf-demo" / "suite" / "arms" / runs.DRAFT.name, work / "akf-demo" / "runs", work / KEYS)
    open_task(run, runs.TASK / "task.json", work / KEYS)


def _found(work: Path) -> Path:
    return next(work.glob("akf-demo/runs/*"))


def _decided(work: Path) -> None:
    run = _found(work)
    judge(run, run / "attempts" / CANDIDATE / "gates", False, False, None, work / KEYS)


def _traced(work: Path) -> None:
    """Beside the demo a run whose Capture holds decode steps, invented; nothing on a page depends on a clock."""
    traced = runs.captured(runs.Ready(work / "akf-demo" / "suite", work / KEYS), work / "traced")
    runs.new_run(traced, work / "my-runs", "traced")


STAGES: dict[str, Callable[[Path], object]] = {
    "ready": _ready,
    "run": _run,
    "submitted": lambda work: submit(_found(work), runs.CANDIDATES / CANDIDATE, work / KEYS),
    "built": lambda work: build(_found(work), CANDIDATE, work / KEYS),
    "measured": lambda work: evaluate(_found(work), CANDIDATE, "environment", work / KEYS),
    "decided": _decided,
    "traced": _traced,
}
"""Name of each stage and the step that leads there."""
