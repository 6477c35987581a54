"""What happens at a worker, as a stream: numbered, with any number of readers, the slowest of whom delays nobody.

Invariants:
- Numbers rise by one, and start at the clock's milliseconds, so that they rise across restarts too.
- The last ones are kept, and a reader may begin at a number that it knows; what is kept no more is said to be missed.
  One that is still to come is of before a clock that was set back: everything is new to its reader.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

KEPT = 1000


class Event(NamedTuple):
    """One thing that happened."""

    number: int
    kind: str
    data: dict[str, Any]


class Events:
    """The stream."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept: deque[Event] = deque(maxlen=kept)
        self._next = time.time_ns() // 1_000_000
        self._came = asyncio.Event()
        self._closed = False

    def publish(self, kind: str, **data: Any) -> None:
        """Something happened."""
        self._kept.append(Event(self._next, kind, data))
        self._next += 1
        self._came.set()

    def close(self) -> None:
        """Nothing happens any more; readers end."""
        self._closed = True
        self._came.set()

    async def after(self, number: int | None = None) -> AsyncIterator[Event]:
        """What happens after a number; without one, from now on."""
        at = self._next if number is None else number + 1
        if at > self._next:
            at = self._kept[0].number if self._kept else self._next
        while True:
            if self._came.is_set() and not self._closed:
                self._came = asyncio.Event()
            came = self._came
            if self._kept and at < self._kept[0].number:
                yield Event(self._kept[0].number - 1, "missed", {"events": self._kept[0].number - at})
                at = self._kept[0].number
            for event in [event for event in self._kept if event.number >= at]:
                at = event.number + 1
                yield event
            if self._closed:
                return
            await came.wait()
