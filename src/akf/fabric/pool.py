"""The devices of one worker: who has which, who waits, and when a device comes back.

Invariants:
- A device has one holder. It is handed over or it is returned: a waiter that went away keeps nothing.
- Waiters are served first come, first served within a tenant, and by fair shares of device time between tenants.
- A lease is released by its own task and device only, any number of times; every other release is written down and
  changes nothing.
- A device whose lease has ended comes back when nothing runs under it any more, never before.
- A lease with a time to live is reclaimed when that passed without a renewal, and what runs under it is ended. One of
  the AIKG wire, which knows no renewal, is reclaimed when for so long nothing ran for its task.
- Who shows a token that is not the lease's is refused at the moment of execution.
- All of this happens on one event loop; nothing here blocks it but short writes to the disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from akf.contracts.problems import AkfError, BlockedError, ConflictError, StorageError, UsageError
from akf.contracts.text import show
from akf.fabric.clock import boot_clock
from akf.fabric.leases import Event, Lease, LeaseBook
from akf.fair import FairQueue, Turn

ANONYMOUS = "anonymous"
"""The tenant of clients on the AIKG wire that show no token."""
IDLE_S = 900.0
"""How long a lease without a time to live may lie idle."""
SUFFIXES = ("_check", "_gen_ref", "_profile_single")
"""What an AIKG client appends to a task's id where it runs something without a device of its own."""
_LOOK_S = 0.5
_log = logging.getLogger("akf.fabric")

Watcher = Callable[[str, Lease, str], None]


class _Held:
    """A lease that holds, or whose device is not back yet."""

    __slots__ = ("ended", "lease", "running", "turn")

    def __init__(self, lease: Lease, turn: Turn | None) -> None:
        self.lease = lease
        self.turn = turn
        self.running: Slot | None = None
        self.ended = False


class Slot:
    """The right to run one program on a device, for the time of a block."""

    def __init__(self, held: _Held, kill: Callable[[], None]) -> None:
        self._held = held
        self.kill = kill
        held.running = self

    @property
    def device(self) -> int:
        """The device."""
        return self._held.lease.device

    @property
    def lease(self) -> Lease:
        """The lease under which it runs."""
        return self._held.lease


class _Waiter(NamedTuple):
    task: str
    ttl_s: float | None
    device: int | None
    future: asyncio.Future[_Held]


class Asked(NamedTuple):
    """Somebody who asked for a device, and has it or waits."""

    tenant: str
    waiter: _Waiter

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


