"""The runtime of agents."""

# ruff: noqa: PLC0415 - commands import lazily, so that starting is cheap
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from akf.cli.result import Result


def graph(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A task's graph as JSON.", readable=False)],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="New file for the picture, as SVG.", readable=False)
    ] = None,
) -> Result:
    """Check a task's graph, say what it does, and draw it."""
    from akf.cli.commands.runtime import graph as answer

    return answer(file, out)
