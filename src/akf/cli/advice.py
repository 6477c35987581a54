"""What was probably meant by a path that is no run.

Invariants:
- Only names are looked at: nothing is opened, and nothing is said about folders that may not be read.
- At most `_MANY` runs are named, the same ones every time.
"""

from __future__ import annotations

import os
from pathlib import Path

from akf.contracts.problems import Problem

_MANY = 3


def advised(problem: Problem) -> Problem:
    """The problem; one about a folder that is no run names the run that stands above or directly below it."""
    if problem.code != "AKF-S101" or problem.file is None:
        return problem
    found = runs_near(Path(problem.file))
    if not found:
        return problem
    more = ", …" if len(found) > _MANY else ""
    one = "" if len(found) == 1 else "one of "
    return problem.replace(hint=f"did you mean {one}{', '.join(map(str, found[:_MANY]))}{more}?")


def runs_near(path: Path) -> list[Path]:
    """Runs above the path; if there is none, those in it or in its `runs`, or the one of this name in `runs`."""
    above = next((folder for folder in path.parents if _is_run(folder)), None)
    if above is not None:
        return [above]
    return [*_runs_in(path), *_runs_in(path / "runs")] or [named for named in [Path("runs") / path] if _is_run(named)]


def _runs_in(folder: Path) -> list[Path]:
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - names only
    except (OSError, ValueError):
        return []
    return [folder / name for name in names if not name.startswith(".") and _is_run(folder / name)]


def _is_run(folder: Path) -> bool:
    return os.path.lexists(folder / "run.json") and os.path.lexists(folder / "campaign.json")
