"""`validate-suite`, `validate-campaign` and `validate`."""

from __future__ import annotations

from pathlib import Path

from akf.cli.result import NOT_MET, Result
from akf.contracts.documents import load
from akf.contracts.problems import InvalidError
from akf.contracts.rules.check import Result as Checked
from akf.contracts.rules.check import check_campaign, check_suite


def suite(path: Path, require_ready: bool) -> Result:
    """Exit 0 when valid, 1 when not, 10 when valid but not ready and readiness is required."""
    return _result(check_suite(path), require_ready)


def campaign(path: Path, require_ready: bool) -> Result:
    """As `suite`."""
    return _result(check_campaign(path), require_ready)


def artifact(path: Path, kind: str | None) -> Result:
    """Check one file against the schema of its kind."""
    try:
        document = load(path, kind)
    except InvalidError as error:
        return Result({"valid": False, "problems": [problem.to_json() for problem in error.problems]}, error.exit_code)
    return Result({"valid": True, "kind": document.value["kind"], "id": document.value.get("id"), "problems": []})


def _result(checked: Checked, require_ready: bool) -> Result:
    document = checked.to_json()
    if not checked.valid:
        return Result(document, InvalidError.exit_code)
    return Result(document, NOT_MET if require_ready and not checked.ready else 0)
