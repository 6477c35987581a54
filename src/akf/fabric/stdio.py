"""The Worker Service over a pipe: the same service, request by request, on standard input and output.

A board behind SSH needs no port then: `ssh board akf worker --stdio`. `PipeTransport` is the other side, for httpx.

Invariants:
- A frame is two lengths of four bytes, a JSON head and a body. Requests are answered as they are done, not in order.
- A request that its asker gave up is ended, as by a closed connection.
- When the other side is gone, everything ends.
- Standard output holds frames and nothing else.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import struct
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

import httpx

from akf.fabric.gate import App

_HEAD = struct.Struct(">II")
_HEAD_BYTES = 1 << 20
_BODY_BYTES = 1 << 30
_CHUNK = 1 << 20
_STREAM_BYTES = 1 << 22

Frame = tuple[dict[str, Any], bytes]


async def read_frame(reader: asyncio.StreamReader) -> Frame | None:
    """The next frame; none at the end."""
    try:
        head_size, body_size = _HEAD.unpack(await reader.readexactly(_HEAD.size))
        if head_size > _HEAD_BYTES or body_size > _BODY_BYTES:
            return None
        head = json.loads(await reader.readexactly(head_size))
        return head, await reader.readexactly(body_size)
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        return None


def frame(head: dict[str, Any], body: bytes = b"") -> bytes:
    """One frame."""
    data = json.dumps(head).encode()
    return _HEAD.pack(len(data), len(body)) + data + body


class _Served:
    """One request that is being answered."""

    def __init__(self, head: dict[str, Any], body: bytes, send: asyncio.StreamWriter) -> None:
        self._head = head
        self._body = body
        self._send = send
        self._asked = False
        self._gone = asyncio.Event()
        self._answer: dict[str, Any] = {}

    def gone(self) -> None:
        self._gone.set()

    def scope(self) -> dict[str, Any]:
        path, _, query = self._head["path"].partition("?")
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in self._head["headers"]]
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": self._head["method"],
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode("ascii"),
            "query_string": query.encode("ascii"),
            "root_path": "",
            "headers": headers,
            "client": None,
            "server": None,
        }

    async def receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]]
            self._answer = {"status": message["status"], "headers": headers}
            return
        more = bool(message.get("more_body"))
        self._send.write(frame({"id": self._head["id"], "more": more, **self._answer}, message.get("body", b"")))
        self._answer = {}
        if not more:
            self._gone.set()
        with suppress(ConnectionError):
            await self._send.drain()


async def serve(app: App, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests until the other side is gone, then end what is left."""
    served: dict[int, _Served] = {}
    tasks: set[asyncio.Task[None]] = set()

    async def answer(number: int, one: _Served) -> None:
        try:
            await app(one.scope(), one.receive, one.send)
        finally:
            served.pop(number, None)

    while (came := await read_frame(reader)) is not None:
        head, body = came
        number = int(head.get("id", 0))
        if head.get("gone"):
            if number in served:
                served[number].gone()
            continue
        one = served[number] = _Served(head, body, writer)
        task = asyncio.create_task(answer(number, one))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    for one in served.values():
        one.gone()
    await asyncio.gather(*tasks, return_exceptions=True)


async def serve_standard(app: App) -> None:
    """Serve on this process's standard input and output, with the app's own start and end around it."""
    frames = os.dup(1)
    os.dup2(2, 1)  # what else is printed must not come between frames
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_STREAM_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(frames, "wb"))
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    await serve(app, reader, writer)


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
                    *self._argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=_STREAM_BYTES
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
