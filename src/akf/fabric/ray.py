"""A worker whose devices are those of a Ray cluster: Ray chooses the machine, the rest is what a worker does here.

Invariants:
- A device is held by an actor of its own, which has the whole of it; nothing of a device is shared.
- Inside the actor a `LocalWorker` runs packages: the same unpacking, sandbox, outcomes and fencing tokens as anywhere.
- What no machine of the cluster can ever give is refused at once, and again while waiting when a machine has gone.
- Ray renumbers no device: a package is told the id that its machine knows.
- Who held a device and died loses it; the next holder begins when nothing of the last one runs any more.
- What is run again elsewhere is what a machine failed at, under no lease of the caller's; a package's failure never is.
- Ray keeps nothing: leases, results and evidence are AKF's.
- What a node left that is no more is removed by the next holder on its machine, when nothing of it runs any more.

A node says what it is when it joins: `ray start --resources '{"NPU": 8, "akf_soc_ascend910b4": 1}'`; its processors, as
one device, are `akf_host`.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import platform
import shutil
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from akf import __version__
from akf.contracts.problems import AkfError, BlockedError, ConflictError, UsageError
from akf.fabric.interface import REFERENCE_S, VERIFY_S, Leased, Package, Shown
from akf.fabric.local import LocalWorker
from akf.fabric.remote import WorkerError

RESOURCES = {"ascend": "NPU", "cuda": "GPU", "cpu": "akf_host"}
"""What a device of a backend is called in the cluster."""
TRIES = 3
"""How often at most a package is run where machines fail."""
_NAMESPACE = "akf"
_NO_RENUMBERING = {
    "RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES": "1",
    "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1",
}
_LOOK_S = 0.5
_CLOSE_S = 20.0
_TAKE_OVER_S = 20.0
_NODE_CHARS = 24
_MARK = 0.001
"""So much of a node's mark is asked for: it says what the node is, and never runs out before the devices do."""


def soc_resource(arch: str) -> str:
    """The resource by which a node says which SoC it has."""
    return f"akf_soc_{arch}"


class _Held(NamedTuple):
    task: str
    actor: Any
    lease: Leased


