"""The one event loop that owns every task's state.

Invariants:
- Everything that changes a task happens on this loop, as an event: it is applied to the state, then written to the
  journal where there is one, then published. What nobody may lose is durable before anybody hears of it.
- A ready node runs as soon as a worker is idle and it is its tenant's turn. Of a tenant's waiting tasks only as many
  are begun as keep the workers busy.
- What a call reports counts once, and not at all after the call was given up. Whatever an agent does ends as the result
  of its node or as the node's error.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from akf.contracts.problems import AkfError, ConflictError, PreconditionError
from akf.contracts.text import show
from akf.fair import FairQueue, Turn
from akf.runtime.agent import Context
from akf.runtime.carriers import Call
from akf.runtime.chronicle import Chronicle
from akf.runtime.events import Event, Kind
from akf.runtime.failures import failure
from akf.runtime.hub import Hub
from akf.runtime.journal import Journal
from akf.runtime.limits import Limits
from akf.runtime.queue import TaskQueue
from akf.runtime.state import FINAL, TaskState, Told
from akf.runtime.task import Outcome, Task, outcome_of
from akf.runtime.values import Garbage, kept
from akf.runtime.worker import Worker, WorkerPool

_TICK_S = 0.02


class Engine:
    """Runs tasks on a thread of its own until it is stopped."""

    def __init__(
        self, event: Event, queue: TaskQueue, pool: WorkerPool, journal: Journal | None, limits: Limits
    ) -> None:
        self.event = event
        self.queue = queue
        self.pool = pool
        self.journal = journal
        self.limits = limits
        self.tasks: dict[str, Task] = {}
        self.outcomes: dict[str, Outcome] = {}
        self.serving = False
        self.broken: AkfError | None = None
        self._ready: FairQueue[tuple[Task, str]] = FairQueue()
        self._asking: dict[str, int] = {}
        self._absent: deque[tuple[float, Task, str]] = deque()
        self._over: deque[tuple[int, Task]] = deque()
        self._watching = False
        self._hub = Hub(self._turned)
        self._chronicle = Chronicle(event, journal, self._hub.post, self._done, self._break)

    def listener(self, kind: str, data: dict[str, Any]) -> None:
        """Hear of agents that come and go; from any thread."""
        self._hub.post(self.agents_changed, kind, data)

    def post(self, what: Callable[..., None], *args: Any) -> None:
        """Let something be done on the loop; from any thread."""
        self._hub.post(what, *args)

    def ask(self, what: Callable[..., Any], *args: Any) -> Any:
        """Let something be done on the loop and wait for its answer; from another thread."""
        return self._hub.ask(what, *args)

    def stop(self) -> None:
        """End what runs and the loop itself. What was accepted and not done stays in the journal."""
        self._hub.end(self._close())

    # What is posted.

    def accept(self, task: Task, future: Future[str] | None) -> None:
        """A task has a place in the queue; one that is known already is accepted once."""
        refused = self.broken or (None if future is None else self._known(task))
        if refused is not None:
            self.queue.free()
            if future is not None and isinstance(refused, AkfError):
                future.set_exception(refused)
            elif future is not None:
                future.set_result(task.id)
            return
        self.tasks[task.id] = task
        data: dict[str, Any] = {"tenant": task.tenant, "nice": task.nice}
        if self.journal is not None:
            data["graph"] = task.graph.to_json()
        self._emit("accepted", task, None, data)
        self._enter(task)
        if future is not None:
            self._chronicle.when_durable(future, task.id)

    def restore(self, task: Task, state: TaskState | None, missing: list[Told]) -> None:
        """A task of the journal goes on: what had been running runs again, what had followed and was lost is told."""
        self.tasks[task.id] = task
        if state is None:
            self._enter(task)
            return
        self.queue.free()
        task.state, task.calls = state, set()
        for name, each in state.nodes.items():
            if each.status == "finished":
                self.pool.memory.write(task.id, name, each.result)
        for told in missing:
            self._tell(task, told)
        if state.status not in FINAL:
            self._apply("resumed", task, None, {})

    def begin(self, future: Future[Outcome | None]) -> None:
        """Begin the next task of the queue, whoever's it is."""
        if self.broken is not None:
            future.set_exception(self.broken)
            return
        task = self.queue.pop()
        if task is None:
            future.set_result(None)
        else:
            self.wait(task.id, future)
            self._begin(task)

    def serve(self) -> None:
        """From now on begin tasks whenever a worker is idle."""
        self.serving = True
        for tenant in self.queue.tenants():
            self._admit(tenant)

    def wait(self, task_id: str, future: Future[Any]) -> None:
        """Answer with the outcome when the task is over."""
        task = self.tasks.get(task_id)
        if task is not None and self.broken is not None:
            future.set_exception(self.broken)
        elif task is not None:
            task.waiters = [*(task.waiters or ()), future]
        else:
            future.set_result(self.outcomes.get(task_id))

    def cancel(self, task_id: str, future: Future[bool]) -> None:
        """End a task; tells whether it was not over yet."""
        task = self.tasks.get(task_id)
        if self.broken is not None:
            future.set_exception(self.broken)
            return
        if task is None or (task.state is not None and task.state.status in FINAL):
            future.set_result(False)
            return
        self.queue.discard(task, task.tenant)
        if task.state is None:
            task.state = TaskState(task.id, task.graph)
        calls = list(task.calls or ())
        self._apply("cancelled", task, None, {})
        for call in calls:
            self._give_up(call)
        self._chronicle.when_durable(future, True)

    def agents_changed(self, kind: Kind, data: dict[str, Any]) -> None:
        """Agents came or went; nodes that waited for one try again."""
        self._emit(kind, None, None, data)
        waiting, self._absent = self._absent, deque()
        for _, task, name in waiting:
            self._ready.push(task.tenant, (task, name), task.nice)

    def state(self, task_id: str) -> dict[str, Any] | None:
        """Where a task stands."""
        task = self.tasks.get(task_id)
        if task is None:
            return None
        return (task.state or TaskState(task.id, task.graph)).to_json()

    # On the loop.

    def _turned(self) -> None:
        """What was posted is done: give work to who is idle, and tell of what happened."""
        self._pump()
        self._chronicle.flush()

    def _known(self, task: Task) -> ConflictError | str | None:
        """Whether a task of this id was accepted already: itself, or another one."""
        found, graph = self.tasks.get(task.id), task.graph.to_json()
        if found is not None:
            same: bool | None = found.graph.to_json() == graph
        elif self.journal is not None:
            same = self.journal.same(task.id, graph)
        else:
            same = True if task.id in self.outcomes else None
        if same is not False:
            return task.id if same else None
        message = f"another task has the id {show(task.id)}"
        return ConflictError.of(
            "AKF-C701", message, hint="give it an id of its own; the same task may be handed in twice"
        )

    def _enter(self, task: Task) -> None:
        self.queue.enter(task, task.tenant, task.nice)
        if self.serving:
            self._admit(task.tenant)

    def _admit(self, tenant: str) -> None:
        """Begin tasks of a tenant while fewer of its nodes are ready than there are workers."""
        while self.serving and self._asking.get(tenant, 0) < len(self.pool.workers):
            task = self.queue.pop(tenant)
            if task is None:
                return
            self._begin(task)

    def _begin(self, task: Task) -> None:
        task.state, task.calls = TaskState(task.id, task.graph), set()
        self._apply("started", task, None, {})

    def _queue_ready(self, task: Task) -> None:
        assert task.state is not None  # noqa: S101 - it has begun
        ready = task.state.ready
        while ready:
            self._ready.push(task.tenant, (task, ready.popleft()), task.nice)
            self._asking[task.tenant] = self._asking.get(task.tenant, 0) + 1

    def _asked(self, tenant: str) -> None:
        self._asking[tenant] -= 1
        if not self._asking[tenant]:
            del self._asking[tenant]

    def _pump(self) -> None:
        """Give ready nodes to idle workers."""
        pool = self.pool
        while self.broken is None and pool.idle and (got := self._ready.pop()) is not None:
            turn, (task, name) = got
            self._asked(task.tenant)
            if self.serving:
                self._admit(task.tenant)
            state = task.state
            if state is None or state.status in FINAL:
                self._ready.settle(turn, 0)
                continue
            self._start(task, state, name, turn)
        if len(pool.idle) < len(pool.workers):
            self._watch()
        pool.wake()

    def _start(self, task: Task, state: TaskState, name: str, turn: Turn) -> None:
        node = state.node(name)
        version = self.pool.scheduler.acquire(node.action, task.graph.default_role)
        if version is None:
            self._ready.settle(turn, 0)
            self._asking[task.tenant] = self._asking.get(task.tenant, 0) + 1
            self._absent.append((time.monotonic() + self.limits.absent_s, task, name))
            self._watch()
            return
        worker = self.pool.take()
        assert worker is not None  # noqa: S101 - the caller saw one
        known = state.nodes[name]
        attempt = known.attempt + 1
        context = Context(
            task.id, name, version.role, task.tenant, attempt, known.round, state.previous_of(name), self._read
        )
        call = Call(version.entry, state.input_of(name), context, self._report)
        call.task, call.turn, call.version, call.worker = task, turn, version, worker
        limit_s = self.limits.node_s if node.timeout_ms is None else node.timeout_ms / 1000
        call.started = time.monotonic_ns()
        call.deadline = call.started / 1e9 + limit_s
        assert task.calls is not None  # noqa: S101 - it has begun
        task.calls.add(call)
        data = {"attempt": attempt, "round": known.round, "role": version.role, "version": version.number}
        self._apply("node_started", task, name, data)
        try:
            worker.run(call, version.carrier)
        except RuntimeError as error:
            self._end(call, failure(error), None)

    def _report(self, call: Call, error: BaseException | None, value: Any) -> None:
        """A call has ended; from whatever thread it ran on, which does the work of looking at its answer."""
        if error is None:
            try:
                value = kept(value)
            except Garbage as garbage:
                error = garbage
        self._hub.post(self._end, call, None if error is None else failure(error), value)

    def _end(self, call: Call, error: dict[str, Any] | None, value: Any) -> None:
        self.pool.scheduler.registry.release(call.version)
        if not call.given_up:
            self._settle(call, error, value)

    def _give_up(self, call: Call, error: dict[str, Any] | None = None) -> None:
        """Nobody waits for a call any more; where it is cancelled, it is told so."""
        call.given_up = True
        call.handle.cancel(call)
        self._settle(call, error, None)

    def _settle(self, call: Call, error: dict[str, Any] | None, value: Any) -> None:
        """The node's time is over: the worker is idle, the tenant is charged, the event happens."""
        task: Task = call.task
        worker: Worker = call.worker
        self.pool.give_back(worker)
        used = time.monotonic_ns() - call.started + call.context._device_ns  # noqa: SLF001 - of the same package
        self._ready.settle(call.turn, used)
        assert task.calls is not None  # noqa: S101 - it has begun
        task.calls.remove(call)
        if task.state is None or task.state.status in FINAL:
            return
        context = call.context
        data: dict[str, Any] = {"attempt": context.attempt, "round": context.round}
        if error is None:
            self.pool.memory.write(task.id, context.node, value)
            self._apply("node_finished", task, context.node, {**data, "result": value})
            return
        node = task.state.node(context.node)
        if context.attempt >= node.attempts:
            self._apply("node_failed", task, context.node, {**data, "error": error})
            return
        wait_ms = node.backoff_ms << (context.attempt - 1)
        self._apply("retried", task, context.node, {**data, "error": error, "wait_ms": wait_ms})
        self._hub.loop.call_later(wait_ms / 1000, self._again, task, context.node)

    def _again(self, task: Task, name: str) -> None:
        self._ready.push(task.tenant, (task, name), task.nice)
        self._asking[task.tenant] = self._asking.get(task.tenant, 0) + 1
        self._pump()
        self._chronicle.flush()

    def _read(self, node: str, task: str) -> Any:
        return self.pool.memory.read(node, task)

    # Events.

    def _apply(self, kind: Kind, task: Task, node: str | None, data: dict[str, Any]) -> None:
        assert task.state is not None  # noqa: S101 - it has begun
        told = task.state.apply(kind, node, data)
        self._emit(kind, task, node, data)
        if kind in FINAL:
            self._finish(task)
        for each in told:
            self._tell(task, each)
        if task.state.ready:
            self._queue_ready(task)

    def _tell(self, task: Task, told: Told) -> None:
        self._emit(told.kind, task, told.node, told.data)  # type: ignore[arg-type]
        if told.kind in FINAL:
            self._finish(task)

    def _finish(self, task: Task) -> None:
        self._over.append((self._chronicle.seq, task))

    def _emit(self, kind: Kind, task: Task | None, node: str | None, data: dict[str, Any]) -> None:
        self._chronicle.add(kind, None if task is None else task.id, node, data)

    def _break(self, error: AkfError) -> None:
        """The journal is lost, or the runtime stops: whoever waits is told, and nothing is accepted any more."""
        self.broken = error
        self.serving = False
        self._chronicle.refuse(error)
        for task in self.tasks.values():
            for waiter in task.waiters or ():
                waiter.set_exception(error)
            task.waiters = None
        self.queue.wake()

    def _done(self, seq: int) -> None:
        """Hand out outcomes of tasks whose end is published."""
        while self._over and self._over[0][0] <= seq:
            _, task = self._over.popleft()
            self.tasks.pop(task.id, None)
            assert task.state is not None  # noqa: S101 - it is over
            outcome = self.outcomes[task.id] = outcome_of(task.state)
            for gone in self.pool.memory.over(task.id):
                self.outcomes.pop(gone, None)
            for waiter in task.waiters or ():
                waiter.set_result(outcome)

    # Time.

    def _watch(self) -> None:
        if not self._watching:
            self._watching = True
            self._hub.loop.call_later(_TICK_S, self._tick)

    def _tick(self) -> None:
        self._watching = False
        now = time.monotonic()
        for worker in self.pool.busy():
            call = worker.call
            if call is not None and call.deadline <= now:
                limit = call.deadline - call.started / 1e9
                self._give_up(call, {"reason": "timeout", "message": f"it took longer than {limit:.3f} s"})
        self._unblock(now)
        while self._absent and self._absent[0][0] <= now:
            _, task, name = self._absent.popleft()
            self._asked(task.tenant)
            if task.state is not None and task.state.status not in FINAL:
                self._no_agent(task, task.state, name)
        if self._absent or self.pool.busy():
            self._watch()
        self._pump()
        self._chronicle.flush()

    def _no_agent(self, task: Task, state: TaskState, name: str) -> None:
        refusal = self.pool.scheduler.refusal(state.node(name).action).problems[0]
        error = {"reason": "no_agent", "message": f"{refusal.message} ({refusal.hint})"}
        self._apply("node_failed", task, name, {"attempt": 0, "round": state.nodes[name].round, "error": error})

    def _unblock(self, now: float) -> None:
        """Where an agent blocks the agents' loop: it fails, and the others there run again on a new one."""
        lane = self.pool.blocked(now, self.limits.block_s)
        if lane is None:
            return
        culprit = lane.culprit()
        words = "it blocked the event loop of the agents; let it be a plain function, or a process"
        error = {"reason": "blocked", "message": words}
        calls = [worker.call for worker in self.pool.busy() if worker.call is not None and worker.call.handle is lane]
        for call in calls:
            if call is culprit or culprit is None:
                self._give_up(call, error)
                continue
            call.given_up = True
            self.pool.scheduler.registry.acquire_again(call.version)
            again = Call(call.entry, call.node, call.context, self._report)
            again.task, again.turn, again.version, again.worker = call.task, call.turn, call.version, call.worker
            again.started, again.deadline = call.started, call.deadline
            call.task.calls.remove(call)
            call.task.calls.add(again)
            again.worker.run(again, "async")
        self.pool.wake()
        lane.close()

    async def _close(self) -> None:
        self._chronicle.flush()
        if self.journal is not None:
            await self._hub.loop.run_in_executor(None, self.journal.settle)
            self._hub.turn()
        hint = "make a new one; with the journal it goes on from there"
        self._break(PreconditionError.of("AKF-P702", "the runtime was stopped", hint=hint))
        for worker in self.pool.busy():
            if worker.call is not None:
                worker.call.given_up = True
                worker.call.handle.cancel(worker.call)
        await self.pool.close()
