"""`validate-suite`, `validate-campaign` and `validate`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from akf.cli.result import NOT_MET, Result
from akf.contracts.documents import load
from akf.contracts.loader import Document
from akf.contracts.problems import InvalidError, Problem
from akf.contracts.rules.check import Result as Checked
from akf.contracts.rules.check import check_campaign, check_suite


def suite(path: Path, require_ready: bool) -> Result:
    """Exit 0 when valid, 1 when not, 10 when valid but not ready and readiness is required."""
    return _result(check_suite(path), require_ready)


def campaign(path: Path, require_ready: bool) -> Result:
    """As `suite`."""
    return _result(check_campaign(path), require_ready)


def artifact(path: Path, kind: str | None) -> Result:
    """Check one file by the schema of its kind and the rules of its meaning."""
    try:
        document = load(path, kind)
    except InvalidError as error:
        return _invalid(error.problems)
    problems = _meaning(document)
    if problems:
        return _invalid(sorted(problems, key=Problem.sort_key))
    return Result({"valid": True, "kind": document.value["kind"], "id": document.value.get("id"), "problems": []})


def _invalid(problems: Iterable[Problem]) -> Result:
    return Result({"valid": False, "problems": [problem.to_json() for problem in problems]}, InvalidError.exit_code)


def _meaning(document: Document) -> list[Problem]:
    """What the file itself must mean; what other files say of it is for validate-suite and validate-campaign."""
    from akf.contracts.rules.campaign import campaign_problems  # noqa: PLC0415
    from akf.contracts.rules.suite import suite_problems  # noqa: PLC0415
    from akf.contracts.rules.task import task_problems  # noqa: PLC0415

    rules = {"Campaign": campaign_problems, "OptimizationSuite": suite_problems, "Task": task_problems}
    rule = rules.get(document.value["kind"])
    return rule(document) if rule is not None else []


def _result(checked: Checked, require_ready: bool) -> Result:
    document = checked.to_json()
    if not checked.valid:
        return Result(document, InvalidError.exit_code)
    return Result(document, NOT_MET if require_ready and not checked.ready else 0)
