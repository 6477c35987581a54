"""A device goes from one holder to the next: who waits, who is given it, and when that is on the disk.

Invariants:
- A device goes to the next waiter in the very release that frees it.
- What happens at one moment is one write to the disk. Nobody is told of a grant before it is there.
- What cannot be written is nobody's: whoever waited for it is refused, and the device is free.
- Waiters are served first come, first served within a tenant, and by fair shares of device time between tenants.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from akf.contracts.problems import AkfError, StorageError, UsageError
from akf.fabric.clock import boot_clock
from akf.fabric.held import Held, Waiter
from akf.fabric.leases import Event, Lease, LeaseBook
from akf.fair import FairQueue, Turn

IDLE_S = 900.0
"""How long a lease without a time to live may lie idle."""
_log = logging.getLogger("akf.fabric")

Watcher = Callable[[str, Lease, str], None]


class HandOver:
    """Devices that are lent.

    Args:
        devices: their ids; one that stands twice is one.
        folder: where the leases are kept.
        idle_s: see `IDLE_S`.
        watch: told of every grant, release and reclaim.
    """

    def __init__(
        self, devices: Sequence[int], folder: Path, *, idle_s: float = IDLE_S, watch: Watcher | None = None
    ) -> None:
        if not devices:
            raise UsageError.of("AKF-U501", "a worker has at least one device", hint="WORKER_DEVICES=0,1")
        self.devices = tuple(dict.fromkeys(devices))
        self.idle_s = idle_s
        self._watch = watch
        self._book = LeaseBook(folder)
        self._held: dict[str, Held] = {}
        self._queue: FairQueue[Waiter] = FairQueue()
        self._granted: list[tuple[Held, Waiter]] = []
        self._told: list[Callable[[], None]] = []
        self._storing: asyncio.Handle | None = None
        self._free: list[int] = list(self.devices)
        self._draining = False
        self._looking: asyncio.Task[None] | None = None
        self._stalled: list[tuple[Turn, Waiter]] = []
        self._siblings: list[asyncio.Future[None]] = []
        for lease in reversed(self._book.held()):  # of two of one device the older one's end could not be written down
            if lease.device in self._free:
                self._free.remove(lease.device)
                self._held[lease.id] = Held(lease, None)
            else:
                self._book.end(lease, "reclaimed", "the worker has this device no more")
        self._book.commit()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._queue) + len(self._stalled)

    def when_stored(self, tell: Callable[[], None]) -> None:
        """Be told when all that was done is on the disk: at once, or with what else was done at this moment."""
        if self._storing is None:
            tell()
        else:
            self._told.append(tell)

    async def stored(self) -> None:
        """Wait for it."""
        if self._storing is not None:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._told.append(lambda: None if future.done() else future.set_result(None))
            await future

    def _drop_stalled(self, waiter: Waiter) -> None:
        for each in [each for each in self._stalled if each[1] is waiter]:
            self._stalled.remove(each)
            self._queue.settle(each[0], 0)

    def _serve(self) -> None:
        """Give free devices to whoever comes next; who wants a certain one had its turn, and is first then."""
        stalled, self._stalled = self._stalled, []
        for turn, waiter in stalled:
            self._give(turn, waiter)
        while self._free and (popped := self._queue.pop()) is not None:
            self._give(*popped)

    def _give(self, turn: Turn, waiter: Waiter) -> None:
        if waiter.future.done():
            self._queue.settle(turn, 0)
            return
        if not self._free or waiter.device not in {None, *self._free}:
            self._stalled.append((turn, waiter))
            return
        device = self._free[0] if waiter.device is None else waiter.device
        try:
            lease = self._book.grant(waiter.task, turn.tenant, device, waiter.ttl_s)
        except StorageError as error:
            self._undo(error)
            self._refuse(turn, waiter, error)
            return
        self._free.remove(device)
        held = self._held[lease.id] = Held(lease, turn)
        self._granted.append((held, waiter))

    def _soon(self) -> None:
        """What was done gets to the disk: at once when nobody waits, else with all that is done at this moment."""
        if not self.waiting:
            self._store()
        elif self._storing is None:
            self._storing = asyncio.get_running_loop().call_soon(self._store)

    def _store(self) -> StorageError | None:
        """Put on the disk what was done, and tell who waits for it; why that failed, if it did."""
        if self._storing is not None:
            self._storing.cancel()
            self._storing = None
        failed = None
        while (error := self._failed()) is not None:
            failed = error
            self._undo(error)
            self._serve()
        granted, self._granted = self._granted, []
        told, self._told = self._told, []
        for held, waiter in granted:
            if waiter.future.done():
                self._end(held, "reclaimed", "whoever waited for it went away")
            else:
                self._tell("granted", held.lease, "")
                waiter.future.set_result(held)
        for tell in told:
            tell()
        return failed

    def _failed(self) -> StorageError | None:
        try:
            self._book.commit()
        except StorageError as error:
            return error
        return None

    def _undo(self, error: StorageError) -> None:
        """What was granted and is not on the disk is nobody's: who waited for it is refused."""
        granted, self._granted = self._granted, []
        for held, waiter in granted:
            del self._held[held.lease.id]
            self._free.append(held.lease.device)
            if held.turn is not None:
                self._refuse(held.turn, waiter, error)

    def _refuse(self, turn: Turn, waiter: Waiter, error: AkfError) -> None:
        self._queue.settle(turn, 0)
        if not waiter.future.done():
            waiter.future.set_exception(error)

    def _end(self, held: Held, event: Event, why: str) -> None:
        if held.ended:
            return
        held.ended = True
        try:
            self._book.end(held.lease, event, why)
        except StorageError as error:  # after a restart it holds until it is idle for too long: late, never twice
            _log.warning("%s", error)
        self._tell(event, held.lease, why)
        if held.running is None:
            self._return(held)
        else:
            self._soon()

    def _return(self, held: Held) -> None:
        del self._held[held.lease.id]
        if held.turn is not None:
            self._queue.settle(held.turn, max(0, int((boot_clock() - held.lease.granted_s) * 1e9)))
        self._free.append(held.lease.device)
        self._wake_siblings()
        self._serve()
        self._soon()

    def _seen(self, held: Held) -> None:
        try:
            held.lease = self._book.seen(held.lease)
        except StorageError as error:
            _log.warning("%s", error)
        self._soon()

    def _wake_siblings(self) -> None:
        for future in self._siblings:
            if not future.done():
                future.set_result(None)
        self._siblings.clear()

    def _tell(self, event: Event, lease: Lease, why: str) -> None:
        if self._watch is not None:
            self._watch(event, lease, why)
