"""The Worker Service over a pipe: the same service, request by request, on standard input and output.

A board behind SSH needs no port then: `ssh board akf worker --stdio`. The other side is `akf.fabric.pipe`.

Invariants:
- A frame is two lengths of four bytes, a JSON head and a body. Requests are answered as they are done, not in order.
- A request that its asker gave up is ended, as by a closed connection.
- When the other side is gone, everything ends.
- Standard output holds frames and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import sys
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from akf.fabric.gate import App

_HEAD = struct.Struct(">II")
_HEAD_BYTES = 1 << 20
_BODY_BYTES = 1 << 30
STREAM_BYTES = 1 << 22

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
    reader = asyncio.StreamReader(limit=STREAM_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(frames, "wb"))
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    await serve(app, reader, writer)
