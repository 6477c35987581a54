"""When an event of a trace begins and how long it lasts, and what is wrong with those that do not say.

Invariants:
1. Times are whole nanoseconds, exactly (`akf.traffic.exact`), and small enough to be added up.
2. An event that begins and does not end has no duration, and is refused rather than left out.
3. All events that are wrong are found (`akf.traffic.trouble`).
"""

from __future__ import annotations

from akf.contracts.text import show
from akf.traffic.events import Event, Trace
from akf.traffic.exact import LATEST_NS, LONGEST_NS, nanoseconds
from akf.traffic.trouble import Trouble


def moment(event: Event) -> int:
    """Return the start of an event in nanoseconds.

    Raises:
        ValueError: It has none; the message says why.
    """
    return _time(event, "ts", LATEST_NS)


def span(event: Event) -> tuple[int, int]:
    """Return start and duration of an event in nanoseconds.

    Raises:
        ValueError: It has none; the message says why.
    """
    if event.get("ph") == "B" or "dur" not in event:
        raise ValueError("it begins and does not end: it has no dur")
    return moment(event), _time(event, "dur", LONGEST_NS)


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


class EventTrouble(Trouble):
    """Problems of one trace."""

    def __init__(self, trace: Trace) -> None:
        super().__init__("AKF-F121")
        self._trace = trace

    def event(self, name: object, error: ValueError) -> None:
        """Note that the event that was read last is wrong."""
        edited = "exponent" in str(error) or "negative" in str(error)
        hint = "export the trace again, and do not edit it" if edited else None
        self.add(self._trace.problem("AKF-F153", f"the event {show(name)}: {error}", hint))
