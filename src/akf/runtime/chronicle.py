"""What happened, on its way to the journal and from there to whoever listens.

Invariants:
- Events are numbered as they happen, written in that order, one step for all of a turn, and told when they are durable.
- An answer that says that something is kept is given when it is.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from akf.contracts.problems import AkfError
from akf.runtime.events import Event, Kind, Record, public
from akf.runtime.journal import Journal


class Chronicle:
    """Events of one runtime; used on its loop only.

    Args:
        event: the stream that is told.
        journal: what is told is here before, where there is one.
        post: the way back onto the loop.
        told: called with the number up to which all is told.
        lost: called where the journal can be written no more.
    """

    def __init__(
        self,
        event: Event,
        journal: Journal | None,
        post: Callable[..., None],
        told: Callable[[int], None],
        lost: Callable[[AkfError], None],
    ) -> None:
        self.seq = event.last
        self._event = event
        self._journal = journal
        self._post = post
        self._told = told
        self._lost = lost
        self._fresh: list[Record] = []
        self._after: deque[tuple[int, Future[Any], Any]] = deque()

    def add(self, kind: Kind, task: str | None, node: str | None, data: dict[str, Any]) -> None:
        """Something happened."""
        self.seq += 1
        self._fresh.append(Record(self.seq, kind, task, node, time.time_ns(), data))

    def when_durable(self, future: Future[Any], answer: Any) -> None:
        """Give an answer when all that happened so far is kept."""
        self._after.append((self.seq, future, answer))

    def flush(self) -> None:
        """Keep and tell what happened since the last time."""
        fresh, self._fresh = self._fresh, []
        if self._journal is not None and fresh:
            self._journal.write(fresh, lambda failed: self._post(self._durable, fresh, failed))
        elif fresh:
            self._durable(fresh, None)

    def refuse(self, error: AkfError) -> None:
        """Tell whoever waits that it is not kept."""
        for _, future, _ in self._after:
            future.set_exception(error)
        self._after.clear()

    def _durable(self, records: list[Record], failed: str | None) -> None:
        """Tell of events that are on disk, or of all that cannot be."""
        if failed is not None and self._journal is not None:
            self._lost(self._journal.refusal(failed))
            return
        self._event.publish([public(record) for record in records])
        seq = records[-1].seq
        self._told(seq)
        while self._after and self._after[0][0] <= seq:
            _, future, answer = self._after.popleft()
            future.set_result(answer)
