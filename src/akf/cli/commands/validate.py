"""`validate-suite`, `validate-campaign` and `validate`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from akf.cli.result import NOT_MET, Result
from akf.contracts.documents import load
from akf.contracts.loader import Document, parse, read_input
from akf.contracts.problems import InvalidError, Problem, UsageError
from akf.contracts.rules.check import Result as Checked
from akf.contracts.rules.check import check_campaign, check_suite
from akf.contracts.schemas import kinds
from akf.contracts.text import did_you_mean

LAUNCH_SPEC = "LaunchSpec"
"""A launch spec is part of a candidate's sources, not an artifact: it names no kind and has no schema."""


def suite(path: Path, require_ready: bool) -> Result:
    """Exit 0 when valid, 1 when not, 10 when valid but not ready and readiness is required."""
    return _result(check_suite(path), require_ready)


def campaign(path: Path, require_ready: bool) -> Result:
    """As `suite`."""
    return _result(check_campaign(path), require_ready)


def artifact(path: Path, kind: str | None) -> Result:
    """Check one file by the schema of its kind and the rules of its meaning."""
    known = [*kinds(), LAUNCH_SPEC]
    if kind is not None and kind not in known:
        near = did_you_mean(kind, known)
        hint = f"did you mean {near}?" if near else "akf schema lists all kinds"
        raise UsageError.of("AKF-U002", f"there is no kind {kind!r}", expected=sorted(known), found=kind, hint=hint)
    try:
        if kind == LAUNCH_SPEC:
            return _launch_spec(path)
        document = load(path, kind)
    except InvalidError as error:
        return _invalid(error.problems)
    problems = _meaning(document, path)
    if problems:
        return _invalid(sorted(problems, key=Problem.sort_key))
    return Result({"valid": True, "kind": document.value["kind"], "id": document.value.get("id"), "problems": []})


def _invalid(problems: Iterable[Problem]) -> Result:
    return Result({"valid": False, "problems": [problem.to_json() for problem in problems]}, InvalidError.exit_code)


def _launch_spec(path: Path) -> Result:
    """The launch spec by itself; the Task that it must agree with is known to `submit` and `build`."""
    from akf.routes.launch_spec import LaunchSpecError, parse_spec  # noqa: PLC0415

    document = parse(read_input(path), str(path))
    try:
        parse_spec(document.value)
    except LaunchSpecError as error:
        return _invalid([document.problem("AKF-M043", f"launch spec: {error}", error.pointer)])
    return Result({"valid": True, "kind": LAUNCH_SPEC, "id": None, "problems": []})


def _sources(folder: Path) -> list[str] | None:
    """Paths of the files below a folder, or None when there is no such folder; links are not followed."""
    from akf.store.untrusted import MAX_FILES  # noqa: PLC0415

    if not folder.is_dir():
        return None
    found: list[str] = []
    for place, _, names in os.walk(folder):
        found += [(Path(place) / name).relative_to(folder).as_posix() for name in names]
        if len(found) > MAX_FILES:
            break
    return sorted(found)


def _meaning(document: Document, path: Path) -> list[Problem]:
    """What the file itself must mean; what other files say of it is for validate-suite and validate-campaign."""
    if document.value["kind"] == "CandidateManifest":
        from akf.candidates.claim import claim_problems  # noqa: PLC0415

        return claim_problems(document, _sources(path.parent / "src"))
    from akf.contracts.rules.campaign import campaign_problems  # noqa: PLC0415
    from akf.contracts.rules.suite import suite_problems  # noqa: PLC0415
    from akf.contracts.rules.task import task_problems  # noqa: PLC0415
    from akf.contracts.rules.workload import meaning_problems  # noqa: PLC0415

    rules = {
        "Campaign": campaign_problems,
        "OptimizationSuite": suite_problems,
        "Task": task_problems,
        "Workload": meaning_problems,
    }
    rule = rules.get(document.value["kind"])
    return rule(document) if rule is not None else []


def _result(checked: Checked, require_ready: bool) -> Result:
    document = checked.to_json()
    if not checked.valid:
        return Result(document, InvalidError.exit_code)
    return Result(document, NOT_MET if require_ready and not checked.ready else 0)
