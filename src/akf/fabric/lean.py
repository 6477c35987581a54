"""The three calls that are made most, answered where their bytes arrive.

`status`, `acquire_device` and `release_device` are small, frequent and always alike. A request for one of them that is
plain (one form, no trick) is answered here, without a parser, a framework or a task. Everything else goes the long way,
and so does a request of these that is wrong: it is answered there, in the contract's words.

Invariants:
- A plain request gets the same answer here as on the long way.
- A device is handed over or it is returned. Whoever is gone when its device comes gets none; whoever is found to have
  been gone when the answer arrived, because its machine refused the bytes, has it taken back, and so has whoever is
  behind a link that was cut before the answer arrived.
- Requests of one connection are answered in their order.
"""

from __future__ import annotations

import asyncio
import os
import re
import select
import socket
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, NamedTuple
from urllib.parse import parse_qsl

import orjson
from uvicorn.protocols.http.h11_impl import H11Protocol

from akf.contracts.problems import AkfError
from akf.fabric.access import Access, Who
from akf.fabric.gate import body_of, status_of
from akf.fabric.held import Asked
from akf.fabric.leases import Lease
from akf.fabric.links import forget, unacknowledged, was_cut
from akf.fabric.local import LocalWorker

_STATUS = b"GET /api/v1/status HTTP/1.1\r\n"
_ACQUIRE = b"POST /api/v1/acquire_device HTTP/1.1\r\n"
_RELEASE = b"POST /api/v1/release_device HTTP/1.1\r\n"
_STARTS = (_STATUS, _ACQUIRE, _RELEASE)
_FORM = b"application/x-www-form-urlencoded"
_TRICKS = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"connection"})
_LONGEST = 16 * 1024
_HEADS = 256
"""How many heads are kept: a client sends the same one again and again."""
_PLAINEST = re.compile(rb"task_id=([A-Za-z0-9_.~-]+)(?:&device_id=([0-9]+))?")
_DIGITS = 19
_GONE = select.POLLRDHUP | select.POLLHUP | select.POLLERR
_REFUSED_S = 0.2
"""How long after a connection's end its other side may still refuse what was sent."""
_REASONS = {200: b"OK", 409: b"Conflict", 503: b"Service Unavailable"}


class _Head(NamedTuple):
    start: bytes
    form: bool
    who: Who


class _Request(NamedTuple):
    start: bytes
    form: dict[str, str]
    who: Who


def lean_protocol(worker: LocalWorker, access: Access) -> type[H11Protocol]:
    """The protocol of a worker's service, for uvicorn."""

    class Lean(_Lean):
        _worker = worker
        _access = access
        _heads: ClassVar[dict[bytes, _Head]] = {}

    return Lean


