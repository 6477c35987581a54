"""The devices of one worker: who has which, who waits, and when a device comes back.

Invariants:
- A device has one holder. It is handed over or it is returned: a waiter that went away keeps nothing.
- Waiters are served first come, first served within a tenant, and by fair shares of device time between tenants.
- A lease is released by its own task and device only, any number of times; every other release is written down and
  changes nothing.
- A device whose lease has ended comes back when nothing runs under it any more, never before.
- A lease with a time to live is reclaimed when that passed without a renewal, and what runs under it is ended. One of
  the AIKG wire, which knows no renewal, is reclaimed when for so long nothing ran for its task.
- A device goes to the next waiter in the very release that frees it, and what happens at one moment is one write to the
  disk. Nobody is told of a grant before it is there.
- All of this happens on one event loop; nothing here blocks it but short writes to the disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from akf.contracts.problems import AkfError, BlockedError, ConflictError, StorageError, UsageError
from akf.contracts.text import show
from akf.fabric.clock import boot_clock
from akf.fabric.held import Asked, Held, Waiter, pass_on
from akf.fabric.leases import Event, Lease, LeaseBook
from akf.fair import FairQueue, Turn

ANONYMOUS = "anonymous"
"""The tenant of clients on the AIKG wire that show no token."""
IDLE_S = 900.0
"""How long a lease without a time to live may lie idle."""
_LOOK_S = 0.5
_log = logging.getLogger("akf.fabric")

Watcher = Callable[[str, Lease, str], None]


class Lending:
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

    def open(self) -> None:
        """Begin to look for leases that nobody keeps."""
        self._looking = asyncio.create_task(self._look())

    async def close(self) -> None:
        """Refuse who waits and let the folder go; the leases hold on, and the next worker of this folder knows them."""
        self.drain()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        self._store()
        self._book.close()

    def drain(self) -> None:
        """Give out no device any more; who waits is refused now."""
        self._draining = True
        while (popped := self._queue.pop()) is not None:
            self._stalled.append(popped)
        for turn, waiter in self._stalled:
            self._refuse(turn, waiter, _draining())
        self._stalled.clear()

    @property
    def draining(self) -> bool:
        """Whether devices are given out no more."""
        return self._draining

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._queue) + len(self._stalled)

    def leases(self) -> list[Lease]:
        """Every lease that holds."""
        return [held.lease for held in self._held.values() if not held.ended]

    def busy(self) -> Counter[str]:
        """How many devices are lent, run something, or are on their way back."""
        return Counter(
            "returning" if held.ended else "running" if held.running else "lent" for held in self._held.values()
        )

    async def acquire(
        self,
        task: str,
        tenant: str = ANONYMOUS,
        *,
        ttl_s: float | None = None,
        device: int | None = None,
        nice: int = 0,
    ) -> Lease:
        """A device for a task; waits until there is one.

        Args:
            task: whose it is.
            tenant: whose share of time it uses.
            ttl_s: how long it holds without a renewal.
            device: this one only.
            nice: the tenant's nice value.

        Raises:
            BlockedError: no device is given out any more.
        """
        asked = self.ask(task, tenant, ttl_s=ttl_s, device=device, nice=nice)
        try:
            return (await asked.waiter.future).lease
        except asyncio.CancelledError:
            self.withdraw(asked)
            raise

    def ask(
        self,
        task: str,
        tenant: str = ANONYMOUS,
        *,
        ttl_s: float | None = None,
        device: int | None = None,
        nice: int = 0,
    ) -> Asked:
        """Ask for a device without waiting for it; see `acquire`. Who asked takes it or withdraws.

        Raises:
            BlockedError: no device is given out any more.
        """
        if self._draining:
            raise _draining()
        waiter = Waiter(task, ttl_s, device, asyncio.get_running_loop().create_future())
        self._queue.push(tenant, waiter, nice)
        self._serve()
        self._soon()
        return Asked(tenant, waiter)

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

    def withdraw(self, asked: Asked) -> None:
        """Ask no more; a device that came already goes back."""
        if not self._queue.discard(asked.tenant, asked.waiter):
            self._drop_stalled(asked.waiter)
        future = asked.waiter.future
        if not future.cancel() and not future.cancelled() and future.exception() is None:
            self._end(future.result(), "reclaimed", "whoever waited for it went away")

    def take_back(self, lease: Lease, why: str) -> None:
        """End a lease that its holder never learned of."""
        held = self._held.get(lease.id)
        if held is not None:
            self._end(held, "reclaimed", why)

    def _drop_stalled(self, waiter: Waiter) -> None:
        for each in [each for each in self._stalled if each[1] is waiter]:
            self._stalled.remove(each)
            self._queue.settle(each[0], 0)

    def renew(self, lease_id: str, token: int, ttl_s: float | None = None) -> Lease:
        """Let a lease hold on from now.

        Raises:
            ConflictError: it does not hold any more.
            StorageError: that cannot be written down.
        """
        held = self._found(lease_id, token)
        lease = held.lease if ttl_s is None else held.lease._replace(ttl_s=ttl_s)
        held.lease = self._book.seen(lease)
        error = self._store()
        if error is not None:
            raise error
        return held.lease

    def release(self, task: str, device: int, tenant: str = ANONYMOUS) -> bool:
        """Give a task's device back; tells whether this task held it until now."""
        mine = [held for held in self._held.values() if held.lease.task == task and not held.ended]
        for held in mine:
            if held.lease.device == device and held.lease.tenant == tenant:
                pass_on(held, mine)
                self._end(held, "released", "")
                return True
        with suppress(StorageError):
            self._book.refused(task, tenant, device, "this task does not hold this device")
        self._soon()
        return False

    def release_lease(self, lease_id: str, token: int) -> bool:
        """Give a lease's device back; tells whether it held until now."""
        held = self._held.get(lease_id)
        if held is None or held.ended or held.lease.token != token:
            return False
        if held.running is not None:
            held.running.kill()
        self._end(held, "released", "")
        return True

    def _found(self, lease_id: str, token: int) -> Held:
        held = self._held.get(lease_id)
        if held is None or held.ended or held.lease.token != token:
            message = f"the lease {show(lease_id)} with token {token} does not hold"
            hint = "it was released, or reclaimed because nobody renewed it; ask for a new one and run again"
            raise ConflictError.of("AKF-C502", message, found=token, hint=hint)
        return held

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

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            self.reclaim()

    def reclaim(self) -> None:
        """End the leases that nobody keeps."""
        now = boot_clock()
        for held in list(self._held.values()):
            idle = now - held.lease.seen_s
            ttl_s = held.lease.ttl_s
            if held.ended:
                continue
            if ttl_s is not None and idle > ttl_s:
                if held.running is not None:
                    held.running.kill()
                self._end(held, "reclaimed", f"not renewed for {idle:.1f} s, above its {ttl_s:g} s")
            elif ttl_s is None and held.running is None and idle > self.idle_s:
                self._end(held, "reclaimed", f"idle for {idle:.1f} s, above {self.idle_s:g} s")


def _draining() -> BlockedError:
    hint = "ask another worker, or this one again when it was started again"
    return BlockedError.of("AKF-E501", "the worker ends, and gives out no device any more", hint=hint)
