"""`triage`: the answer about a run or a Campaign."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

from akf.cli.result import Result
from akf.contracts.problems import UsageError
from akf.contracts.text import did_you_mean

_ROW = (
    "name", "answer", "rule", "share_ratio", "low_ratio", "high_ratio", "ceiling_ratio", "needed_speedup_ratio",
    "coverage_ratio", "active_bound",
)  # fmt: skip


def triage(
    place: Path, captures: list[Path], target: float | None, stage: str | None, out: Path | None, html: Path | None
) -> Result:
    """Compute the Triage, publish it and its page where files are named, and answer with all of it."""
    from akf.contracts.models.triage import StageName  # noqa: PLC0415
    from akf.opportunity.artifact import of_campaign, of_run  # noqa: PLC0415
    from akf.opportunity.policy import LIMITS  # noqa: PLC0415
    from akf.store.run import Run, checked  # noqa: PLC0415

    least, most = LIMITS["target_ratio"]
    if target is not None and not least <= target <= most:
        message = f"--target: a speed-up of {target} is none; 1.05 is 5 % more"
        raise UsageError.of("AKF-F359", message, expected=f"a ratio from {least} to {most}", found=str(target))
    if stage is not None and stage not in get_args(StageName):
        meant = did_you_mean(stage, get_args(StageName))
        hint = f"did you mean {meant}?" if meant else None
        message = f"--stage: {stage!r} is no stage"
        raise UsageError.of("AKF-F359", message, expected=list(get_args(StageName)), found=stage, hint=hint)
    flags = {"target_ratio": target}
    if place.is_dir():
        value = of_run(Run.open(place), stage, flags, captures)
    else:
        value = of_campaign(place, stage, flags, captures)
    data = checked(value)
    if out is not None or html is not None:
        _publish(out, data, html, place, value)
    return Result(
        {**document_of(value, None if out is None else str(out)), "html": None if html is None else str(html)}
    )


def _publish(out: Path | None, data: bytes, html: Path | None, place: Path, value: dict[str, Any]) -> None:
    """The Triage and its page: both, or none."""
    from akf.report.model import Report  # noqa: PLC0415
    from akf.report.page import render  # noqa: PLC0415
    from akf.report.triage import sections  # noqa: PLC0415
    from akf.store.publish import publish_file  # noqa: PLC0415

    with ExitStack() as stack:
        if html is not None:
            names = ", ".join(f"{parent['kind']} {parent['id']}" for parent in value["parents"])
            report = Report(title=f"Triage of {place.name}", subtitle=names, sections=sections(value, _capture(place)))
            publish_file(html, render(report), mode=0o644)
            stack.push(lambda kind, *_: html.unlink() if kind is not None else None)
        if out is not None:
            publish_file(out, data)


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
