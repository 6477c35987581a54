"""When an event of a trace begins and how long it lasts, and what is wrong with those that do not say.

Invariants:
1. Times are whole nanoseconds, exactly (`akf.traffic.exact`), and small enough to be added up.
2. An event that begins and does not end has no duration, and is refused rather than left out.
3. All events that are wrong are listed, up to `MAX_LISTED`; then their number.
"""

from __future__ import annotations

from akf.contracts.problems import InvalidError, Problem
from akf.contracts.text import show
from akf.traffic.events import Event, Trace
from akf.traffic.exact import nanoseconds

LONGEST = 2**53 - 1
"""In nanoseconds: a hundred days, and what every JSON reader holds exactly."""
LATEST = 2**62
"""In nanoseconds since 1970: the year 2116. Adding a duration stays inside 64 bits."""
MAX_LISTED = 20


def moment(event: Event) -> int:
    """Return the start of an event in nanoseconds.

    Raises:
        ValueError: It has none; the message says why.
    """
    return _time(event, "ts", LATEST)


def span(event: Event) -> tuple[int, int]:
    """Return start and duration of an event in nanoseconds.

    Raises:
        ValueError: It has none; the message says why.
    """
    if event.get("ph") == "B" or "dur" not in event:
        raise ValueError("it begins and does not end: it has no dur")
    return moment(event), _time(event, "dur", LONGEST)


def _time(event: Event, key: str, most: int) -> int:
    if key not in event:
        raise ValueError(f"it has no {key}")
    try:
        time = nanoseconds(event[key])
    except ValueError as error:
        raise ValueError(f"its {key} {error}") from None
    if time > most:
        raise ValueError(f"its {key} is {show(event[key])}, out of the range of times")
    return time


class Complaints:
    """Problems of one trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._listed: list[Problem] = []
        self._more = 0

    def event(self, name: object, error: ValueError) -> None:
        """Note that the event that was read last is wrong."""
        edited = "exponent" in str(error) or "negative" in str(error)
        hint = "export the trace again, and do not edit it" if edited else None
        self.add(self._trace.problem("AKF-F153", f"the event {show(name)}: {error}", hint))

    def add(self, problem: Problem) -> None:
        """Note a problem."""
        if len(self._listed) < MAX_LISTED:
            self._listed.append(problem)
        else:
            self._more += 1

    def refuse(self) -> None:
        """Raise what was noted.

        Raises:
            InvalidError: Something was.
        """
        if self._more:
            text = f"{self._more} more problems of this kind are not listed"
            self._listed.append(Problem("AKF-F153", text, self._trace.name))
        if self._listed:
            raise InvalidError(self._listed)

    def __bool__(self) -> bool:
        return bool(self._listed)
