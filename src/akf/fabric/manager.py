"""Which worker runs what: registered workers, chosen by backend, architecture and tags, with load and capacity.

Invariants:
- A worker stands once, under its name: registering it again changes its capacity and tags, and doubles nothing.
- Load is what is running now. It is taken for the time of a block and given back however the block ends.
- A worker never has more load than capacity; who finds none free waits, first come first served.
- A worker whose breaker is open is not chosen. What it failed to answer is tried on another one, and is never the
  candidate's failure.
- A capacity that is not known is 1, marked unverified, and asked for again with every probe.
- A task that is cancelled is ended on its worker before its device is given back.
- A worker that is silent for too long is lost, and what ran there is tried elsewhere. When it answers again, what is
  left of that is ended there, and its devices are given back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from akf.contracts.problems import AkfError, BlockedError, StorageError, UsageError
from akf.fabric.entries import UNVERIFIED, Assignment, Entry, Holds, Want, closed, described, differs, ids_of, name_of
from akf.fabric.interface import WorkerInterface

ATTEMPTS = 6
PATIENCE_S = 600.0
PROBE_S = 5.0
CANCEL_S = 30.0
_POLL_S = 0.5


Body = Callable[[Assignment], Awaitable[dict[str, Any]]]
Told = Callable[[str, str], None]


class WorkerManager:
    """Workers by name.

    Args:
        holds: told of every device that is taken and given back.
    """

    def __init__(self, holds: Holds | None = None) -> None:
        self._entries: dict[str, Entry] = {}
        self._holds = holds
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def entries(self) -> list[Entry]:
        """Every registered worker, by name."""
        return [self._entries[name] for name in sorted(self._entries)]

    async def register(
        self,
        worker: WorkerInterface,
        backend: str,
        arch: str,
        capacity: int | None = None,
        tags: Iterable[str] | None = None,
        *,
        ask: bool = True,
    ) -> str:
        """Register a worker, or change what is known of it; its name.

        Args:
            worker: where tasks run.
            backend: `ascend`, `cuda` or `cpu`.
            arch: architecture of its devices.
            capacity: how many tasks at once; what the worker says of its devices, unless given.
            tags: what tasks may ask for.
            ask: whether the worker is asked now; else with the next probe.

        Raises:
            UsageError: it says that it is no worker, or one of another backend or architecture.
        """
        devices = await self._devices(worker, Want(backend, arch)) if ask else []
        name = name_of(worker, backend, arch, devices)
        want = Want(backend, arch, frozenset(tags or ()))
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = Entry(name, worker, want)
        elif entry.worker is not worker:
            old, entry.worker = entry.worker, worker
            await closed(old)
        entry.want = want
        entry.devices = devices or entry.devices
        entry.capacity = capacity or len(entry.devices) or UNVERIFIED
        entry.verified = bool(entry.devices)
        self._changed()
        return name

    async def unregister(self, name: str) -> bool:
        """Choose a worker no more; what runs there goes on. Tells whether it was registered."""
        entry = self._entries.pop(name, None)
        self._changed()
        return entry is not None

    async def close(self) -> None:
        """Let go of what the workers keep: connections, and what runs on this machine's own devices."""
        for entry in self.entries:
            await closed(entry.worker)

    async def get_status(self) -> list[dict[str, Any]]:
        """What the AIKG wire says of every worker."""
        return [entry.public() for entry in self.entries]

    def has_worker(self, backend: str, arch: str, tags: Iterable[str] = ()) -> bool:
        """Whether a fitting worker is registered, healthy or not."""
        want = Want(backend, arch, frozenset(tags))
        return any(entry.fits(want) for entry in self._entries.values())

    def capacity(self, want: Want) -> int:
        """How many such tasks may run at once on workers that answer."""
        now = time.monotonic()
        return sum(entry.capacity for entry in self._entries.values() if entry.fits(want) and entry.breaker.allows(now))

    async def select(self, backend: str, arch: str, tags: Iterable[str] = ()) -> WorkerInterface | None:
        """The fitting worker with most room, with its load raised; none when none fits or all are full.

        Whoever calls this calls `release`; `assigned` does both.
        """
        entry = self._pick(Want(backend, arch, frozenset(tags)), frozenset())
        if entry is not None:
            self._take(entry)
        return None if entry is None else entry.worker

    async def release(self, worker: WorkerInterface) -> None:
        """Give back what `select` took."""
        for entry in self._entries.values():
            if entry.worker is worker and entry.load:
                self._put(entry)
                return

    @asynccontextmanager
    async def assigned(
        self, want: Want, task_id: str, *, avoid: frozenset[str] = frozenset(), patience_s: float = PATIENCE_S
    ) -> AsyncIterator[Assignment]:
        """A device of a fitting worker for the time of a block; a `BlockedError` in it counts as the worker's.

        Raises:
            BlockedError: no worker fits, none had room in time, or the chosen one gave no answer.
        """
        async with self._held(await self._wait(want, avoid, patience_s), task_id) as assignment:
            yield assignment

    async def run(
        self,
        want: Want,
        task_id: str,
        body: Body,
        *,
        told: Told | None = None,
        attempts: int = ATTEMPTS,
        patience_s: float = PATIENCE_S,
    ) -> dict[str, Any]:
        """What `body` answers on a worker that answers: a fault of the infrastructure is tried again elsewhere.

        Args:
            want: what the worker must have.
            task_id: under which name devices are held.
            body: runs on the device; its answer holds an `outcome`, and `lacking` where the machine lacks something
                that this package needs.
            told: hears of each fault: the worker's name, and why.
            attempts: how many faults are borne; a worker that is not there does not count.
            patience_s: how long workers that are full or not there are waited for in all.

        Raises:
            BlockedError: no worker could run it.
        """
        avoid: frozenset[str] = frozenset()
        until = time.monotonic() + patience_s
        faults = 0
        while True:
            entry = await self._wait(want, avoid, max(0.0, until - time.monotonic()))
            try:
                async with self._held(entry, task_id) as assignment:
                    answer = await entry.attended(body(assignment))
                if answer.get("outcome") != "infra_error":
                    entry.breaker.success()
                    return answer
                reason = str(answer.get("lacking") or answer.get("log") or answer.get("error") or "it says so")[-500:]
                if "lacking" not in answer:
                    entry.breaker.fault(time.monotonic(), reason)
                faults += 1
            except BlockedError as error:
                reason = error.problems[0].message
                faults += not getattr(error, "gone", False)
            if told is not None:
                told(entry.name, reason)
            if faults >= attempts:
                message = f"no worker could run {task_id} in {attempts} attempts; the last one: {reason}"
                hint = "look at the workers on the Server's page, and at their logs"
                raise BlockedError.of("AKF-E604", message, hint=hint)
            avoid |= {entry.name}

    @asynccontextmanager
    async def _held(self, entry: Entry, task_id: str) -> AsyncIterator[Assignment]:
        """A device of this worker, whose load was raised."""
        try:
            device = await entry.worker.acquire_device(task_id)
            try:
                entry.held[device] = task_id
                if self._holds is not None:
                    self._holds.hold(entry.name, task_id, device)
                yield Assignment(entry.name, entry.worker, device, task_id)
            except (asyncio.CancelledError, GeneratorExit):
                await _finished(self._ended(entry, task_id))
                raise
            finally:
                await _finished(self._returned(entry, task_id, device))
        except BlockedError as error:
            self._fault(entry, error)
            raise
        finally:
            self._put(entry)

    async def probe(self, within_s: float = PROBE_S) -> None:
        """Ask every worker how it is, all at once; devices are counted again."""
        await asyncio.gather(*(self._probe(entry, within_s) for entry in self.entries))

    async def watch(self, every_s: float = PROBE_S) -> None:
        """Probe for ever."""
        while True:
            await asyncio.sleep(every_s)
            await self.probe()

    async def _probe(self, entry: Entry, within_s: float) -> None:
        try:
            async with asyncio.timeout(within_s):
                body = await entry.worker.status()
        except (BlockedError, UsageError, TimeoutError) as error:
            self._fault(entry, error)
            entry.silent()
            return
        entry.answered()
        other = differs(body, entry.want)
        if other:
            entry.breaker.fault(time.monotonic(), other, gone=True)
            return
        await self._settled(entry)
        devices = ids_of(body)
        if devices and (not entry.verified or entry.devices != devices):
            entry.devices, entry.capacity, entry.verified = devices, len(devices), True
        if entry.breaker.state(time.monotonic()) != "closed" or entry.breaker.faults:
            entry.breaker.success()
        self._changed()

    async def _devices(self, worker: WorkerInterface, want: Want) -> list[int]:
        try:
            body = await worker.status()
        except BlockedError:
            return []
        other = differs(body, want)
        if other:
            hint = "register it as what it is, or start it with the other --backend and --arch"
            raise UsageError.of("AKF-U606", f"this worker {other}", hint=hint)
        return ids_of(body)

    async def _wait(self, want: Want, avoid: frozenset[str], patience_s: float) -> Entry:
        until = time.monotonic() + patience_s
        while True:
            if not self.has_worker(*want):
                raise _no_worker(want)
            entry = self._pick(want, avoid)
            if entry is not None:
                return self._take(entry)
            left = until - time.monotonic()
            if left <= 0:
                message = f"no worker for {described(want)} had room or answered within {patience_s:g} s"
                raise BlockedError.of(_NONE, message, hint="look at the workers' health; register another one")
            ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(ticket)
            with suppress(TimeoutError):  # looked at again: a breaker's pause ends without an event
                await asyncio.wait_for(ticket, min(left, _POLL_S))

    def _pick(self, want: Want, avoid: frozenset[str]) -> Entry | None:
        now = time.monotonic()
        fitting = [entry for entry in self.entries if entry.fits(want) and entry.free(now)]
        others = [entry for entry in fitting if entry.name not in avoid]
        if not others and any(
            entry.name not in avoid and entry.breaker.allows(now) for entry in self.entries if entry.fits(want)
        ):
            return None  # a worker that has not failed yet is only busy
        return min(others or fitting, key=lambda entry: (entry.load / entry.capacity, entry.name), default=None)

    def _take(self, entry: Entry) -> Entry:
        entry.load += 1
        entry.breaker.asked(time.monotonic())
        return entry

    def _put(self, entry: Entry) -> None:
        entry.load -= 1
        entry.breaker.unasked()
        self._changed()

    def _changed(self) -> None:
        waiting, self._waiting = self._waiting, []
        for ticket in waiting:
            if not ticket.done():
                ticket.set_result(None)

    def _fault(self, entry: Entry, error: AkfError | TimeoutError) -> None:
        gone = isinstance(error, TimeoutError) or bool(getattr(error, "gone", False))
        reason = error.problems[0].message if isinstance(error, AkfError) else "it did not answer in time"
        entry.breaker.fault(time.monotonic(), reason, gone=gone)

    async def _ended(self, entry: Entry, task_id: str) -> None:
        with suppress(BlockedError, TimeoutError):
            async with asyncio.timeout(CANCEL_S):
                await entry.worker.cancel(task_id)

    async def _returned(self, entry: Entry, task_id: str, device: int) -> None:
        entry.held.pop(device, None)
        try:
            await entry.worker.release_device(task_id, device)
        except BlockedError as error:
            self._fault(entry, error)
            entry.owed.add((task_id, device))
            return  # still noted as held, so that it is given back when the worker answers again
        self._noted(entry, task_id, device)

    def _noted(self, entry: Entry, task_id: str, device: int) -> None:
        """A device was given back; where that cannot be written down, it is given back once more."""
        try:
            if self._holds is not None:
                self._holds.let_go(entry.name, task_id, device)
        except StorageError:
            entry.owed.add((task_id, device))
        else:
            entry.owed.discard((task_id, device))

    async def _settled(self, entry: Entry) -> None:
        """End what a worker that was silent may still run, and give back what it could not be told."""
        for task_id, device in sorted(entry.owed):
            try:
                await entry.worker.cancel(task_id)
                await entry.worker.release_device(task_id, device)
            except BlockedError:
                return
            self._noted(entry, task_id, device)


