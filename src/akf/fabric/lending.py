"""The devices of one worker: who asks for one, who has which, and when a lease ends.

Invariants:
- A device has one holder. It is handed over or it is returned: a waiter that went away keeps nothing.
- A lease is released by its own task and device only, any number of times; every other release is written down and
  changes nothing.
- A device whose lease has ended comes back when nothing runs under it any more, never before.
- A lease with a time to live is reclaimed when that passed without a renewal, and what runs under it is ended. One of
  the AIKG wire, which knows no renewal, is reclaimed when for so long nothing ran for its task.
- All of this happens on one event loop; nothing here blocks it but short writes to the disk.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

from akf.contracts.problems import BlockedError, ConflictError, StorageError
from akf.contracts.text import show
from akf.fabric.clock import boot_clock
from akf.fabric.handover import HandOver
from akf.fabric.held import Asked, Held, Waiter, pass_on
from akf.fabric.leases import Lease

ANONYMOUS = "anonymous"
"""The tenant of clients on the AIKG wire that show no token."""
_LOOK_S = 0.5


class Lending(HandOver):
    """Devices that are lent; see `HandOver`."""

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
