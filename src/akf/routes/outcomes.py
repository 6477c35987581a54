"""How a build ends, by code. The tools' exit statuses do not tell these apart; the files and messages do.

Invariants:
- A code says whose matter it is: the source's, the machine's, or the tool's.
- A tool that is missing is never the source's fault, and an overflow of the source never the machine's.
"""

from __future__ import annotations

from typing import NamedTuple

from akf.routes.sandbox import Limits, Stop, in_words

REJECTED = "SOURCE_REJECTED"
OVERFLOW = "UB_OVERFLOW"
MISSING = "TOOLCHAIN_MISSING"
TIMED_OUT = "BUILD_TIMED_OUT"
CRASHED = "COMPILER_CRASHED"
NOTHING = "NO_BUILD_OUTPUT"
REFUSED = "BUILD_OUTPUT_REFUSED"
STOPPED: dict[Stop, str] = {
    "time": TIMED_OUT,
    "memory": "BUILD_OUT_OF_MEMORY",
    "disk": "BUILD_OUT_OF_DISK",
    "processes": "BUILD_TOO_MANY_PROCESSES",
}
"""By the limit that was reached."""


class Outcome(NamedTuple):
    """Why a build goes no deeper; `tool` names what is missing."""

    code: str
    message: str
    tool: str | None = None

    @property
    def failed(self) -> bool:
        """Whether nothing of the build may be used; a missing tool leaves what was reached before it."""
        return self.code != MISSING


def stopped(tool: str, stop: Stop, limits: Limits) -> Outcome:
    """A command reached a limit."""
    return Outcome(STOPPED[stop], f"{tool} {in_words(stop, limits)}")
