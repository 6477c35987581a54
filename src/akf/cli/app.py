"""The command line as typer has it: the groups, the names, and what each command takes.

Invariants:
- A command stands here by its name and in `akf.cli.signatures` with what it takes; it loads what it needs when it runs.
- The order here is that of the help.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated

import click
import typer

from akf.cli.result import FORMATS, Result, Settings
from akf.cli.signatures import checks, routes, runs, runtime, services, traffic, workers
from akf.cli.start import LATER, not_yet


class Commands(typer.core.TyperGroup):
    """The commands; one that only a later version has is not taken for a slip."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, except for the commands of later versions."""
        if args and args[0] in LATER and args[0] not in self.commands:
            ctx.fail(not_yet(args[0]))
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="akf",
    cls=Commands,
    help="Ascend Kernel Forge: freeze what is measured, build and measure by trusted programs, judge by rule.",
    rich_markup_mode=None,
    add_completion=False,
    suggest_commands=False,  # click suggests already
    context_settings={
        "terminal_width": 80,  # the same help on every terminal
        "max_content_width": 80,
        "help_option_names": ["-h", "--help"],
    },
)

COMMANDS: dict[str, dict[str, Callable[..., Result | None]]] = {
    "": {
        "validate-suite": checks.validate_suite,
        "validate-campaign": checks.validate_campaign,
        "validate": checks.validate,
        "init-run": runs.init_run,
        "fill": runs.fill,
        "open-task": runs.open_task,
        "triage": traffic.triage,
        "submit": runs.submit,
        "intake": runs.intake,
        "try": runs.try_candidate,
        "build": routes.build,
        "inspect": routes.inspect,
        "evaluate": runs.evaluate,
        "judge": runs.judge,
        "audit": runs.audit,
        "status": runs.status,
        "report": runs.report,
        "survey": traffic.survey,
        "server": services.server,
        "schema": checks.schema,
        "explain": checks.explain,
        "demo": runs.demo,
    },
    "keys": {"init": runs.keys_init},
    "capability": {"list": routes.capability_list, "explain": routes.capability_explain},
    "toolchain": {
        "add": routes.toolchain_add,
        "list": routes.toolchain_list,
        "check": routes.toolchain_check,
    },
    "runtime": {"graph": runtime.graph},
    "ingest": {
        "framework": traffic.ingest_framework,
        "profile": traffic.ingest_profile,
        "trace": traffic.ingest_trace,
        "bench": traffic.ingest_bench,
    },
    "job": {
        "submit": services.job_submit,
        "status": services.job_status,
        "wait": services.job_wait,
        "cancel": services.job_cancel,
        "list": services.job_list,
        "logs": services.job_logs,
    },
    "worker": {"register": services.worker_register, "unregister": services.worker_unregister},
}
"""Every command by its group; those of the first are called by their name alone."""
GROUPS = {
    "keys": "Keys of the four roles.",
    "capability": "Routes from source to binary, and what they may claim.",
    "toolchain": "Toolchains of this machine.",
    "ingest": "From files of other tools to Workload and Capture.",
    "job": "Jobs of a Server.",
    "runtime": "The runtime of agents.",
    "worker": "Run a Worker Service, or register one.",
}
THEMSELVES: dict[str, Callable[..., Result | None]] = {"worker": workers.worker}
"""What a group's name does where no command follows it."""

for _group, _commands in COMMANDS.items():
    _target = app
    if _group:
        _itself = THEMSELVES.get(_group)
        if _itself is None:
            _target = typer.Typer(help=GROUPS[_group], rich_markup_mode=None)
        else:
            _target = typer.Typer(callback=_itself, invoke_without_command=True, rich_markup_mode=None)
        app.add_typer(_target, name=_group)
    for _name, _function in _commands.items():
        _target.command(_name)(_function)


@cache
def command() -> typer.core.TyperGroup:
    """The click command behind the app; typer takes 40 ms to make it."""
    return typer.main.get_command(app)  # type: ignore[return-value]


def _version(wanted: bool) -> None:
    if wanted:
        from akf import __version__  # noqa: PLC0415 - rarely asked

        typer.echo(f"akf {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    human: Annotated[bool, typer.Option("--human", help="A table for people instead of JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing; the exit status answers.")] = False,
    form: Annotated[str, typer.Option("--format", metavar="|".join(FORMATS), help="Format of the answer.")] = "json",
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options for the output; they may stand anywhere on the command line."""
    del version
    if form not in FORMATS:
        raise typer.BadParameter(f"{form!r} is not one of {', '.join(FORMATS)}.", param_hint="--format")
    settings = context.obj if isinstance(context.obj, Settings) else Settings()
    settings.format = "human" if human else form
    settings.quiet = quiet
