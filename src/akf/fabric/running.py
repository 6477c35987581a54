"""One program that runs, from outside: what it says, how it ends, and the handle by which it is ended.

Invariants:
- A program's result is that of its first process. What it leaves behind neither delays it nor survives it.
- What the program says is read at once and kept within bounds.
- What runs is written down, for whoever comes after a crash.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from akf.fabric.logs import BoundedLog
from akf.store._system import process_start

DRAIN_S = 1.0
"""How long what was said is read after the tree has ended."""
_CHUNK = 1 << 16


class Ended(NamedTuple):
    """How a program ended: `status` above 128 is a signal; it is none when the program did not end by itself."""

    how: Literal["ended", "timeout", "infra_error"]
    status: int | None
    out: str
    err: str
    detail: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether the program ended by itself, with status 0."""
        return self.how == "ended" and self.status == 0

    @property
    def log(self) -> str:
        """All that it said, as the wire has it."""
        return f"{self.out}\n{self.err}"


class Running:
    """One program from outside: what it says, how it ends, and the handle by which it is ended."""

    def __init__(self, records: Path | None, heard: Callable[[bytes], None] | None) -> None:
        self._records = records
        self._heard = heard
        self._record: Path | None = None
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = self._loop.create_future()
        self._logs: dict[int, BoundedLog] = {}
        self._eof = asyncio.Event()
        self._at_end = 0
        self._handle: int | None = None
        self._wanted_dead = False
        self._said: dict[str, object] = {}
        pairs = [os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) for _ in range(2)]
        self._out, self._err = (reader for reader, _ in pairs)
        self._report, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._report.setblocking(False)
        self._far = far
        self.theirs = [*(writer for _, writer in pairs), far.fileno()]
        for _, writer in pairs:
            os.set_blocking(writer, True)

    def started(self) -> None:
        """The program is on its way: leave its ends to it, and listen."""
        for writer in self.theirs[:2]:
            os.close(writer)
        self._far.close()
        self.theirs = []
        self._loop.add_reader(self._report.fileno(), self._hear)
        for reader in (self._out, self._err):
            self._logs[reader] = BoundedLog()
            self._loop.add_reader(reader, self._read, reader)

    def kill(self) -> None:
        """End the tree, now or as soon as there is a handle."""
        self._wanted_dead = True
        if self._handle is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, self._signal)

    async def drained(self) -> None:
        """Wait a moment for the end of what was said."""
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await self._eof.wait()

    def ended(self, *, late: bool) -> Ended:
        """What it came to."""
        out, err = (self._logs[reader].text() for reader in (self._out, self._err))
        if late:
            return Ended("timeout", None, out, err)
        status = self._said.get("status")
        if isinstance(status, int):
            return Ended("ended", status, out, err)
        why = self._said.get("failed", "its keeper was ended from outside")
        return Ended("infra_error", None, out, err, f"the program could not be run: {why}")

    def close(self) -> None:
        """Let go of everything."""
        for reader in (self._out, self._err):
            self._loop.remove_reader(reader)
            os.close(reader)
        self._loop.remove_reader(self._report.fileno())
        self._report.close()
        if self._handle is not None:
            os.close(self._handle)
        if self._record is not None:
            self._record.unlink(missing_ok=True)
        if self.theirs:  # it was never started
            for writer in self.theirs[:2]:
                os.close(writer)
            self._far.close()

    @property
    def _signal(self) -> signal.Signals:
        return signal.SIGTERM if self._said.get("sweeps") else signal.SIGKILL

    def _hear(self) -> None:
        try:
            data, handles, _, _ = socket.recv_fds(self._report, 4096, 1)
        except BlockingIOError:
            return
        except OSError:
            data, handles = b"", []
        if handles:
            self._handle = handles[0]
        if data:
            self._said |= json.loads(data)
            self._write_down()
            if self._wanted_dead:
                self.kill()
            return
        self._loop.remove_reader(self._report.fileno())
        self._finish()

    def _write_down(self) -> None:
        pid = self._said.get("started")
        if self._records is None or self._record is not None or not isinstance(pid, int):
            return
        record = self._records / f"{pid}.{process_start(pid)}"
        with suppress(OSError):  # a full disk: the kernel's signal to orphans holds all the same
            record.touch()
            self._record = record

    def _finish(self) -> None:
        """Nobody reports any more: the tree has ended, or its keeper was killed and the kernel ends it now."""
        if "status" not in self._said and "failed" not in self._said and self._handle is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            self._loop.add_reader(self._handle, self._gone)
            return
        self._over()

    def _gone(self) -> None:
        if self._handle is not None:
            self._loop.remove_reader(self._handle)
        self._over()

    def _over(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def _read(self, reader: int) -> None:
        try:
            data = os.read(reader, _CHUNK)
        except BlockingIOError:
            return
        if data:
            self._logs[reader].feed(data)
            if self._heard is not None:
                self._heard(data)
            return
        self._loop.remove_reader(reader)
        self._at_end += 1
        if self._at_end == len(self._logs):
            self._eof.set()
