"""How far a long reading is, for a person who watches.

Invariants:
- Nothing is drawn unless standard error is a terminal and the answer is wanted; then one line that is wiped at the end.
- What is drawn changes nothing else: neither the answer nor what is read.
"""

from __future__ import annotations

import sys
from typing import Self

_WIDTH = 30


class Progress:
    """A bar on standard error: ``with Progress("reading", quiet=False) as shown: shown(done, total)``."""

    def __init__(self, what: str, *, quiet: bool) -> None:
        self._what = what
        self._shown = -1
        self._draws = not quiet and sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._draws and self._shown >= 0:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, done: int, total: int) -> None:
        """Draw, if a percent is gained."""
        percent = min(100, done * 100 // total) if total else 100
        if not self._draws or percent == self._shown:
            return
        self._shown = percent
        full = percent * _WIDTH // 100
        sys.stderr.write(f"\r{self._what} [{'#' * full}{' ' * (_WIDTH - full)}] {percent} %")
        sys.stderr.flush()
