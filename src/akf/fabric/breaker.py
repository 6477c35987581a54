"""A circuit breaker: whether a worker is asked, after it failed to answer.

Invariants:
- Closed, it lets everything through. It opens after `LIMIT` faults in a row, or at once when nobody answers.
- Open, it lets nothing through until its pause is over; then one trial. A success closes it, a fault opens it for twice
  as long, up to `LONGEST_PAUSE_S`.
- It has no clock: who asks says what time it is.
"""

from __future__ import annotations

from typing import Literal

LIMIT = 3
PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0

State = Literal["closed", "open", "trial"]


class Breaker:
    """The breaker of one worker."""

    def __init__(self) -> None:
        self.faults = 0
        self.reason: str | None = None
        self._pause_s = 0.0
        self._until_s = 0.0
        self._trial = False

    def state(self, now_s: float) -> State:
        """Where it stands."""
        if not self._pause_s:
            return "closed"
        return "open" if now_s < self._until_s or self._trial else "trial"

    def allows(self, now_s: float) -> bool:
        """Whether the worker may be asked now."""
        return self.state(now_s) != "open"

    def asked(self, now_s: float) -> None:
        """The worker is asked; if this is a trial, it is the only one."""
        self._trial = self.state(now_s) == "trial"

    def unasked(self) -> None:
        """What was asked ended without saying anything about the worker."""
        self._trial = False

    def success(self) -> None:
        """The worker answered."""
        self.faults, self.reason = 0, None
        self._pause_s, self._trial = 0.0, False

    def fault(self, now_s: float, reason: str, *, gone: bool = False) -> None:
        """The worker failed to answer; `gone` when nobody is there at all."""
        self.faults += 1
        self.reason = reason
        if self._pause_s or gone or self.faults >= LIMIT:
            if self._pause_s and now_s < self._until_s and not self._trial:
                return  # asked before it opened
            self._pause_s = min(LONGEST_PAUSE_S, 2 * self._pause_s or PAUSE_S)
            self._until_s = now_s + self._pause_s
        self._trial = False
