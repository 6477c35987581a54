"""Commands in the sandbox, at the level that a test asks for, as root and as somebody else."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from tests.support.process import NOBODY, in_child

import akf
from akf.routes.sandbox import Ended, Level, Limits, Sandbox, layout, levels
from akf.routes.sandbox.limits import Bound

NAMESPACED: tuple[Level, ...] = ("bwrap", "userns")
QUICK = Limits(
    wall_s=20.0, memory_bytes=256 * 1024**2, file_bytes=16 * 1024**2, disk_bytes=32 * 1024**2, files=400, processes=40
)
PATH = "/usr/local/bin:/usr/bin:/bin"


def need(level: Level) -> None:
    """Skip where a level cannot be had, with its reason."""
    why = levels.why_not(level)
    if why is not None:
        pytest.skip(f"{level}: {why}")


class Place:
    """A build's folder and the sandbox over it."""

    def __init__(self, folder: Path, level: Level, extra: Sequence[Path] = ()) -> None:
        need(level)
        self.work = folder / "work"
        layout(self.work)
        self.sandbox = Sandbox(self.work, {}, extra, allowed=[level])

    @property
    def out(self) -> Path:
        """Where commands leave what they make."""
        return self.work / "out"

    def run(self, *argv: str, limits: Limits = QUICK, randomised: bool = False) -> Ended:
        """Run one command."""
        variables = {"PATH": PATH, "HOME": "{work}/home", "TMPDIR": "{work}/tmp"}
        return self.sandbox.run(argv, variables, limits, randomised=randomised)

    def sh(self, script: str, *words: str, limits: Limits = QUICK) -> Ended:
        """Run a shell script."""
        return self.run("/bin/sh", "-c", script, "script", *words, limits=limits)

    def python(self, script: str, *words: str, limits: Limits = QUICK, randomised: bool = False) -> Ended:
        """Run a Python script under the system's own interpreter."""
        found = shutil.which("python3", path="/usr/bin")
        if found is None:
            pytest.skip("no /usr/bin/python3: the attacks are written in Python")
        return self.run(found, "-I", "-S", "-c", script, *words, limits=limits, randomised=randomised)


def as_nobody(level: Level, script: str, means: Bound | None = None) -> tuple[int, str, str | None]:
    """Run a shell script in the sandbox as an unprivileged user; status, text and limit reached.

    Args:
        level: how it is shut in.
        script: what is run.
        means: by what its tasks are bounded; None: by what the machine offers.
    """
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="akf-nobody-") as home:
        os.chown(home, NOBODY, NOBODY)
        package = Path(akf.__file__).parent
        for part in ("__init__.py", "routes/__init__.py", "routes/confine"):  # the checkout may be root's alone
            target = Path(home, "lib", "akf", part)
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (package / part).is_dir() else shutil.copyfile)(package / part, target)
        return _as_nobody(Path(home), level, script, means)


def _as_nobody(home: Path, level: Level, script: str, means: Bound | None) -> tuple[int, str, str | None]:

    def work() -> list[object]:
        os.environ["HOME"] = str(home)
        os.environ["TMPDIR"] = str(home)
        akf.__file__ = str(home / "lib" / "akf" / "__init__.py")
        if not os.access(sys.executable, os.X_OK):
            sys.executable = "/usr/bin/python3"
        tempfile.tempdir = None
        for cached in (levels.why_not, levels.program, levels.bound):
            cached.cache_clear()
        why = levels.why_not(level)
        if why is not None:
            return [-1, why, None]
        if means is not None:
            levels.bound = cache(lambda _: means)
        ended = Place(home, level).sh(script)
        return [ended.status, ended.text, ended.stopped]

    status, text, stopped = in_child(work, uid=NOBODY)
    return status, text, stopped
