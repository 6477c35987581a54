"""Problems of one trace, collected while it is read.

Invariants:
- All problems are found, `LISTED` are kept, and a last one says how many more there are.
- A file is named as the user named it.
"""

from __future__ import annotations

from typing import Any

from akf.contracts.problems import InvalidError, Problem

LISTED = 50


class Trouble:
    """The problems so far."""

    def __init__(self) -> None:
        self._kept: list[Problem] = []
        self._more = 0

    def add(
        self, code: str, message: str, file: str, line: int | None = None, *, hint: str | None = None, **more: Any
    ) -> None:
        """Keep a problem, or count it."""
        if len(self._kept) < LISTED:
            self._kept.append(Problem(code, message, file=file, line=line, hint=hint, **more))
        else:
            self._more += 1

    def __bool__(self) -> bool:
        return bool(self._kept)

    def stop(self) -> None:
        """Refuse if there was anything.

        Raises:
            InvalidError: with the problems.
        """
        if not self._kept:
            return
        problems = list(self._kept)
        if self._more:
            last = self._kept[-1]
            message = f"{self._more} more problems of these files are not listed"
            hint = "mend the ones that are listed first; most have one cause"
            problems.append(Problem("AKF-F264", message, file=last.file, line=last.line, hint=hint))
        raise InvalidError(problems)
