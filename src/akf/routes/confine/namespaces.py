"""A user, mount, PID, network, IPC and host name space with a root of its own.

Invariants:
- The root holds what was named and nothing else; the old root is taken away, not hidden.
- Everything but the named writable folders is read-only, what is mounted below it too: a mount that cannot be made so
  ends the set-up.
- There is no /proc and no /sys inside.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from akf.routes.confine import kernel
from akf.routes.confine.kernel import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY, MS_REC, MS_REMOUNT

INSIDE = 1000
"""The user's and the group's number inside: not root's, so that a command starts without capabilities."""
HOST = "akf"
_ROOT_BYTES = 1024**2
_KEPT = {"ro": MS_RDONLY, "nosuid": MS_NOSUID, "nodev": MS_NODEV, "noexec": MS_NOEXEC, "noatime": 1024,
         "nodiratime": 2048, "relatime": 1 << 21}  # fmt: skip
_OCTAL = re.compile(r"\\([0-7]{3})")


def leave() -> None:
    """Leave the machine's namespaces; the PID namespace holds for children that are forked afterwards."""
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(
        kernel.CLONE_NEWUSER
        | kernel.CLONE_NEWNS
        | kernel.CLONE_NEWPID
        | kernel.CLONE_NEWNET
        | kernel.CLONE_NEWIPC
        | kernel.CLONE_NEWUTS
    )
    for name, text in (("setgroups", "deny"), ("uid_map", f"{INSIDE} {uid} 1"), ("gid_map", f"{INSIDE} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as stream:  # noqa: PTH123 - no pathlib before the command
            stream.write(text)


def make_root(root: str, mounts: Sequence[Sequence[str]]) -> None:
    """Move to a root that holds the mounts and nothing else.

    Args:
        root: an empty folder.
        mounts: mode (`read`, `write`, `device` or `link`), source and target of each.
    """
    kernel.mount("none", "/", None, MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, f"mode=755,size={_ROOT_BYTES}")
    for mode, source, target in mounts:
        _show(mode, source, f"{root}{target}")
    os.chdir(root)
    kernel.call("pivot_root", b".", b".")
    kernel.detach(".")
    os.chdir("/")
    kernel.mount("none", "/", None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)
    kernel.host_name(HOST)


def _show(mode: str, source: str, target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
    if mode == "link":
        os.symlink(source, target)  # noqa: PTH211
        return
    if os.path.isdir(source):  # noqa: PTH112
        os.makedirs(target, exist_ok=True)  # noqa: PTH103
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    kernel.mount(source, target, None, MS_BIND | MS_REC)
    wanted = {"read": MS_RDONLY | MS_NOSUID | MS_NODEV, "write": MS_NOSUID | MS_NODEV, "device": MS_NOSUID | MS_NOEXEC}
    for path, flags in list(_mounted(os.path.realpath(target))):
        kernel.mount("none", path, None, MS_BIND | MS_REMOUNT | flags | wanted[mode])


def _mounted(target: str) -> Iterator[tuple[str, int]]:
    """The mounts at and below a path, with the flags that they must keep."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as stream:  # noqa: PTH123
        for line in stream:
            fields = line.split(" ")
            path = _OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4])
            if path == target or path.startswith(f"{target}/"):
                yield path, sum(_KEPT.get(option, 0) for option in fields[5].split(","))
