"""The requests of a trace in columns, in one order.

Invariants:
- Sixteen bytes a request, eight more a block, and what its session is called, where the trace has blocks and sessions.
- The order is total: time, lengths, kind, session, blocks. Requests that are equal in all of it are equal, so the order
  of rows and of files leaves no trace.
- `numbered` gives blocks and sessions numbers by their first appearance, so that what is written of them says nothing
  else and is the same for the same requests.
- A request's session is that of the first request it goes back to, also when that one lies before the trace.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import MutableSequence, Sequence
from itertools import groupby, islice
from operator import gt, lt
from typing import Any

_SPARSE = 4
"""Where ids are so much larger than their number, they are looked up in a dictionary."""


class Requests:
    """Columns; `add` while reading, then `ordered`, `select` and `numbered`."""

    def __init__(self) -> None:
        self.times = array("q")
        self.inputs = array("i")
        self.outputs = array("i")
        self.kinds = array("i")
        self.kind_names: list[str] = []
        self.chats: list[Any] = []
        self.sessions: list[Any] = []
        self.blocks = array("q")
        self.ends = array("q")
        self.distinct_blocks = 0
        self._kind_numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.times)

    def add(self, time_ns: int, input_tokens: int, output_tokens: int) -> None:
        """Add what every request has."""
        self.times.append(time_ns)
        self.inputs.append(input_tokens)
        self.outputs.append(output_tokens)

    def add_blocks(self, ids: list[int]) -> None:
        """Add the block ids of the request that was added last."""
        self.blocks.extend(ids)
        self.ends.append(len(self.blocks))

    def add_kind(self, name: str) -> None:
        """Add the kind of the request that was added last."""
        number = self._kind_numbers.setdefault(name, len(self.kind_names))
        if number == len(self.kind_names):
            self.kind_names.append(name)
        self.kinds.append(number)

    def blocks_of(self, index: int) -> Sequence[int]:
        """Block ids of one request; empty where the trace has none."""
        if not self.ends:
            return ()
        return self.blocks[self.ends[index - 1] if index else 0 : self.ends[index]]

    def ordered(self) -> Requests:
        """The same requests in their one order."""
        if all(map(lt, self.times, islice(self.times, 1, None))):
            return self
        order: Sequence[int] = range(len(self))
        if any(map(gt, self.times, islice(self.times, 1, None))):
            order = sorted(order, key=self.times.__getitem__)
        chosen = array("q")
        for _, group in groupby(order, key=self.times.__getitem__):
            members = list(group)
            chosen.extend(sorted(members, key=self._key) if len(members) > 1 else members)
        return self.select(chosen)

    def select(self, chosen: Sequence[int]) -> Requests:
        """Some of the requests, in the order of `chosen`."""
        new = Requests()
        new.kind_names = self.kind_names
        new._kind_numbers = self._kind_numbers
        new.times = array("q", map(self.times.__getitem__, chosen))
        new.inputs = array("i", map(self.inputs.__getitem__, chosen))
        new.outputs = array("i", map(self.outputs.__getitem__, chosen))
        if self.kinds:
            new.kinds = array("i", map(self.kinds.__getitem__, chosen))
        if self.chats:
            new.chats = [self.chats[index] for index in chosen]
        if self.sessions:
            new.sessions = [self.sessions[index] for index in chosen]
        if self.ends:
            for index in chosen:
                new.add_blocks(self.blocks_of(index))  # type: ignore[arg-type] # an array of integers is as good
        return new

    def numbered(self) -> Requests:
        """These requests, with blocks and sessions numbered in the order of their first appearance."""
        table = _table(self.blocks)
        for place, block in enumerate(self.blocks):
            known = table[block]
            if known < 0:
                known = table[block] = self.distinct_blocks
                self.distinct_blocks += 1
            self.blocks[place] = known
        numbers: dict[Any, int] = {}
        self.sessions = [None if name is None else numbers.setdefault(name, len(numbers)) for name in self.sessions]
        self.chats = []
        return self

    def _key(self, index: int) -> tuple[Any, ...]:
        return (
            self.times[index],
            self.inputs[index],
            self.outputs[index],
            self.kind_names[self.kinds[index]] if self.kinds else "",
            self.chats[index] if self.chats else 0,
            self.blocks_of(index),
        )


def _table(blocks: Sequence[int]) -> MutableSequence[int] | defaultdict[int, int]:
    """The number by block, -1 for none: an array where ids are dense, as publications number them."""
    largest = max(blocks, default=-1)
    if largest < _SPARSE * len(blocks) + 1024:
        return array("q", [-1]) * (largest + 1)
    return defaultdict(lambda: -1)