class RayWorker:
    """The `WorkerInterface` of a Ray cluster, for one backend and architecture.

    Args:
        backend: `ascend`, `cuda` or `cpu`.
        arch: the architecture, by AIKG's name.
        address: of the cluster: `auto`, `HOST:PORT` or `ray://HOST:PORT`.

    Raises:
        UsageError: there is no such backend.
        BlockedError: Ray is not installed.
    """

    def __init__(self, backend: str, arch: str, address: str = "auto") -> None:
        if backend not in RESOURCES:
            message = f"Ray has no devices of the backend {backend!r}"
            raise UsageError.of("AKF-U505", message, expected=list(RESOURCES), found=backend)
        self.backend = backend
        self.arch = arch
        self._address = address
        self.url = f"ray:{backend}:{arch}@{address}"
        """Under which name it stands among workers."""
        self._ray = _installed()
        self._held: list[_Held] = []
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """Join the cluster; every operation does it when nobody has.

        Raises:
            WorkerError: there is none.
        """
        async with self._opening:
            if self._ray.is_initialized():
                return
            join = partial(
                self._ray.init, self._address, namespace=_NAMESPACE, log_to_driver=False, configure_logging=False
            )
            try:
                await asyncio.to_thread(join)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise WorkerError.at(self._address, f"no cluster is there ({error})", gone=True) from error

    async def aclose(self) -> None:
        """Give every device back."""
        for held in list(self._held):
            await self._end(held)

    async def status(self) -> dict[str, Any]:
        """See `WorkerInterface.status`; devices are counted through the cluster."""
        await self.open()
        nodes = await asyncio.to_thread(self._nodes)
        count = sum(int(node[RESOURCES[self.backend]]) for node in nodes if self._has(node))
        return {"status": "ready", "backend": self.backend, "arch": self.arch, "devices": list(range(count))}

    async def acquire_device(self, task_id: str) -> int:
        """See `WorkerInterface.acquire_device`; the id is the machine's, so two machines may give the same.

        Raises:
            BlockedError: no machine of the cluster has such a device.
        """
        return (await self._hold(task_id)).lease.device

    async def release_device(self, task_id: str, device_id: int) -> None:
        """See `WorkerInterface.release_device`."""
        for held in self._held:
            if held.task == task_id and held.lease.device == device_id:
                await self._end(held)
                return

    async def lease(self, task_id: str, ttl_s: float, wait_s: float) -> Leased:
        """See `LeasingWorker.lease`; the lease lives as long as this process, so its time to live is not needed."""
        del ttl_s
        try:
            async with asyncio.timeout(wait_s + _TAKE_OVER_S):
                return (await self._hold(task_id)).lease
        except TimeoutError:
            hint = "wait longer, or see who holds the devices: ray list actors"
            raise BlockedError.of("AKF-E503", f"no device was free within {wait_s:g} s", hint=hint) from None

    async def renew(self, lease: Leased) -> None:
        """See `LeasingWorker.renew`."""
        held = self._shown(lease.shown)
        await self._asked(held, held.actor.renew.remote(lease.id, lease.token))

    async def give_back(self, lease: Leased) -> bool:
        """See `LeasingWorker.give_back`."""
        for held in self._held:
            if held.lease == lease:
                await self._end(held)
                return True
        return False

    async def verify(
        self,
        package: Package,
        task_id: str,
        op_name: str,
        timeout: int = VERIFY_S,
        *,
        lease: Shown | None = None,
    ) -> dict[str, Any]:
        """See `WorkerInterface.verify`."""
        return await self._do("verify", package, task_id, op_name, timeout, lease)

    async def profile(
        self, package: Package, task_id: str, op_name: str, profile_settings: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """See `WorkerInterface.profile`."""
        return await self._do("profile", package, task_id, op_name, profile_settings or {})

    async def profile_single_task(
        self, package: Package, task_id: str, op_name: str, profile_settings: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """See `WorkerInterface.profile_single_task`."""
        return await self._do("profile_single_task", package, task_id, op_name, profile_settings or {})

    async def generate_reference(
        self, package: Package, task_id: str, op_name: str, timeout: int = REFERENCE_S
    ) -> dict[str, Any]:
        """See `WorkerInterface.generate_reference`."""
        return await self._do("generate_reference", package, task_id, op_name, timeout)

    async def cancel(self, task_id: str) -> bool:
        """See `WorkerInterface.cancel`."""
        mine = [held for held in self._held if held.task == task_id]
        ended = [await self._asked(held, held.actor.cancel.remote(task_id)) for held in mine]
        return any(ended)

    async def _do(
        self, name: str, package: Package, task_id: str, op_name: str, how: Any, lease: Shown | None = None
    ) -> dict[str, Any]:
        """Carry an operation out: under the lease that is shown, one of the task's, or one for this time."""
        content = await asyncio.to_thread(package.read_bytes) if isinstance(package, Path) else package
        what = (name, content, task_id, op_name, how, lease)
        mine = next((held for held in self._held if held.task == task_id), None)
        if lease is not None or mine is not None:
            return await self._run(self._shown(lease) if lease is not None or mine is None else mine, what)
        for left in reversed(range(TRIES)):
            held = await self._hold(task_id)
            try:
                body = await self._run(held, what)
            except WorkerError:
                if not left:
                    raise
            else:
                if body["outcome"] != "infra_error" or not left:
                    return body
            finally:
                await self._end(held)
        raise RuntimeError("every try returns or raises")

    async def _run(self, held: _Held, what: tuple[Any, ...]) -> dict[str, Any]:
        try:
            body: dict[str, Any] = await self._asked(held, held.actor.run.remote(*what))
        except asyncio.CancelledError:
            with suppress(WorkerError):
                await self._asked(held, held.actor.cancel.remote(what[2]))
            raise
        return body

    async def _hold(self, task_id: str) -> _Held:
        """A device, held by a new actor; waits until there is one."""
        await self.open()
        for left in reversed(range(TRIES)):
            await self._need_feasible()
            actor = self._start(task_id)
            try:
                held = _Held(task_id, actor, await self._granted(actor))
            except WorkerError:
                self._ray.kill(actor)
                if not left:
                    raise
            except BaseException:
                self._ray.kill(actor)
                raise
            else:
                self._held.append(held)
                return held
        raise RuntimeError("every try returns or raises")

    def _start(self, task_id: str) -> Any:
        name = RESOURCES[self.backend]
        devices = {"num_gpus": 1} if name == "GPU" else {}
        resources = {soc_resource(self.arch): _MARK, **({} if name == "GPU" else {name: 1})}
        options = {"num_cpus": 0, "max_restarts": 0, "runtime_env": {"env_vars": _NO_RENUMBERING}}
        actor = self._ray.remote(_Holder).options(resources=resources, **devices, **options)
        return actor.remote(__version__, self.backend, self.arch, task_id)

    async def _granted(self, actor: Any) -> Leased:
        asked = asyncio.ensure_future(self._answer(actor.open.remote()))
        try:
            while not (await asyncio.wait([asked], timeout=_LOOK_S))[0]:
                await self._need_feasible()
        except BaseException:
            asked.cancel()
            raise
        return Leased(*asked.result())

    async def _asked(self, held: _Held, reference: Any) -> Any:
        """An actor's answer.

        Raises:
            WorkerError: the actor died, and the device with it.
        """
        try:
            return await self._answer(reference)
        except WorkerError:
            if held in self._held:
                self._held.remove(held)
            raise

    async def _answer(self, reference: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return await asyncio.wrap_future(reference.future())
        except (errors.RayActorError, errors.RaySystemError, errors.ObjectLostError) as error:
            raise WorkerError.at(self._address, f"the machine of the device died ({type(error).__name__})") from error
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, AkfError):
                raise cause from None
            raise WorkerError.at(self._address, f"the holder of the device failed ({type(cause).__name__})") from error

    def _shown(self, lease: Shown | None) -> _Held:
        for held in self._held:
            if lease is not None and held.lease.shown == lease:
                return held
        token = lease.token if lease is not None else None
        message = f"no lease with token {token} holds in the cluster"
        raise ConflictError.of("AKF-C502", message, found=token, hint="ask for a new lease and run again")

    async def _end(self, held: _Held) -> None:
        """Give a device back once nothing runs on it."""
        if held in self._held:
            self._held.remove(held)
            with suppress(AkfError, TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await self._answer(held.actor.close.remote())
        self._ray.kill(held.actor)

    async def _need_feasible(self) -> None:
        """Refuse at once what would wait for ever.

        Raises:
            BlockedError: no machine of the cluster has such a device.
        """
        nodes = await asyncio.to_thread(self._nodes)
        if any(self._has(node) for node in nodes):
            return
        device, soc = RESOURCES[self.backend], soc_resource(self.arch)
        message = f"no machine of the Ray cluster has a whole {device} and is a {soc}"
        hint = f'start its node with: ray start --resources \'{{"{device}": 1, "{soc}": 1}}\''
        found = [{name: node[name] for name in sorted(node) if not name.startswith("node:")} for node in nodes[:20]]
        raise BlockedError.of("AKF-E505", message, expected=[device, soc], found=found, hint=hint)

    def _nodes(self) -> list[dict[str, float]]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def _has(self, node: dict[str, float]) -> bool:
        """Whether it has such devices, whole: a shared one cannot be timed."""
        count = node.get(RESOURCES[self.backend], 0.0)
        return count >= 1 and count == int(count) and node.get(soc_resource(self.arch), 0.0) > 0


class _Holder:
    """In the cluster: one device, had until this actor ends, and what runs on it."""

    def __init__(self, version: str, backend: str, arch: str, task_id: str) -> None:
        self._about = version, backend, arch
        self._task = task_id
        self._local: LocalWorker | None = None

    async def open(self) -> tuple[str, int, int]:
        """Take the device over: nothing of an earlier holder runs any more after this."""
        version, backend, arch = self._about
        if version != __version__:
            message = f"the machine {platform.node()} of the cluster has another version of AKF"
            hint = "install the same version on every machine of the cluster"
            raise BlockedError.of("AKF-E506", message, expected=version, found=__version__, hint=hint)
        context = _installed().get_runtime_context()
        ids = context.get_accelerator_ids().get(RESOURCES[backend], [])
        device = int(ids[0]) if ids else 0
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state")
        folder = state / "akf" / "ray" / f"{context.get_node_id()[:_NODE_CHARS]}-{device}"
        there = {node["NodeID"][:_NODE_CHARS] for node in _installed().nodes() if node["Alive"]}
        await sweep(folder.parent, there)
        async with asyncio.timeout(_TAKE_OVER_S):
            while self._local is None:
                try:
                    self._local = LocalWorker(backend, arch, [device], folder, idle_s=float("inf"))
                except ConflictError:  # its process still ends
                    await asyncio.sleep(0.05)
        await self._local.open()
        for earlier in self._local.pool.leases():
            self._local.pool.take_back(earlier, "its holder in the cluster is gone")
        return await self._local.lease(self._task, None, _TAKE_OVER_S)

    async def run(
        self, name: str, package: bytes, task_id: str, op_name: str, how: Any, lease: Shown | None
    ) -> dict[str, Any]:
        """One of the four operations."""
        local = self._here()
        operations = {
            "verify": local.verify,
            "profile": local.profile,
            "profile_single_task": local.profile_single_task,
            "generate_reference": local.generate_reference,
        }
        body: dict[str, Any] = await operations[name](package, task_id, op_name, how, lease=lease)  # type: ignore[operator]
        return body

    async def renew(self, lease_id: str, token: int) -> None:
        """Whether a lease holds."""
        self._here().pool.renew(lease_id, token)

    async def cancel(self, task_id: str) -> bool:
        """See `WorkerInterface.cancel`."""
        return await self._here().cancel(task_id)

    async def close(self) -> None:
        """End what runs and let the lease go."""
        if self._local is not None:
            for lease in self._local.pool.leases():
                self._local.pool.release_lease(lease.id, lease.token)
            await self._local.close()

    def _here(self) -> LocalWorker:
        if self._local is None:
            raise BlockedError.of("AKF-E501", "the device was not taken over", hint="ask again")
        return self._local


async def sweep(folder: Path, there: Collection[str]) -> None:
    """Remove what nodes left that are no more.

    Args:
        folder: holds a folder for each node and device that was ever held here.
        there: the nodes that are there; of another cluster of this machine, what is in use stays.
    """
    for left in await asyncio.to_thread(lambda: sorted(folder.glob("*-*"))):
        node, _, device = left.name.rpartition("-")
        if node in there or not device.isdigit():
            continue
        with suppress(AkfError):  # it is in use, or what ran there does not end: the next holder looks again
            worker = LocalWorker("cpu", "", [int(device)], left)  # waits for what ran there
            await asyncio.to_thread(shutil.rmtree, left, ignore_errors=True)
            await worker.close()


def _installed() -> Any:
    """Ray.

    Raises:
        BlockedError: it is not installed.
    """
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        hint = "python -m pip install 'ascend-kernel-forge[ray]'"
        raise BlockedError.of(
            "AKF-E504", f"{(error.name or 'ray').partition('.')[0]} is not installed", hint=hint
        ) from error
