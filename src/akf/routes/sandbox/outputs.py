"""What a command left: read without following anything, and cleared away whatever it is.

Invariants:
- Only a regular file with one name and of bounded size is read, through the descriptor that was checked. What else
  stands under an expected name is refused with its kind in words.
- All that is read together is bounded too.
- Clearing away follows no link and depends on no name, mode or depth that the command chose.
- Nothing of the command runs any more when these are called: what is looked at does not change.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Container, Iterable
from pathlib import Path
from typing import NamedTuple

from akf.contracts.text import printable

MAX_FILE_BYTES = 256 * 1024**2
MAX_TOTAL_BYTES = 1024**3
MAX_ODD = 8
_IS_FOLDER = "is a folder"
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = (
    (stat.S_ISLNK, "is a symbolic link"),
    (stat.S_ISDIR, _IS_FOLDER),
    (stat.S_ISFIFO, "is a FIFO"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISBLK, "is a block device"),
    (stat.S_ISCHR, "is a character device"),
)


class Left(NamedTuple):
    """What stands under the expected names."""

    files: dict[str, bytes]
    refused: dict[str, str]
    """Why an expected name is no file that is taken."""
    odd: dict[str, str]
    """What else is there and is neither a plain file nor a folder; some of it, when there is much."""


def collect(folder: Path, expected: Iterable[str]) -> Left:
    """Read the expected files of a folder.

    Args:
        folder: where the command wrote.
        expected: names in that folder.
    """
    found = Left({}, {}, {})
    names = set(expected)
    left = MAX_TOTAL_BYTES
    top: int = _open_folder(folder)
    try:
        for name in sorted(names):
            try:
                status = os.stat(name, dir_fd=top, follow_symlinks=False)
            except FileNotFoundError:
                continue
            why = _why_not(status, left)
            if why is not None:
                found.refused[name] = why
                continue
            if not status.st_mode & stat.S_IRUSR:
                os.chmod(name, status.st_mode | stat.S_IRUSR, dir_fd=top)
            with os.fdopen(os.open(name, _FILE, dir_fd=top), "rb") as stream:
                if _why_not(os.fstat(stream.fileno()), left) is not None:
                    found.refused[name] = "changed while it was read"
                    continue
                found.files[name] = stream.read(MAX_FILE_BYTES)
            left -= len(found.files[name])
        for name in sorted(set(os.listdir(top)) - names, key=os.fsencode):
            why = _why_not(os.stat(name, dir_fd=top, follow_symlinks=False), MAX_FILE_BYTES)
            if why is not None and why != _IS_FOLDER and len(found.odd) < MAX_ODD:
                found.odd[printable(name)] = why
    finally:
        os.close(top)
    return found


def _why_not(status: os.stat_result, left: int) -> str | None:
    """Why something is no file that is taken."""
    kind = next((words for test, words in _KINDS if test(status.st_mode)), None)
    if kind is not None or not stat.S_ISREG(status.st_mode):
        return kind or "is no regular file"
    if status.st_nlink > 1:
        return "has a second name (hard link)"
    if status.st_size > min(MAX_FILE_BYTES, left):
        return f"has {status.st_size} bytes, more than the {min(MAX_FILE_BYTES, left)} that are taken"
    return None


def clear(folder: Path, keep: Container[str] = ()) -> None:
    """Remove everything in a folder but the files that are kept.

    Folders are brought to the top before their parents go, so that no depth is too deep.
    """
    top: int = _open_folder(folder)
    token = secrets.token_hex(8)
    moved = 0
    try:
        while names := [name for name in os.listdir(top) if name not in keep]:
            for name in names:
                if not _is_folder(name, top):
                    os.unlink(name, dir_fd=top)
                    continue
                os.chmod(name, 0o700, dir_fd=top)
                inner: int = os.open(name, _FOLDER, dir_fd=top)
                try:
                    for child in os.listdir(inner):
                        if not _is_folder(child, inner):
                            os.unlink(child, dir_fd=inner)
                            continue
                        os.chmod(child, 0o700, dir_fd=inner)
                        moved += 1
                        os.rename(child, f".{token}-{moved}", src_dir_fd=inner, dst_dir_fd=top)
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)


def _is_folder(name: str, handle: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode)


def _open_folder(folder: Path) -> int:
    folder.chmod(0o700)  # the command may have closed its own folder
    return os.open(folder, _FOLDER)
