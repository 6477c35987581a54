"""Who has a device, who waits for one, and what runs under a lease: the pool's own records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from akf.fabric.leases import Lease
from akf.fair import Turn

SUFFIXES = ("_check", "_gen_ref", "_profile_single")
"""What an AIKG client appends to a task's id where it runs something without a device of its own."""


class Held:
    """A lease that holds, or whose device is not back yet."""

    __slots__ = ("ended", "lease", "running", "turn")

    def __init__(self, lease: Lease, turn: Turn | None) -> None:
        self.lease = lease
        self.turn = turn
        self.running: Slot | None = None
        self.ended = False


class Slot:
    """The right to run one program on a device, for the time of a block."""

    def __init__(self, held: Held, kill: Callable[[], None]) -> None:
        self.held = held
        self.kill = kill
        held.running = self

    @property
    def device(self) -> int:
        """The device."""
        return self.held.lease.device

    @property
    def lease(self) -> Lease:
        """The lease under which it runs."""
        return self.held.lease


class Waiter(NamedTuple):
    """Somebody who waits for a device, or for a certain one."""

    task: str
    ttl_s: float | None
    device: int | None
    future: asyncio.Future[Held]


class Asked(NamedTuple):
    """Somebody who asked for a device, and has it or waits."""

    tenant: str
    waiter: Waiter

    @property
    def lease(self) -> Lease | None:
        """The lease, once there is one.

        Raises:
            AkfError: there will be none.
        """
        return self.waiter.future.result().lease if self.waiter.future.done() else None

    def when_done(self, tell: Callable[[], None]) -> None:
        """Be told when there is an answer; not at once when there is one already."""
        self.waiter.future.add_done_callback(lambda future: None if future.cancelled() else tell())


def pass_on(held: Held, mine: Sequence[Held]) -> None:
    """What runs under one of a task's leases may belong to another of them that is idle: nobody said which."""
    idle = next((other for other in mine if other is not held and other.running is None), None)
    if held.running is not None and idle is not None:
        idle.running, held.running = held.running, None
        idle.running.held = idle


def base_of(task: str) -> str:
    """The task for which another one runs something."""
    return next((task.removesuffix(suffix) for suffix in SUFFIXES if task.endswith(suffix)), task)
