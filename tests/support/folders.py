"""What stands in a folder, and file systems that lack what most have."""

import errno
import os
from pathlib import Path

import pytest

from akf.store import _system


def names(folder: Path) -> list[str]:
    """Return the names in a folder, sorted."""
    return sorted(path.name for path in folder.iterdir())


def without_unnamed_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer as a file system without O_TMPFILE does; none that can be mounted here lacks it."""
    real = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)


def without_renameat2(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer as a C library without renameat2 does."""
    monkeypatch.setattr(_system, "_libc_renameat2", lambda: None)
