"""One build of one tree by one route: the steps of a plan, run in order, and what they left.

Invariants:
- Every build happens in a folder of its own that holds the given files and nothing else.
- What is compiled is what was digested: files are written from the bytes that were read, and are read-only to steps.
- A step may add the files that it says it makes, and change none of an earlier step: a file that code of the source
  planted for a later step is removed, one that it changed ends the build. A link, a FIFO or a device under the name of
  an output ends it too.
- Home, temporary and cache folders are empty before every step.
- A stage is reached when its file is there after the steps that make it; a tool's exit status alone says nothing.
- A missing tool leaves what was reached before it, and is named; anything else that goes wrong fails the build.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.canonical import digest, jcs
from akf.contracts.problems import BlockedError
from akf.contracts.text import printable
from akf.contracts.tree import tree_digest
from akf.routes import outcomes
from akf.routes.outcomes import Outcome
from akf.routes.route import Job, Plan, Route, SourceRefused, StandIn, Step
from akf.routes.sandbox import WRITTEN, Sandbox, layout, outputs
from akf.routes.tools import Found, Place, ToolMissing, missing
from akf.store.untrusted import TreeFile

_PRIVATE = tuple(name for name in WRITTEN if name != "out")


class Bench(NamedTuple):
    """A route with the tools of this machine."""

    route: Route
    place: Place
    found: tuple[Found, ...]
    toolkit: dict[str, str]
    extra: tuple[Path, ...] = ()
    """Paths that the tools need under their own names."""
    least: str = "none"
    """The weakest isolation that will do."""

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
    sandbox: Mapping[str, Any]
    """How the commands were shut in."""
    randomised: bool
    inputs: str
    """Digest over everything that could change what is made."""
    stand_ins: tuple[dict[str, Any], ...] = ()
    """Programs that stood in for tools, as a Build names them."""

    @property
    def built(self) -> bool:
        """Whether it may be used, as deep as it reached."""
        return self.outcome is None or not self.outcome.failed


def bench(route: Route, job: Job, place: Place, toolkit: dict[str, str] | None = None, least: str = "none") -> Bench:
    """The tools of this machine for a job.

    Args:
        route: the route.
        job: what is built.
        place: where tools may be.
        toolkit: whose name the build carries, where it is not the route's own.
        least: the weakest isolation that will do.

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
    return Bench(route, place, found, toolkit or route.toolkit(found), tuple(dict.fromkeys(extra)), least)


def make(tools: Bench, job: Job, files: Sequence[TreeFile], folder: Path, given: Plan | None = None) -> Made:
    """Build a tree once.

    Args:
        tools: the route and its tools.
        job: what is built.
        files: the sources.
        folder: a new folder to work in.
        given: another plan than the one that builds.
    """
    layout(folder)
    for file in files:
        _write(folder / "src" / file.path, file.data, executable=file.executable)
    build = _Build(tools, job, folder)
    try:
        plan = given or tools.route.plan(job)
    except SourceRefused as error:
        build.inputs = _inputs(tools, job, files, Plan(()))
        return build.ended(Outcome(outcomes.REJECTED, f"error: {error}"))
    build.inputs = _inputs(tools, job, files, plan)
    for name, data in plan.files.items():
        _write(folder / "in" / name, data)
    for name, each in plan.stand_ins.items():
        _write(folder / "in" / "bin" / name, each.program, executable=True)
    return build.run(plan)


def _inputs(tools: Bench, job: Job, files: Sequence[TreeFile], plan: Plan) -> str:
    """Digest over the sources, the route's own files, and all that is told to the tools and that they are."""
    tree = [(f"src/{file.path}", file.executable, digest(file.data)) for file in files]
    tree += [(f"in/{name}", False, digest(data)) for name, data in plan.files.items()]
    tree += [(f"in/bin/{name}", True, digest(each.program)) for name, each in plan.stand_ins.items()]
    told = {
        "route": tools.route.name,
        "soc": job.soc,
        "target": job.target,
        "options": dict(job.options),
        "steps": [{**step._asdict(), "limits": step.limits._asdict()} for step in plan.steps],
        "variables": _variables(tools, job),
        "tools": [each.record for each in tools.found],
    }
    return tree_digest(tree, told)


