"""Where agents run in this process: event loops of their own, and threads.

Invariants:
- No code of an agent ever runs on the loop that owns the state. What is reported is handed over to it, once a call.
- Calls of one loop share a task as long as they end without waiting and leave it as it was (no variable set, no
  cancelling); one that waits has it alone from then on, and the others go on in a new one. To begin a task costs more
  than an agent that does nothing.
- A loop that an agent blocks is given up: `stalled` names the call that does it, and nothing waits for it any more.
- A thread whose call is given up is lost until its function returns; there are never more than `_LOST` of those.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context as Variables
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any

from akf.runtime.agent import Context
from akf.runtime.values import copied

Report = Callable[["Call", BaseException | None, Any], None]
_LOST = 256


class Call:
    """One call of an agent: what it is given, and whether anybody still waits for it."""

    __slots__ = (
        "context",
        "deadline",
        "entry",
        "given_up",
        "handle",
        "node",
        "report",
        "running",
        "started",
        "task",
        "turn",
        "version",
        "worker",
    )

    def __init__(self, entry: Any, node: dict[str, Any], context: Context, report: Report) -> None:
        self.entry = entry
        self.node = node
        self.context = context
        self.report = report
        self.given_up = False
        self.deadline = 0.0
        self.started = 0
        self.handle: Any = None
        self.running: Any = None
        self.task: Any = None
        self.turn: Any = None
        self.version: Any = None
        self.worker: Any = None

    def given(self) -> tuple[dict[str, Any], Context]:
        """What the agent gets: copies of its own, made where it runs."""
        self.context.previous = copied(self.context.previous)
        return copied(self.node), self.context


class Lane:
    """An event loop for agents, in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._inbox: deque[Call] = deque()
        self._called = False
        self._pinged = 0.0
        self.calls: dict[asyncio.Task[None], Call] = {}
        self._runner: asyncio.Task[None] | None = None
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="akf-agents", daemon=True)
        self._thread.start()

    def start(self, call: Call) -> None:
        """Run a call at the next `wake`; from the loop that owns the state."""
        call.handle = self
        self._inbox.append(call)

    def wake(self) -> None:
        """Begin what was started: to wake another thread costs more than a node, so it is done once for many."""
        if self._inbox and not self._called:
            self._called = True
            self._loop.call_soon_threadsafe(self._take)

    def cancel(self, call: Call) -> None:
        """Let the agent's coroutine be cancelled."""
        self._loop.call_soon_threadsafe(self._cancel, call)

    def stalled(self, now: float, limit_s: float) -> bool:
        """Whether an agent has blocked the loop for longer than the limit; asked from time to time."""
        if not self.calls:
            self._pinged = 0.0
        elif not self._pinged:
            self._pinged = now
            self._loop.call_soon_threadsafe(self._pong)
        return bool(self._pinged) and now - self._pinged > limit_s

    def culprit(self) -> Call | None:
        """The call that runs at this moment."""
        task = asyncio.current_task(self._loop)
        return None if task is None else self.calls.get(task)

    def close(self) -> None:
        """Cancel what runs and end, as soon as nothing blocks."""
        self._ended = True
        self._loop.call_soon_threadsafe(self._close)

    def _run(self) -> None:
        while not self._ended:
            try:
                self._loop.run_forever()
            except BaseException:  # noqa: BLE001, S112 - SystemExit of an agent's own task; the other calls go on
                continue
        self._loop.close()

    def _take(self) -> None:
        """Run what waits in one task, and look again right behind its first step."""
        self._called = False
        if self._inbox:
            self._runner = self._loop.create_task(self._drain(), context=Variables())
            self._loop.call_soon(self._relay)

    def _relay(self) -> None:
        self._runner = None
        self._take()

    async def _drain(self) -> None:
        """One call after the other, until one waits for something or leaves something behind."""
        me = asyncio.current_task()
        assert me is not None  # noqa: S101 - it runs
        inbox, calls = self._inbox, self.calls
        for _ in range(len(inbox)):
            call = inbox.popleft()
            if call.given_up:
                call.report(call, asyncio.CancelledError(), None)
                continue
            value, error = None, None
            call.running = me
            calls[me] = call
            try:
                value = await call.entry(*call.given())
            except BaseException as raised:  # noqa: BLE001 - whatever it is, it is this node's
                error = raised
            del calls[me]
            call.running = None
            call.report(call, error, value)
            if self._runner is not me or me.cancelling() or len(copy_context()):
                return

    def _cancel(self, call: Call) -> None:
        if call.running is not None:
            call.running.cancel()

    def _pong(self) -> None:
        self._pinged = 0.0

    def _close(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.call_soon(self._loop.stop)


class Threads:
    """Threads for plain functions, as many as are needed."""

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Call | None]] = []
        self._lock = threading.Lock()
        self._lost = 0

    def start(self, call: Call) -> None:
        """Run a call.

        Raises:
            RuntimeError: too many earlier ones hang.
        """
        if self._lost >= _LOST:
            raise RuntimeError(f"{self._lost} calls of plain functions hang; let them be agents of processes")
        call.handle = self
        call.context._cancelled = threading.Event()  # noqa: SLF001 - of the same package
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = SimpleQueue()
            threading.Thread(target=self._serve, args=(inbox,), name="akf-agent", daemon=True).start()
        inbox.put(call)

    def cancel(self, call: Call) -> None:
        """Say that nobody waits any more; a function that looks at `context.cancelled` ends."""
        with self._lock:
            self._lost += 1
        assert call.context._cancelled is not None  # noqa: S101, SLF001 - set when it started
        call.context._cancelled.set()  # noqa: SLF001

    def close(self) -> None:
        """Let idle threads end."""
        with self._lock:
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)

    def _serve(self, inbox: SimpleQueue[Call | None]) -> None:
        while (call := inbox.get()) is not None:
            value, error = None, None
            try:
                value = call.entry(*call.given())
            except BaseException as raised:  # noqa: BLE001 - whatever it is, it is this node's
                error = raised
            with self._lock:
                self._idle.append(inbox)
                if call.context.cancelled:
                    self._lost -= 1
            call.report(call, error, value)
            del call, value, error
