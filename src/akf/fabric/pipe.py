"""The other side of `akf worker --stdio`: requests of httpx to a service behind a program's standard input and output.

Invariants:
- Any number of requests are on their way at once.
- A request that is given up is given up on the other side too.
- When the program ends, every request that waits fails; the next one starts it again.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence

import httpx

from akf.fabric.stdio import STREAM_BYTES, Frame, frame, read_frame


class PipeTransport(httpx.AsyncBaseTransport):
    """The other side: requests of httpx to a service behind a program's standard input and output.

    Args:
        argv: the program, as in `["ssh", "board", "akf", "worker", "--stdio"]`.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = list(argv)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Queue[Frame | None]] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One request."""
        writer = await self._open()
        number = next(self._numbers)
        queue: asyncio.Queue[Frame | None] = asyncio.Queue()
        self._waiting[number] = queue
        head = {
            "id": number,
            "method": request.method,
            "path": request.url.raw_path.decode("ascii"),
            "headers": [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw],
        }
        try:
            writer.write(frame(head, await request.aread()))
            await writer.drain()
            limit_s = request.extensions.get("timeout", {}).get("read")
            async with asyncio.timeout(limit_s):
                came = await queue.get()
        except (TimeoutError, asyncio.CancelledError, ConnectionError) as error:
            self._give_up(number)
            if isinstance(error, TimeoutError):
                raise httpx.ReadTimeout("no answer in time", request=request) from error
            if isinstance(error, ConnectionError):
                raise httpx.WriteError("the other side is gone", request=request) from error
            raise
        if came is None:
            raise httpx.RemoteProtocolError("the other side ended before it answered", request=request)
        said, body = came
        stream = _Answer(self, number, queue, body, more=said["more"])
        return httpx.Response(said["status"], headers=said["headers"], stream=stream, request=request)

    async def aclose(self) -> None:
        """End the other side."""
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            await self._process.wait()
        if self._listening is not None:
            await self._listening

    async def _open(self) -> asyncio.StreamWriter:
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                self._process = await asyncio.create_subprocess_exec(
                    *self._argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=STREAM_BYTES
                )
                self._listening = asyncio.create_task(self._listen(self._process))
            if self._process.stdin is None:
                raise httpx.ConnectError("the program has no input")
            return self._process.stdin

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        reader = process.stdout
        while reader is not None and (came := await read_frame(reader)) is not None:
            queue = self._waiting.get(came[0]["id"])
            if queue is not None:
                queue.put_nowait(came)
        for queue in self._waiting.values():
            queue.put_nowait(None)

    def _give_up(self, number: int) -> None:
        self._waiting.pop(number, None)
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(frame({"id": number, "gone": True}))


class _Answer(httpx.AsyncByteStream):
    def __init__(
        self, transport: PipeTransport, number: int, queue: asyncio.Queue[Frame | None], body: bytes, *, more: bool
    ) -> None:
        self._transport = transport
        self._number = number
        self._queue = queue
        self._body = body
        self._more = more

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body
        while self._more:
            came = await self._queue.get()
            if came is None:
                raise httpx.RemoteProtocolError("the other side ended in the middle of an answer")
            self._more = came[0]["more"]
            yield came[1]

    async def aclose(self) -> None:
        if self._more:
            self._transport._give_up(self._number)  # noqa: SLF001 - the two belong together
        else:
            self._transport._waiting.pop(self._number, None)  # noqa: SLF001
