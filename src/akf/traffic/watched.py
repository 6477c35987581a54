"""How far the reading of several files is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path


def over(files: Iterable[Path], shown: Callable[[int, int], object]) -> Callable[[int], None]:
    """Return what is to be told of bytes read; it tells `shown` of all bytes read and all to read."""
    total = sum(file.stat().st_size for file in files if file.is_file())
    done = 0

    def progress(count: int) -> None:
        nonlocal done
        done += count
        shown(min(done, total), total)

    return progress
