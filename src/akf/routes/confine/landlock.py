"""Landlock: a process gives up files, TCP and signals for itself and its children, without any privilege.

Invariants:
- What the running kernel offers is asked of it; every right that it knows is handled, so that none is left open by
  being forgotten, and what its version cannot restrict is said by `unrestricted`.
- A path that is not there grants nothing.
- Reading and running are given to the named paths, writing to the named folders too, nothing to anything else.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from akf.routes.confine import kernel

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_DEVICES = 1 << 6 | 1 << 11
"""Making character and block devices: given to nobody."""
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
"""File rights by version."""
_TCP, _SINCE_TCP = 3, 4
_SCOPES, _SINCE_SCOPES = 3, 6
"""Abstract UNIX sockets and signals."""
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_VERSION, _PATH_BENEATH = 1, 1
_LACKING = (
    (2, "moving a file to another folder"),
    (3, "truncating a file"),
    (4, "TCP"),
    (5, "control calls of devices"),
    (6, "abstract UNIX sockets and signals"),
)


def version() -> int:
    """The kernel's Landlock version; 0 where there is none."""
    try:
        return kernel.call("landlock_create_ruleset", None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    except OSError:
        return 0


def unrestricted(found: int) -> list[str]:
    """What a version cannot restrict."""
    always = ["sockets other than TCP", "a file's mode, times and attributes"]
    return [what for needed, what in _LACKING if found < needed] + always


def restrict(readable: Iterable[str], writable: Iterable[str], devices: Iterable[str]) -> None:
    """Give up everything but what is named.

    Args:
        readable: folders and files to read and run.
        writable: folders to read and write in.
        devices: device files to read and write.

    Raises:
        OSError: the kernel does not do it.
    """
    found = version()
    if not found:
        raise OSError(38, "this kernel has no Landlock")
    handled = _RIGHTS[min(found, max(_RIGHTS))]
    attributes = b"".join(
        struct.pack("=Q", each)
        for since, each in ((1, handled), (_SINCE_TCP, _TCP), (_SINCE_SCOPES, _SCOPES))
        if found >= since
    )
    ruleset = kernel.call("landlock_create_ruleset", attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    try:
        for paths, rights in (
            (readable, _READ),
            (writable, handled & ~_DEVICES),
            (devices, _READ_FILE | _WRITE_FILE),
        ):
            for path in paths:
                _allow(ruleset, path, rights & handled)
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        kernel.call("landlock_restrict_self", ruleset, ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - no pathlib before the command
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, handle)
        kernel.call("landlock_add_rule", ruleset, _PATH_BENEATH, rule, ctypes.c_uint32(0))
    finally:
        os.close(handle)
