"""Workers: as many nodes run at once as there are workers, whichever is idle.

Invariants:
- A worker has one node at a time; it is idle again when that node's call has ended or was given up.
- The pool knows how to run each kind of agent; it decides nothing about tasks.
"""

from __future__ import annotations

from typing import Any

from akf.runtime.agent import Carrier
from akf.runtime.carriers import Call, Lane, Threads
from akf.runtime.memory import Memory
from akf.runtime.processes import Processes
from akf.runtime.scheduler import Scheduler


class Worker:
    """One place where a node can run."""

    __slots__ = ("call", "id", "pool")

    def __init__(self, worker_id: int, pool: WorkerPool) -> None:
        self.id = worker_id
        self.pool = pool
        self.call: Call | None = None

    def run(self, call: Call, carrier: Carrier) -> None:
        """Start a call here.

        Raises:
            RuntimeError: it cannot be started.
        """
        self.call = call
        self.pool.carrier(carrier).start(call)


class WorkerPool:
    """Workers, and where agents run.

    Args:
        size: how many nodes run at once.
        scheduler: chooses agents.
        memory: remembers results.
    """

    def __init__(self, size: int, scheduler: Scheduler, memory: Memory) -> None:
        if size < 1:
            raise ValueError("a pool has at least one worker")
        self.scheduler = scheduler
        self.memory = memory
        self.workers = [Worker(number, self) for number in range(size)]
        self.idle = self.workers[::-1]
        self.lost_loops = 0
        self._lane: Lane | None = None
        self._threads = Threads()
        self._processes = Processes()

    def take(self) -> Worker | None:
        """An idle worker, which is idle no more."""
        return self.idle.pop() if self.idle else None

    def give_back(self, worker: Worker) -> None:
        """A worker is idle again."""
        worker.call = None
        self.idle.append(worker)

    def busy(self) -> list[Worker]:
        """Workers that have a node."""
        return [worker for worker in self.workers if worker.call is not None]

    def carrier(self, name: Carrier) -> Any:
        """What runs agents of a kind."""
        if name == "async":
            if self._lane is None:
                self._lane = Lane()
            return self._lane
        return self._threads if name == "thread" else self._processes

    def wake(self) -> None:
        """Let what was started begin."""
        if self._lane is not None:
            self._lane.wake()

    def blocked(self, now: float, limit_s: float) -> Lane | None:
        """The event loop for agents, when one of them blocks it; there is a new one then."""
        lane = self._lane
        if lane is None or not lane.stalled(now, limit_s):
            return None
        self._lane = None
        self.lost_loops += 1
        return lane

    async def close(self) -> None:
        """End everything that runs."""
        if self._lane is not None:
            self._lane.close()
            self._lane = None
        self._threads.close()
        await self._processes.close()
