"""What happens, as a stream: numbered, for any number of readers, and never waiting for one.

Invariants:
- Sequence numbers count up by one from 1, without a gap, over restarts too where there is a journal.
- A reader is a place in the stream, not a queue: who reads slowly or not at all costs nothing and stops nobody. What
  left the memory before it was read comes from the journal; what is nowhere any more is one `lost` that says from
  where to where.
- Readers see what is durable: with a journal an event is published when it is on disk.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal, NamedTuple, Self, get_args

Kind = Literal[
    "accepted", "started", "node_started", "node_finished", "node_failed", "node_skipped", "retried", "round",
    "loop_over", "finished", "failed", "cancelled", "resumed", "agent_loaded", "agent_replaced", "agent_unloaded",
    "agent_refused", "lost",
]  # fmt: skip
KINDS: tuple[str, ...] = get_args(Kind)
KEPT = 16_384
"""How many events are kept in memory."""
_SMALL = 2048


class Record(NamedTuple):
    """One event."""

    seq: int
    kind: Kind
    task: str | None
    node: str | None
    at_ns: int
    data: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The record as JSON."""
        return self._asdict()


def public(record: Record) -> Record:
    """The record as readers get it: without a task's graph, and without a result that is large."""
    data = record.data
    if record.kind == "accepted" and "graph" in data:
        return record._replace(data={"tenant": data["tenant"], "nice": data["nice"]})
    if record.kind == "node_finished" and _large(data["result"]):
        return record._replace(data={"attempt": data["attempt"], "round": data["round"], "large": True})
    return record


def _large(value: Any) -> bool:
    """Whether a result has more than a few parts, or long texts; looks at no more than that."""
    if value is None:
        return False
    waiting, left = [value], _SMALL
    while waiting and left > 0:
        each = waiting.pop()
        left -= 8
        if isinstance(each, str):
            left -= len(each)
        elif isinstance(each, list | dict):
            left -= 8 * len(each)
            if left > 0:
                waiting += each if isinstance(each, list) else [*each, *each.values()]
    return left <= 0


class Event:
    """The stream of events.

    Args:
        kept: how many are kept in memory for readers that come late.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept: deque[Record] = deque(maxlen=kept)
        self._lock = threading.Lock()
        self._readers: set[Reader] = set()
        self._older: Callable[[int, int], list[Record]] | None = None
        self.last = 0

    def publish(self, records: list[Record]) -> None:
        """Let readers see these; called by the runtime, in order."""
        with self._lock:
            self._kept.extend(records)
            self.last = records[-1].seq
            readers = list(self._readers) if self._readers else ()
        for reader in readers:
            reader.wake()

    def begin(self, last: int, older: Callable[[int, int], list[Record]]) -> None:
        """Go on behind a journal: its last number, and how to read a stretch of it."""
        self.last = last
        self._older = older

    def subscribe(self, since: int | None = None) -> Reader:
        """A reader of everything after `since`, a sequence number; of what comes from now on, if none is given."""
        return Reader(self, self.last if since is None else since)

    def stretch(self, since: int, most: int) -> list[Record]:
        """Up to so many events after a sequence number; a `lost` stands for those that are gone."""
        with self._lock:
            if since >= self.last:
                return []
            first = self._kept[0].seq if self._kept else self.last + 1
            if since + 1 >= first:
                start = since + 1 - first
                if start == 0 and len(self._kept) <= most:
                    return list(self._kept)
                return [self._kept[index] for index in range(start, min(start + most, len(self._kept)))]
        if self._older is not None:
            return [public(record) for record in self._older(since, min(most, first - 1 - since))]
        return [Record(first - 1, "lost", None, None, 0, {"from": since + 1, "to": first - 1})]


class Reader:
    """A place in the stream: iterate it, with `for` or `async for`, until it is closed."""

    def __init__(self, event: Event, since: int) -> None:
        self._event = event
        self.since = since
        self._closed = False
        self._woken = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._async_woken: asyncio.Event | None = None
        event._readers.add(self)  # noqa: SLF001 - of this module

    def read(self, most: int = 1000) -> list[Record]:
        """What is there already, without waiting."""
        records = self._event.stretch(self.since, most)
        if records:
            self.since = records[-1].seq
        return records

    def wait(self, timeout_s: float | None = None) -> list[Record]:
        """The next events; empty when the time is over or the reader is closed."""
        while True:
            self._woken.clear()
            records = self.read()
            if records or self._closed or not self._woken.wait(timeout_s):
                return records

    def __iter__(self) -> Iterator[Record]:
        while not self._closed:
            yield from self.wait()

    async def __aiter__(self) -> AsyncIterator[Record]:
        self._loop = asyncio.get_running_loop()
        self._async_woken = asyncio.Event()
        while not self._closed:
            self._async_woken.clear()
            records = self.read()
            for record in records:
                yield record
            if not records and not self._closed:
                await self._async_woken.wait()

    def wake(self) -> None:
        """Something is there; called from any thread."""
        self._woken.set()
        if self._loop is not None and self._async_woken is not None and not self._async_woken.is_set():
            try:
                self._loop.call_soon_threadsafe(self._async_woken.set)
            except RuntimeError:  # its loop is closed: nobody reads any more
                self.close()

    def close(self) -> None:
        """Read no more."""
        self._closed = True
        self._event._readers.discard(self)  # noqa: SLF001 - of this module
        self._woken.set()
        if self._loop is not None and self._async_woken is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._async_woken.set)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
