"""Starting a command at a level, and ending all that it started.

Invariants:
- A set-up that fails is an error of its own, never the command's: its sources get no verdict from it.
- The command's environment is exactly what is given; it has no standard input, no terminal, no descriptor of AKF.
- When `finish` returns, nothing of the tree runs any more, however it was made; what cannot be ended is an error.
- When AKF is killed, the kernel ends the tree; without a PID namespace it can only end the command itself.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import IO, Self

import akf
from akf.routes.confine import enter, namespaces, tasks
from akf.routes.sandbox import levels
from akf.routes.sandbox.levels import DEVICES, Level, Order, mounts_of
from akf.routes.sandbox.limits import GONE_S, SETUP_S, Limits
from akf.routes.sandbox.watch import Member, alive, asleep, members, wait_gone

ADDR_NO_RANDOMIZE = 0x0040000
_BOOT = "import sys; sys.path.insert(0, sys.argv.pop(1)); from akf.routes.confine.enter import main; main()"
_MODES = {"read": ("--ro-bind",), "write": ("--bind",), "device": ("--dev-bind",), "link": ("--symlink",)}
_GATE = 'echo ready; read -r word <&1 && [ "$word" = go ] && exec "$@" >&2'
_GUARD = """
exec 3<&0
"$@" </dev/null 3<&- & build=$!
exec >/dev/null
{ read -r word && [ "$word" = go ] && { read -r word; kill -9 "$build"; }; } <&3 & watch=$!
wait "$build"; status=$?
kill -9 "$watch"
exit "$status"
"""
_NICE = 5
"""Whoever watches a tree that takes all processors must come to its turn."""
_libc = ctypes.CDLL(None)


class SetupError(RuntimeError):
    """A level broke before the command ran in it."""


class Started:
    """A command that runs.

    Args:
        level: how it is shut in.
        order: what is run.
        log: where it says what it says.

    Raises:
        SetupError: it cannot be shut in.
    """

    def __init__(self, level: Level, order: Order, log: IO[bytes]) -> None:
        self._level = level
        self._order = order
        self._log = log
        self._inside: list[Member] = []
        self._held = ExitStack()
        try:
            self.process = self._through_bubblewrap() if level == "bwrap" else self._through_akf()
        except BaseException:
            self._held.close()
            raise

    def finish(self, *, kill: bool) -> int:
        """End what still runs and return the command's status; a negative one, or one above 128, is a signal.

        Args:
            kill: do not wait for the command.

        Raises:
            SetupError: something of it cannot be ended.
        """
        first = self._inside or members(self.process.pid, most=1)[1:]  # with it the kernel ends its whole namespace
        wanted = [*members(self.process.pid, most=0), *first]
        if kill:
            self._kill(wanted)
        status = self.process.wait()
        left = wait_gone(wanted)
        self._held.close()
        if left:
            raise SetupError(f"{len(left)} processes of the build do not end, process {left[0].pid} among them")
        return status

    def _kill(self, wanted: Sequence[Member]) -> None:
        if self._level == "none":  # no namespace ends them: its first process, to which all come back, is ended last
            until = time.monotonic() + GONE_S
            while (below := members(self.process.pid)[1:]) and time.monotonic() < until:
                for number in (signal.SIGSTOP, signal.SIGKILL):
                    _signal(below, number)
        if self._level == "bwrap":  # its guard ends by itself, and in order
            _signal(self._inside, signal.SIGKILL)
        else:
            _signal(wanted, signal.SIGKILL)

    def _through_bubblewrap(self) -> subprocess.Popen[bytes]:
        """Start it below a guard, and let the command go once all of it can be ended from outside.

        Until then the command waits for a word from here, and ends when this process does. bubblewrap must not be
        killed so early: one half of it would wait for the other for ever. From then on the guard ends it when this
        process is gone.
        """
        mine = self._held.enter_context(_Pipe())
        ours, theirs = (self._held.enter_context(end) for end in socket.socketpair())
        with _filter_file() as filtered, tempfile.TemporaryFile() as facts:  # a pipe could end its writer
            process = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "guard", *_bubblewrap(self._order, facts.fileno(), filtered.fileno())],
                cwd="/",
                env={"PATH": levels.TOOLS_PATH},
                preexec_fn=_preparation(self._order.limits, fixed=self._order.fixed_layout),  # noqa: PLW1509
                pass_fds=(facts.fileno(), filtered.fileno()),
                start_new_session=True,
                stdin=mine.reader,
                stdout=theirs.fileno(),
                stderr=self._log,
            )
            theirs.close()
            mine.end_reader()
            came = _line(ours.fileno(), SETUP_S) == "ready"
            said = json.loads(os.pread(facts.fileno(), 4096, 0).splitlines()[0]) if came else {}
        first = said.get("child-pid")
        if not isinstance(first, int) or not asleep(first, SETUP_S):
            _signal(members(process.pid), signal.SIGKILL)
            process.wait()
            raise SetupError("bwrap did not come to the command; its log says why")
        self._inside = members(first, most=0)
        self._bound_tasks(process, first)
        os.write(mine.writer, b"go\n")
        ours.sendall(b"go\n")
        return process

    def _bound_tasks(self, process: subprocess.Popen[bytes], first: int) -> None:
        """Bound the tasks below the first process inside, which waits for its word."""
        most = self._order.limits.tasks
        try:
            if self._order.bound == "pid_namespace":
                going = partial(tasks.bound_of, first, most)  # it ends in there, and runs nothing
                subprocess.run(["/bin/true"], check=True, env={}, preexec_fn=going, timeout=SETUP_S)
            elif self._order.bound == "user_namespace":
                for member in members(first):
                    resource.prlimit(member.pid, resource.RLIMIT_NPROC, (most, most))
        except (OSError, subprocess.SubprocessError) as error:
            _signal(members(process.pid), signal.SIGKILL)
            process.wait()
            raise SetupError(f"its tasks cannot be bounded: {error}") from None

    def _through_akf(self) -> subprocess.Popen[bytes]:
        """Start it; silence on the report, to its end, means that the command runs."""
        root = self._held.enter_context(tempfile.TemporaryDirectory(prefix="akf-root-"))
        report = self._held.enter_context(_Pipe())
        process = subprocess.Popen(
            self._enter(self._order, root, report.writer),
            cwd="/",
            env={"PATH": levels.TOOLS_PATH},
            preexec_fn=_preparation(None, fixed=self._order.fixed_layout),  # noqa: PLW1509
            pass_fds=(report.writer,),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        report.end_writer()
        said = _line(report.reader, SETUP_S)
        if said:
            process.kill()
            process.wait()
            raise SetupError(said)
        return process

    def _enter(self, order: Order, root: str, report: int) -> list[str]:
        """The command line of AKF's own way in."""
        apart = self._level == "userns"
        shown = mounts_of(order)
        paths = [target for mode, _, target in shown if mode == "read"]
        written = [target for mode, _, target in shown if mode == "write"]
        land = {"readable": ["/"] if apart else paths, "writable": written, "devices": DEVICES}
        limits = order.limits.kernels()
        if order.bound == "user_namespace":
            limits["RLIMIT_NPROC"] = (order.limits.tasks, order.limits.tasks)
        wanted = {
            "report": report,
            "starter": os.getpid(),
            "namespaces": apart,
            "root": root,
            "mounts": shown,
            "argv": list(order.argv),
            "env": dict(order.env),
            "cwd": order.cwd,
            "limits": limits,
            "tasks": order.limits.tasks if order.bound == "pid_namespace" else None,
            "landlock": land if levels.landlock_version() else None,
            "seccomp": levels.filter_program().hex(),
        }
        package = str(Path(akf.__file__).parent.parent)
        return [sys.executable, "-I", "-S", "-B", "-c", _BOOT, package, json.dumps(wanted)]


