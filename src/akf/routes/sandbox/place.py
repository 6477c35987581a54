"""One command in a place of its own. Everything that a build runs comes through here.

Invariants:
- A command names folders by `{name}`; what stands for a name is a fixed path inside the sandbox, so that no path of
  this machine can enter what is built, and the folder's own path at level `none`.
- `{work}` holds `src` and `in`, read-only, and `out`, `home`, `tmp`, `cache`; other roots are read-only. No folder is
  shown that holds the user's home, keys or state.
- The level is chosen once, before anything runs, and never lowered afterwards.
- The environment is exactly what is given. A variable or a part of PATH whose root is not there is left out.
- A limit that is reached ends the whole tree and is named. What was said is bounded, and roots stand in it under
  their names.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.problems import BlockedError, PreconditionError
from akf.routes.sandbox import levels
from akf.routes.sandbox.levels import LEVELS, SYSTEM, Level, Mount, Order, Tried
from akf.routes.sandbox.limits import MAX_TEXT, Limits, Stop, met_the_tasks_bound, stopped_by_kernel
from akf.routes.sandbox.start import ADDR_NO_RANDOMIZE, SetupError, Started, fix_layout
from akf.routes.sandbox.watch import watch
from akf.trust.keys import default_directory

WORK = "work"
READ = ("src", "in")
WRITTEN = ("out", "home", "tmp", "cache")
_BASE = "/akf"
_ROOT = re.compile(r"\{([a-z]+)\}")
_ORDER = ("bwrap", "userns", "container", "uid", "none")


class Ended(NamedTuple):
    """How a command ended; a negative status, or one above 128, is a signal."""

    status: int
    text: str
    stopped: Stop | None
    """The limit that it reached."""
    isolation: Level
    randomised: bool

    @property
    def timed_out(self) -> bool:
        """Whether it reached the limit of time."""
        return self.stopped == "time"


class Sandbox:
    """Where the commands of one build run.

    Args:
        work: the build's folder; `layout` made it.
        roots: further folders by name, read-only.
        extra: paths of this machine that programs need under their own names, such as an interpreter's prefix.
        least: the weakest level that will do.
        allowed: the levels that may be chosen.

    Raises:
        PreconditionError: this machine has no level that will do; every one that was tried is named with its reason.
        BlockedError: a folder that would be shown holds the user's home, keys or state.
    """

    def __init__(
        self,
        work: Path,
        roots: Mapping[str, Path],
        extra: Sequence[Path] = (),
        *,
        least: str = "none",
        allowed: Sequence[Level] = LEVELS,
    ) -> None:
        self._roots = {**{name: path.resolve() for name, path in roots.items()}, WORK: work.resolve()}
        self._extra = [path for path in dict.fromkeys(extra) if not any(path.is_relative_to(each) for each in SYSTEM)]
        _refuse_private([*self._extra, *(path for name, path in self._roots.items() if name != WORK)])
        self.isolation, self.tried = _chosen(least, allowed)

    @property
    def folder(self) -> Path:
        """The build's folder."""
        return self._roots[WORK]

    @property
    def record(self) -> dict[str, Any]:
        """How commands are shut in, as a Build says it."""
        value: dict[str, Any] = {
            "system_calls_filtered": bool(levels.filter_program()),
            "network_namespace": self.isolation != "none",
            "tried": [each._asdict() for each in self.tried],
        }
        means = levels.bound(self.isolation)
        if means is not None:
            value["tasks_bounded_by"] = means
        if self.isolation == "bwrap":
            value["program"] = levels.identity()
        elif levels.landlock_version():
            value["landlock"] = levels.landlock_version()
        return value

    def place(self, name: str) -> str:
        """Where a root stands for the commands."""
        return f"{_BASE}/{name}" if self.isolation != "none" else str(self._roots[name])

    def named(self, text: str) -> str:
        """A text in which roots stand under their names."""
        for name in sorted(self._roots, key=lambda each: -len(self.place(each))):
            text = text.replace(self.place(name), f"{{{name}}}").replace(str(self._roots[name]), f"{{{name}}}")
        return text

    def variables(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """The environment with `{root}` names, without what is not there."""
        found = {}
        for name, value in wanted.items():
            parts = value.split(":") if name == "PATH" else [value]
            kept = [part for part in parts if all(root in self._roots for root in _ROOT.findall(part))]
            if kept:
                found[name] = ":".join(kept)
        return found

    def run(
        self, argv: Sequence[str], variables: Mapping[str, str], limits: Limits, *, randomised: bool = True
    ) -> Ended:
        """Run one command in `{work}`.

        Args:
            argv: program and arguments; `{root}` names are replaced.
            variables: the whole environment, likewise.
            limits: bounds.
            randomised: False asks for a fixed layout of the address space; the result says whether it was had.

        Raises:
            BlockedError: the level broke before the command ran, or something of the command cannot be ended.
        """
        work = self._roots[WORK]
        fixed = not randomised and can_fix_layout()
        order = Order(
            argv=[self._inside(word) for word in argv],
            env={name: self._inside(value) for name, value in self.variables(variables).items()},
            cwd=self.place(WORK),
            mounts=self._mounts(work),
            limits=limits,
            fixed_layout=fixed,
            bound=levels.bound(self.isolation),
        )
        with tempfile.TemporaryFile() as log:
            try:
                stopped, status = _run(self.isolation, order, [work / name for name in WRITTEN], log.fileno(), log)
            except SetupError as error:
                said = _bounded(log.seek(0, os.SEEK_END), log.fileno()).strip().splitlines()
                message = f"the sandbox ({self.isolation}) failed: {error}"
                raise BlockedError.of("AKF-E451", message, found=said[-1][:400] if said else None) from None
            text = _bounded(log.seek(0, os.SEEK_END), log.fileno())
        stopped = stopped or stopped_by_kernel(status)
        if stopped is None and order.bound is not None and met_the_tasks_bound(status, text):
            stopped = "processes"
        return Ended(status, self.named(text), stopped, self.isolation, not fixed)

    def _inside(self, text: str) -> str:
        return _ROOT.sub(lambda match: self.place(match[1]) if match[1] in self._roots else match[0], text)

    def _mounts(self, work: Path) -> list[Mount]:
        parts = [Mount(str(work / name), f"{self.place(WORK)}/{name}", name in WRITTEN) for name in (*READ, *WRITTEN)]
        others = [Mount(str(path), self.place(name)) for name, path in self._roots.items() if name != WORK]
        return [*(Mount(str(path), str(path)) for path in self._extra), *others, *parts]


def layout(work: Path) -> None:
    """Make the folders of a build in a new folder."""
    for name in (*READ, *WRITTEN):
        (work / name).mkdir(parents=True)


@cache
def can_fix_layout() -> bool:
    """Whether address randomisation can be switched off for a child; a container's filter may forbid it."""
    try:
        probe = subprocess.run(
            ["/bin/sh", "-c", "cat /proc/self/personality"],
            capture_output=True,
            check=False,
            preexec_fn=fix_layout,
            text=True,
            timeout=20,
        )
        return int(probe.stdout or "0", 16) & ADDR_NO_RANDOMIZE != 0
    except (OSError, ValueError, subprocess.SubprocessError):
        return False


def _run(level: Level, order: Order, folders: Sequence[Path], number: int, log: Any) -> tuple[Stop | None, int]:
    started = Started(level, order, log)
    stopped: Stop | None = None
    ended = False
    try:
        stopped = watch(started.process, order.limits, folders, number)
        ended = stopped is None
    finally:
        status = started.finish(kill=not ended)
    return stopped, status


def _chosen(least: str, allowed: Sequence[Level]) -> tuple[Level, tuple[Tried, ...]]:
    level, tried = levels.choose(allowed)
    if level is not None and _ORDER.index(level) <= _ORDER.index(least):
        return level, tried
    why = "; ".join(f"{each.level}: {each.why}" for each in tried) or "no other level was allowed"
    raise PreconditionError.of(
        "AKF-P450",
        f"a build must be shut in at least by {least}, and this machine offers {level or 'nothing'}: {why}",
        expected=least,
        found=level,
        hint="install bubblewrap and allow user namespaces (in a container: --security-opt seccomp=unconfined, or ask "
        "its operator); a Campaign's promotion.min_isolation says what it demands",
    )


def _refuse_private(shown: Iterable[Path]) -> None:
    """No folder is shown that holds what is nobody's business."""
    kept = [Path.home(), default_directory()]
    kept += [Path(os.environ[name]) for name in ("AKF_STATE", "XDG_STATE_HOME") if os.environ.get(name)]
    for path in shown:
        inside = next((each for each in kept if each.resolve().is_relative_to(path)), None)
        if inside is not None:
            message = f"a tool's folder {path} would be shown to the build, and it holds {inside}"
            hint = "install the tool in a folder of its own, such as /opt/NAME, and register it from there"
            raise BlockedError.of("AKF-E452", message, file=str(path), hint=hint)


def _bounded(size: int, descriptor: int) -> str:
    """The beginning and the end of a long text: a compiler's last words count most."""
    if size <= MAX_TEXT:
        return os.pread(descriptor, size, 0).decode("utf-8", "replace")
    half = MAX_TEXT // 2 - 32
    head, tail = os.pread(descriptor, half, 0), os.pread(descriptor, half, size - half)
    return "\n[...]\n".join(part.decode("utf-8", "replace") for part in (head, tail))
