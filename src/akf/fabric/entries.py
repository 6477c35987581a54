"""Workers as a manager knows them: what they have, how loaded they are, whether they answer.

Invariants:
- A worker fits when backend and architecture are the wanted ones and it has all the wanted tags.
- One that is not known to have more devices has a capacity of 1, unverified.
- What is shown of a worker holds no password.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from typing import Any, NamedTuple, Protocol

from akf.contracts.problems import BlockedError
from akf.contracts.text import show
from akf.fabric.breaker import Breaker
from akf.fabric.interface import WorkerInterface
from akf.fabric.platforms import same_arch

UNVERIFIED = 1
"""The capacity of a worker that never said how many devices it has."""
LOST_PROBES = 6
"""After so many unanswered probes in a row a worker is lost, with what it was doing."""


class Want(NamedTuple):
    """What a task needs of a worker."""

    backend: str
    arch: str
    tags: frozenset[str] = frozenset()


class Entry:
    """A registered worker with its state."""

    def __init__(self, name: str, worker: WorkerInterface, want: Want) -> None:
        self.name = name
        self.worker = worker
        self.want = want
        self.capacity = UNVERIFIED
        self.verified = False
        self.devices: list[int] = []
        self.load = 0
        self.breaker = Breaker()
        self.held: dict[int, str] = {}
        self.owed: set[tuple[str, int]] = set()
        self.unanswered = 0
        self.attending: set[asyncio.Future[None]] = set()

    def fits(self, want: Want) -> bool:
        """Whether it has what is wanted."""
        same = (self.want.backend, self.want.arch) == (want.backend, want.arch)
        return same and want.tags <= self.want.tags

    def free(self, now_s: float) -> bool:
        """Whether it can take one more now."""
        return self.load < self.capacity and self.breaker.allows(now_s)

    def answered(self) -> None:
        """It answered a probe."""
        self.unanswered = 0

    def silent(self) -> None:
        """It answered no probe; after so many, whoever waits for it waits no more."""
        self.unanswered += 1
        if self.unanswered >= LOST_PROBES:
            for waiting in self.attending:
                if not waiting.done():
                    waiting.set_result(None)

    async def attended(self, doing: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """What something comes to that this worker does, unless the worker is lost meanwhile.

        Raises:
            BlockedError: it is lost.
        """
        task = asyncio.ensure_future(doing)
        lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.attending.add(lost)
        try:
            both: set[asyncio.Future[Any]] = {task, lost}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
        finally:
            self.attending.discard(lost)
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        hint = "look at its machine and the network to it; the work goes on elsewhere"
        raise BlockedError.of("AKF-E602", f"the worker {self.name} is lost: {self.unanswered} probes", hint=hint)

    def public(self) -> dict[str, Any]:
        """What the AIKG wire says of a worker."""
        return {
            "backend": self.want.backend,
            "arch": self.want.arch,
            "load": self.load,
            "capacity": self.capacity,
            "tags": sorted(self.want.tags),
        }

    def detailed(self) -> dict[str, Any]:
        """All that is known of it."""
        return {
            "name": self.name,
            **self.public(),
            "verified": self.verified,
            "devices": self.devices,
            "health": self.breaker.state(time.monotonic()),
            "reason": self.breaker.reason,
            "held": [{"device": device, "task": task} for device, task in sorted(self.held.items())],
        }


class Assignment(NamedTuple):
    """One device of one worker, for one task."""

    name: str
    worker: WorkerInterface
    device: int
    task_id: str


class Holds(Protocol):
    """Who keeps track of what is held, beyond this process."""

    def hold(self, worker: str, task: str, device: int) -> None:
        """It is held now."""

    def let_go(self, worker: str, task: str, device: int) -> None:
        """It is held no more."""


def name_of(worker: WorkerInterface, backend: str, arch: str, devices: Sequence[int]) -> str:
    """The name under which a worker stands: its address, or its devices."""
    url = getattr(worker, "url", None)
    return url if isinstance(url, str) else f"local:{backend}:{arch}:{','.join(map(str, devices))}"


async def closed(worker: WorkerInterface) -> None:
    """Let go of what a worker keeps: connections, or what runs here."""
    for name in ("aclose", "close"):
        close = getattr(worker, name, None)
        if close is not None:
            await close()


def ids_of(body: dict[str, Any]) -> list[int]:
    """The devices that a worker's status lists."""
    devices = body.get("devices")
    if not isinstance(devices, list):
        return []
    return list(dict.fromkeys(each for each in devices if isinstance(each, int) and not isinstance(each, bool)))


def differs(body: dict[str, Any], want: Want) -> str:
    """How a worker's status contradicts what it is registered as; nothing where it says nothing of it."""
    backend, arch = body.get("backend", want.backend), body.get("arch", want.arch)
    if backend == want.backend and isinstance(arch, str) and same_arch(arch, want.arch):
        return ""
    return f"says of itself backend={show(backend)}, arch={show(arch)}, not {described(Want(*want[:2]))}"


def described(want: Want) -> str:
    """What is wanted, in words."""
    tags = f" with tags {', '.join(map(show, sorted(want.tags)))}" if want.tags else ""
    return f"backend={show(want.backend)}, arch={show(want.arch)}{tags}"
