"""Results of nodes, by task and node.

Invariants:
- A key is a task and a node, so that two tasks never overwrite each other.
- What is read is a copy of its own; the results of the oldest tasks that are over go first when there are too many.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from akf.runtime.values import kept


class Memory:
    """The latest result of each node of each task.

    Args:
        tasks: how many tasks that are over are remembered.
    """

    def __init__(self, tasks: int = 10_000) -> None:
        self._results: dict[str, dict[str, Any]] = {}
        self._over: deque[str] = deque()
        self._most = tasks
        self._lock = threading.Lock()

    def write(self, task: str, node: str, result: Any) -> None:
        """Remember a result."""
        with self._lock:
            self._results.setdefault(task, {})[node] = result

    def read(self, node: str, task: str) -> Any:
        """A copy of a result.

        Raises:
            KeyError: there is none, or no more.
        """
        with self._lock:
            value = self._results[task][node]
        return kept(value, limit_bytes=1 << 62)

    def over(self, task: str) -> list[str]:
        """A task is over; returns the tasks that are forgotten for it."""
        gone = []
        with self._lock:
            self._over.append(task)
            while len(self._over) > self._most:
                gone.append(self._over.popleft())
                self._results.pop(gone[-1], None)
        return gone
