"""One program of a package, run to its end: within its time, with its whole tree, and a word for how it went.

Invariants:
- `run` returns only when nothing of the program's tree runs any more: not after success, not after its time is up, not
  when the caller is cancelled.
- What the machine did wrong is `infra_error` and never the program's failure.
- What a program runs under is started when it is needed, and again when it is gone.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from akf.fabric.running import Ended, Running

Isolation = Literal["namespaces", "group"]
KEEPER = Path(__file__).with_name("keeper.py")
FILE_BYTES = 8 * 1024**3
_PROBE_S = 20.0
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
        running = Running(self._records, order.heard)
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

    def _start(self, order: Order, running: Running) -> None:
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
