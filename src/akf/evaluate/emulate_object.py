"""From what a Build carries to an object that this machine executes: the file itself, or one that is compiled from it.

Invariants:
- What is compiled is the file that the Build names by digest, with the tools that the route declares for it, each in
  the sandbox. Their identity stands in the answer.
- A tool that is missing is named with the way to get it. IR that they refuse is no verdict about the kernel: what this
  machine cannot execute, it cannot compare.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.canonical import digest
from akf.contracts.problems import BlockedError, PreconditionError
from akf.contracts.text import printable
from akf.routes.route import Plan, Route
from akf.routes.sandbox import Sandbox, layout, outputs
from akf.routes.tools import Place, ToolMissing, need

_PATH = "/usr/bin:/bin"


class Object(NamedTuple):
    """What is executed."""

    data: bytes
    compiled: dict[str, Any] | None
    """The object's digest and the tools that made it; None when the Build carries it."""


def executable(chosen: Route, data: bytes, build: Path) -> Object:
    """The object for a file of a Build.

    Args:
        chosen: its route.
        data: the file's bytes, checked already.
        build: the Build's folder, for messages.

    Raises:
        BlockedError: a tool is missing.
        PreconditionError: the tools refuse the file.
    """
    plan = chosen.emulated(data)
    if not plan.steps:
        return Object(data, None)
    try:
        found = {step.tool: need(chosen.data.program(step.tool), Place()) for step in plan.steps}
    except ToolMissing as error:
        raise BlockedError([error.problem()]) from error
    extra = list(dict.fromkeys(each.path.resolve().parent.parent for each in found.values()))
    with tempfile.TemporaryDirectory(prefix="akf-emulate-") as scratch:
        work = Path(scratch, "work")
        layout(work)
        for name, content in plan.files.items():
            (work / "in" / name).write_bytes(content)
        made = _run(chosen, plan, Sandbox(work, {}, extra), {name: each.call for name, each in found.items()}, build)
    return Object(made, {"digest": digest(made), "tools": [each.record for each in found.values()]})


def _run(chosen: Route, plan: Plan, sandbox: Sandbox, calls: dict[str, str], build: Path) -> bytes:
    """All commands; what the last one made."""
    variables = {"PATH": _PATH, "HOME": "{work}/home", "TMPDIR": "{work}/tmp", "LANG": "C"}
    files: dict[str, bytes] = {}
    for step in plan.steps:
        ended = sandbox.run([calls[step.tool], *step.argv], variables, step.limits)
        files |= outputs.collect(sandbox.folder / "out", step.makes).files
        outcome = chosen.classify(step, ended, frozenset(files))
        if outcome is not None:
            message = f"a Build of route {chosen.name} cannot be executed on this machine: {step.tool} refuses it"
            raise PreconditionError.of(
                "AKF-P500",
                f"{message}: {printable(outcome.message)[:400]}",
                file=str(build),
                found=outcome.code,
                hint="a kernel that uses operations of the device's own dialects is compared on a device only",
            )
    return files[plan.steps[-1].makes[0]]
