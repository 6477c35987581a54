"""Reading a folder that an untrusted hand filled.

Invariants:
- The walk starts from one directory handle and follows no link; only regular files with one name are read.
- Symbolic links, hard links, FIFOs, sockets, devices, odd names, names that AKF gives its own temporaries and too much
  data are refused, each by name.
- Every file is read once, through the handle that was checked: what is digested is what is kept.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from akf.contracts.ids import path_problem
from akf.contracts.problems import InvalidError, Problem, StorageError
from akf.contracts.text import printable

MAX_FILES = 256
MAX_TOTAL_BYTES = 16 * 1024 * 1024
MAX_LEVELS = 8
RESERVED = ".akf-"

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class TreeFile(NamedTuple):
    """One file of the folder, as read."""

    path: str
    data: bytes
    executable: bool


class _Budget:
    """What the walk may still read."""

    def __init__(self) -> None:
        self.files = MAX_FILES
        self.bytes = MAX_TOTAL_BYTES


def read_tree(folder: Path, name: str) -> list[TreeFile]:
    """All files below `folder`, in order of their paths.

    Args:
        folder: the folder; not a link itself.
        name: how problems name it.

    Raises:
        InvalidError: with every entry that may not be there.
        StorageError: the folder cannot be read.
    """
    problems: list[Problem] = []
    found: list[TreeFile] = []
    try:
        handle = os.open(folder, _FLAGS | os.O_DIRECTORY)
    except OSError as error:
        raise _unreadable(folder, name, error) from error
    try:
        found.extend(_walk(handle, name, "", problems, _Budget()))
    except OSError as error:
        raise StorageError.of("AKF-F110", f"{name} cannot be read: {error.strerror}", file=name) from error
    finally:
        os.close(handle)
    if problems:
        raise InvalidError(problems)
    return sorted(found, key=lambda file: file.path.encode())


def plain_path(folder: Path, relative: str) -> Path:
    """The path of something below a folder, none of whose parts is a symbolic link.

    Raises:
        InvalidError: one is.
    """
    path = folder
    for part in relative.split("/"):
        path /= part
        if path.is_symlink():
            raise InvalidError([_refused(str(folder), os.path.relpath(path, folder), "is a symbolic link")])
    return path


def _walk(handle: int, name: str, prefix: str, problems: list[Problem], budget: _Budget) -> Iterator[TreeFile]:
    for entry in sorted(os.listdir(handle)):
        path = f"{prefix}{entry}"
        problem = path_problem(path, file=name)
        if problem is not None:
            problems.append(problem)
            continue
        if entry.startswith(RESERVED):
            problems.append(_refused(name, path, f"has a name that AKF keeps for itself ({RESERVED}*)"))
            continue
        status = os.stat(entry, dir_fd=handle, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            if path.count("/") >= MAX_LEVELS:
                problems.append(_too_much(name, path, f"lies deeper than {MAX_LEVELS} folders"))
                continue
            inner = os.open(entry, _FLAGS | os.O_DIRECTORY, dir_fd=handle)
            try:
                yield from _walk(inner, name, f"{path}/", problems, budget)
            finally:
                os.close(inner)
            continue
        what = _kind(status)
        if what:
            problems.append(_refused(name, path, what))
            continue
        budget.files -= 1
        if budget.files < 0:
            problems.append(_too_much(name, path, f"is one file too many: at most {MAX_FILES}"))
            return
        data = _read(handle, entry, budget)
        if data is None:
            problems.append(
                _too_much(name, path, f"exceeds the {MAX_TOTAL_BYTES} bytes that all files may have, or changed")
            )
            continue
        yield TreeFile(path, data, bool(status.st_mode & stat.S_IXUSR))


def _read(handle: int, entry: str, budget: _Budget) -> bytes | None:
    """The file's bytes through a handle that is checked again, or None when it is not what was seen."""
    descriptor = os.open(entry, _FLAGS, dir_fd=handle)
    try:
        status = os.fstat(descriptor)
        if _kind(status) or status.st_size > budget.bytes:
            return None
        chunks = []
        left = budget.bytes + 1
        while left > 0 and (chunk := os.read(descriptor, min(left, 1 << 20))):
            chunks.append(chunk)
            left -= len(chunk)
    finally:
        os.close(descriptor)
    data = b"".join(chunks)
    budget.bytes -= len(data)
    return data if budget.bytes >= 0 else None


def _kind(status: os.stat_result) -> str:
    """What makes this entry no plain file, or an empty text."""
    mode = status.st_mode
    if stat.S_ISLNK(mode):
        return "is a symbolic link"
    if not stat.S_ISREG(mode):
        return "is not a regular file"
    if status.st_nlink > 1:
        return "has a second name (hard link)"
    return ""


def _refused(name: str, path: str, what: str) -> Problem:
    hint = "submit plain files only: copy what a link points to"
    return Problem("AKF-S103", f"{printable(path)} {what}", file=name, found=printable(path), hint=hint)


def _too_much(name: str, path: str, what: str) -> Problem:
    hint = "submit the sources of one kernel; leave out what is built or downloaded"
    return Problem("AKF-S107", f"{printable(path)} {what}", file=name, found=printable(path), hint=hint)


def _unreadable(folder: Path, name: str, error: OSError) -> InvalidError | StorageError:
    if folder.is_symlink():
        return InvalidError.of("AKF-S103", f"{name} is a symbolic link", file=name, hint="name the folder itself")
    if not folder.exists():
        return InvalidError.of("AKF-S104", f"{name} does not exist", file=name)
    if not folder.is_dir():
        return InvalidError.of("AKF-S104", f"{name} is not a folder", file=name)
    return StorageError.of("AKF-F110", f"{name} cannot be read: {error.strerror}", file=name)
