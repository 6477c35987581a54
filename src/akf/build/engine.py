"""One build of one tree by one route: the steps of a plan, run in order, and what they left.

Invariants:
- Every build happens in a folder of its own that holds the given files and nothing else.
- A step may add the files that it says it makes, and change none of an earlier step: a file that code of the source
  planted for a later step is removed, one that it changed ends the build.
- Home, temporary and cache folders are empty before every step.
- A stage is reached when its file is there after the steps that make it; a tool's exit status alone says nothing.
- A missing tool leaves what was reached before it, and is named; anything else that goes wrong fails the build.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.canonical import digest
from akf.contracts.problems import BlockedError
from akf.contracts.text import printable
from akf.routes import outcomes
from akf.routes.outcomes import Outcome
from akf.routes.route import Job, Plan, Route, SourceRefused, Step
from akf.routes.sandbox import WRITTEN, Sandbox, layout
from akf.routes.tools import Found, Place, ToolMissing, missing
from akf.store.untrusted import TreeFile

MAX_OUTPUT_BYTES = 256 * 1024**2
_PRIVATE = tuple(name for name in WRITTEN if name != "out")


class Bench(NamedTuple):
    """A route with the tools of this machine."""

    route: Route
    place: Place
    found: tuple[Found, ...]
    toolkit: dict[str, str]
    extra: tuple[Path, ...] = ()
    """Paths that the tools need under their own names."""

    def tool(self, name: str) -> Found | None:
        """The tool of this name, where it is there."""
        return next((each for each in self.found if each.program.name == name), None)


class Made(NamedTuple):
    """What one build gave."""

    stage: str
    outcome: Outcome | None
    commands: tuple[dict[str, Any], ...]
    variables: Mapping[str, str]
    log: str
    errors: tuple[str, ...]
    files: Mapping[str, bytes]
    """What is kept, by name in `out/`."""
    deepest: bytes
    """The file that shows the stage reached."""
    normal: Mapping[str, bytes]
    """Normal forms, by stage."""
    notes: tuple[str, ...]
    isolation: str
    randomised: bool

    @property
    def built(self) -> bool:
        """Whether it may be used, as deep as it reached."""
        return self.outcome is None or not self.outcome.failed


def bench(route: Route, job: Job, place: Place, toolkit: dict[str, str] | None = None) -> Bench:
    """The tools of this machine for a job.

    Raises:
        BlockedError: not even the first stage can be reached.
    """
    try:
        found = route.identity(place, job)
    except ToolMissing as error:
        raise BlockedError([error.problem()]) from error
    own = [each.path.resolve() for each in found]
    extra = [
        path.parent.parent for path in own if not any(path.is_relative_to(r.resolve()) for r in place.roots.values())
    ]
    return Bench(route, place, found, toolkit or route.toolkit(found), tuple(dict.fromkeys(extra)))


def make(tools: Bench, job: Job, files: Sequence[TreeFile], folder: Path) -> Made:
    """Build a tree once.

    Args:
        tools: the route and its tools.
        job: what is built.
        files: the sources.
        folder: a new folder to work in.
    """
    layout(folder)
    for file in files:
        _write(folder / "src" / file.path, file.data)
    build = _Build(tools, job, folder)
    try:
        plan = tools.route.plan(job)
    except SourceRefused as error:
        return build.ended(Outcome(outcomes.REJECTED, f"error: {error}"))
    for name, data in plan.files.items():
        _write(folder / "in" / name, data)
    return build.run(plan)


class _Build:
    """The steps of one build."""

    def __init__(self, tools: Bench, job: Job, folder: Path) -> None:
        self._tools = tools
        self._job = job
        self._out = folder / "out"
        self._folder = folder
        self._sandbox = Sandbox(folder, tools.place.roots, tools.extra)
        self._variables = _variables(tools)
        self._commands: list[dict[str, Any]] = []
        self._log: list[str] = []
        self._errors: tuple[str, ...] = ()
        self._notes: list[str] = []
        self._files: dict[str, bytes] = {}
        self._randomised = True

    def run(self, plan: Plan) -> Made:
        """All steps up to the first that does not do its work, and the normal forms of what was reached."""
        outcome: Outcome | None = None
        for step in plan.steps:
            if outcome is None:
                outcome = self._step(step)
            elif not outcome.failed and step.normalises:
                self._step(step)
        return self.ended(outcome)

    def ended(self, outcome: Outcome | None) -> Made:
        """What there is now."""
        data = self._tools.route.data
        reached = [stage for stage in data.stages if stage.file in self._files]
        kept = self._tools.route.collect(sorted(self._files))
        normal: dict[str, bytes] = {
            stage.name: self._sandbox.named(self._files[stage.normal].decode("utf-8", "replace")).encode()
            for stage in reached
            if stage.normal in self._files
        }
        if outcome is not None and not self._errors:
            self._errors = (outcome.message,)
        return Made(
            stage=reached[-1].name if reached else "source",
            outcome=outcome,
            commands=tuple(self._commands),
            variables=self._sandbox.variables(self._variables),
            log="".join(self._log) or (f"{outcome.message}\n" if outcome else ""),
            errors=self._errors if outcome is not None and outcome.failed else (),
            files={name: self._files[name] for name in kept},
            deepest=self._files[reached[-1].file] if reached else b"",
            normal=normal,
            notes=tuple(dict.fromkeys(self._notes)),
            isolation=self._sandbox.isolation,
            randomised=self._randomised,
        )

    def _step(self, step: Step) -> Outcome | None:
        tool = self._tools.tool(step.tool)
        if tool is None:
            program = self._tools.route.data.program(step.tool)
            return Outcome(outcomes.MISSING, str(missing(program, self._tools.place)), step.tool)
        for name in _PRIVATE:
            shutil.rmtree(self._folder / name)
            (self._folder / name).mkdir()
        self._variables |= step.variables
        ended = self._sandbox.run([tool.call, *step.argv], self._variables, step.limits, randomised=False)
        self._randomised = ended.randomised
        log = ended.text.encode()
        argv = [step.tool, *step.argv]
        self._commands.append({"argv": argv, "returncode": ended.status, "log_digest": digest(log)})
        self._log.append(f"$ {' '.join(argv)}\n{ended.text}")
        self._notes += [printable(note)[:4096] for note in self._tools.route.notes(ended.text)]
        changed = self._take(step)
        if changed is not None:
            return Outcome(outcomes.REJECTED, f"error: {step.tool} ran code that changed {changed} of an earlier step")
        outcome = self._tools.route.classify(step, ended, frozenset(self._files))
        if outcome is not None and outcome.failed:
            self._errors = tuple(self._tools.route.errors(ended.text)) if ended.status else (outcome.message,)
        return None if step.normalises else outcome

    def _take(self, step: Step) -> str | None:
        """Read what the step made and remove what it should not have; the name of an earlier file that differs."""
        allowed = {*step.makes, *step.may_make}
        for path in sorted(self._out.iterdir()):
            entry, data = path.name, _read(path)
            if entry in self._files:
                if data != self._files[entry]:
                    return entry
            elif data is not None and entry in allowed:
                self._files[entry] = data
            else:
                _remove(path)
        return next((name for name in self._files if not (self._out / name).exists()), None)


def _variables(tools: Bench) -> dict[str, str]:
    """The declared environment; a tool that is not among the system's own finds its helpers beside itself."""
    found = dict(tools.route.data.environment.variables)
    known = found["PATH"].split(":")
    own = [str(each.path.parent) for each in tools.found if each.program.found == "path"]
    return {**found, "PATH": ":".join([*(path for path in dict.fromkeys(own) if path not in known), *known])}


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _read(path: Path) -> bytes | None:
    """A regular file with one name and of bounded size, or None."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or status.st_size > MAX_OUTPUT_BYTES:
            return None
        parts = []
        while part := os.read(descriptor, 1 << 20):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
