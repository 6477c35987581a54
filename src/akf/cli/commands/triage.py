"""`triage`: the answer about a run or a Campaign."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from akf.cli.options import check_one_of, check_target
from akf.cli.outputs import free, publish
from akf.cli.result import Result

_ROW = (
    "name", "answer", "rule", "share_ratio", "low_ratio", "high_ratio", "ceiling_ratio", "needed_speedup_ratio",
    "coverage_ratio", "active_bound",
)  # fmt: skip


def triage(
    place: Path, captures: list[Path], target: float | None, stage: str | None, out: Path | None, html: Path | None
) -> Result:
    """Compute the Triage, publish it and its page where files are named, and answer with all of it."""
    from akf.contracts.documents import load  # noqa: PLC0415
    from akf.contracts.models.base import StageName  # noqa: PLC0415
    from akf.opportunity.artifact import of_campaign, of_run  # noqa: PLC0415
    from akf.store.run import Run, checked  # noqa: PLC0415

    check_target("AKF-F359", target)
    check_one_of("AKF-F359", "--stage", stage, get_args(StageName))
    free("AKF-F359", out=out, html=html)
    flags = {"target_ratio": target}
    others = [load(path, "Capture") for path in captures]
    if place.is_dir():
        value = of_run(Run.open(place), stage, flags, others)
    else:
        value = of_campaign(place, stage, flags, others)
    data = checked(value)
    publish((html, b"" if html is None else _page(place, value)), (out, data))
    return Result(
        {**document_of(value, None if out is None else str(out)), "html": None if html is None else str(html)}
    )


def _page(place: Path, value: dict[str, Any]) -> bytes:
    """The Triage as a page."""
    from akf.report.model import Report  # noqa: PLC0415
    from akf.report.page import render  # noqa: PLC0415
    from akf.report.triage import sections  # noqa: PLC0415

    names = ", ".join(f"{parent['kind']} {parent['id']}" for parent in value["parents"])
    return render(Report(title=f"Triage of {place.name}", subtitle=names, sections=sections(value, _capture(place))))


def _capture(place: Path) -> dict[str, Any] | None:
    """The Capture that the Triage is of, for the time by rank and step."""
    from akf.contracts.rules.check import check_campaign  # noqa: PLC0415
    from akf.store.run import Run  # noqa: PLC0415

    if place.is_dir():
        return Run.open(place).load("capture.json").value
    inputs = check_campaign(place).inputs
    return None if inputs is None or inputs.capture is None else inputs.capture.value


def document_of(value: dict[str, Any], path: str | None) -> dict[str, Any]:
    """What the command answers: the answer, the ranked table, and everything that they depend on."""
    answer = value["answer"]
    more = ("stage", "steps", "denominator", "lines", "cost", "health", "completeness", "policy")
    return {
        **answer,
        "ready": value["ready"],
        "path": path,
        "hotspots": [_row(each) for each in value["hotspots"]],
        "blockers": [{"file": each["artifact"], **each} for each in value["blockers"]],
        **{name: value[name] for name in more},
    }


def _row(hotspot: dict[str, Any]) -> dict[str, Any]:
    row = {**hotspot, **(hotspot["interval"] or {}), "active_bound": hotspot["active_bound"]["bound"]}
    return {name: row.get(name) for name in _ROW}