class _Lean(H11Protocol):
    _worker: LocalWorker
    _access: Access
    _heads: ClassVar[dict[bytes, _Head]]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._kept = b""
        self._asked: Asked | None = None
        self._given: Lease | None = None
        self._answered_s = 0.0
        self._idle: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        """Answer what is plain, pass on everything else."""
        self._given = None  # whoever asks on has read the last answer
        self._kept += data
        if self._asked is not None:
            return
        while self._kept and self._between_requests() and self._kept.startswith(_STARTS):
            head, blank, rest = self._kept.partition(b"\r\n\r\n")
            size = _body_size(head) if blank else None
            if not blank or (size is not None and len(rest) < size):
                if len(self._kept) > _LONGEST:
                    break
                return  # the rest of it comes
            request = None if size is None else self._plain(head, rest[:size])
            if request is None:
                break
            self._kept = rest[size:]
            self._unset_keepalive_if_required()
            if not self._answer(request):
                return
        if self._kept:
            kept, self._kept = self._kept, b""
            super().data_received(kept)

    def connection_lost(self, exc: Exception | None) -> None:
        """Withdraw what was asked for, take back what did not arrive."""
        if self._asked is not None:
            self._worker.pool.withdraw(self._asked)
            self._asked = None
        if self._given is not None and not self._arrived(exc):
            self._take_back()
        if self._idle is not None:
            self._idle.cancel()
        super().connection_lost(exc)

    def eof_received(self) -> None:
        """The other side sends no more: look, a moment later, whether it had refused its device."""
        if self._given is not None:
            handle = os.dup(self.transport.get_extra_info("socket").fileno())
            self.loop.call_later(_REFUSED_S, self._look_back, socket.socket(fileno=handle))
        super().eof_received()

    def _arrived(self, why: Exception | None) -> bool:
        """Whether the last answer reached the other machine; if not, it never will."""
        connection = self.transport.get_extra_info("socket")
        if unacknowledged(connection):
            forget(connection)
            return False
        return why is None or was_cut(why)

    def _look_back(self, connection: socket.socket) -> None:
        with connection:
            if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self._take_back()

    def _take_back(self) -> None:
        if self._given is not None:
            self._worker.pool.take_back(self._given, "whoever waited for it was gone when the answer came")
            self._given = None

    def _between_requests(self) -> bool:
        idle = self.cycle is None or self.cycle.response_complete
        return idle and not self.conn.trailing_data[0]

    def _plain(self, head: bytes, body: bytes) -> _Request | None:
        known = self._heads.get(head)
        if known is None:
            known = self._read(head)
            if known is None:
                return None
            if len(self._heads) >= _HEADS:
                self._heads.clear()
            self._heads[head] = known
        start, who = known.start, known.who
        if start == _STATUS:
            return _Request(start, {}, who) if not body else None
        form = _plain_form(body) if known.form else {}
        wanted = {"task_id"} if start == _ACQUIRE else {"task_id", "device_id"}
        number = form.get("device_id", "0")
        if form.keys() != wanted or len(form["task_id"]) > _LONGEST or not number.isascii() or not number.isdigit():
            return None
        return _Request(start, form, who) if len(number) <= _DIGITS else None

    def _read(self, head: bytes) -> _Head | None:
        """What a head says, when it is plain: it says the same each time that it comes."""
        lines = head.split(b"\r\n")
        headers: dict[bytes, bytes] = {}
        for line in lines[1:]:
            name, colon, value = line.partition(b":")
            name = name.lower()
            if not colon or name in headers or not name.isascii() or b" " in name:
                return None
            headers[name] = value.strip()
        if headers.keys() & _TRICKS and headers.get(b"connection", b"").lower() != b"keep-alive":
            return None
        if headers.keys() & (_TRICKS - {b"connection"}) or b"host" not in headers:
            return None
        shown = headers.get(b"authorization")
        who = self._access.who(None if shown is None else shown.decode("latin-1"))
        start = lines[0] + b"\r\n"
        if who is None or not who.may("reader" if start == _STATUS else "user"):
            return None
        return _Head(start, headers.get(b"content-type") == _FORM, who)

    def _answer(self, request: _Request) -> bool:
        """Answer, or ask for a device; tells whether the answer is given."""
        if request.start == _STATUS:
            self._say(200, self._worker.about())
        elif request.start == _RELEASE:
            self._worker.pool.release(request.form["task_id"], int(request.form["device_id"]), request.who.name)
            self._say(200, {"status": "ok"})
        else:
            try:
                self._asked = self._worker.pool.ask(request.form["task_id"], request.who.name, nice=request.who.nice)
                if self._asked.lease is None:
                    self._asked.when_done(self._hand_over)
                    return False
                self._hand_over(again=False)
            except AkfError as error:
                self._asked = None
                self._say(status_of(error), body_of(error))
        return True

    def _hand_over(self, *, again: bool = True) -> None:
        """There is an answer for whoever asked for a device."""
        asked, self._asked = self._asked, None
        if asked is None:
            return
        try:
            lease = asked.lease
        except AkfError as error:
            self._say(status_of(error), body_of(error))
            lease = None
        if lease is not None:
            if self._left():
                self._worker.pool.take_back(lease, "whoever waited for it went away")
                return
            self._given = lease
            self._say(200, {"device_id": lease.device})
        if again and self._kept:
            kept, self._kept = self._kept, b""
            self.data_received(kept)

    def _left(self) -> bool:
        """Whether the other side has closed the connection, though that was not noticed yet."""
        if self.transport.is_closing():
            return True
        looking = select.poll()
        looking.register(self.transport.get_extra_info("socket").fileno(), _GONE)
        return bool(looking.poll(0))

    def _say(self, status: int, body: object) -> None:
        if self.transport.is_closing():
            return
        data = orjson.dumps(body)
        head = b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        self._send(head % (status, _REASONS.get(status, b"Bad Request"), len(data)) + data)

    def _send(self, answer: bytes) -> None:
        self.server_state.total_requests += 1
        self._answered_s = self.loop.time()
        if self._idle is None:
            self._idle = self.loop.call_later(self.timeout_keep_alive, self._look_idle)
        self._worker.pool.when_stored(partial(self._write, answer))

    def _write(self, answer: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(answer)

    def _look_idle(self) -> None:
        """One timer a connection, not one an answer: it looks whether the last answer is long ago."""
        self._idle = None
        if self.transport.is_closing() or self.timeout_keep_alive_task is not None:
            return
        left_s = self._answered_s + self.timeout_keep_alive - self.loop.time()
        if self._asked is not None or not self._between_requests():
            left_s = self.timeout_keep_alive
        if left_s > 0:
            self._idle = self.loop.call_later(left_s, self._look_idle)
        else:
            self.timeout_keep_alive_handler()


def _body_size(head: bytes) -> int | None:
    """The size of a body; none when it is not said in a plain way."""
    lower = head.lower()
    if b"transfer-encoding" in lower:
        return None
    found = lower.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0].strip()
    if not found:
        return 0
    return int(found) if found.isdigit() and int(found[:6]) <= _LONGEST and len(found) < 6 else None  # noqa: PLR2004


def _plain_form(data: bytes) -> dict[str, str]:
    """The fields of a form; none when it is not plain."""
    found = _PLAINEST.fullmatch(data)
    if found is not None:
        task, device = found.groups()
        return {"task_id": task.decode()} | ({"device_id": device.decode()} if device is not None else {})
    with suppress(ValueError):
        pairs = parse_qsl(data.decode("ascii"), keep_blank_values=True, strict_parsing=True, max_num_fields=4)
        if len({name for name, _ in pairs}) == len(pairs):
            return dict(pairs)
    return {}
