"""Start a Server and run it until it is told to end.

Invariants:
- Without tokens it listens on loopback only.
- On SIGTERM or SIGINT it takes no more requests, ends what runs on its workers, and keeps those jobs for its next
  start.
- It says where it listens when it does, and not before.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import uvicorn

from akf.contracts.problems import BlockedError, ConflictError
from akf.fabric.access import demand_loopback, of_environment
from akf.fabric.hardware import state_folder
from akf.fabric.links import attend
from akf.server.app import application
from akf.server.jobs import Limits, ServerJobManager
from akf.server.store import opened
from akf.server.workers import ServerWorkers
from akf.trust.tls import Tls

TOKEN = "AKF_SERVER_TOKEN"  # noqa: S105 - a variable's name
DRAIN_S = 5
PREFIXES = ("AKF_SERVER_", "AKG_AGENTS_SERVER_", "AIKG_SERVER_")


class Settings(NamedTuple):
    """How a Server is started."""

    host: str
    port: int
    store: str
    tokens: Path | None
    limits: Limits
    probe_s: float
    tls: Tls | None = None


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ending: Callable[[], None], listening: Callable[[str], None]) -> None:
        super().__init__(config)
        self._ending = ending
        self._listening = listening

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        del frame
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
        self._ending()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            host, port = each.getsockname()[:2]
            scheme = "https" if self.config.is_ssl else "http"
            self._listening(f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}")


def serve(settings: Settings) -> dict[str, Any]:
    """Run a Server; what it counted is answered when it has ended.

    Raises:
        BlockedError: its address does not exist here.
        ConflictError: the address or the store is in use.
        IntegrityError: the store is of another version.
        PreconditionError: it would answer others without tokens.
    """
    access = of_environment(TOKEN, settings.tokens, certified=settings.tls is not None)
    demand_loopback(settings.host, access)
    listener = listen(settings.host, settings.port)
    with listener, contextlib.closing(opened(settings.store)) as store:
        folder = state_folder() / "server" if store.shared else Path(settings.store)
        workers = ServerWorkers(store, folder / "workers", settings.probe_s)
        jobs = ServerJobManager(store, workers.manager, settings.limits, access.nice)
        config = uvicorn.Config(
            application(jobs, workers, access), log_config=None, access_log=False, timeout_graceful_shutdown=DRAIN_S,
            server_header=False, date_header=False, ws="none",
            **(settings.tls.settings() if settings.tls else {}),
        )  # fmt: skip
        server = _Server(config, jobs.ending, lambda url: print(f"akf server: {url}", file=sys.stderr, flush=True))
        asyncio.run(server.serve([listener]))
        return {"host": settings.host, "jobs": store.counts()}


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any free one.

    Raises:
        BlockedError: there is no such address here.
        ConflictError: another program listens there.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        attend(made)
        made.bind(address)
        made.listen(512)
        made.set_inheritable(False)
    except OSError as error:
        text = f"cannot listen on {host}:{port}: {error.strerror or error}"
        if isinstance(error, socket.gaierror):
            raise BlockedError.of("AKF-E606", text, hint="name an address of this machine with --host") from error
        hint = "end the program that listens there, or name another --port"
        raise ConflictError.of("AKF-C602", text, hint=hint) from error
    return made


def from_environment(name: str, default: str) -> str:
    """A setting from the environment: AKF's own name for it, or those of the AIKG services."""
    return next((os.environ[prefix + name] for prefix in PREFIXES if os.environ.get(prefix + name)), default)


def default_store() -> str:
    """Where a Server keeps its jobs, unless it is told."""
    return str(state_folder() / "server")