class DevicePool:
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
        self._held: dict[str, _Held] = {}
        self._queue: FairQueue[_Waiter] = FairQueue()
        self._free: list[int] = list(self.devices)
        self._draining = False
        self._looking: asyncio.Task[None] | None = None
        self._stalled: list[tuple[Turn, _Waiter]] = []
        self._siblings: list[asyncio.Future[None]] = []
        for lease in self._book.held():
            if lease.device in self._free:
                self._free.remove(lease.device)
                self._held[lease.id] = _Held(lease, None)
            else:
                self._book.end(lease, "reclaimed", "the worker has this device no more")

    def open(self) -> None:
        """Begin to look for leases that nobody keeps."""
        self._looking = asyncio.create_task(self._look())

    async def close(self) -> None:
        """Refuse who waits and let the folder go; the leases hold on, and the next worker of this folder knows them."""
        self.drain()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
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
        waiter = _Waiter(task, ttl_s, device, asyncio.get_running_loop().create_future())
        self._queue.push(tenant, waiter, nice)
        self._serve()
        return Asked(tenant, waiter)

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

    def _drop_stalled(self, waiter: _Waiter) -> None:
        for each in [each for each in self._stalled if each[1] is waiter]:
            self._stalled.remove(each)
            self._queue.settle(each[0], 0)

    def renew(self, lease_id: str, token: int, ttl_s: float | None = None) -> Lease:
        """Let a lease hold on from now.

        Raises:
            ConflictError: it does not hold any more.
        """
        held = self._found(lease_id, token)
        lease = held.lease if ttl_s is None else held.lease._replace(ttl_s=ttl_s)
        held.lease = self._book.seen(lease)
        return held.lease

    def release(self, task: str, device: int, tenant: str = ANONYMOUS) -> bool:
        """Give a task's device back; tells whether this task held it until now."""
        mine = [held for held in self._held.values() if held.lease.task == task and not held.ended]
        for held in mine:
            if held.lease.device == device and held.lease.tenant == tenant:
                self._pass_on(held, mine)
                self._end(held, "released", "")
                return True
        with suppress(StorageError):
            self._book.refused(task, tenant, device, "this task does not hold this device")
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

    @asynccontextmanager
    async def under(self, lease_id: str, token: int, kill: Callable[[], None]) -> AsyncIterator[Slot]:
        """Run something under a lease that is shown.

        Args:
            lease_id: the lease.
            token: its fencing token.
            kill: ends what runs, should the lease end.

        Raises:
            ConflictError: the lease does not hold, or something runs under it.
        """
        held = self._found(lease_id, token)
        if held.running is not None:
            raise ConflictError.of("AKF-C503", f"something runs under the lease of device {held.lease.device} already")
        async with self._running(held, kill) as slot:
            yield slot

    @asynccontextmanager
    async def for_task(
        self, task: str, tenant: str, kill: Callable[[], None], *, default: int | None
    ) -> AsyncIterator[Slot]:
        """Run something for a task that shows no lease: under one that it has, else under one for this time.

        Args:
            task: the task's id, as an AIKG client gives it.
            tenant: whose it is.
            kill: ends what runs, should the lease end.
            default: the device that such a program uses when nobody told it one; none when any will do.

        Raises:
            BlockedError: no device is given out any more.
        """
        while family := self._of_task(task, tenant, default):
            idle = next((held for held in family if held.running is None), None)
            if idle is not None:
                async with self._running(idle, kill) as slot:
                    yield slot
                return
            await self._sibling_ends()
        wanted = default if default in self.devices else None
        lease = await self.acquire(task, tenant, device=wanted)
        held = self._held[lease.id]
        try:
            async with self._running(held, kill) as slot:
                yield slot
        finally:
            self._end(held, "released", "it was for one execution")

    def _of_task(self, task: str, tenant: str, default: int | None) -> list[_Held]:
        """The leases under which an execution of this task may run."""
        base = next((task.removesuffix(suffix) for suffix in SUFFIXES if task.endswith(suffix)), task)
        family = [
            held
            for held in self._held.values()
            if held.lease.task in {task, base} and held.lease.tenant == tenant and not held.ended
        ]
        for held in family:
            self._seen(held)
        if base == task or default is None:
            return family
        return [held for held in family if held.lease.task == task or held.lease.device == default]

    async def _sibling_ends(self) -> None:
        """Wait until something ends that runs under a lease."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._siblings.append(future)
        await future

    def _wake_siblings(self) -> None:
        for future in self._siblings:
            if not future.done():
                future.set_result(None)
        self._siblings.clear()

    @asynccontextmanager
    async def _running(self, held: _Held, kill: Callable[[], None]) -> AsyncIterator[Slot]:
        slot = Slot(held, kill)
        try:
            yield slot
        finally:
            held = slot._held  # noqa: SLF001 - it may have been passed on
            held.running = None
            if held.ended:
                self._return(held)
            else:
                self._seen(held)
            self._wake_siblings()

    def _seen(self, held: _Held) -> None:
        try:
            held.lease = self._book.seen(held.lease)
        except StorageError as error:
            _log.warning("%s", error)

    def _pass_on(self, held: _Held, mine: Sequence[_Held]) -> None:
        """What runs under one of a task's leases may belong to another of them that is idle: nobody said which."""
        idle = next((other for other in mine if other is not held and other.running is None), None)
        if held.running is not None and idle is not None:
            idle.running, held.running = held.running, None
            idle.running._held = idle  # noqa: SLF001

    def _found(self, lease_id: str, token: int) -> _Held:
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

    def _give(self, turn: Turn, waiter: _Waiter) -> None:
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
            self._refuse(turn, waiter, error)
            return
        self._free.remove(device)
        held = self._held[lease.id] = _Held(lease, turn)
        self._tell("granted", lease, "")
        waiter.future.set_result(held)

    def _refuse(self, turn: Turn, waiter: _Waiter, error: AkfError) -> None:
        self._queue.settle(turn, 0)
        if not waiter.future.done():
            waiter.future.set_exception(error)

    def _end(self, held: _Held, event: Event, why: str) -> None:
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

    def _return(self, held: _Held) -> None:
        del self._held[held.lease.id]
        if held.turn is not None:
            self._queue.settle(held.turn, max(0, int((boot_clock() - held.lease.granted_s) * 1e9)))
        self._free.append(held.lease.device)
        self._wake_siblings()
        self._serve()

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
