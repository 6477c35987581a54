"""One candidate, tried: `akf try` on a folder that is thrown away, paid for by the Task's meter.

Invariants:
- `akf try` holds the machine's lease while it times: nothing here runs beside a measurement.
- An attempt and the time it takes are charged to the meter here, whoever asked for it.
- What the machine is at fault for is no failure of the candidate: `speed` is None and `outcome` says `cannot_tell`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from akf.agents.control import akf
from akf.agents.files import Files, write_candidate
from akf.agents.limits import Meter
from akf.contracts.problems import AkfError, BlockedError, ConflictError, DefectError, StorageError

START_S = 60.0
OUT_OF_TIME = "AKF-P722"


class Trial(NamedTuple):
    """What a trial found."""

    outcome: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    speed: float | None
    low: float | None
    high: float | None

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return self.outcome == "pass"


Try = Callable[[Files, bool], Trial]
"""Tries the files of a candidate, timed or not."""


def try_files(task: Path, files: Files, meter: Meter, *, timed: bool, name: str = "candidate") -> Trial:
    """Try a candidate.

    Args:
        task: the Task's folder.
        files: the candidate, by path.
        meter: pays.
        timed: whether it is timed as well.
        name: its folder's name.

    Raises:
        PreconditionError: a limit is spent, or ran out on the way.
        BlockedError: the machine lacks what it takes.
    """
    meter.charge(attempts=1)
    with tempfile.TemporaryDirectory(prefix="akf-agent-") as scratch:
        start = time.monotonic()
        try:
            folder = write_candidate(Path(scratch), name, files)
            limit = START_S + min(meter.left("board_s"), meter.left("wall_s"))
            quick = () if timed else ("--quick",)
            document = akf("try", task, folder, *quick, limit_s=limit).need()
        except (BlockedError, DefectError, StorageError):
            raise
        except AkfError as error:
            codes = tuple(dict.fromkeys(problem.code for problem in error.problems))
            if OUT_OF_TIME in codes:
                raise
            outcome = "cannot_tell" if isinstance(error, ConflictError) else "fail"  # the machine is somebody else's
            return Trial(outcome, codes, tuple(map(str, error.problems)), None, None, None)
        finally:
            meter.used(board_s=time.monotonic() - start)
    return _read(document)


def _read(document: dict[str, Any]) -> Trial:
    gain = next((each for each in document["figures"] if each["name"] == "gain"), None)
    notes = tuple(str(check["note"]) for check in document["checks"] if check.get("note"))
    ratios = (None, None, None) if gain is None else tuple(1 + gain[f"{x}_ratio"] for x in ("estimate", "low", "high"))
    return Trial(document["outcome"], tuple(document["reasons"]), notes, *ratios)
