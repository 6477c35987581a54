"""The Worker Service as a process: it listens, and it ends in order.

Invariants:
- It listens on this machine only, unless there are tokens.
- Told to end, it refuses who waits at once, gives what runs its time, ends it then, and is gone: nobody waits for ever.
- What it had lent is known to the next one of its folder.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn

from akf.contracts.problems import ConflictError, UsageError
from akf.contracts.text import printable, show
from akf.fabric import stdio
from akf.fabric.access import Access, demand_loopback
from akf.fabric.lean import lean_protocol
from akf.fabric.links import attend
from akf.fabric.local import LocalWorker
from akf.fabric.service import create_app
from akf.trust.tls import Tls

DRAIN_S = 10.0
_GRACE_S = 5
_BACKLOG = 2048


class Settings(NamedTuple):
    """What a Worker Service is."""

    backend: str
    arch: str
    devices: tuple[int, ...]
    host: str
    port: int
    folder: Path
    drain_s: float
    idle_s: float
    python: str
    package_bytes: int
    tls: Tls | None = None


def default_folder(name: str) -> Path:
    """Where a worker keeps its leases: one of this user's for each port, and one for pipes."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local/state")
    return Path(state) / "akf-worker" / name


def devices_of(text: str) -> tuple[int, ...]:
    """The devices of a list with commas.

    Raises:
        UsageError: it is none.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):  # noqa: PLR2004
        hint = "ids of devices, as in 0,1,2,3"
        raise UsageError.of("AKF-U502", f"the devices {show(text)} are no list of numbers", found=text, hint=hint)
    numbers = tuple(int(word) for word in words)
    twice = sorted({number for number in numbers if numbers.count(number) > 1})
    if twice:
        message = f"devices stand twice in the list: {', '.join(map(str, twice))}"
        raise UsageError.of("AKF-U502", message, found=text, hint="name each device once; one device has one holder")
    return numbers


def of_environment(environment: Mapping[str, str], name: str, default: str) -> str:
    """One of the variables of the AIKG start script."""
    return environment.get(f"WORKER_{name}") or default


class _Server(uvicorn.Server):
    """A server whose end begins with the worker's."""

    def __init__(self, config: uvicorn.Config, worker: LocalWorker, drain_s: float) -> None:
        super().__init__(config)
        self._worker = worker
        self._drain_s = drain_s
        self._ending: asyncio.Task[None] | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def _end(self) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._in_order())
        else:  # asked twice: at once
            self._worker.abandon()

    async def _in_order(self) -> None:
        await self._worker.drain(self._drain_s)
        self._worker.events.close()
        self.should_exit = True


def serve(settings: Settings, access: Access) -> dict[str, Any]:
    """Serve until told to end; what there is to say then.

    Raises:
        PreconditionError: it would listen beyond this machine without tokens.
        ConflictError: the port or the folder is another's.
    """
    demand_loopback(settings.host, access)
    with _listening(settings) as listener:
        worker = _worker(settings)
        app = create_app(worker, access, settings.package_bytes)
        config = uvicorn.Config(
            app,
            http="h11" if settings.tls else lean_protocol(worker, access),
            **(settings.tls.settings() if settings.tls else {}),
            log_level="warning",
            access_log=False,
            lifespan="on",
            backlog=_BACKLOG,
            timeout_graceful_shutdown=_GRACE_S,
            server_header=False,
        )
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        print(
            f"akf worker: listening on {'https' if settings.tls else 'http'}://{shown}:{port}",
            file=sys.stderr,
            flush=True,
        )
        asyncio.run(_Server(config, worker, settings.drain_s).serve(sockets=[listener]))
    done = sum(worker.outcomes.values())
    return {"worker": {"backend": settings.backend, "arch": settings.arch, "port": port}, "operations": done}


def serve_pipe(settings: Settings) -> None:
    """Serve on standard input and output until the other side is gone; whoever holds the other end may do everything.

    Raises:
        ConflictError: the folder is another's.
    """
    worker = _worker(settings)

    async def served() -> None:
        await worker.open()
        try:
            await stdio.serve_standard(create_app(worker, None, settings.package_bytes))
        finally:
            await worker.close()

    asyncio.run(served())


def _worker(settings: Settings) -> LocalWorker:
    return LocalWorker(
        settings.backend,
        settings.arch,
        settings.devices,
        settings.folder,
        python=settings.python,
        idle_s=settings.idle_s,
    )


@contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    host = settings.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, for asyncio sends small answers at once only where the socket says so.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        attend(listener)
        listener.bind((host, settings.port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        message = f"cannot listen on {printable(settings.host)}:{settings.port}: {error.strerror or error}"
        raise ConflictError.of("AKF-C504", message, hint="choose another port (WORKER_PORT, --port)") from error
    with listener:
        yield listener
