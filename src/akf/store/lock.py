"""The lock of a run.

Invariants:
- One process at a time changes a run: it holds an exclusive ``flock`` on ``.lock`` in the run's folder.
- The kernel releases the lock when its holder ends in whatever way, so no lock is ever stale.
- The file says who holds the lock, for people only; whether it is held is decided by the kernel alone.
"""

import fcntl
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson

from akf.contracts.problems import ConflictError
from akf.contracts.text import printable
from akf.store._system import alive, process_start, storage

LOCK = ".lock"
_POLL_S = 0.02
_OWNER_BYTES = 4096


class RunLock:
    """``with RunLock(run):`` — this process alone changes the run.

    Args:
        run: The run's folder, which exists.
        wait_s: How long to wait for another holder before giving up.

    Raises:
        ConflictError: Another process holds the lock; names its id and command.
        StorageError: The lock file cannot be opened.
    """

    def __init__(self, run: Path, *, wait_s: float = 0.0) -> None:
        self.run = run
        self._wait_s = wait_s
        self._descriptor = -1

    @property
    def held(self) -> bool:
        """Whether this object holds the lock now."""
        return self._descriptor >= 0

    def __enter__(self) -> Self:
        path = self.run / LOCK
        with storage(path, "lock"):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            try:
                self._take(path, descriptor)
                _sign(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)

    def _take(self, path: Path, descriptor: int) -> None:
        deadline = time.monotonic() + self._wait_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise _locked(path, descriptor) from error
                time.sleep(_POLL_S)
            else:
                return


def _sign(descriptor: int) -> None:
    """Write who holds the lock; on a full disk the lock holds all the same."""
    pid = os.getpid()
    owner = {"command": printable(" ".join(sys.argv))[: _OWNER_BYTES // 8], "pid": pid, "start": process_start(pid)}
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, orjson.dumps(owner), 0)


def _locked(path: Path, descriptor: int) -> ConflictError:
    holder = "another process"
    with suppress(OSError, ValueError, TypeError, KeyError):
        owner = orjson.loads(os.pread(descriptor, _OWNER_BYTES, 0))
        if alive(int(owner["pid"]), int(owner["start"])):
            holder = f"process {int(owner['pid'])} ({printable(owner['command'])})"
    return ConflictError.of(
        "AKF-C103",
        f"{path.parent} is in use by {holder}",
        file=str(path),
        found=holder,
        hint="wait until it has ended, then run the command again",
    )
