"""One small interface between the Builder and a route. The Builder knows nothing else of it.

Invariants:
- A route is its declaration and what this module's class does with it; a route's own module overrides `plan`, and
  what its tools do differently.
- A plan is data: commands with relative paths and `{root}` names, made from the sources' names, the options and the
  SoC, never from the sources' contents or this machine.
- Steps run in order in a folder that holds `src/` (the sources, read-only), `in/` (the plan's own files, read-only)
  and `out/`, `home/`, `tmp/`, `cache/` (private, written).
- `classify` reads what a tool said and left; it decides what happened, because exit statuses do not tell.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from akf.contracts.problems import UsageError
from akf.contracts.rules import soc as soc_names
from akf.contracts.text import did_you_mean
from akf.routes import outcomes
from akf.routes.declaration import NAMES, Declaration, RouteOutput, declaration
from akf.routes.launch_spec import LaunchSpec
from akf.routes.outcomes import Outcome
from akf.routes.sandbox import Ended, Limits
from akf.routes.tools import Found, Place, find, need

_ERROR = re.compile(r"\berror\b|^\[ERROR\]|^[A-Za-z_.]*(?:Error|Exception)\b", re.IGNORECASE)
_SIGNALS = 128


class Step(NamedTuple):
    """One command."""

    tool: str
    argv: tuple[str, ...]
    makes: tuple[str, ...] = ()
    """Files that it must leave in `out/`."""
    may_make: tuple[str, ...] = ()
    """Files that it may leave there too."""
    limits: Limits = Limits()
    variables: Mapping[str, str] = {}
    """Variables beyond the declaration's."""
    needs: tuple[str, ...] = ()
    """Further tools that it runs itself; where one is missing, it is not tried."""
    part: bool = False
    """It makes a host part of an operator: where a tool is missing, the other parts are still made."""
    normalises: bool = False
    """It only brings a stage's file into its normal form: a failure leaves the stage without one."""


class StandIn(NamedTuple):
    """A program that answers for its version in the place of a tool and does none of its work."""

    program: bytes
    says: str


class Plan(NamedTuple):
    """Commands in order, and files of the route's own that they read from `in/`."""

    steps: tuple[Step, ...]
    files: Mapping[str, bytes] = {}
    stand_ins: Mapping[str, StandIn] = {}
    """By the tool's name; they lie in `in/bin/`, and the Build names them among its tools."""


class Job(NamedTuple):
    """What is to be built."""

    sources: tuple[str, ...]
    options: Mapping[str, str]
    soc: str
    """AKF's name."""
    target: str
    """The tools' spelling of it."""
    launch: LaunchSpec | None = None
    variables: Mapping[str, str] = {}
    """Variables that change what is generated, as the arm has them set."""
    frozen: bool = False
    """Compiled as a launch would compile it, and kept as that launch would find it."""

    @property
    def family(self) -> str | None:
        """The SoC's family, where it has one."""
        return soc_names.family(self.soc)


KEYS = "keys.json"
CACHED = "cache."
"""How files begin that belong to an entry of the compiler's cache; the rest is their name there."""


class SourceRefused(ValueError):  # noqa: N818 - a result that is raised: the name says what is the case
    """A source path, a flag or an option value that a route does not take."""


