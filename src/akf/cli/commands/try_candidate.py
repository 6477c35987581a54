"""`try`: the operator gate's checks on a candidate, without a campaign."""

from __future__ import annotations

from pathlib import Path

from akf.cli.result import Result
from akf.contracts.problems import UsageError
from akf.contracts.text import did_you_mean

DEVICES = ("cpu", "cuda", "npu")


def try_candidate(task: Path, candidate: Path, device: str, *, quick: bool) -> Result:
    """Try one candidate."""
    from akf.evaluate.program import require_numpy  # noqa: PLC0415
    from akf.evaluate.trial import try_candidate as run  # noqa: PLC0415

    if device not in DEVICES:
        near = did_you_mean(device, DEVICES)
        hint = f"did you mean {near}?" if near else None
        raise UsageError.of(
            "AKF-U002", f"there is no device {device!r}", expected=list(DEVICES), found=device, hint=hint
        )
    require_numpy()
    return Result(run(task, candidate, device, quick=quick))
