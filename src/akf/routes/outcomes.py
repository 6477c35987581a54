"""How a build ends, by code. The tools' exit statuses do not tell these apart; the files and messages do.

Invariants:
- A code says whose matter it is: the source's, the machine's, or the tool's.
- A tool that is missing is never the source's fault, and an overflow of the source never the machine's.
"""

from __future__ import annotations

from typing import NamedTuple

REJECTED = "SOURCE_REJECTED"
OVERFLOW = "UB_OVERFLOW"
MISSING = "TOOLCHAIN_MISSING"
TIMED_OUT = "BUILD_TIMED_OUT"
CRASHED = "COMPILER_CRASHED"
NOTHING = "NO_BUILD_OUTPUT"


class Outcome(NamedTuple):
    """Why a build goes no deeper; `tool` names what is missing."""

    code: str
    message: str
    tool: str | None = None

    @property
    def failed(self) -> bool:
        """Whether nothing of the build may be used; a missing tool leaves what was reached before it."""
        return self.code != MISSING
