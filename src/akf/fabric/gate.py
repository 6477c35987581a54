"""The door of the Worker Service: who may come in, and with how much.

Invariants:
- Nobody is answered without a token where there are tokens, but for the question whether the service lives.
- A body is counted as it comes; of one that is too large nothing more is kept, and it is refused with 413.
- Whoever waits and goes away is noticed: what it waited for is ended, and what it was given goes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from contextlib import suppress
from typing import Any, TypeVar

import orjson
from fastapi import HTTPException

from akf.contracts.problems import AkfError, BlockedError, ConflictError, StorageError
from akf.fabric.access import Access

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Answer = TypeVar("Answer")

FORM_BYTES = 1 << 20
"""How large a body may be that holds no package."""
PACKAGES = frozenset(f"/api/v1/{name}" for name in ("verify", "profile", "profile_single_task", "generate_reference"))
_OPEN = frozenset({"/health"})
_ADMIN = frozenset({"/api/v1/drain"})
_STATUSES: tuple[tuple[type[AkfError], int], ...] = ((BlockedError, 503), (StorageError, 503), (ConflictError, 409))
_DISCARD_S = 20.0
GONE = 499
"""The status of an answer that nobody gets."""


class TooLarge(HTTPException):
    """A body that is larger than it may be."""

    def __init__(self, most: int) -> None:
        super().__init__(413, _too_large(most)["detail"], {"Connection": "close"})


class GoneError(Exception):
    """Whoever asked went away."""


def status_of(error: AkfError) -> int:
    """The HTTP status of a refusal."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 400)


def body_of(error: AkfError) -> dict[str, Any]:
    """The body of a refusal: the text that clients of the AIKG wire show, and the problems."""
    return {"detail": error.problems[0].message, "problems": [problem.to_json() for problem in error.problems]}


class Gate:
    """The door.

    Args:
        app: everything behind it.
        access: who may come in.
        package_bytes: how large a body with a package may be.
    """

    def __init__(self, app: App, access: Access, package_bytes: int) -> None:
        self._app = app
        self._access = access
        self._package_bytes = package_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        headers = dict(scope["headers"])
        shown = headers.get(b"authorization")
        who = self._access.who(None if shown is None else shown.decode("latin-1"))
        if path not in _OPEN:
            if who is None:
                asks = [(b"www-authenticate", b'Basic realm="akf"')]
                await answer(send, 401, {"detail": "a token is needed: bearer, or the password of Basic"}, asks)
                return
            wanted = "admin" if path in _ADMIN else "reader" if scope["method"] in {"GET", "HEAD"} else "user"
            if not who.may(wanted):
                await answer(send, 403, {"detail": f"the role {who.role} may not do that: {wanted} may"})
                return
            scope.setdefault("state", {})["who"] = who
        most = self._package_bytes if path in PACKAGES else FORM_BYTES
        bounded = _Bounded(receive, send, most)
        size = headers.get(b"content-length", b"0")
        if size.isdigit() and int(size) > most:
            if b"expect" not in headers:  # who asks before it sends is not made to send
                await bounded.discard()
            await answer(send, 413, _too_large(most), [(b"connection", b"close")])
            return
        try:
            await self._app(scope, bounded.receive, bounded.send)
        except TooLarge:
            if not bounded.answered:
                await answer(send, 413, _too_large(most), [(b"connection", b"close")])


class _Bounded:
    """The two directions of a request, with its body counted."""

    def __init__(self, receive: Receive, send: Send, most: int) -> None:
        self._receive = receive
        self._send = send
        self._left = self._most = most
        self.answered = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                await self.discard()
                raise TooLarge(self._most)
        return message

    async def send(self, message: Message) -> None:
        self.answered = True
        await self._send(message)

    async def discard(self) -> None:
        """Let the rest of a body pass, for a while: a client that is cut off in the middle never reads the answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DISCARD_S):
                while (message := await self._receive())["type"] == "http.request" and message.get("more_body"):
                    pass


async def attended(receive: Receive, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Do something for whoever asked, as long as it stays.

    Raises:
        GoneError: it went away; what was done for it is ended.
    """
    doing = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait([doing, watching], return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise GoneError
        return doing.result()
    finally:
        for task in (doing, watching):
            if not task.done():
                task.cancel()
                with suppress(BaseException):
                    await task


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def answer(send: Send, status: int, body: object, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    """Send one JSON document."""
    data = orjson.dumps(body)
    fields = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data)), *(headers or [])]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": data})


def _too_large(most: int) -> dict[str, str]:
    return {"detail": f"the request is larger than {most} bytes"}