class Route:
    """A route with its declaration; subclasses say how their tools are called."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def data(self) -> Declaration:
        """What the route says of itself."""
        return declaration(self.name)

    def target(self, soc: str) -> str:
        """The tools' spelling of a SoC.

        Raises:
            UsageError: the route does not compile for it.
        """
        space = self.data.soc
        spelled = space.spelled(soc)
        if spelled is None:
            known = sorted(space.names) or sorted(space.families)
            near = did_you_mean(soc, space.names)
            raise UsageError.of(
                "AKF-U401",
                f"route {self.name} does not compile for SoC {soc!r}",
                expected=known,
                found=soc,
                hint=f"did you mean {near}?" if near else f"akf capability explain {self.name} lists what it takes",
            )
        return spelled

    def identity(self, place: Place, job: Job) -> tuple[Found, ...]:
        """The tools of this machine that a job can use, with their identity; those of deeper stages may be absent.

        Raises:
            ToolMissing: not even the first stage can be reached.
        """
        first, *deeper = self.data.stages
        found = [need(program, place) for program in self.data.needed(first, job.family)]
        for stage in deeper:
            wanted = self.data.needed(stage, job.family)
            there = [program for program in wanted if find(program, place) is not None]
            found += [need(program, place) for program in there]
            if there != list(wanted):
                break
        return tuple(found)

    def toolkit(self, found: Sequence[Found]) -> dict[str, str]:
        """Whose name a build without CANN carries: the declared tool's version and commit."""
        named = self.data.toolkit
        record = next((each.record for each in found if _same(each.program.name, named.tool)), found[0].record)
        return toolkit_of(named.name, record)

    def plan(self, job: Job) -> Plan:
        """The commands for a job.

        Raises:
            SourceRefused: the route does not take a source or an option value.
        """
        raise NotImplementedError

    def emulated(self, data: bytes) -> Plan:
        """The commands that make an object for this machine of what is emulated; none where it is one already.

        Args:
            data: the file of the stage that the declaration's `emulation` names; the commands see what the plan brings.
        """
        del data
        return Plan(())

    def launcher(self, spec: LaunchSpec) -> Mapping[str, str]:
        """Sources of AKF's own through which a kernel is called; none where the platform's runtime calls it."""
        del spec
        return {}

    def ask(self, job: Job, calls: Sequence[Mapping[str, str]]) -> Plan | None:
        """A plan that leaves `KEYS`: for each call, under which key its compiled kernel is looked for.

        Args:
            job: what is built.
            calls: options of each call.

        Returns:
            None where the compiler keeps no cache that is served from.
        """
        del job, calls
        return None

    def collect(self, files: Sequence[str]) -> dict[str, RouteOutput]:
        """Which files of `out/` a build keeps, with their role and trust class."""
        found = {name: self.data.output(name) for name in files}
        return {name: output for name, output in found.items() if output is not None}

    def classify(self, step: Step, ran: Ended, made: frozenset[str]) -> Outcome | None:
        """What happened, or None when the step did its work.

        Args:
            step: the command.
            ran: what it did.
            made: files in `out/` after it.
        """
        if ran.stopped is not None:
            return outcomes.stopped(step.tool, ran.stopped, step.limits)
        lines = self.errors(ran.text)
        if ran.status < 0 or ran.status > _SIGNALS:
            number = -ran.status if ran.status < 0 else ran.status - _SIGNALS
            return Outcome(outcomes.CRASHED, f"{step.tool} was ended by signal {number}: {lines[0]}")
        if ran.status != 0:
            return Outcome(outcomes.REJECTED, lines[0])
        lacking = [name for name in step.makes if name not in made]
        if lacking:
            return Outcome(outcomes.NOTHING, f"{step.tool} said that it succeeded and left no {lacking[0]}")
        return None

    def errors(self, text: str) -> list[str]:
        """The lines of a log that say why a tool refused; never empty."""
        return error_lines(text)

    def notes(self, text: str) -> tuple[str, ...]:
        """Silent changes that a tool reported."""
        return tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.startswith("[NOTE]")))


def toolkit_of(name: str, record: Mapping[str, Any]) -> dict[str, str]:
    """A toolkit by the version and the commit, wheel or version line of one of its tools."""
    text = str(record.get("package", record["version_text"]))
    version = re.search(r"\d+(?:\.\d+)+[^\s)]*", text)
    build = record.get("commit") or record.get("wheel_digest") or record["version_text"].splitlines()[0]
    return {"name": name, "version": version[0] if version else "unknown", "build": str(build)[:256]}


def _same(name: str, wanted: str) -> bool:
    """Whether a tool is the declared one, or its variant for another SoC family."""
    return name == wanted or name.startswith(f"{wanted}-")


def error_lines(text: str) -> list[str]:
    """The lines of a log that speak of errors; never empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [line for line in lines if _ERROR.search(line)] or lines[-1:] or ["no message"]


def plain_sources(sources: Sequence[str], suffixes: Sequence[str], kind: str) -> list[str]:
    """The sources that are compiled, as paths of the build's folder, in order of their names.

    Raises:
        SourceRefused: one could be taken for an option, or there is none.
    """
    found = sorted(each for each in sources if each.endswith(tuple(suffixes)))
    for source in found:
        if source.startswith("-") or not re.fullmatch(r"[A-Za-z0-9_./-]+", source):
            raise SourceRefused(f"source {source!r} is not a plain relative path of {kind}")
    if not found:
        raise SourceRefused(f"no {kind} source ({', '.join(suffixes)}) to compile")
    return [f"src/{source}" for source in found]


@cache
def route(name: str) -> Route:
    """The route of this name.

    Raises:
        UsageError: there is none.
    """
    if name not in NAMES:
        near = did_you_mean(name, NAMES)
        hint = f"did you mean {near}?" if near else "akf capability list names all routes"
        raise UsageError.of("AKF-U402", f"there is no route {name!r}", expected=sorted(NAMES), found=name, hint=hint)
    module = importlib.import_module(f"akf.routes.{name}")
    found: Route = module.ROUTE
    return found


def routes() -> tuple[Route, ...]:
    """Every route, in the order of the schema."""
    return tuple(route(name) for name in NAMES)


def one_source(sources: Sequence[str], suffixes: Sequence[str]) -> str:
    """The Python file that is run: the only one, or `kernel.py` among several; as a path of the build's folder.

    Raises:
        SourceRefused: there is none, or it is not clear which.
    """
    files = plain_sources(sources, suffixes, "Python")
    source = files[0] if len(files) == 1 else "src/kernel.py"
    if source not in files:
        raise SourceRefused(f"of several Python files one must be kernel.py: {', '.join(files)}")
    return source
