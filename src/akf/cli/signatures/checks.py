"""What files must be: checks, schemas and explanations."""

# ruff: noqa: PLC0415 - commands import lazily, so that starting is cheap
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from akf.cli.result import Result
from akf.cli.signatures.shared import ReadyOption


def validate_suite(
    suite: Annotated[Path, typer.Argument(metavar="SUITE", help="Suite file.", readable=False)],
    require_ready: ReadyOption = False,
) -> Result:
    """Check a Suite and the Campaigns of its arms: structure, meaning, readiness."""
    from akf.cli.commands.validate import suite as run

    return run(suite, require_ready)


def validate_campaign(
    campaign: Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="Campaign file.", readable=False)],
    require_ready: ReadyOption = False,
) -> Result:
    """Check a Campaign with its Suite, Workload and Capture."""
    from akf.cli.commands.validate import campaign as run

    return run(campaign, require_ready)


def validate(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Any artifact, a manifest, or a launch spec.", readable=False)
    ],
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help="Kind that it must be, or LaunchSpec.")
    ] = None,
) -> Result:
    """Check one file by itself: the schema of its kind, and what it must mean."""
    from akf.cli.commands.validate import artifact as run

    return run(file, kind)


def schema(
    kind: Annotated[
        str | None, typer.Argument(metavar="KIND", help="Kind to print; all kinds are listed without one.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FOLDER", help="Write all schemas to a new folder.", readable=False),
    ] = None,
) -> Result:
    """List, print or export the JSON schemas of the artifacts."""
    from akf.cli.commands.reference import schema as answer

    return answer(kind, export)


def explain(
    code: Annotated[str, typer.Argument(metavar="CODE", help="AKF-S012, a reason code, or a verdict.")],
) -> Result:
    """Explain a problem code, a reason code or a verdict: the rule, why it exists, examples."""
    from akf.cli.commands.reference import explain as answer

    return answer(code)
