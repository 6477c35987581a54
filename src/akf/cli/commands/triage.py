"""`triage`: the answer about a run or a Campaign."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from akf.cli.result import Result
from akf.contracts.problems import UsageError
from akf.contracts.text import did_you_mean

_ROW = (
    "name", "answer", "rule", "share_ratio", "low_ratio", "high_ratio", "ceiling_ratio", "needed_speedup_ratio",
    "coverage_ratio", "active_bound",
)  # fmt: skip


def triage(place: Path, captures: list[Path], target: float | None, stage: str | None, out: Path | None) -> Result:
    """Compute the Triage, publish it where a file is named, and answer with the ranked table and all of it."""
    from akf.contracts.models.triage import StageName  # noqa: PLC0415
    from akf.opportunity.artifact import of_campaign, of_run  # noqa: PLC0415
    from akf.store.publish import publish_file  # noqa: PLC0415
    from akf.store.run import Run, checked  # noqa: PLC0415

    if target is not None and not 1 <= target < float("inf"):
        message = f"--target: a speed-up of {target} is none; 1.05 is 5 % more"
        raise UsageError.of("AKF-F359", message, expected="a finite ratio of at least 1", found=str(target))
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
    if out is not None:
        publish_file(out, data)
    return Result(document_of(value, None if out is None else str(out)))


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
