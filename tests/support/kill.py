"""Kill a piece of work at each of its system calls, and look at what is left.

The work runs in a fork of this process, so that nothing is imported again, with the functions of ``os`` that
change a disk wrapped. At its n-th such call the child sends itself SIGKILL: before the call, after it, or
with half of a write done. ``tests/store/test_kill_coverage.py`` shows with strace that the wrapped functions
are all the calls there are.

- `kill_points` drives a work through every one of its points and checks the folder after each.
- `fail_points` lets the n-th call fail with an error number instead, in the same way.
- `calls_of` returns the calls of a work in their order, as the hooks see them.

A work is a function of a fresh folder. It must change the disk through ``os`` alone: opening a file for
writing with ``open()`` is refused inside a work, because its writes happen in C where no hook sees them.
"""

import builtins
import errno
import gc
import io
import itertools
import json
import os
import select
import shutil
import signal
import stat
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tests.support.process import fork

from akf.store import _system

Work = Callable[[Path], object]

BEFORE, TORN, AFTER, FAIL = "before", "torn", "after", "fail"
WRITES = ("write", "pwrite")
CALLS = (
    *WRITES, "writev", "sendfile", "copy_file_range", "posix_fallocate", "open", "fsync", "fdatasync", "link",
    "symlink", "rename", "replace", "unlink", "remove", "mkdir", "rmdir", "truncate", "ftruncate", "chmod",
    "fchmod",
)  # fmt: skip


@dataclass(frozen=True)
class Point:
    """The n-th call of a work, and how the child ends there."""

    number: int
    call: str
    moment: str


@dataclass(frozen=True)
class Report:
    """What was done: the calls of one undisturbed run, the points taken, and at how many a child was stopped."""

    calls: tuple[str, ...]
    points: int
    stopped: int


@dataclass(frozen=True)
class _Outcome:
    killed: bool
    calls: tuple[str, ...]
    raised: str | None
    exit_code: int | None
    trace: str


def kill_points(
    run_once: Work,
    workdir_factory: Callable[[], Path],
    check: Callable[[Path], object],
    *,
    before_and_after: bool = True,
    torn: bool = True,
    stride: int = 1,
    offset: int = 0,
    timeout_s: float = 60.0,
) -> Report:
    """Kill `run_once` at every call it makes; `check` looks at each folder that is left.

    Args:
        run_once: The work; succeeds in a folder that `workdir_factory` made.
        workdir_factory: Makes a fresh folder with the state that the work starts from.
        check: Raises when what is left is neither the old state nor the new one, or the next command fails.
        before_and_after: Kill on both sides of each call, not only before it.
        torn: Also kill after half of each write.
        stride: Take every so-manieth point only, for slices of a long suite.
        offset: The first point of the slice.
        timeout_s: How long one child may take.
    """
    calls = calls_of(run_once, workdir_factory, timeout_s=timeout_s)
    points = [
        Point(number, call, moment)
        for number, call in enumerate(calls, 1)
        for moment in (BEFORE, TORN, AFTER)
        if moment == BEFORE or (before_and_after if moment == AFTER else torn and call in WRITES)
    ][offset::stride]
    for point in points:
        folder = workdir_factory()
        outcome = _run(run_once, folder, _killer(point), timeout_s)
        with _told(point, folder):
            if outcome.raised:
                raise AssertionError(f"the work failed before it was killed:\n{outcome.trace}")
            if not outcome.killed:
                raise AssertionError("the work made fewer calls than when they were counted")
            check(folder)
        shutil.rmtree(folder)
    return Report(calls, len(points), len(points))


def fail_points(
    run_once: Work,
    workdir_factory: Callable[[], Path],
    check: Callable[[Path, int | None], object],
    *,
    number: int = errno.ENOSPC,
    stride: int = 1,
    offset: int = 0,
    timeout_s: float = 60.0,
) -> Report:
    """Let each call of `run_once` fail once; `check` gets the folder and the exit code raised, or None."""
    calls = calls_of(run_once, workdir_factory, timeout_s=timeout_s)
    points = [Point(n, call, FAIL) for n, call in enumerate(calls, 1)][offset::stride]
    stopped = 0
    for point in points:
        folder = workdir_factory()
        outcome = _run(run_once, folder, _failer(point, number), timeout_s)
        with _told(point, folder):
            if outcome.raised and outcome.exit_code is None:
                raise AssertionError(f"not an error of ours:\n{outcome.trace}")
            check(folder, outcome.exit_code)
        stopped += outcome.raised is not None
        shutil.rmtree(folder)
    return Report(calls, len(points), stopped)


def calls_of(run_once: Work, workdir_factory: Callable[[], Path], *, timeout_s: float = 60.0) -> tuple[str, ...]:
    """Run the work undisturbed in a fork and return its calls in their order."""
    folder = workdir_factory()
    outcome = _run(run_once, folder, _pass, timeout_s)
    if outcome.raised or outcome.killed:
        raise AssertionError(f"the work does not succeed by itself in {folder}:\n{outcome.trace}")
    shutil.rmtree(folder)
    return outcome.calls


