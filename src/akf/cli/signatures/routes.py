"""Routes from source to binary, and the toolchains behind them."""

# ruff: noqa: PLC0415 - commands import lazily, so that starting is cheap
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from akf.cli.result import Result
from akf.cli.signatures.shared import KeysOption


def build(
    place: Annotated[
        Path, typer.Argument(metavar="RUN|SOURCE", help="Run folder; with --route a source.", readable=False)
    ],
    candidate: Annotated[
        str | None, typer.Argument(metavar="[CANDIDATE]", help="Id of a submitted candidate of the run.")
    ] = None,
    route: Annotated[
        str | None, typer.Option("--route", metavar="ROUTE", help="Build a source outside a run, by this route.")
    ] = None,
    soc: Annotated[str | None, typer.Option("--soc", metavar="SOC", help="SoC to compile for, with --route.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="New folder, with --route.", readable=False)
    ] = None,
    toolchains: Annotated[
        list[str] | None,
        typer.Option("--toolchain", metavar="ID", help="Registered toolchain, where several would do."),
    ] = None,
    options: Annotated[
        list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="Option of the route, with --route.")
    ] = None,
    keys: KeysOption = None,
) -> Result:
    """Build a Candidate by its route, or a source outside a run."""
    from akf.cli.commands.build import build as answer

    return answer(place, candidate, route, soc, out, toolchains or [], options or [], keys)


def inspect(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Object, cubin, archive, or text that a build made.", readable=False)
    ],
) -> Result:
    """Say what a built file is: identity, kernels, symbols, digests; never run it."""
    from akf.cli.commands.inspect_file import inspect as answer

    return answer(file)


def capability_list() -> Result:
    """List the routes: platform, stages, what is real without CANN."""
    from akf.cli.commands.capability import list_all as answer

    return answer()


def capability_explain(
    route: Annotated[str, typer.Argument(metavar="ROUTE", help="Name of a route.")],
    soc: Annotated[str | None, typer.Option("--soc", metavar="SOC", help="SoC, by AKF's name.")] = None,
) -> Result:
    """Say all that a route declares: tools and how to get them, SoC names, stages, outputs, claims."""
    from akf.cli.commands.capability import explain as answer

    return answer(route, soc)


def toolchain_add(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="An installed CANN, or an environment with bin/python.", readable=False),
    ] = None,
    packages: Annotated[
        str | None, typer.Option("--packages", metavar="ROUTE", help="Make the environment of this route.")
    ] = None,
    name: Annotated[str | None, typer.Option("--id", metavar="ID", help="Name of the toolchain.")] = None,
    wheels: Annotated[
        Path | None,
        typer.Option("--wheels", metavar="FOLDER", help="Wheels to use instead of the network.", readable=False),
    ] = None,
) -> Result:
    """Register an installed toolchain, or make one of packages that are pinned by hash."""
    from akf.cli.commands.toolchain import add as answer

    return answer(folder, packages, name, wheels)


def toolchain_list() -> Result:
    """List the registered toolchains, and how far each route gets with them."""
    from akf.cli.commands.toolchain import list_all as answer

    return answer()


def toolchain_check(
    names: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Toolchains; all by default.")] = None,
) -> Result:
    """Read toolchains again, and say field by field what is not as registered."""
    from akf.cli.commands.toolchain import check as answer

    return answer(names or [])