def _signal(wanted: Sequence[Member], number: int) -> None:
    for member in alive(wanted):
        with suppress(ProcessLookupError):
            os.kill(member.pid, number)


class _Pipe:
    """Two descriptors that no other program gets, closed at the end."""

    def __enter__(self) -> Self:
        self.reader, self.writer = os.pipe2(os.O_CLOEXEC)
        self._open = {self.reader, self.writer}
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._open:
            os.close(descriptor)

    def end_reader(self) -> None:
        """Leave the reading end to the other side."""
        self._open.remove(self.reader)
        os.close(self.reader)

    def end_writer(self) -> None:
        """Leave the writing end to the other side."""
        self._open.remove(self.writer)
        os.close(self.writer)


def _line(descriptor: int, seconds: float) -> str:
    """The first line of what comes, or all when it ends before; empty when nothing comes in time."""
    found = b""
    until = time.monotonic() + seconds
    while b"\n" not in found and select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(descriptor, 4096)
        if not part:
            break
        found += part
    return found.split(b"\n")[0].decode("utf-8", "replace")


def run_to_end(level: Level, order: Order, seconds: float) -> tuple[int, str]:
    """Run a short command that is trusted; its status and what it said.

    Raises:
        SetupError: the level does not work.
    """
    with tempfile.TemporaryFile() as log:
        try:
            started = Started(level, order, log)
        except SetupError as error:
            said = os.pread(log.fileno(), 4096, 0).decode("utf-8", "replace").strip().splitlines()
            raise SetupError(said[-1] if said else str(error)) from None
        late = False
        try:
            started.process.wait(seconds)
        except subprocess.TimeoutExpired:
            late = True
        status = started.finish(kill=late)
        return status, os.pread(log.fileno(), 4096, 0).decode("utf-8", "replace")


def _bubblewrap(order: Order, report: int, filtered: int) -> list[str]:
    inside = str(namespaces.INSIDE)
    words = [
        str(levels.program()),
        *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
        *("--uid", inside, "--gid", inside, "--hostname", namespaces.HOST),
        *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *("--json-status-fd", str(report), "--seccomp", str(filtered)),
    ]
    for mode, source, target in mounts_of(order):
        words += [*_MODES[mode], source, target]
    words += ["--remount-ro", "/", "--chdir", order.cwd, "--", "/bin/sh", "-c", _GATE, "gate"]
    return [*words, "/usr/bin/env", "-i", *(f"{name}={value}" for name, value in order.env.items()), *order.argv]


def _filter_file() -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(levels.filter_program())
    file.flush()
    file.seek(0)
    return file


def _preparation(limits: Limits | None, *, fixed: bool) -> Callable[[], None]:
    """What the child does to itself between fork and exec."""
    bounds = [(getattr(resource, name), *pair) for name, pair in (limits.kernels() if limits else {}).items()]

    def prepare() -> None:
        for each in bounds:
            enter.limit(*each)
        os.nice(_NICE)
        if fixed:
            fix_layout()

    return prepare


def fix_layout() -> None:
    """Switch off the randomisation of addresses for this process and what it starts."""
    _libc.personality(ctypes.c_ulong(ADDR_NO_RANDOMIZE))
