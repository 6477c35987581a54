"""What waits, by tenant: first in, first out within one, fair between them.

Invariants:
- A tenant asks for turns exactly while something of it waits.
- What is discarded has had no turn and is charged to nobody.
"""

from collections import deque
from typing import Generic, TypeVar

from akf.fair.share import LATENCY_NS, FairShare, Turn

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """Items of tenants, in the order in which they shall be served."""

    def __init__(self, latency_ns: int = LATENCY_NS) -> None:
        self.share = FairShare(latency_ns)
        self._waiting: dict[str, deque[Item]] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def push(self, tenant: str, item: Item, nice: int = 0) -> None:
        """Let an item wait; the tenant's nice value is this one from now on.

        Raises:
            UsageError: no nice value.
        """
        self.share.wake(tenant, nice)
        waiting = self._waiting.get(tenant)
        if waiting is None:
            waiting = self._waiting[tenant] = deque()
        waiting.append(item)
        self._length += 1

    def pop(self) -> tuple[Turn, Item] | None:
        """The next item and its turn, which is to be settled; none when nothing waits."""
        turn = self.share.take()
        if turn is None:
            return None
        item = self._waiting[turn.tenant].popleft()
        self._shorter(turn.tenant)
        return turn, item

    def discard(self, tenant: str, item: Item) -> bool:
        """Take an item out before its turn; tells whether it waited."""
        waiting = self._waiting.get(tenant)
        if waiting is None or item not in waiting:
            return False
        waiting.remove(item)
        self._shorter(tenant)
        return True

    def settle(self, turn: Turn, used_ns: int) -> None:
        """A turn is over, and took this long."""
        self.share.settle(turn, used_ns)

    def _shorter(self, tenant: str) -> None:
        self._length -= 1
        if not self._waiting[tenant]:
            del self._waiting[tenant]
            self.share.sleep(tenant)
