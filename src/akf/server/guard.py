"""What every request passes before the Server looks at it.

Invariants:
- Who shows no token that is known gets 401, and the body is not read.
- A body over the limit gets 413, whatever its length was said to be.
- A Server without tokens answers only to names of this machine, and takes no change from another site's page: a page in
  a browser of this machine can neither read it nor change it.
- Answers tell browsers to run nothing and fetch nothing but the Server's own.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import orjson

from akf.fabric.access import Access, is_loopback
from akf.fabric.remote import IS_SERVER

MAX_BODY_BYTES = 8 << 20
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADERS = (
    (IS_SERVER[0].encode(), IS_SERVER[1].encode()),
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class _TooLargeError(Exception):
    """The body grew over the limit."""


class Guard:
    """The application behind its checks.

    Args:
        application: what answers.
        access: who may ask.
        max_body_bytes: the largest body.
    """

    def __init__(self, application: Application, access: Access, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._application = application
        self._access = access
        self._limit = max_body_bytes

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._application(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        who = self._access.who(headers.get("authorization"))
        if who is None:
            await _answer(send, 401, "a token is needed", ((b"www-authenticate", b'Basic realm="akf"'),))
            return
        if self._access.open and not _of_this_machine(headers.get("host", "")):
            await _answer(send, 421, "this service answers to names of its own machine only")
            return
        if scope["method"] not in _SAFE and not _same_site(headers):
            await _answer(send, 403, "another site's page may change nothing here")
            return
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self._limit:
            await _answer(send, 413, f"a body has at most {self._limit} bytes")
            return
        scope.setdefault("state", {})["who"] = who
        await self._within(scope, receive, send)

    async def _within(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit:
                raise _TooLargeError
            return message

        async def noted(message: Message) -> None:
            if seen > self._limit:
                return  # whatever is made of half a body
            if message["type"] == "http.response.start":
                known = {name for name, _ in message.get("headers", ())}
                extra = [header for header in _HEADERS if header[0] not in known]
                message = {**message, "headers": [*message.get("headers", ()), *extra]}
            await send(message)

        with suppress(_TooLargeError):
            await self._application(scope, counted, noted)
        if seen > self._limit:
            await _answer(send, 413, f"a body has at most {self._limit} bytes", ((b"connection", b"close"),))


async def _answer(send: Send, status: int, detail: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    body = orjson.dumps({"detail": detail})
    fixed = ((b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": [*fixed, *headers, *_HEADERS]})
    await send({"type": "http.response.body", "body": body})


def _of_this_machine(host: str) -> bool:
    """Whether a Host header names an address, or this machine: no other name can be made to point here."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return is_loopback(name) or bool(ipaddress.ip_address(name))
    except ValueError:
        return False


def _same_site(headers: dict[str, str]) -> bool:
    """Whether a change comes from no page, or from the Server's own."""
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == headers.get("host")
