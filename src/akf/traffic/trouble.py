"""Problems that are collected while files are read.

Invariants:
- All problems are found, the first are kept, and a last one says how many more there are.
- A file is named as the user named it.
"""

from __future__ import annotations

from akf.contracts.problems import InvalidError, Problem, unlisted

LISTED = 50


class Trouble:
    """The problems so far.

    Args:
        code: What says that there are more than `LISTED`.
    """

    def __init__(self, code: str) -> None:
        self._code = code
        self._kept: list[Problem] = []
        self._more = 0

    def add(self, problem: Problem) -> None:
        """Keep a problem, or count it."""
        if len(self._kept) < LISTED:
            self._kept.append(problem)
        else:
            self._more += 1

    def __bool__(self) -> bool:
        return bool(self._kept)

    def refuse(self) -> None:
        """Raise what was found, if anything was.

        Raises:
            InvalidError: with the problems.
        """
        if self._kept:
            raise InvalidError(self._kept + ([unlisted(self._code, self._more, self._kept[-1])] if self._more else []))
