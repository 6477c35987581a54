"""System calls that Python does not offer, by number and machine.

Invariants:
- A call that fails raises OSError with its number; nothing is tried a second way here.
- A machine that is not in the table is refused, never guessed.
"""

from __future__ import annotations

import ctypes
import os
import platform

MACHINES = ("x86_64", "aarch64")
"""Machines in the order of the columns of every table of numbers."""

CALLS: dict[str, tuple[int, int]] = {
    "pivot_root": (155, 41),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
}
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 22, 24, 38
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)


def machine() -> int:
    """This machine's column.

    Raises:
        OSError: the tables do not know it.
    """
    name = platform.machine()
    if name not in MACHINES:
        raise OSError(38, f"system calls of {name} are not known here")
    return MACHINES.index(name)


def call(name: str, *arguments: object) -> int:
    """One system call."""
    number = CALLS[name][machine()]
    return _checked(_libc.syscall(ctypes.c_long(number), *arguments), name)


def prctl(option: int, first: object = 0, second: object = 0) -> None:
    """One prctl call."""
    _checked(_libc.prctl(option, _long(first), _long(second), ctypes.c_ulong(0), ctypes.c_ulong(0)), f"prctl {option}")


def unshare(flags: int) -> None:
    """Leave namespaces."""
    _checked(_libc.unshare(flags), "unshare")


def setns(descriptor: int, flags: int) -> None:
    """Enter a namespace."""
    _checked(_libc.setns(descriptor, flags), "setns")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount something."""
    words = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    done = _libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3])
    _checked(done, f"mount {target}")


def detach(target: str) -> None:
    """Take a mount away, with what is below it."""
    _checked(_libc.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def host_name(name: str) -> None:
    """Give the host name space a name."""
    data = os.fsencode(name)
    _checked(_libc.sethostname(data, ctypes.c_size_t(len(data))), "sethostname")


def _long(value: object) -> object:
    return ctypes.c_ulong(value) if isinstance(value, int) else value


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return int(result)
