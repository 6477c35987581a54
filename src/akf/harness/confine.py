"""Runs in the child, before anything untrusted is loaded: shut the process in.

Invariants:
- Afterwards the process has its own user, mount, PID, network, IPC and host name space, a read-only root with the
  system's libraries and the interpreter only, no capability, and limits on memory, time and files.
- A candidate's files, where it has any, lie in a read-only folder of their own; beside it there is scratch space in
  memory that goes with the process. Packages of the interpreter are there, AKF itself is not.
- A step that fails is an error: the parent then decides whether it may go on without, and records that.

Self-contained: it is sent to the child as text and imports the standard library only.
"""

from __future__ import annotations

import ctypes
import glob
import json
import os
import platform
import resource
import signal
import sys
from typing import Any, Optional

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_MNT_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID = 1, 2
_SYS_MOUNT_SETATTR = 442
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_NO_NEW_PRIVS, _PR_SET_CHILD_SUBREAPER = 38, 36
_LAST_CAPABILITY = 40
_CAPABILITY_VERSION = 0x20080522

_READ_ONLY = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/etc/ld.so.cache")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
_MOUNT_POINTS = ("/mnt", "/media", "/srv", "/opt", "/tmp", "/sys")  # noqa: S108 - a place to mount on

CANDIDATE, SCRATCH = "/candidate", "/scratch"
_NODES = {
    "cpu": (),
    "cuda": ("/dev/nvidia*", "/dev/nvidia-caps/*"),
    "npu": ("/dev/davinci*", "/dev/devmm_svm", "/dev/hisi_hdc"),
}
_PACKAGES = ("site-packages", "dist-packages")
_SCRATCH_BYTES = 64 * 1024**2

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: Optional[str], flags: int, data: Optional[str] = None) -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind)]
    extra = None if data is None else data.encode()
    _check(_libc.mount(*encoded, ctypes.c_ulong(flags), extra), f"mount {target}")


def prctl(option: int, value: int) -> None:
    """One prctl call with one argument."""
    _check(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


def enter_namespaces() -> None:
    """Leave the host's namespaces; the PID namespace holds for children forked afterwards."""
    uid, gid = os.getuid(), os.getgid()
    flags = _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWUTS
    _check(_libc.unshare(flags), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as stream:  # noqa: PTH123 - no pathlib in the child
            stream.write(text)


def _bind(root: str, path: str) -> None:
    target = root + path
    os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120 - no pathlib in the child
    if os.path.islink(path):  # noqa: PTH114
        os.symlink(os.readlink(path), target)  # noqa: PTH115, PTH211
        return
    if os.path.isdir(path):  # noqa: PTH112
        os.makedirs(target, exist_ok=True)  # noqa: PTH103
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    _mount(path, target, None, _MS_BIND | _MS_REC)


def _set_attributes(path: str, flags: int, there: int, gone: int) -> None:
    attributes = (ctypes.c_uint64 * 4)(there, gone, 0, 0)
    _check(_libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, attributes, 32), f"mount_setattr {path}")


def unpack(fd: int, folder: str) -> None:
    """Write a sealed tree out as files; the parent has checked the names."""
    data = os.pread(fd, os.fstat(fd).st_size, 0)
    head, _, rest = data.partition(b"\n")
    for name, executable, size in json.loads(head):
        path = f"{folder}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - no pathlib in the child
        out = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o555 if executable else 0o444)
        with os.fdopen(out, "wb") as stream:
            stream.write(rest[:size])
        rest = rest[size:]


def _packages() -> list[str]:
    """Folders of installed packages that the interpreter uses."""
    return [path for path in sys.path if os.path.basename(path) in _PACKAGES and os.path.isdir(path)]  # noqa: PTH112, PTH119


def _prefixes(setup: dict[str, Any]) -> list[str]:
    """Where the interpreter lies, outside of /usr; with its packages where the candidate is a module."""
    found = {os.path.realpath(path) for path in (sys.base_prefix, sys.base_exec_prefix)}
    if "files_fd" in setup:
        found |= {path for name in (sys.prefix, *_packages()) for path in (name, os.path.realpath(name))}
    ordered = sorted(path for path in found if not f"{path}/".startswith("/usr/"))
    return [path for path in ordered if not any(path.startswith(f"{other}/") for other in ordered)]


