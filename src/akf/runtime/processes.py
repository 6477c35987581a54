"""Agents in processes: one process for one call, and nothing left of it afterwards.

Invariants:
- A process has a keeper (`akf.runtime.keeper`) that ends it with everything that it started, when its call is given up
  and when the runtime itself is killed.
- An answer is read up to the limit and not further: what is longer ends the process. Of what it prints the end is kept.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from akf.runtime.agent import ProcessAgent
from akf.runtime.carriers import Call
from akf.runtime.values import MAX_BYTES

_KEEPER = str(Path(__file__).with_name("keeper.py"))
_TAIL, _PART = 8192, 65536
_PATIENCE_S = 5.0


class Died(Exception):  # noqa: N818 - what the process did
    """A process ended without an answer, or answered with an error."""

    def __init__(self, message: str, trace: str = "", reason: str = "died") -> None:
        super().__init__(message)
        self.trace = trace
        self.reason = reason


class Processes:
    """Starts processes from the loop that owns the state, and waits for them there."""

    def __init__(self) -> None:
        self._running: dict[Call, asyncio.Task[Any]] = {}
        self._ending: set[Call] = set()

    def start(self, call: Call) -> None:
        """Run a call."""
        call.handle = self
        task = asyncio.get_running_loop().create_task(_run(call))
        self._running[call] = task
        task.add_done_callback(lambda ended: self._ended(call, ended))

    def cancel(self, call: Call) -> None:
        """End the process and everything that it started."""
        task = self._running.get(call)
        if task is not None and call not in self._ending:
            self._ending.add(call)  # once: a second time would interrupt the end itself
            task.cancel()

    async def close(self) -> None:
        """End all of them."""
        for call in list(self._running):
            self.cancel(call)
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def _ended(self, call: Call, task: asyncio.Task[Any]) -> None:
        del self._running[call]
        self._ending.discard(call)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        call.report(call, error, None if error is not None else task.result())


async def _run(call: Call) -> Any:
    agent: ProcessAgent = call.entry
    request = {
        "target": agent.target,
        "node": {**call.node, "context": _told(call)},
        "memory_bytes": agent.memory_bytes,
        "path": [*sys.path],
        "runtime": os.getpid(),
    }
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", _KEEPER, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    )
    assert process.stdin is not None  # noqa: S101 - pipes, all three
    assert process.stdout is not None  # noqa: S101
    assert process.stderr is not None  # noqa: S101
    tail = asyncio.create_task(_last(process.stderr))
    try:
        process.stdin.write(json.dumps(request).encode() + b"\n")
        data = await _answer(process.stdout)
        process.stdin.close()
        code = await process.wait()
    finally:
        await asyncio.shield(_ended(process, tail))
    return _value(data, code, (await tail).decode("utf-8", "replace"))


async def _ended(process: asyncio.subprocess.Process, tail: asyncio.Task[bytes]) -> None:
    assert process.stdin is not None  # noqa: S101 - pipes
    assert process.stdout is not None  # noqa: S101
    process.stdin.close()
    rest = asyncio.create_task(_last(process.stdout))  # who waits for its reader would not end
    try:
        await asyncio.wait_for(process.wait(), _PATIENCE_S)
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    await rest
    await tail


async def _answer(stream: asyncio.StreamReader) -> bytes:
    parts, size = [], 0
    while part := await stream.read(_PART):
        parts.append(part)
        size += len(part)
        if size > 2 * MAX_BYTES:  # escapes make text longer; the value itself is measured afterwards
            raise Died(f"it answered with more than {MAX_BYTES} bytes", reason="garbage")
    return b"".join(parts)


async def _last(stream: asyncio.StreamReader) -> bytes:
    kept = b""
    while part := await stream.read(_PART):
        kept = (kept + part)[-_TAIL:]
    return kept


def _value(data: bytes, code: int, printed: str) -> Any:
    try:
        answer = json.loads(data)
        if "error" in answer:
            told = answer["error"]
            raise Died(f"{told['type']}: {told['message']}", told["traceback"], "raised")
        return answer["value"]
    except (ValueError, KeyError, TypeError, RecursionError):
        if not code:
            raise Died("its answer is no JSON", printed, "garbage") from None
        how = f"signal {256 - code}" if code > 128 else f"exit status {code}"  # noqa: PLR2004 - as the keeper tells it
        raise Died(f"its process ended without an answer, by {how}", printed) from None


def _told(call: Call) -> dict[str, Any]:
    context = call.context
    return {
        "task": context.task, "role": context.role, "tenant": context.tenant, "attempt": context.attempt,
        "round": context.round, "previous": context.previous, "key": context.key,
    }  # fmt: skip
