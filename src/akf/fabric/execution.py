"""One program of a package, run to its end: within its time, with its whole tree, and a word for how it went.

Invariants:
- `run` returns only when nothing of the program's tree runs any more: not after success, not after its time is up, not
  when the caller is cancelled.
- A program's result is that of its first process. What it leaves behind neither delays it nor survives it.
- What the machine did wrong is `infra_error` and never the program's failure.
- What the program says is read at once and kept within bounds.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from akf.fabric.logs import BoundedLog
from akf.store._system import process_start

Isolation = Literal["namespaces", "group"]
KEEPER = Path(__file__).with_name("keeper.py")
FILE_BYTES = 8 * 1024**3
SETUP_S = 20.0
"""How long it may take until a program runs."""
DRAIN_S = 1.0
"""How long what was said is read after the tree has ended."""
_PROBE_S = 20.0
_CHUNK = 1 << 16
COVERED = ("/tmp", "/var/tmp")  # noqa: S108
"""What a program's own folder stands for."""
INSIDE = "/tmp"  # noqa: S108 - where a program's folder stands for it, in a namespace of its own


class Order(NamedTuple):
    """A program to run.

    Attributes:
        argv: the program and its arguments.
        env: all of its environment.
        folder: the one folder in which it may write; it stands for /tmp.
        cwd: the folder below it in which it starts.
        timeout_s: how long it may take.
        heard: hears what it says, as it says it.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    folder: Path
    cwd: str
    timeout_s: float
    heard: Callable[[bytes], None] | None = None


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


class Runner:
    """Runs programs through one keeper, which is started when it is needed, and again when it is gone.

    Args:
        isolation: `namespaces`, or `group` where the machine has none.
        hidden: folders that programs find empty.
        records: where it is written down what runs, for whoever comes after a crash.
    """

    def __init__(self, isolation: Isolation, hidden: Sequence[Path] = (), records: Path | None = None) -> None:
        self.isolation = isolation
        self._records = records
        self._hidden = [str(path) for path in hidden]
        self._keeper: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def close(self) -> None:
        """End the keeper, and with it everything that still runs."""
        if self._channel is not None:
            self._channel.close()
        if self._keeper is not None:
            self._keeper.kill()
            self._keeper.wait()
        self._keeper = self._channel = None

    def place_of(self, order_folder: Path) -> str:
        """Where a program finds its folder."""
        return INSIDE if self.isolation == "namespaces" else str(order_folder)

    async def run(self, order: Order) -> Ended:
        """Run a program to its end.

        Raises:
            asyncio.CancelledError: the caller was cancelled; the tree has ended.
        """
        running = _Running(self._records, order.heard)
        try:
            self._start(order, running)
        except OSError as error:
            running.close()
            return Ended("infra_error", None, "", "", f"the program could not be started: {error.strerror or error}")
        cancelled = late = False
        try:
            async with asyncio.timeout(order.timeout_s):
                await asyncio.shield(running.over)
        except TimeoutError:
            late = True
        except asyncio.CancelledError:
            cancelled = True
        while not running.over.done():
            running.kill()
            try:
                await asyncio.shield(running.over)
            except asyncio.CancelledError:
                cancelled = True
        if not cancelled:
            await running.drained()
        running.close()
        if cancelled:
            raise asyncio.CancelledError
        return running.ended(late=late)

    def _start(self, order: Order, running: _Running) -> None:
        place = self.place_of(order.folder)
        wanted = {
            "isolation": self.isolation,
            "argv": list(order.argv),
            "env": dict(order.env),
            "folder": str(order.folder),
            "cwd": f"{place}/{order.cwd}",
            "hidden": self._hidden,
            "shown": _covered(order.argv[0]) if self.isolation == "namespaces" else [],
            "file_bytes": FILE_BYTES,
        }
        data = json.dumps(wanted).encode()
        for attempt in (0, 1):
            channel = self._open()
            try:
                socket.send_fds(channel, [data], running.theirs)
                break
            except (BrokenPipeError, ConnectionError):
                self.close()
                if attempt:
                    raise
        running.started()

    def _open(self) -> socket.socket:
        if self._channel is not None and self._keeper is not None and self._keeper.poll() is None:
            return self._channel
        self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = [sys.executable, "-I", "-S", "-B", str(KEEPER), str(os.getpid()), self.isolation]
            self._keeper = subprocess.Popen(argv, stdin=theirs.fileno(), env={}, cwd="/", start_new_session=True)
        self._channel = ours
        return ours


class _Running:
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


@cache
def _covered(program: str) -> list[str]:
    """Where a program's installation lies, as far as the folder of its own would cover it."""
    places = {Path(program).parent.parent, Path(os.path.realpath(program)).parent.parent}
    return sorted(str(place) for place in places if place.is_absolute() and _is_below(place))


def _is_below(place: Path) -> bool:
    return any(place.is_relative_to(cover) and place != cover for cover in map(Path, COVERED))


async def working_isolation(hidden: Sequence[Path] = ()) -> tuple[Isolation, str]:
    """The isolation that works here, tried with a harmless program; and why the stronger one does not."""
    with tempfile.TemporaryDirectory(prefix="akf-probe-") as folder:
        runner = Runner("namespaces", hidden)
        try:
            order = Order(["/bin/true"], {}, Path(folder), ".", _PROBE_S)
            ended = await runner.run(order)
        finally:
            runner.close()
    if ended.succeeded:
        return "namespaces", ""
    return "group", ended.detail or f"a harmless program ended with status {ended.status} in one"
