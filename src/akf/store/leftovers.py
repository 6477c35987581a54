"""Temporary names, and the leftovers of processes that were killed.

Invariants:
- A temporary is recognised by its whole name: ``.akf-tmp-`` or ``.akf-stage-``, its owner's process id and
  start time, and 64 random bits. No other file is ever named or removed.
- A leftover of a live process is left alone. Its owner is live while that process runs or, seen from another
  container where ids mean nothing, while it holds a ``flock`` on the leftover.
- Links are never followed, neither on the search nor on removal.
"""

import fcntl
import os
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from akf.store._system import alive, process_start, storage

TEMPORARY = ".akf-tmp-"
STAGE = ".akf-stage-"

_NAME = re.compile(r"\.akf-(?:tmp|stage)-([0-9]{1,10})-([0-9]{1,20})-[0-9a-f]{16}")


def temporary_name(prefix: str) -> str:
    """Return a fresh name that says which process it belongs to."""
    pid = os.getpid()
    return f"{prefix}{pid}-{process_start(pid)}-{secrets.token_hex(8)}"


def is_temporary(name: str) -> bool:
    """Tell whether a name is one that `temporary_name` makes."""
    return _NAME.fullmatch(name) is not None


def claim(descriptor: int) -> None:
    """Mark an open temporary as owned until it closes; without ``flock`` its name alone says so."""
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def stale(path: Path, *, deep: bool = True) -> list[Path]:
    """Return every leftover in a folder, or at any depth under it, whose owner is gone; live ones are not listed."""
    found: list[Path] = []
    with storage(path, "look for leftovers in"):
        _search(path, found, deep=deep)
    return sorted(found)


def clean(paths: Iterable[Path]) -> list[Path]:
    """Remove the leftovers named by `stale`; return those that were removed.

    A path that is no leftover, or whose owner lives, is passed over.
    """
    removed = []
    for path in paths:
        if not _is_stale(path):
            continue
        with storage(path, "remove"):
            remove(path)
        removed.append(path)
    return removed


def remove(path: Path) -> None:
    """Remove a file or a whole folder without following links; what is gone already is fine."""
    import shutil  # noqa: PLC0415 - costs 10 ms and is seldom needed

    with suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            os.unlink(path)  # noqa: PTH108 - the kill harness counts the calls of `os`


def _search(folder: Path, found: list[Path], *, deep: bool) -> None:
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        path = Path(entry.path)
        if _NAME.fullmatch(entry.name):
            if _is_stale(path):
                found.append(path)
        elif deep and entry.is_dir(follow_symlinks=False):
            _search(path, found, deep=True)


def _is_stale(path: Path) -> bool:
    match = _NAME.fullmatch(path.name)
    if match is None or alive(int(match[1]), int(match[2])):
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # gone, a link, or not ours to read
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without flock: the name alone decides
        return True
    finally:
        os.close(descriptor)
    return True
