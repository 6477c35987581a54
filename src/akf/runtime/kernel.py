"""The runtime as its user sees it: hand tasks in, get outcomes.

Invariants:
- Every method may be called from any thread; `wait` is for code that is on an event loop itself.
- `submit` returns when the task is accepted: with a journal that is when it is on disk.
- A kernel runs tasks while it is started (`with kernel:`), or one by one by `run_once`.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import threading
from concurrent.futures import Future
from typing import Any, Self

from akf.contracts.problems import PreconditionError, UsageError
from akf.contracts.text import show
from akf.fair import weight
from akf.runtime.compiler import Compiler
from akf.runtime.engine import Engine
from akf.runtime.events import Event
from akf.runtime.graph import Graph
from akf.runtime.journal import Journal, replay
from akf.runtime.limits import Limits
from akf.runtime.queue import TaskQueue
from akf.runtime.scheduler import Scheduler
from akf.runtime.task import Outcome, Results, Task, outcome_of
from akf.runtime.worker import WorkerPool

_OWN = re.compile(r"t[0-9]+\Z")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\Z")


class Kernel:
    """Runs tasks on agents.

    Args:
        event: the stream that tells what happens.
        compiler: makes graphs of tasks.
        scheduler: knows the agents.
        worker_pool: where nodes run.
        queue: where tasks wait.
        journal: keeps what was accepted and what came of it, over crashes; without one all is in memory.
        limits: what no agent may exceed.
    """

    def __init__(
        self,
        event: Event,
        compiler: Compiler,
        scheduler: Scheduler,
        worker_pool: WorkerPool,
        queue: TaskQueue,
        *,
        journal: Journal | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.event = event
        self.compiler = compiler
        self.scheduler = scheduler
        self.worker_pool = worker_pool
        self.queue = queue
        self.journal = journal
        self._limits = limits or Limits()
        self._engine: Engine | None = None
        self._stopped = False
        self._lock = threading.Lock()
        self._numbers = itertools.count(1 if journal is None else journal.accepted() + 1)
        if journal is not None:
            event.begin(journal.last(), journal.between)

    def submit(
        self,
        task: str | dict[str, Any] | Graph,
        *,
        task_id: str | None = None,
        tenant: str = "default",
        nice: int = 0,
        wait_s: float | None = 0.0,
    ) -> str:
        """Accept a task: text, the JSON form of a graph, or a graph.

        Args:
            task: what to do.
            task_id: its id; the same task may be handed in again under it, and runs once.
            tenant: whose it is; tenants share time by their weights.
            nice: the tenant's nice value from now on, -20 to 19.
            wait_s: how long to wait for a place in the queue; None waits as long as it takes.

        Returns:
            The task's id.

        Raises:
            InvalidError: it is no graph, or nobody answers to a role of it.
            QueueFull: there is no place in the queue.
            ConflictError: another task has the id.
            UsageError: no nice value, or no id.
            PreconditionError: the runtime was stopped, before or while the task waited for a place.
        """
        graph = self.compiler.compile(task)
        self.scheduler.check(graph)
        weight(nice)
        if task_id is not None and (not _ID.match(task_id) or _OWN.match(task_id)):
            hint = "letters, digits, . _ : - and not t with a number, which the runtime gives"
            raise UsageError.of("AKF-U703", f"{show(task_id)} cannot be a task's id", found=task_id, hint=hint)
        engine = self._running()
        self.queue.reserve(wait_s, ended=lambda: engine.broken)
        made = Task(task_id or f"t{next(self._numbers)}", graph, tenant, nice)
        if task_id is None and self.journal is None:
            engine.post(engine.accept, made, None)
            return made.id
        future: Future[str] = Future()
        engine.post(engine.accept, made, future)
        return future.result()

    def run_once(self) -> Results | None:
        """Run the next task to its end; its results in the order of its nodes, None when none waits."""
        engine = self._running()
        future: Future[Outcome | None] = Future()
        engine.post(engine.begin, future)
        outcome = future.result()
        return None if outcome is None else Results(outcome)

    def outcome(self, task_id: str, timeout_s: float | None = None) -> Outcome:
        """The outcome of a task, when it is over.

        Raises:
            UsageError: there is no such task, or its outcome is kept no more.
            TimeoutError: it is not over in time.
        """
        return self._found(task_id, self._waiting(task_id).result(timeout_s))

    async def wait(self, task_id: str) -> Outcome:
        """As `outcome`, for code on an event loop."""
        return self._found(task_id, await asyncio.wrap_future(self._waiting(task_id)))

    def cancel(self, task_id: str) -> bool:
        """End a task, with everything that runs for it; tells whether it was not over yet."""
        engine = self._running()
        future: Future[bool] = Future()
        engine.post(engine.cancel, task_id, future)
        return future.result()

    def state(self, task_id: str) -> dict[str, Any]:
        """Where a task stands: its status, and each node's.

        Raises:
            UsageError: there is no such task.
        """
        engine = self._running(live=False)
        found = engine.ask(engine.state, task_id)
        if found is None and self.journal is not None and self.journal.has(task_id):
            return replay(self.journal.events(task_id), self.compiler.checked)[1].to_json()
        if found is None:
            raise self._unknown(task_id)
        return found  # type: ignore[no-any-return]

    def start(self) -> Self:
        """Run tasks from now on."""
        engine = self._running()
        engine.post(engine.serve)
        return self

    def stop(self) -> None:
        """Run no more and end what runs, for good; with a journal, the next runtime goes on from there."""
        with self._lock:
            engine, stopped, self._stopped = self._engine, self._stopped, True
        if engine is not None and not stopped:
            self.scheduler.registry.unlisten(engine.listener)
            engine.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _running(self, *, live: bool = True) -> Engine:
        with self._lock:
            if self._stopped and (live or self._engine is None):
                raise PreconditionError.of("AKF-P702", "the runtime was stopped", hint="make a new one")
            if self._engine is None:
                engine = Engine(self.event, self.queue, self.worker_pool, self.journal, self._limits)
                self.scheduler.registry.listen(engine.listener)
                self._engine = engine
                self._resume(engine)
            return self._engine

    def _resume(self, engine: Engine) -> None:
        if self.journal is None:
            return
        for task_id in self.journal.unfinished():
            task, state, missing = replay(self.journal.events(task_id), self.compiler.checked)
            self.queue.reserve(None, force=True)
            engine.post(engine.restore, task, None if state.status == "accepted" else state, missing)

    def _waiting(self, task_id: str) -> Future[Outcome | None]:
        engine = self._running(live=False)
        future: Future[Outcome | None] = Future()
        engine.post(engine.wait, task_id, future)
        return future

    def _found(self, task_id: str, outcome: Outcome | None) -> Outcome:
        if outcome is None and self.journal is not None and self.journal.has(task_id):
            state = replay(self.journal.events(task_id), self.compiler.checked)[1]
            outcome = outcome_of(state)
        if outcome is None:
            raise self._unknown(task_id)
        return outcome

    def _unknown(self, task_id: str) -> UsageError:
        hint = "ids are what submit returned; old outcomes are kept by a journal only, as many as it was told to keep"
        return UsageError.of("AKF-U704", f"no task {show(task_id)} is known", found=task_id, hint=hint)
