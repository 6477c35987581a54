"""Watching a tree of processes: what it uses, that it stays within its limits, that it is gone.

Invariants:
- The tree is what the kernel lists as children, down from the process that was started; a child whose parent ended is
  listed below the first process of its PID namespace, so nothing leaves the tree by forking twice.
- Memory is counted cheaply first; only what seems too much is measured exactly, with shared pages shared out.
- Nothing is followed and nothing is opened for reading its content: only names, sizes and numbers are looked at.
- What disappears while it is looked at counts as nothing.
"""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple

from akf.routes.sandbox.limits import GONE_S, MAX_LEVELS, WATCH_S, Limits, Stop

_BLOCK = 512
_KIB = 1024
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PATIENCE = 10
"""The disk is looked at again after this many times what the last look took."""


class Member(NamedTuple):
    """A process and the moment that it started at: a number that is used again is another process."""

    pid: int
    started: str


def watch(process: Popen[bytes], limits: Limits, folders: Sequence[Path], log: int) -> Stop | None:
    """Wait for a process; says which limit its tree reached first, as soon as it does. It is not killed here.

    Args:
        process: the root of the tree.
        limits: what it may use.
        folders: where it may write.
        log: descriptor of what it says.
    """
    began = time.monotonic()
    look_again = began
    waiting = _Waiting(process)
    try:
        while not waiting.ended(min(WATCH_S, max(0.0, began + limits.wall_s - time.monotonic()))):
            if time.monotonic() - began >= limits.wall_s:
                return "time"
            pids = tree(process.pid, limits.processes)
            if len(pids) > limits.processes:
                return "processes"
            if _memory(pids, limits.memory_bytes):
                return "memory"
            now = time.monotonic()
            if now >= look_again:
                if too_much(limits, folders, log, pids):
                    return "disk"
                look_again = time.monotonic() + _PATIENCE * (time.monotonic() - now)
    finally:
        waiting.close()
    return "disk" if too_much(limits, folders, log, ()) else None


class _Waiting:
    """Waits without a busy loop where the kernel allows it."""

    def __init__(self, process: Popen[bytes]) -> None:
        self._process = process
        self._handle: int | None = None
        with suppress(OSError):
            self._handle = os.pidfd_open(process.pid)

    def ended(self, seconds: float) -> bool:
        if self._process.poll() is not None:
            return True
        if self._handle is None:
            time.sleep(seconds)
        else:
            select.select([self._handle], [], [], seconds)
        return self._process.poll() is not None

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)


def tree(root: int, most: int = 1 << 16) -> list[int]:
    """A process and all that descend from it, nearest first; one more than `most` at the most."""
    found = [root]
    for pid in found:
        if len(found) > most:
            break
        found += _children(pid)
    return found[: most + 1]


def _children(pid: int) -> list[int]:
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += [int(word) for word in _read(task / "children").split()]
    return found


def _memory(pids: Sequence[int], most: int) -> bool:
    """Whether processes use more memory than they may."""
    if sum(_resident(pid) for pid in pids) <= most:
        return False
    return sum(_exact(pid) for pid in pids) > most


def _resident(pid: int) -> int:
    """Pages of the process's own and those that it shares in memory, in bytes."""
    with suppress(OSError):
        fields = dict(line.split(":", 1) for line in _read(f"/proc/{pid}/status").splitlines() if ":" in line)
        return _KIB * sum(int(fields.get(name, "0 kB").split()[0]) for name in ("RssAnon", "RssShmem", "VmSwap"))
    return 0


def _exact(pid: int) -> int:
    """As above, each shared page shared out among those that hold it."""
    with suppress(OSError):
        fields = dict(line.split(":", 1) for line in _read(f"/proc/{pid}/smaps_rollup").splitlines()[1:])
        if "Pss_Anon" in fields:
            return _KIB * sum(int(fields.get(name, "0 kB").split()[0]) for name in ("Pss_Anon", "Pss_Shmem", "SwapPss"))
    return _resident(pid)


def too_much(limits: Limits, folders: Sequence[Path], log: int, pids: Sequence[int]) -> bool:
    """Whether more is written than may be, in bytes or files or levels."""
    size = os.fstat(log).st_blocks * _BLOCK
    for files, status in enumerate(_entries(folders), 1):
        if status is None or (status.st_size >= limits.file_bytes and stat.S_ISREG(status.st_mode)):
            return True
        size += status.st_blocks * _BLOCK
        if files > limits.files or size > limits.disk_bytes:
            return True
    return size + sum(_BLOCK * status.st_blocks for status in _nameless(pids)) > limits.disk_bytes


def _entries(folders: Sequence[Path]) -> Iterator[os.stat_result | None]:
    """The status of everything below folders; None for what lies too deep."""
    for folder in folders:
        with suppress(OSError):
            handle = os.open(folder, _FOLDER)
            try:
                yield from _below(handle, MAX_LEVELS)
            finally:
                os.close(handle)


def _below(handle: int, levels: int) -> Iterator[os.stat_result | None]:
    for name in os.listdir(handle):
        with suppress(OSError):
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
            yield status
            if not stat.S_ISDIR(status.st_mode):
                continue
            if not levels:
                yield None
            inner = os.open(name, _FOLDER, dir_fd=handle)
            try:
                yield from _below(inner, levels - 1)
            finally:
                os.close(inner)


def _nameless(pids: Sequence[int]) -> Iterator[os.stat_result]:
    """Files that processes hold open and that no folder names any more."""
    seen = set()
    for pid in pids:
        with suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    status = descriptor.stat()
                    key = (status.st_dev, status.st_ino)
                    if stat.S_ISREG(status.st_mode) and not status.st_nlink and key not in seen:
                        seen.add(key)
                        yield status


def members(root: int, most: int = 1 << 16) -> list[Member]:
    """The tree as of now, so that it can be recognised later; its root and at most so many more."""
    return [Member(pid, started) for pid in tree(root, most) if (started := _started(pid))]


def asleep(pid: int, seconds: float) -> bool:
    """Wait until a process waits for something itself; False when it ends or does not come to that."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(OSError, IndexError):
            state = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0]
            if state in {"S", "Z", "X"}:
                return state == "S"
            time.sleep(WATCH_S / 40)
            continue
        return False
    return False


def alive(wanted: Sequence[Member]) -> list[Member]:
    """Those that still run; one that only waits to be read off does not."""
    return [each for each in wanted if _started(each.pid) == each.started]


def wait_gone(wanted: Sequence[Member], seconds: float = GONE_S) -> list[Member]:
    """Wait until none runs; returns those that do not end."""
    until = time.monotonic() + seconds
    while (left := alive(wanted)) and time.monotonic() < until:
        time.sleep(WATCH_S / 4)
    return left


def _started(pid: int) -> str:
    """When a process started, in the kernel's ticks; empty when it runs no more."""
    with suppress(OSError, IndexError):
        fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        return "" if fields[0] in {"Z", "X"} else fields[19]
    return ""


def _read(path: str | Path) -> str:
    with open(path, encoding="utf-8", errors="replace") as stream:  # noqa: PTH123 - many, and often
        return stream.read()
