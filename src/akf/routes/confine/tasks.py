"""How many tasks a tree may have, where the kernel itself can say so: beyond that a fork fails, whoever tries it.

Invariants:
- Since Linux 6.14 `kernel.pid_max` belongs to a PID namespace. Before that it is the machine's, and is never written.
- Since Linux 5.14 `RLIMIT_NPROC` counts the tasks of one user namespace; never root's, which it exempts.
- Numbers below 300 are given once: the bound leaves as many above them as there may be tasks.
"""

from __future__ import annotations

import fcntl
import os
import re
from typing import NoReturn

from akf.routes.confine import kernel

PID_MAX = "/proc/sys/kernel/pid_max"
_GIVEN_ONCE, _FAILED = 301, 125
_NS_GET_USERNS = 0xB701
_OWN_PID_MAX, _COUNTED_APART = (6, 14), (5, 14)


def pid_max_is_the_namespaces() -> bool:
    """Whether a PID namespace has a bound of its own."""
    return _release() >= _OWN_PID_MAX


def counted_apart() -> bool:
    """Whether `RLIMIT_NPROC` counts the tasks of a user namespace alone, for this user."""
    return _release() >= _COUNTED_APART and os.geteuid() != 0


def bound(most: int) -> None:
    """Bound the tasks of this process's PID namespace, in which it must be privileged."""
    if not pid_max_is_the_namespaces():
        raise OSError(38, "kernel.pid_max is the whole machine's")
    file = os.open(PID_MAX, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(file, b"%d" % (_GIVEN_ONCE + most))
    finally:
        os.close(file)


def bound_of(pid: int, most: int) -> NoReturn:
    """Bound the tasks of another process's PID namespace, from inside the user namespace that owns it, and end.

    For a process that was forked for this alone: it says in its exit status whether it succeeded.
    """
    status = _FAILED
    try:
        namespace = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        kernel.setns(fcntl.ioctl(namespace, _NS_GET_USERNS), kernel.CLONE_NEWUSER)
        kernel.setns(namespace, kernel.CLONE_NEWPID)
        inside = os.fork()  # only what is forked from now on is in the PID namespace
        if inside == 0:
            bound(most)
            status = 0
        else:
            status = os.waitstatus_to_exitcode(os.waitpid(inside, 0)[1])
    finally:
        os._exit(status)


def _release() -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return (int(found[1]), int(found[2])) if found else (0, 0)