def make_root(setup: dict[str, Any]) -> str:
    """Move to a minimal read-only root. Returns how /proc came into it: `private` or `host`."""
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    wanted = [path for path in (*_READ_ONLY, *_DEVICES) if os.path.lexists(path)]
    wanted += _prefixes(setup)
    wanted += [path for pattern in _NODES[setup.get("device", "cpu")] for path in sorted(glob.glob(pattern))]  # noqa: PTH207
    root = next(
        point
        for point in _MOUNT_POINTS
        if os.path.isdir(point) and not any(f"{path}/".startswith(f"{point}/") for path in wanted)  # noqa: PTH112
    )
    _mount("tmpfs", root, "tmpfs", _MS_NOSUID, "mode=755,size=1m")
    for path in wanted:
        _bind(root, path)
    os.mkdir(f"{root}/proc")  # noqa: PTH102
    kind = "private"
    try:
        _mount("proc", f"{root}/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    except OSError:  # a container that masks parts of /proc allows no fresh mount of it
        kind = "host"
        _mount("/proc", f"{root}/proc", None, _MS_BIND | _MS_REC)
    if kind == "private":
        _forbid_further_namespaces(f"{root}/proc")
    if "files_fd" in setup:
        _add_tree(root, setup["files_fd"])
    _set_attributes(root, _AT_RECURSIVE, _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID, 0)
    if setup.get("device", "cpu") != "cpu" and kind == "private":
        _set_attributes(f"{root}/proc", 0, 0, _MOUNT_ATTR_RDONLY)  # a device's runtime names its threads there
    os.chdir(root)
    _check(_libc.syscall(_SYS_PIVOT_ROOT[platform.machine()], b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _MNT_DETACH), "umount2")
    os.chdir("/")
    if "files_fd" in setup:
        _mount("tmpfs", SCRATCH, "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode=700,size={_SCRATCH_BYTES}")
        os.environ.update(TMPDIR=SCRATCH, HOME=SCRATCH)
    return kind


def _add_tree(root: str, fd: int) -> None:
    """The candidate's files, a place for scratch space, and an empty folder over AKF, which holds references."""
    for path in (CANDIDATE, SCRATCH):
        os.mkdir(root + path)  # noqa: PTH102
    size = os.fstat(fd).st_size + (4 << 20)
    _mount("tmpfs", root + CANDIDATE, "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode=755,size={size},nr_inodes=8k")
    unpack(fd, root + CANDIDATE)
    for path in _packages():
        if os.path.isdir(f"{path}/akf"):  # noqa: PTH112
            _mount("tmpfs", f"{root}{path}/akf", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755,size=4k")


def _forbid_further_namespaces(proc: str) -> None:
    """No new user name space below this one, so that no capability comes back; a kernel without the limit is fine."""
    try:
        with open(f"{proc}/sys/user/max_user_namespaces", "w", encoding="ascii") as stream:  # noqa: PTH123
            stream.write("0")
    except OSError:
        return


def drop_capabilities() -> None:
    """Give up every capability, for this process and what it may start."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    for capability in range(_LAST_CAPABILITY + 1):
        _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def limit(limits: dict[str, Any], device: str) -> None:
    """Bound memory, CPU seconds, file size (the log), open files; no core dumps.

    A device's runtime reserves more addresses than any memory has, so beside one what is written to is bounded.
    """
    for kind, value in (
        (resource.RLIMIT_AS if device == "cpu" else resource.RLIMIT_DATA, limits["memory_bytes"]),
        (resource.RLIMIT_CPU, limits["cpu_s"]),
        (resource.RLIMIT_FSIZE, limits["log_bytes"]),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))


def shut_in(setup: dict[str, Any]) -> dict[str, Any]:
    """Confine this process as `setup` says. Returns what holds; in `userns` only the inner process returns."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if setup.get("cpu") is not None:
        os.sched_setaffinity(0, {setup["cpu"]})
    facts: dict[str, Any] = {"isolation": setup["isolation"]}
    if setup["isolation"] == "userns":
        enter_namespaces()
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of credentials has cleared it
        inner = os.fork()
        if inner:
            _wait_for(inner)
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        facts["proc"] = make_root(setup)
        drop_capabilities()
        prctl(_PR_SET_DUMPABLE, 1)
        setup["tree"] = CANDIDATE
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if "files_fd" in setup:
        os.close(setup["files_fd"])
    limit(setup["limits"], setup.get("device", "cpu"))
    return facts


def _wait_for(inner: int) -> None:
    """The outer process: hold nothing open, wait, and pass on how the inner one ended (128 + signal)."""
    os.closerange(0, 256)
    _, status = os.waitpid(inner, 0)
    os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
