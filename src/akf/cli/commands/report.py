"""`report`: a run as one page."""

from __future__ import annotations

from pathlib import Path

from akf.cli.outputs import free, publish
from akf.cli.result import Result


def report(run: Path, out: Path | None) -> Result:
    """Derive every attempt again, publish the page where a file is named, and answer with where each attempt stands."""
    from akf.report.page import render  # noqa: PLC0415
    from akf.report.run import attempts_of, report_of  # noqa: PLC0415
    from akf.store.run import Run  # noqa: PLC0415

    free("AKF-F359", out=out)
    opened = Run.open(run)
    found = attempts_of(opened)
    page = render(report_of(opened, found))
    publish((out, page))
    attempts = [
        {
            "candidate": each.candidate,
            "verdict": each.decision["verdict"],
            "decided": each.decided,
            "reasons": list(dict.fromkeys(reason["code"] for reason in each.decision["reasons"])),
            "gates": {gate: value["status"] for gate, value in each.evidence.gates.items()},
        }
        for each in found
    ]
    return Result({"run": run.absolute().name, "html": None if out is None else str(out), "attempts": attempts})
