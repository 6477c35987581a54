"""What runs on the devices of one worker, under their leases.

Invariants:
- Under a lease one program runs at a time.
- Who shows a token that is not the lease's is refused at the moment of execution.
- Who shows no lease runs under one that its task has, or under one for this time.
- While something runs, its lease does not lie idle; when the lease ends, what runs is ended, or ends first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from akf.contracts.problems import ConflictError
from akf.fabric.held import Held, Slot, base_of
from akf.fabric.lending import Lending


class DevicePool(Lending):
    """Devices that are lent, and used; see `Lending`."""

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

    def _of_task(self, task: str, tenant: str, default: int | None) -> list[Held]:
        """The leases under which an execution of this task may run."""
        base = base_of(task)
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

    @asynccontextmanager
    async def _running(self, held: Held, kill: Callable[[], None]) -> AsyncIterator[Slot]:
        slot = Slot(held, kill)
        try:
            yield slot
        finally:
            held = slot.held  # it may have been passed on
            held.running = None
            if held.ended:
                self._return(held)
            else:
                self._seen(held)
            self._wake_siblings()
