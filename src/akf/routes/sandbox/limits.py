"""What one command may use, and by which name it is stopped. The one home of these bounds.

Invariants:
- Every bound has a name that a Build can say; reaching one is an answer about the build, never an error of AKF.
- Bounds of one process are the kernel's; bounds of the whole tree are watched, and seen a moment late. Where the kernel
  can bound the tree's tasks too, it refuses what comes before the watching sees it.
"""

from __future__ import annotations

import math
import re
import signal
from typing import Literal, NamedTuple

Bound = Literal["pid_namespace", "user_namespace"]
"""By what the kernel itself bounds the tasks of a tree."""
Stop = Literal["time", "memory", "disk", "processes"]

WATCH_S = 0.02
"""How often the tree is looked at."""
SETUP_S = 20.0
"""How long it may take until a command is shut in."""
GONE_S = 20.0
"""How long a killed tree may take to be gone."""
MAX_TEXT = 64 * 1024
"""How much of what a command said is kept."""
MAX_LEVELS = 64
"""How deep folders may lie."""
_THREADS = 4
"""Tasks that the kernel lets a tree have where it can bound them, as a multiple of its processes: threads are tasks."""
_ADDRESSES = 2
"""Addresses that a process may reserve, as a multiple of the memory that its tree may use."""
_GRACE_S = 5
SIGNALLED = 128
"""A status above this one is a signal, said by a process in between."""


class Limits(NamedTuple):
    """Bounds of one command."""

    wall_s: float = 120.0
    memory_bytes: int = 8 * 1024**3
    """Memory of the whole tree; one process may reserve twice as many addresses."""
    file_bytes: int = 256 * 1024**2
    """Size of one file."""
    disk_bytes: int = 2 * 1024**3
    """All that is written: files, also those without a name, and what was said."""
    files: int = 50_000
    processes: int = 512
    """Processes at one moment."""
    cpu_s: float = 1200.0
    """Processor time of one process."""
    open_files: int = 1024

    @property
    def tasks(self) -> int:
        """Processes and threads at one moment, where the kernel can refuse more."""
        return _THREADS * self.processes

    def kernels(self) -> dict[str, tuple[int, int]]:
        """The bounds that the kernel holds each process to, soft and hard, by their names in `resource`."""
        addresses, processor = _ADDRESSES * self.memory_bytes, math.ceil(self.cpu_s)
        return {
            "RLIMIT_AS": (addresses, addresses),
            "RLIMIT_FSIZE": (self.file_bytes, self.file_bytes),
            "RLIMIT_CPU": (processor, processor + _GRACE_S),  # the first one says its name, the second one only kills
            "RLIMIT_NOFILE": (self.open_files, self.open_files),
            "RLIMIT_CORE": (0, 0),
        }


_BY_SIGNAL: dict[int, Stop] = {signal.SIGXCPU: "time", signal.SIGXFSZ: "disk"}


def stopped_by_kernel(status: int) -> Stop | None:
    """The bound whose signal ended a command."""
    return _BY_SIGNAL.get(-status if status < 0 else status - SIGNALLED)


_NO_FORK = re.compile(
    r"cannot fork|fork\b.*resource temporarily unavailable|can't start new thread"
    r"|BlockingIOError: \[Errno 11\]",
    re.IGNORECASE,
)


def met_the_tasks_bound(status: int, text: str) -> bool:
    """Whether a command that failed says that the kernel refused it a process: nothing else here makes it do so."""
    return status != 0 and _NO_FORK.search(text) is not None


def in_words(stop: Stop, limits: Limits) -> str:
    """What was reached."""
    return {
        "time": f"did not end within {limits.wall_s:g} s, or a process of it used {limits.cpu_s:g} s of processor time",
        "memory": f"used more than {limits.memory_bytes} bytes of memory",
        "disk": (
            f"wrote more than {limits.disk_bytes} bytes, {limits.files} files, {MAX_LEVELS} levels of folders or "
            f"{limits.file_bytes} bytes into one file"
        ),
        "processes": f"ran more than {limits.processes} processes at one moment",
    }[stop]
