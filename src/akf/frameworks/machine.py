"""What was read of a machine, in the Campaign's own form.

Invariants:
- A fact is what the machine says now, or it is unread with the reason. Nothing is filled in from a Campaign.
- Every device that was looked for is listed, with what could be read of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Die(NamedTuple):
    """A device as its tool shows it; None for what could not be read."""

    name: str
    processes: tuple[int, ...] | None = None
    busy_percent: int | None = None
    mhz: int | None = None
    rated_mhz: int | None = None


class Reading(NamedTuple):
    """A machine.

    Args:
        facts: `environment` and `ranks` as a Campaign states them; unread facts are None.
        unread: why, by JSON pointer into `facts`.
        dies: devices by their names as they are leased.
    """

    facts: dict[str, Any]
    unread: dict[str, str]
    dies: dict[str, Die]
