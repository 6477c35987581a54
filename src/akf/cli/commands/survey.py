"""`survey`: what a new user's files say, before any Campaign exists."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

from akf.cli.options import check_data_class, check_name, check_one_of, check_target
from akf.cli.outputs import free, published
from akf.cli.progress import Progress
from akf.cli.result import Result
from akf.contracts.problems import UsageError
from akf.contracts.text import did_you_mean, show

_USAGE = "AKF-F406"


def survey(
    paths: Sequence[Path],
    *,
    target: float | None,
    arm: str | None,
    model_config: Path | None,
    framework_config: Path | None,
    revision: str | None,
    tp: int | None,
    model: str | None,
    stage: str | None,
    step_kernel: str | None,
    policy: Sequence[str],
    data_class: str,
    out: Path | None,
    html: Path | None,
    quiet: bool = False,
) -> Result:
    """Recognise, ingest and triage; publish what was asked for, or nothing."""
    from akf.contracts.models.base import StageName  # noqa: PLC0415

    check_one_of(_USAGE, "--stage", stage, get_args(StageName))
    check_data_class(_USAGE, data_class)
    check_name("AKF-F312", "--model", model)
    values = _values(policy, target)
    free(_USAGE, out=out, html=html)
    from akf.opportunity.survey.answer import answer  # noqa: PLC0415
    from akf.opportunity.survey.gather import Asked, gather  # noqa: PLC0415
    from akf.opportunity.survey.kinds import KINDS  # noqa: PLC0415
    from akf.opportunity.survey.paths import walk  # noqa: PLC0415

    named = {"model": model_config, "framework": framework_config}
    walked = walk(paths, KINDS, {kind: path for kind, path in named.items() if path is not None})
    asked = Asked(arm, revision, tp, model, stage, step_kernel, values, data_class)
    with Progress("reading", quiet=quiet) as shown:
        gathered = gather(walked.found, asked, shown)
    options = {
        "--target": target, "--arm": arm, "--model-config": model_config, "--framework-config": framework_config,
        "--revision": revision, "--tp": tp, "--model": model, "--stage": stage, "--step-kernel": step_kernel,
    }  # fmt: skip
    surveyed = answer(walked, gathered, asked, _words(paths, options, policy))
    document = {**surveyed.document, "out": None if out is None else str(out)}
    document["html"] = None if html is None else str(html)
    if out is not None or html is not None:
        _publish(out, html, surveyed, gathered)
    return Result(document, 0 if surveyed.refused is None else surveyed.refused.exit_code)


def _values(policy: Sequence[str], target: float | None) -> dict[str, float]:
    """The policy's values that were given by hand."""
    from akf.opportunity.policy import DEFAULTS, LIMITS  # noqa: PLC0415

    found: dict[str, float] = {}
    for word in policy:
        name, sign, text = word.partition("=")
        if name not in DEFAULTS or not sign:
            if name in DEFAULTS:
                hint = f"give it a value: {name}=VALUE"
            else:
                near = did_you_mean(name, DEFAULTS)
                hint = f"did you mean {near}?" if near else f"one of {', '.join(DEFAULTS)}"
            raise UsageError.of(_USAGE, f"--policy: {show(word)} is no NAME=VALUE of the policy", found=word, hint=hint)
        whole = isinstance(DEFAULTS[name], int)
        try:
            value: float = int(text) if whole else float(text)
        except ValueError:
            value = math.nan
        least, most = LIMITS[name]
        if not least <= value <= most:
            what = f"a {'whole ' if whole else ''}number from {least} to {most}"
            message = f"--policy: {name} is {show(text)}, not {what}"
            raise UsageError.of(_USAGE, message, expected=what, found=text)
        found[name] = value
    check_target(_USAGE, target)
    if target is not None:
        found["target_ratio"] = target
    if not 0.5 < found.get("confidence", 0.95) < 1:  # noqa: PLR2004 - what a Campaign takes, too
        message = f"a confidence of {found['confidence']} is none"
        raise UsageError.of(_USAGE, message, expected="more than 0.5 and less than 1", found=str(found["confidence"]))
    return found


def _words(paths: Sequence[Path], options: Mapping[str, object], policy: Sequence[str]) -> list[str]:
    """The command line once more, to be typed again with more to it."""
    words = [str(path) for path in paths]
    for name, value in options.items():
        words += [] if value is None else [name, str(value)]
    for word in policy:
        words += ["--policy", word]
    return [shlex.quote(word) for word in words]


def _publish(out: Path | None, html: Path | None, surveyed: Any, gathered: Any) -> None:
    """The folder and the page: both, or none."""
    from akf.contracts.canonical import canonical_bytes  # noqa: PLC0415
    from akf.opportunity.survey.gather import artifacts  # noqa: PLC0415
    from akf.report.model import to_json  # noqa: PLC0415
    from akf.report.page import render  # noqa: PLC0415
    from akf.report.survey import report_of  # noqa: PLC0415
    from akf.store.publish import StagedFolder, make_folder  # noqa: PLC0415

    document = named_without_folders(surveyed.document)
    report = report_of(document, surveyed.triage, gathered.captures[0] if gathered.captures else None)
    with published((html, render(report))), ExitStack() as stack:
        if out is not None:
            make_folder(out.absolute().parent)
            stage = stack.enter_context(StagedFolder(out))
            for name, data in artifacts(gathered).items():
                stage.write(name, data, mode=0o644)
            stage.write("survey.json", canonical_bytes(document), mode=0o644)
            stage.write("report.json", to_json(report), mode=0o644)


def named_without_folders(document: dict[str, Any]) -> dict[str, Any]:
    """The document as it may be kept: files by their names, not by where they lay; no command that names them."""
    names = [{**each, "path": Path(each["path"]).name} for each in document["recognised"]]
    problems = [
        {**each, "file": Path(each["file"]).name if each["file"] is not None else None} for each in document["problems"]
    ]
    kept = {**document, "recognised": names, "problems": problems}
    if document["next"]["command"].startswith("akf survey "):
        del kept["next"]
    return kept