class _Build:
    """The steps of one build."""

    def __init__(self, tools: Bench, job: Job, folder: Path) -> None:
        self._tools = tools
        self._job = job
        self._out = folder / "out"
        self._folder = folder
        self._sandbox = Sandbox(folder, tools.place.roots, tools.extra, least=tools.least)
        self._variables = _variables(tools, job)
        self._commands: list[dict[str, Any]] = []
        self._log: list[str] = []
        self._errors: tuple[str, ...] = ()
        self._notes: list[str] = []
        self._files: dict[str, bytes] = {}
        self._randomised = True
        self._stand_ins: tuple[dict[str, Any], ...] = ()
        self.inputs = ""

    def run(self, plan: Plan) -> Made:
        """All steps up to the first that does not do its work, and the normal forms of what was reached."""
        outcome: Outcome | None = None
        self._stand_ins = tuple(_stand_in(name, each) for name, each in sorted(plan.stand_ins.items()))
        for step in plan.steps:
            if outcome is None:
                outcome = self._step(step)
            elif not outcome.failed and (step.normalises or step.part):
                outcome = self._beside(step, outcome)
        for name in WRITTEN:
            outputs.clear(self._folder / name)
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
        parts = {part.file: digest(self._files[part.file]) for part in data.parts if part.file in self._files}
        if outcome is not None and not self._errors:
            self._errors = (outcome.message,)
        if parts:
            self._notes.append(f"runs inside the engine that serves the operator: {', '.join(parts)}")
        return Made(
            stage=reached[-1].name if reached else "host_parts" if parts else "source",
            outcome=outcome,
            commands=tuple(self._commands),
            variables=self._sandbox.variables(self._variables),
            log="".join(self._log) or (f"{outcome.message}\n" if outcome else ""),
            errors=self._errors if outcome is not None and outcome.failed else (),
            files={name: self._files[name] for name in kept},
            deepest=self._files[reached[-1].file] if reached else jcs(parts) if parts else b"",
            normal=normal,
            notes=tuple(dict.fromkeys(self._notes)),
            isolation=self._sandbox.isolation,
            sandbox=self._sandbox.record,
            inputs=self.inputs,
            randomised=self._randomised,
            stand_ins=self._stand_ins,
        )

    def _beside(self, step: Step, outcome: Outcome) -> Outcome:
        """A step that is made although a tool of another one is missing; why the build goes no deeper."""
        found = self._step(step)
        if found is not None and not found.failed:
            wanted = [part.file for part in self._tools.route.data.parts if part.file in step.makes]
            place = self._tools.route.data.program(str(found.tool)).places[0]
            self._notes += [f"{name} is not made: {found.tool} is missing ({place})" for name in wanted]
        return found if found is not None and found.failed else outcome

    def _step(self, step: Step) -> Outcome | None:
        tool = self._tools.tool(step.tool)
        absent = next((name for name in (step.tool, *step.needs) if self._tools.tool(name) is None), None)
        if tool is None or absent is not None:
            program = self._tools.route.data.program(absent or step.tool)
            return Outcome(outcomes.MISSING, str(missing(program, self._tools.place)), program.name)
        for name in _PRIVATE:
            outputs.clear(self._folder / name)
        self._variables |= step.variables
        ended = self._sandbox.run([tool.call, *step.argv], self._variables, step.limits, randomised=False)
        self._randomised = ended.randomised
        log = ended.text.encode()
        argv = [step.tool, *step.argv]
        self._commands.append({"argv": argv, "returncode": ended.status, "log_digest": digest(log)})
        self._log.append(f"$ {' '.join(argv)}\n{ended.text}")
        self._notes += [printable(note)[:4096] for note in self._tools.route.notes(ended.text)]
        refused = self._take(step)
        if ended.stopped is not None:
            outcome: Outcome | None = outcomes.stopped(step.tool, ended.stopped, step.limits)
        else:
            outcome = refused or self._tools.route.classify(step, ended, frozenset(self._files))
        if outcome is not None and outcome.failed:
            own = ended.status and ended.stopped is None and refused is None
            self._errors = tuple(self._tools.route.errors(ended.text)) if own else (outcome.message,)
        return None if step.normalises else outcome

    def _take(self, step: Step) -> Outcome | None:
        """Read what the step made and remove what it should not have; what is wrong with it."""
        allowed = {*step.makes, *step.may_make}
        left = outputs.collect(self._out, {*allowed, *self._files})
        outputs.clear(self._out, keep={*self._files, *left.files})
        for name in self._files:
            if left.files.get(name) != self._files[name]:
                return Outcome(outcomes.REJECTED, f"error: {step.tool} ran code that changed {name} of an earlier step")
        self._files |= left.files
        self._notes += [
            f"{step.tool} left out/{name[:200]}, which {why}; it was removed" for name, why in left.odd.items()
        ]
        for name, why in left.refused.items():
            return Outcome(outcomes.REFUSED, f"error: out/{name}, as {step.tool} left it, {why}")
        return None


def _stand_in(name: str, each: StandIn) -> dict[str, Any]:
    files = [{"name": name, "digest": digest(each.program)}]
    return {"name": name, "version_text": each.says, "stand_in": True, "files": files}


def _variables(tools: Bench, job: Job) -> dict[str, str]:
    """The arm's own choices and the declared environment, which counts where both name something.

    A tool that is not among the system's own finds its helpers beside itself.
    """
    found = {**job.variables, **tools.route.data.environment.variables}
    known = found["PATH"].split(":")
    own = [str(each.path.parent) for each in tools.found if each.program.found == "path"]
    return {**found, "PATH": ":".join([*(path for path in dict.fromkeys(own) if path not in known), *known])}


def _write(path: Path, data: bytes, *, executable: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o555 if executable else 0o444)
    os.utime(path, (0, 0))  # some tools write a source's time into what they make
