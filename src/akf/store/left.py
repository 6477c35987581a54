"""What interrupted commands left behind, as `status` names it and `audit --clean` removes it.

Invariants:
- Nothing here is evidence: a temporary never had a final name, an orphan stands beside an artifact that never appeared.
- An artifact that the ledger names did appear; what stands beside its place is then no orphan.
- `clean` holds the run's lock, looks again, and removes nothing else.
- Looking takes no lock: a folder that another process removes meanwhile is passed over.
"""

from __future__ import annotations

import os
from glob import glob
from pathlib import Path

from akf.contracts.problems import AkfError, StorageError
from akf.store import layout
from akf.store.leftovers import clean as remove_temporaries
from akf.store.leftovers import remove, stale
from akf.store.run import Run

_SIGNATURE = ".sig.json"


def left_behind(run: Run) -> list[str]:
    """Temporaries in the run and of runs beside it, and orphans; paths relative to the run."""
    return [*(os.path.relpath(path, run.path) for path in _temporaries(run)), *orphans(run)]


def orphans(run: Run) -> list[str]:
    """Signatures, build outputs and samples whose artifact never appeared; the next publisher replaces them."""
    try:
        named = {line.path for line in run.lines(torn=True)}
    except AkfError:  # a ledger that does not hold is said elsewhere
        return []
    patterns = ("captures/*", "triage/*", "tasks/*", "attempts/*/*", "attempts/*/*/*")
    signatures = [each for pattern in patterns for each in _there(run, pattern + _SIGNATURE)]
    found = [(each, each.removesuffix(_SIGNATURE) + ".json") for each in signatures]
    found += [(each, f"{each}.json") for each in _there(run, f"{layout.ATTEMPTS}/*/build")]
    samples = _there(run, f"{layout.ATTEMPTS}/*/samples/*")
    found += [(each, f"{each.replace('/samples/', '/gates/')}.json") for each in samples]
    return sorted(
        relative
        for relative, artifact in found
        if layout.place(artifact) is not None and artifact not in named and not os.path.lexists(run.path / artifact)
    )


def _there(run: Run, pattern: str) -> list[str]:
    return glob(pattern, root_dir=run.path)  # noqa: PTH207 - pathlib's fails on a folder that goes away


def clean(run: Run) -> list[str]:
    """Bring in what is pending, remove what was left behind; returns the paths that went."""
    with run.locked():
        gone = left_behind(run)
        remove_temporaries(_temporaries(run))
        for relative in orphans(run):
            remove(run.path / relative)
    return gone


def beside(runs_root: Path) -> list[Path]:
    """Leftovers of `init-run` in the folder of all runs."""
    try:
        return stale(runs_root, deep=False)
    except StorageError:  # not ours to look into
        return []


def _temporaries(run: Run) -> list[Path]:
    return [*beside(run.path.absolute().parent), *stale(run.path)]
