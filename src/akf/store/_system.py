"""What the operating system offers, and how its refusals read.

Invariants:
- A refusal becomes a ``StorageError`` that names the path, what failed and a remedy.
- ``renameat2`` is called through ctypes, because plain ``rename`` silently replaces an empty folder.
- A process is named by its id and its start time, so a reused id is not taken for its predecessor.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from akf.contracts.problems import StorageError

RENAME_NOREPLACE = 1
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

_REFUSALS = {
    errno.ENOSPC: (
        "AKF-F101",
        "the disk is full",
        "free space on that file system, then run the command again",
    ),
    errno.EDQUOT: ("AKF-F102", "the disk quota is used up", "free space or raise the quota, then run again"),
    errno.EROFS: ("AKF-F103", "the file system is read-only", "remount it writable or choose another folder"),
    errno.EACCES: ("AKF-F104", "permission denied", "check the owner and mode of the folder (ls -ld)"),
    errno.EPERM: (
        "AKF-F104",
        "permission denied",
        "check the owner, mode and attributes of the folder (ls -ld, lsattr)",
    ),
    errno.EIO: (
        "AKF-F105",
        "the device reports an error",
        "look at the kernel log (dmesg) and check the disk",
    ),
    errno.ENOENT: ("AKF-F106", "a folder on the way does not exist", "create the folder first"),
    errno.EEXIST: ("AKF-F106", "something else is in the way", "choose another path"),
    errno.ENOTDIR: ("AKF-F106", "a part of the path is not a folder", "choose another path"),
}
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY})


class Unsupported(Exception):  # noqa: N818 - a signal between functions, never shown
    """The kernel or the file system lacks an operation that has a fallback."""


def storage_error(path: Path, error: OSError, action: str) -> StorageError:
    """Say in one problem which path could not be written or read, why, and what helps."""
    code, reason, hint = _REFUSALS.get(
        error.errno or 0, ("AKF-F107", (error.strerror or str(error)).lower(), "resolve that, then run again")
    )
    return StorageError.of(code, f"cannot {action} {path}: {reason}", file=str(path), hint=hint)


@contextmanager
def storage(path: Path, action: str) -> Iterator[None]:
    """Turn every ``OSError`` of the block into a ``StorageError`` about `path`."""
    try:
        yield
    except OSError as error:
        raise storage_error(path, error, action) from error


@cache
def _libc_renameat2() -> Any:
    import ctypes  # noqa: PLC0415 - costs 5 ms, needed only where folders are published

    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
        function.restype = ctypes.c_int
    return function


def renameat2(folder: int, old: str, new: str, flags: int) -> None:
    """Rename within one open folder under the given flags.

    Raises:
        Unsupported: The C library, the kernel or the file system does not know the flags.
        FileExistsError: `new` exists and the flags refuse to replace it.
        OSError: Any other refusal.
    """
    import ctypes  # noqa: PLC0415

    function = _libc_renameat2()
    if function is None:
        raise Unsupported
    if function(folder, os.fsencode(old), folder, os.fsencode(new), flags) == 0:
        return
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        raise Unsupported
    raise OSError(number, os.strerror(number), old, None, new)


def process_start(pid: int) -> int:
    """Return the start time of a process in clock ticks since boot; 0 when there is no such live process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return 0 if fields[0] in (b"Z", b"X") else int(fields[19])
    except (OSError, IndexError, ValueError):
        return 0


def alive(pid: int, start: int) -> bool:
    """Tell whether exactly this process, not a later one with its id, still runs."""
    return start > 0 and process_start(pid) == start
