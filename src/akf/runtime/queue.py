"""Tasks that wait: bounded, in order within a tenant, fair between tenants.

Invariants:
- A take is one step under the lock: never two takers of one task, never a wait where somebody else was quicker.
- The queue holds at most its limit. Who pushes into a full one waits as long as it said, and then gets `QueueFull`;
  who waits for a runtime that ends is told so at once.
- `push` and `pop` may be called from any thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from akf.contracts.problems import AkfError, PreconditionError
from akf.contracts.text import show
from akf.fair import LATENCY_NS, FairShare

LIMIT = 100_000


class QueueFull(PreconditionError):  # noqa: N818 - the name that the interface promises
    """The queue holds as many tasks as it may."""


class TaskQueue:
    """Waiting tasks.

    Args:
        limit: how many may wait.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        if limit < 1:
            raise ValueError("a queue holds at least one task")
        self.limit = limit
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._share = FairShare()
        self._waiting: dict[str, deque[Any]] = {}
        self._taken = 0

    def __len__(self) -> int:
        with self._lock:
            return self._taken

    def reserve(
        self,
        wait_s: float | None = 0.0,
        *,
        force: bool = False,
        ended: Callable[[], AkfError | None] = lambda: None,
    ) -> None:
        """Take up a place that `enter` will fill.

        Args:
            wait_s: how long to wait for a free place; None waits as long as it takes.
            force: above the limit, for what was accepted before.
            ended: why nothing is taken any more, where that is so; asked again after `wake`.

        Raises:
            QueueFull: there are none.
            AkfError: what `ended` says.
        """
        with self._lock:
            there = force or self._changed.wait_for(lambda: self._taken < self.limit or ended() is not None, wait_s)
            why = ended()
            if why is not None:
                raise why
            if not there:
                message = f"the queue is full: {self._taken} tasks wait, its limit is {self.limit}"
                hint = "submit later, wait for a place with wait_s, or raise the limit"
                raise QueueFull.of("AKF-P701", message, found=self._taken, expected=self.limit, hint=hint)
            self._taken += 1

    def enter(self, task: Any, tenant: str = "default", nice: int = 0) -> None:
        """Let a task wait in a place that was reserved.

        Raises:
            UsageError: no nice value.
        """
        with self._lock:
            self._share.wake(tenant, nice)
            self._waiting.setdefault(tenant, deque()).append(task)

    def wake(self) -> None:
        """Let whoever waits for a place ask again whether there will be one."""
        with self._lock:
            self._changed.notify_all()

    def free(self) -> None:
        """Give a place back that was reserved and not filled."""
        with self._lock:
            self._taken -= 1
            self._changed.notify_all()

    def push(self, task: Any, *, tenant: str = "default", nice: int = 0, wait_s: float | None = 0.0) -> None:
        """Let a task wait.

        Raises:
            QueueFull: there is no place.
            UsageError: no nice value.
        """
        self.reserve(wait_s)
        try:
            self.enter(task, tenant, nice)
        except BaseException:
            self.free()
            raise

    def pop(self, tenant: str | None = None) -> Any:
        """The next task, of a tenant's or of all; None when none waits."""
        with self._lock:
            if tenant is None:
                turn = self._share.take()
                if turn is None:
                    return None
                tenant = turn.tenant
                self._share.settle(turn, LATENCY_NS)  # one task, one turn: times are the nodes' matter
            waiting = self._waiting.get(tenant)
            if not waiting:
                return None
            task = waiting.popleft()
            if not waiting:
                del self._waiting[tenant]
                self._share.sleep(tenant)
            self._taken -= 1
            self._changed.notify_all()
            return task

    def tenants(self) -> list[str]:
        """Whose tasks wait."""
        with self._lock:
            return list(self._waiting)

    def discard(self, task: Any, tenant: str) -> bool:
        """Take a task out of the queue; tells whether it waited."""
        with self._lock:
            waiting = self._waiting.get(tenant)
            if waiting is None or task not in waiting:
                return False
            waiting.remove(task)
            if not waiting:
                del self._waiting[tenant]
                self._share.sleep(tenant)
            self._taken -= 1
            self._changed.notify_all()
            return True

    def __repr__(self) -> str:
        return f"TaskQueue({show(self._taken)} of {self.limit})"
