"""How a command is shut in: bubblewrap, AKF's own namespaces, or nothing but limits. Which of them works here.

Invariants:
- A level counts as working after a harmless command has run in it here and found what must not be there missing;
  never by a program's mere presence, and never tried with a candidate's sources.
- The order is fixed, strongest first. Why a stronger one was not taken is kept, word for word.
- bubblewrap is the system's: what a user's PATH names is not it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from akf.contracts.canonical import digest_file
from akf.contracts.text import printable
from akf.routes.confine import landlock, seccomp, tasks
from akf.routes.sandbox.limits import Bound, Limits

Level = Literal["bwrap", "userns", "none"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""Strongest first."""
TOOLS_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_PROBE_S = 20.0


class Mount(NamedTuple):
    """A folder or file of this machine, and where it stands for the commands."""

    source: str
    target: str
    writable: bool = False


class Tried(NamedTuple):
    """A level that cannot be had here."""

    level: Level
    why: str


class Order(NamedTuple):
    """One command to be run."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    mounts: Sequence[Mount]
    limits: Limits = Limits()
    fixed_layout: bool = False
    bound: Bound | None = None


@cache
def program() -> Path | None:
    """The system's bubblewrap."""
    found = shutil.which("bwrap", path=TOOLS_PATH)
    return Path(found).resolve() if found else None


@cache
def identity() -> dict[str, object] | None:
    """Bubblewrap's identity, as artifacts hold it."""
    path = program()
    if path is None:
        return None
    said = subprocess.run(
        [str(path), "--version"], capture_output=True, check=False, env={}, stdin=subprocess.DEVNULL, timeout=_PROBE_S
    )
    text = printable(said.stdout.decode("utf-8", "replace").strip())[:200] or "no version of its own"
    return {"name": "bwrap", "version_text": text, "files": [{"name": path.name, "digest": digest_file(path)}]}


@cache
def filter_program() -> bytes:
    """The filter of system calls; empty on a machine whose numbers are not known."""
    try:
        return seccomp.program()
    except OSError:
        return b""


@cache
def landlock_version() -> int:
    """The kernel's Landlock version; 0 where there is none."""
    return landlock.version()


@cache
def why_not(level: Level) -> str | None:
    """Why a level cannot be had on this machine; None when it works."""
    from akf.routes.sandbox.start import SetupError, run_to_end  # noqa: PLC0415 - it starts what is described here

    if level == "none":
        return None
    if level == "bwrap" and program() is None:
        return "bwrap is not installed (Debian, Ubuntu: apt-get install bubblewrap)"
    if not filter_program():
        return "this machine's system calls are not in AKF's table, so they cannot be filtered"
    with tempfile.TemporaryDirectory(prefix="akf-probe-") as scratch:
        written = Path(scratch, "written")
        written.mkdir()
        look = 'test ! -e "$1" && test ! -e /proc/self && ! (: >/seen) 2>/dev/null && : >/probe/seen'
        order = Order(
            ["/bin/sh", "-c", look, "probe", __file__], {}, "/probe", [Mount(str(written), "/probe", writable=True)]
        )
        try:
            status, text = run_to_end(level, order, _PROBE_S)
        except SetupError as error:
            return str(error)
        except OSError as error:
            return f"{error.strerror or error}"
        if status == 0 and (written / "seen").is_file():
            return None
        return printable(text.strip().splitlines()[-1] if text.strip() else f"a probe ended with {status}")[:400]


@cache
def bound(level: Level) -> Bound | None:
    """By what the kernel bounds the tasks of a tree at this level; None where nothing does. Tried, not guessed."""
    from akf.routes.sandbox.start import SetupError, run_to_end  # noqa: PLC0415

    possible: list[Bound] = [] if level == "none" or not tasks.pid_max_is_the_namespaces() else ["pid_namespace"]
    possible += ["user_namespace"] if level != "none" and tasks.counted_apart() else []
    for each in possible:
        with suppress(SetupError, OSError):
            if run_to_end(level, Order(["/bin/true"], {}, "/", [], bound=each), _PROBE_S)[0] == 0:
                return each
    return None


def choose(allowed: Sequence[Level] = LEVELS) -> tuple[Level | None, tuple[Tried, ...]]:
    """The strongest level that works here, and why the stronger ones do not; None when none of the allowed does."""
    tried: list[Tried] = []
    for level in LEVELS:
        if level not in allowed:
            continue
        why = why_not(level)
        if why is None:
            return level, tuple(tried)
        tried.append(Tried(level, why))
    return None, tuple(tried)


def system_mounts() -> list[tuple[str, str, str]]:
    """What every command sees of the system: mode, source, target."""
    found = []
    for path in SYSTEM:
        if os.path.islink(path):  # noqa: PTH114
            found.append(("link", str(Path(path).readlink()), path))
        elif os.path.exists(path):  # noqa: PTH110
            found.append(("read", path, path))
    return found + [("device", path, path) for path in DEVICES if os.path.exists(path)]  # noqa: PTH110


def mounts_of(order: Order) -> list[tuple[str, str, str]]:
    """Everything that a command sees: mode, source, target."""
    own = [("write" if each.writable else "read", each.source, each.target) for each in order.mounts]
    return [*system_mounts(), *own]