Act = Callable[[int, str, Callable[..., Any], Sequence[Any], dict[str, Any]], Any]


@contextmanager
def hooked(act: Act) -> Iterator[list[str]]:
    """Send every call that changes a disk through `act`; yields the list of their names, which grows."""
    seen: list[str] = []
    numbers = itertools.count(1)

    def wrap(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not _changes_a_disk(name, args, kwargs):
                return real(*args, **kwargs)
            seen.append(name)
            return act(next(numbers), name, real, args, kwargs)

        return wrapper

    patches: list[tuple[Any, str, Any]] = []

    def patch(owner: Any, attribute: str, replacement: Any) -> None:
        patches.append((owner, attribute, getattr(owner, attribute)))
        setattr(owner, attribute, replacement)

    for name in CALLS:
        patch(os, name, wrap(name, getattr(os, name)))
    for owner, attribute, real in _renameat2_users():
        patch(owner, attribute, wrap("renameat2", real))
    for module in (builtins, io):
        patch(module, "open", _guarded(module.open))
    try:
        yield seen
    finally:
        for owner, attribute, real in reversed(patches):
            setattr(owner, attribute, real)


def _renameat2_users() -> list[tuple[Any, str, Any]]:
    return [
        (module, "renameat2", _system.renameat2)
        for name, module in list(sys.modules.items())
        if name.startswith("akf.") and getattr(module, "renameat2", None) is _system.renameat2
    ]


def _changes_a_disk(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    if name == "open":
        flags = args[1] if len(args) > 1 else kwargs["flags"]
        return bool(flags & os.O_CREAT or flags & os.O_TRUNC or flags & os.O_TMPFILE == os.O_TMPFILE)
    if name in (*WRITES, "writev"):
        return stat.S_ISREG(os.fstat(args[0]).st_mode)
    if name == "renameat2":
        return _system._libc_renameat2() is not None  # without it the kernel is not asked
    return True


def _guarded(real: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if set(mode) & set("wax+") and not _is_special(file):
            raise AssertionError(f"open({file!r}, {mode!r}) writes where no hook sees it; write through os")
        return real(file, mode, *args, **kwargs)

    return wrapper


def _is_special(file: Any) -> bool:
    """Tell whether writing to it changes no disk: a pipe, a terminal, a device."""
    try:
        return not stat.S_ISREG(os.stat(file).st_mode)  # noqa: PTH116 - may be a descriptor
    except OSError:
        return False


def _pass(_n: int, _name: str, real: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    return real(*args, **kwargs)


def _killer(point: Point) -> Act:
    def act(n: int, name: str, real: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if n != point.number:
            return real(*args, **kwargs)
        if point.moment == TORN and name in WRITES:
            real(args[0], args[1][: len(args[1]) // 2], *args[2:])
        elif point.moment == AFTER:
            with suppress(Exception):  # a call that fails changes nothing, and the child dies all the same
                real(*args, **kwargs)
        return _die()

    return act


def _failer(point: Point, number: int) -> Act:
    def act(n: int, _: str, real: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if n == point.number:
            raise OSError(number, os.strerror(number))
        return real(*args, **kwargs)

    return act


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def _run(work: Work, folder: Path, act: Act, timeout_s: float) -> _Outcome:
    reader, writer = os.pipe()
    pid = fork()
    if pid == 0:
        _child(work, folder, act, writer)
    os.close(writer)
    try:
        said = _read(reader, pid, timeout_s)
    finally:
        os.close(reader)
    _, status = os.waitpid(pid, 0)
    told = json.loads(said) if said else {}
    return _Outcome(
        killed=os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL,
        calls=tuple(told.get("calls", ())),
        raised=told.get("raised"),
        exit_code=told.get("exit_code"),
        trace=told.get("trace", f"the child ended with status {status}"),
    )


def _child(work: Work, folder: Path, act: Act, writer: int) -> NoReturn:
    gc.disable()
    told: dict[str, Any] = {}
    write = os.write
    try:
        with hooked(act) as seen:
            try:
                work(folder)
            finally:
                told["calls"] = list(seen)
    except BaseException as error:  # noqa: BLE001 - reported to the parent, which raises
        told |= {"raised": type(error).__name__, "trace": traceback.format_exc()}
        told["exit_code"] = getattr(error, "exit_code", None)
    try:
        data = json.dumps(told).encode()
        while data:
            data = data[write(writer, data) :]
    finally:
        os._exit(0)


def _read(reader: int, pid: int, timeout_s: float) -> bytes:
    chunks: list[bytes] = []
    while True:
        ready, _, _ = select.select([reader], [], [], timeout_s)
        if not ready:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise AssertionError(f"the child did not end within {timeout_s} s")
        chunk = os.read(reader, 65_536)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)


@contextmanager
def _told(point: Point, folder: Path) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note(f"stopped {point.moment} call {point.number} ({point.call}); what is left: {folder}")
        raise
