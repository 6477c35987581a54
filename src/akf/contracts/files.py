"""Reading files that somebody else wrote.

Invariants:
1. Only regular files are read, opened without waiting, never more than `MAX_FILE_BYTES` + 1 bytes of them.
2. A device is not even opened; what changes between looking and opening is seen again on the open file.
3. A descriptor is never inherited by another program.
"""

from __future__ import annotations

import errno
import os
import stat

from akf.contracts.limits import MAX_FILE_BYTES
from akf.contracts.problems import InvalidError, StorageError

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}
_MEANT = ("suite.json", "task.json", "candidate.json", "trust.json")
"""What is probably meant by a folder that holds it."""
_LISTED = 1_000
_SENSELESS = {
    errno.ENOENT: ("AKF-F001", "the file does not exist"),
    errno.ENOTDIR: ("AKF-F001", "the file does not exist: a part of its path is not a directory"),
    errno.EISDIR: ("AKF-F002", "a directory stands where a file is expected"),
    errno.ENXIO: ("AKF-F002", "a socket or an absent device stands where a file is expected"),
    errno.ENODEV: ("AKF-F002", "an absent device stands where a file is expected"),
    errno.ELOOP: ("AKF-F003", "the path runs through a loop of symbolic links"),
    errno.ENAMETOOLONG: ("AKF-F007", "the path is too long for this system"),
}


def read_input(path: str | os.PathLike[str]) -> bytes:
    """Read a regular file of at most `MAX_FILE_BYTES` bytes.

    Raises:
        InvalidError: It is missing, not a regular file, too large, or the path makes no sense.
        StorageError: The system refuses or fails.
    """
    name = os.fspath(path)
    descriptor = open_regular(name)
    try:
        size = os.fstat(descriptor).st_size
        if size > MAX_FILE_BYTES:
            raise too_large(name, size)
        parts: list[bytes] = []
        room = MAX_FILE_BYTES + 1
        while room and (part := os.read(descriptor, min(room, max(size + 1, 65_536)))):
            parts.append(part)
            room -= len(part)
    except OSError as error:
        raise refusal(name, error) from error
    finally:
        os.close(descriptor)
    if not room:
        raise too_large(name, None)
    return b"".join(parts)


def open_regular(path: str | os.PathLike[str]) -> int:
    """Open a regular file for reading, without waiting for anybody, and return its descriptor."""
    name = os.fspath(path)
    try:
        _only_regular(name, os.stat(name).st_mode)  # noqa: PTH116 - no pathlib at start; opening a device can already do something
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        raise refusal(name, error) from error
    try:
        _only_regular(name, os.fstat(descriptor).st_mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _only_regular(name: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "not a regular file")
        raise InvalidError.of(
            "AKF-F002",
            f"{kind} stands where a file is expected",
            file=name,
            expected="a regular file",
            found=kind,
            hint=_in_folder(name) if stat.S_ISDIR(mode) else None,
        )


def too_large(name: str, size: int | None) -> InvalidError:
    """Return the refusal of a file of `size` bytes, or of one whose size is not known."""
    return InvalidError.of(
        "AKF-F006",
        f"the file is larger than {MAX_FILE_BYTES} bytes",
        file=name,
        expected=MAX_FILE_BYTES,
        found=size,
        hint="raw samples belong into files of their own, named by digest",
    )


def refusal(name: str, error: OSError | ValueError) -> InvalidError | StorageError:
    """Return what an error of the system means for the file `name`."""
    if not isinstance(error, OSError):
        return InvalidError.of("AKF-F007", "the path cannot be used: it holds a NUL or cannot be encoded", file=name)
    if error.errno in _SENSELESS:
        code, message = _SENSELESS[error.errno]
        return InvalidError.of(code, message, file=name, hint=_missing(name) if code == "AKF-F001" else None)
    if error.errno in {errno.EACCES, errno.EPERM}:
        return StorageError.of("AKF-F004", "the file may not be read", file=name, hint="check its permissions")
    return StorageError.of("AKF-F005", f"reading failed: {error.strerror or error.errno}", file=name)


def _in_folder(folder: str) -> str | None:
    """Return the file that was probably meant by its folder."""
    from akf.contracts.text import printable  # noqa: PLC0415 - only on trouble

    path = next((path for path in (os.path.join(folder, name) for name in _MEANT) if os.path.isfile(path)), None)  # noqa: PTH113, PTH118 - no pathlib at start
    return f"did you mean {printable(path)}?" if path is not None else None


def _missing(name: str) -> str:
    """Return how far the path of a file that does not exist leads."""
    from akf.contracts.text import did_you_mean, printable  # noqa: PLC0415 - only on trouble

    if os.path.islink(name):  # noqa: PTH114 - no pathlib at start
        return "it is a symbolic link to a file that does not exist"
    missing, folder = name, os.path.dirname(name)  # noqa: PTH120
    while folder and not os.path.isdir(folder) and os.path.dirname(folder) != folder:  # noqa: PTH112, PTH120
        missing, folder = folder, os.path.dirname(folder)  # noqa: PTH120
    if missing != name:
        what = "is no folder" if os.path.lexists(missing) else "does not exist"
        last = printable(folder) if folder else "the current one"
        return f"{printable(missing)} {what}; the last folder of its path that exists is {last}"
    near = did_you_mean(os.path.basename(name), _names(folder or os.curdir))  # noqa: PTH119
    if near is not None:
        return f"did you mean {printable(os.path.join(folder, near))}?"  # noqa: PTH118
    place = f"the folder {printable(folder)}" if folder else "the current folder"
    return f"{place} holds no {printable(os.path.basename(name)) or 'such file'}"  # noqa: PTH119


def _names(folder: str) -> list[str]:
    """Return what a folder holds, of a large one only a part."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for _, entry in zip(range(_LISTED), entries, strict=False)]
    except OSError:
        return []