_NONE = "AKF-E603"
_manager: WorkerManager | None = None


def get_worker_manager() -> WorkerManager:
    """The manager of this process."""
    global _manager  # noqa: PLW0603 - one a process is what it is for
    if _manager is None:
        _manager = WorkerManager()
    return _manager


async def register_local_worker(
    devices: Sequence[int], backend: str, arch: str, tags: Iterable[str] | None = None, folder: Path | None = None
) -> str:
    """Register devices of this machine with the manager of this process; the worker's name.

    Args:
        devices: their ids.
        backend: `ascend`, `cuda` or `cpu`.
        arch: architecture of the devices.
        tags: what tasks may ask for.
        folder: where the worker keeps its leases; one of the user's state by default.

    Raises:
        BlockedError: this machine does not have such a device.
    """
    from akf.fabric.hardware import demand, state_folder  # noqa: PLC0415 - remote workers need neither
    from akf.fabric.local import LocalWorker  # noqa: PLC0415

    demand(backend, devices)
    place = folder or state_folder() / "local" / f"{backend}-{arch}"
    worker = LocalWorker(backend, arch, list(devices), place)
    return await get_worker_manager().register(worker, backend, arch, len(devices), tags)


async def register_remote_worker(
    backend: str,
    arch: str,
    worker_url: str | None = None,
    capacity: int | None = None,
    tags: Iterable[str] | None = None,
) -> str:
    """Register a Worker Service with the manager of this process; the worker's name.

    Args:
        backend: `ascend`, `cuda` or `cpu`.
        arch: architecture of its devices.
        worker_url: its address; `AKF_WORKER_URL` or `AIKG_WORKER_URL` by default.
        capacity: how many tasks at once; the service is asked for its devices by default.
        tags: what tasks may ask for.

    Raises:
        UsageError: no address is known.
    """
    from akf.fabric import remote  # noqa: PLC0415 - httpx is needed for remote workers only

    url = worker_url or remote.worker_url()
    if url is None:
        hint = "export AKF_WORKER_URL=http://HOST:9001, or name worker_url"
        raise UsageError.of("AKF-U602", "no address of a worker is known", hint=hint)
    return await get_worker_manager().register(remote.RemoteWorker(url), backend, arch, capacity, tags)


async def register_ray_worker(backend: str, arch: str, address: str = "auto", tags: Iterable[str] | None = None) -> str:
    """Register the devices of a Ray cluster with the manager of this process; the worker's name.

    Args:
        backend: `ascend`, `cuda` or `cpu`.
        arch: architecture of the devices.
        address: of the cluster: `auto`, `HOST:PORT` or `ray://HOST:PORT`.
        tags: what tasks may ask for.

    Raises:
        UsageError: there is no such backend.
        BlockedError: Ray is not installed.
    """
    from akf.fabric.ray import RayWorker  # noqa: PLC0415 - an optional extra

    return await get_worker_manager().register(RayWorker(backend, arch, address), backend, arch, None, tags)


async def _finished(doing: Awaitable[None]) -> None:
    """Do something to its end, whatever is cancelled meanwhile; then be cancelled."""
    task = asyncio.ensure_future(doing)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError


def _no_worker(want: Want) -> BlockedError:
    hint = "register one: akf worker register SERVER WORKER ..."
    return BlockedError.of(_NONE, f"No available worker found for {described(want)}", hint=hint)
