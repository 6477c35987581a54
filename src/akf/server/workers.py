"""The Server's workers: registered by request, kept in the store, probed while it runs.

Invariants:
- A worker's address is its name: registering it again changes its capacity and tags.
- The password in an address is kept in the store, which only the Server's user can read, and shown nowhere.
- The capacity is what the worker says of its devices. Where it does not answer, it is what was typed, unverified, until
  it answers a probe.
- A Server is no worker, and a worker is registered as what it says that it is.
- What was registered is there again after a restart, whether it answers or not.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from akf.contracts.problems import StorageError, UsageError
from akf.fabric.hardware import demand
from akf.fabric.manager import PROBE_S, WorkerManager
from akf.fabric.remote import RemoteWorker, normal, shown
from akf.server.checks import Refused
from akf.server.store import Store
from akf.server.wire import Register, RegisterLocal

_LOCAL = "local:"
_LONGEST_NAME = 200


class ServerWorkers:
    """The workers of a Server.

    Args:
        store: where they are kept.
        folder: where workers of this machine keep their state.
        probe_s: how often each is asked how it is.
    """

    def __init__(self, store: Store, folder: Path, probe_s: float = PROBE_S) -> None:
        self.manager = WorkerManager(store)
        self._store = store
        self._folder = folder
        self._probe_s = probe_s
        self._known: dict[str, dict[str, Any]] = {}
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Register again what was registered, and watch it."""
        for name, entry in self._store.workers().items():
            if "url" in entry:
                await self._remote(Register.model_validate(entry), ask=False)
                self._known[name] = entry
            else:
                await self._local(RegisterLocal.model_validate(entry))
        self._watch = asyncio.create_task(self._watched())

    async def refresh(self) -> None:
        """Have the workers that stand in a store that others write too."""
        if not self._store.shared:
            return
        stored = self._store.workers()
        for name, entry in stored.items():
            if self._known.get(name) != entry and "url" in entry:
                await self._remote(Register.model_validate(entry), ask=False)
                self._known[name] = entry
        for name in [entry.name for entry in self.manager.entries if entry.name not in stored]:
            self._known.pop(name, None)
            await self.manager.unregister(name)

    async def stop(self) -> None:
        """Close every connection, and end what runs on this machine's own devices."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        await self.manager.close()

    async def register(self, worker: Register) -> dict[str, Any]:
        """Register a Worker Service and keep it."""
        name = await self._remote(worker, ask=True)
        self._known[name] = worker.model_dump()
        self._store.save_worker(name, worker.model_dump())
        return self._said(name)

    async def register_local(self, worker: RegisterLocal) -> dict[str, Any]:
        """Register devices of this machine and keep them."""
        if self._store.shared:
            raise Refused(400, "devices of one Server's machine are none of the others': run a Worker Service there")
        demand(worker.backend, worker.devices)
        name = await self._local(worker)
        self._store.save_worker(name, worker.model_dump())
        return self._said(name)

    async def unregister(self, name: str) -> tuple[str, bool]:
        """Forget a worker, by its name or by its address; its name, and whether it was known."""
        if not name.startswith(_LOCAL):
            name = shown(normal(name))
        self._store.remove_worker(name)
        return name, await self.manager.unregister(name)

    async def _remote(self, worker: Register, *, ask: bool) -> str:
        remote = RemoteWorker(worker.url)
        try:
            name = await self.manager.register(remote, worker.backend, worker.arch, None, worker.tags, ask=ask)
        except UsageError:
            await remote.aclose()
            raise
        entry = next(each for each in self.manager.entries if each.name == name)
        if not entry.verified:
            entry.capacity = worker.capacity
        return name

    async def _local(self, worker: RegisterLocal) -> str:
        from akf.fabric.local import LocalWorker  # noqa: PLC0415 - most Servers have remote workers only

        for entry in self.manager.entries:
            if entry.name.startswith(_LOCAL) and entry.want.backend == worker.backend:
                both = sorted(set(entry.devices) & set(worker.devices))
                if entry.devices == worker.devices and entry.want.arch == worker.arch:
                    entry.want = entry.want._replace(tags=frozenset(worker.tags))
                    return entry.name
                if both:
                    raise Refused(400, f"{entry.name} has the devices {', '.join(map(str, both))} already")
        folder = self._folder / f"{worker.backend}-{'-'.join(map(str, worker.devices))}"[:_LONGEST_NAME]
        local = LocalWorker(worker.backend, worker.arch, worker.devices, folder)
        return await self.manager.register(local, worker.backend, worker.arch, len(worker.devices), worker.tags)

    def _said(self, name: str) -> dict[str, Any]:
        entry = next(each for each in self.manager.entries if each.name == name)
        return {"capacity": entry.capacity, "verified": entry.verified, "name": name}

    async def _watched(self) -> None:
        while True:
            with suppress(StorageError):
                await self.refresh()
            await self.manager.probe()
            await asyncio.sleep(self._probe_s)
