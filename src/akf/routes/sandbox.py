"""One command in a place of its own. Everything that a build runs comes through here.

Invariants:
- A command names folders by `{name}`; what stands for a name is a fixed path inside the jail, so that no path of this
  machine can enter what is built, and the folder's own path where no jail can be made.
- `{work}` holds `src` and `in`, read-only, and `out`, `home`, `tmp`, `cache`; other roots are read-only.
- The environment is exactly what is given. A variable or a part of PATH whose root is not there is left out.
- Time, memory and file sizes are bounded, and the whole process group is killed at the end.
- What was said is bounded, and roots stand in it under their names.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from akf.routes import jail
from akf.routes.jail import Mount

WORK = "work"
READ = ("src", "in")
WRITTEN = ("out", "home", "tmp", "cache")
MAX_TEXT = 64 * 1024
_BASE = "/akf"
_ROOT = re.compile(r"\{([a-z]+)\}")
_ADDR_NO_RANDOMIZE = 0x0040000


class Limits(NamedTuple):
    """Bounds of one command."""

    wall_s: float = 120.0
    memory_bytes: int = 8 * 1024**3
    file_bytes: int = 256 * 1024**2


class Ended(NamedTuple):
    """How a command ended; a negative status is a signal."""

    status: int
    text: str
    timed_out: bool
    isolation: str
    randomised: bool


class Sandbox:
    """Where the commands of one build run.

    Args:
        work: the build's folder; `layout` made it.
        roots: further folders by name, read-only.
        extra: paths of this machine that programs need under their own names, such as an interpreter's prefix.
    """

    def __init__(self, work: Path, roots: Mapping[str, Path], extra: Sequence[Path] = ()) -> None:
        self._roots = {**{name: path.resolve() for name, path in roots.items()}, WORK: work.resolve()}
        self._extra = [str(path) for path in dict.fromkeys(extra)]
        self.isolation = "userns" if jail.works() else "none"

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
        """
        command = [self._inside(word) for word in argv]
        env = {name: self._inside(value) for name, value in self.variables(variables).items()}
        work = self._roots[WORK]
        fixed = not randomised and can_fix_layout()
        with tempfile.TemporaryDirectory(prefix="akf-root-") as root, tempfile.TemporaryFile() as log:
            if self.isolation != "none":
                command = jail.jailed(command, self.place(WORK), self._mounts(work), Path(root), env)
                env = {"PATH": jail.TOOLS_PATH}
            process = subprocess.Popen(
                command,
                cwd=work,
                env=env,
                preexec_fn=lambda: _prepare(limits, fixed=fixed),  # noqa: PLW1509 - must hold before hostile sources are read
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            timed_out = False
            try:
                process.wait(limits.wall_s)
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                status = process.wait()
            text = _bounded(log.seek(0, os.SEEK_END), log.fileno())
        return Ended(status, self.named(text), timed_out, self.isolation, not fixed)

    def _inside(self, text: str) -> str:
        return _ROOT.sub(lambda match: self.place(match[1]) if match[1] in self._roots else match[0], text)

    def _mounts(self, work: Path) -> list[Mount]:
        parts = [Mount(str(work / name), f"{self.place(WORK)}/{name}", name in WRITTEN) for name in (*READ, *WRITTEN)]
        others = [Mount(str(path), self.place(name)) for name, path in self._roots.items() if name != WORK]
        inside = [path for path in self._extra if not any(Path(path).is_relative_to(each) for each in jail.SYSTEM)]
        return [*(Mount(path, path) for path in inside), *others, *parts]


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
            preexec_fn=_fix_layout,
            text=True,
            timeout=20,
        )
        return int(probe.stdout or "0", 16) & _ADDR_NO_RANDOMIZE != 0
    except (OSError, ValueError, subprocess.SubprocessError):
        return False


def _fix_layout() -> None:
    ctypes.CDLL(None).personality(ctypes.c_ulong(_ADDR_NO_RANDOMIZE))


def _prepare(limits: Limits, *, fixed: bool) -> None:
    """Bound the process; runs between fork and exec."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_bytes, limits.file_bytes))
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if fixed:
        _fix_layout()


def _bounded(size: int, descriptor: int) -> str:
    """The beginning and the end of a long text: a compiler's last words count most."""
    if size <= MAX_TEXT:
        return os.pread(descriptor, size, 0).decode("utf-8", "replace")
    half = MAX_TEXT // 2 - 32
    head, tail = os.pread(descriptor, half, 0), os.pread(descriptor, half, size - half)
    return "\n[...]\n".join(part.decode("utf-8", "replace") for part in (head, tail))
