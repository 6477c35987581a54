"""A worker in this process: its devices are lent here, and packages run here.

Invariants:
- Every package runs under a lease, one at a time on a device: the one that is shown, one that its task has, or one for
  this time.
- Its folder is new, is the only one in which it writes, and is removed before the answer is given.
- Whoever asks and goes away, cancels, or loses the lease ends the package's whole tree; the device comes back after it.
- What went wrong here is `infra_error`; nothing of it is said of the candidate.
- After `kill -9` of this process nothing of a package runs on, and the next worker of the folder begins only then.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import shutil
import signal
import site
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from akf.contracts.problems import BlockedError
from akf.fabric import scripts
from akf.fabric.events import Events
from akf.fabric.execution import Isolation, Order, Runner, working_isolation
from akf.fabric.handover import IDLE_S
from akf.fabric.interface import REFERENCE_S, VERIFY_S, Leased, Outcome, Package, Shown
from akf.fabric.leases import Lease
from akf.fabric.lending import ANONYMOUS
from akf.fabric.logs import BoundedLog
from akf.fabric.pool import DevicePool
from akf.fabric.running import Ended
from akf.fabric.scripts import Body, Operation, Place
from akf.fabric.unpack import Bounds, PackageError, unpack
from akf.store._system import alive

_GONE_S = 20.0
_SECRET = re.compile(r"AKF_|.*(TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|PRIVATE_?KEY)", re.IGNORECASE)
_WORK, _HOME = "work", "home"


class _Job:
    """One operation that waits or runs."""

    def __init__(self, operation: Operation, task_id: str, tenant: str) -> None:
        self.operation = operation
        self.task_id = task_id
        self.tenant = tenant
        self.number = os.urandom(8).hex()
        self.carried: asyncio.Task[Body] | None = None
        self.over = asyncio.Event()
        self.stopped: tuple[Outcome, str] | None = None
        self.said = BoundedLog()

    def stop(self, outcome: Outcome, why: str) -> None:
        """End it; the first reason counts."""
        if self.stopped is None and self.carried is not None:
            self.stopped = (outcome, why)
            self.carried.cancel()


class LocalWorker:
    """Devices of this machine.

    Args:
        backend: `ascend`, `cuda` or `cpu`.
        arch: the architecture, by AIKG's name.
        devices: ids of devices.
        folder: where the worker keeps its leases and runs packages; one worker has it.
        isolation: how packages are shut in; by default as well as this machine can.
        python: the interpreter that runs packages.
        idle_s: how long a lease of the AIKG wire may lie idle.
        bounds: what a package may unpack to.
    """

    def __init__(
        self,
        backend: str,
        arch: str,
        devices: Sequence[int],
        folder: Path,
        *,
        isolation: Isolation | None = None,
        python: str = sys.executable,
        idle_s: float = IDLE_S,
        bounds: Bounds = Bounds(),  # noqa: B008 - a constant
    ) -> None:
        self.backend = backend
        self.arch = arch
        self.events = Events()
        self.outcomes: Counter[tuple[str, Outcome]] = Counter()
        self.lease_events: Counter[str] = Counter()
        self.seconds: dict[str, float] = defaultdict(float)
        self.python = python
        self.weaker = ""
        """Why packages are shut in less than they could be."""
        self._folder = folder.absolute()
        self._isolation = isolation
        self._bounds = bounds
        self._jobs: set[_Job] = set()
        self._runner: Runner | None = None
        self._opening = asyncio.Lock()
        self._removing: set[asyncio.Task[None]] = set()
        self.pool = DevicePool(devices, self._folder, idle_s=idle_s, watch=self._watched)
        self._clear()

    async def open(self) -> None:
        """Make ready; every operation does it when nobody has."""
        async with self._opening:
            if self._runner is not None:
                return
            hidden = [path for path in (self._folder, *_private()) if path.is_dir()]
            if self._isolation is None:
                self._isolation, self.weaker = await working_isolation(hidden)
            self._runner = Runner(self._isolation, hidden, self._folder / "running")
            self.pool.open()

    async def drain(self, within_s: float) -> None:
        """Take nothing more, let what runs come to its end within the time, then end it."""
        self.pool.drain()
        self.events.publish("draining")
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._nothing_runs()
        self.abandon()
        await self._nothing_runs()

    def abandon(self) -> None:
        """End what runs, now."""
        for job in list(self._jobs):
            job.stop("infra_error", "the worker ends")

    async def _nothing_runs(self) -> None:
        while self._jobs:
            await next(iter(self._jobs)).over.wait()

    async def close(self) -> None:
        """End everything that runs here; the leases hold on."""
        await self.drain(0.0)
        await asyncio.gather(*self._removing, return_exceptions=True)
        if self._runner is not None:
            self._runner.close()
        self.events.close()
        await self.pool.close()

    @property
    def uploads(self) -> Path:
        """Where a service may put packages down; what a killed one left there is removed by the next."""
        return self._folder / "packages" / "uploads"

    @property
    def isolation(self) -> Isolation | None:
        """How packages are shut in, once it is known."""
        return self._isolation

    @property
    def running(self) -> list[tuple[str, str]]:
        """Operation and task of everything that waits or runs."""
        return [(job.operation.name, job.task_id) for job in self._jobs]

    async def status(self) -> dict[str, Any]:
        """See `WorkerInterface.status`."""
        return self.about()

    def about(self) -> dict[str, Any]:
        """What `status` answers."""
        return {"status": "ready", "backend": self.backend, "arch": self.arch, "devices": list(self.pool.devices)}

    async def acquire_device(self, task_id: str, tenant: str = ANONYMOUS) -> int:
        """See `WorkerInterface.acquire_device`."""
        await self.open()
        return (await self.pool.acquire(task_id, tenant)).device

    async def release_device(self, task_id: str, device_id: int, tenant: str = ANONYMOUS) -> None:
        """See `WorkerInterface.release_device`."""
        self.pool.release(task_id, device_id, tenant)

    async def lease(self, task_id: str, ttl_s: float | None, wait_s: float) -> Leased:
        """See `LeasingWorker.lease`."""
        await self.open()
        try:
            async with asyncio.timeout(wait_s):
                lease = await self.pool.acquire(task_id, ttl_s=ttl_s)
        except TimeoutError:
            hint = "wait longer, or see who holds the devices"
            raise BlockedError.of("AKF-E503", f"no device was free within {wait_s:g} s", hint=hint) from None
        return Leased(lease.id, lease.token, lease.device)

    async def renew(self, lease: Leased) -> None:
        """See `LeasingWorker.renew`."""
        self.pool.renew(lease.id, lease.token)

    async def give_back(self, lease: Leased) -> bool:
        """See `LeasingWorker.give_back`."""
        return self.pool.release_lease(lease.id, lease.token)

    async def verify(
        self,
        package: Package,
        task_id: str,
        op_name: str,
        timeout: int = VERIFY_S,
        *,
        tenant: str = ANONYMOUS,
        lease: Shown | None = None,
    ) -> Body:
        """See `WorkerInterface.verify`."""
        return await self._do(scripts.VERIFY, package, task_id, op_name, {"timeout": timeout}, tenant, lease)

    async def profile(
        self,
        package: Package,
        task_id: str,
        op_name: str,
        profile_settings: dict[str, Any] | None = None,
        *,
        tenant: str = ANONYMOUS,
        lease: Shown | None = None,
    ) -> Body:
        """See `WorkerInterface.profile`."""
        return await self._do(scripts.PROFILE, package, task_id, op_name, profile_settings or {}, tenant, lease)

    async def profile_single_task(
        self,
        package: Package,
        task_id: str,
        op_name: str,
        profile_settings: dict[str, Any] | None = None,
        *,
        tenant: str = ANONYMOUS,
        lease: Shown | None = None,
    ) -> Body:
        """See `WorkerInterface.profile_single_task`."""
        return await self._do(scripts.SINGLE, package, task_id, op_name, profile_settings or {}, tenant, lease)

    async def generate_reference(
        self,
        package: Package,
        task_id: str,
        op_name: str,
        timeout: int = REFERENCE_S,
        *,
        tenant: str = ANONYMOUS,
        lease: Shown | None = None,
    ) -> Body:
        """See `WorkerInterface.generate_reference`."""
        return await self._do(scripts.REFERENCE, package, task_id, op_name, {"timeout": timeout}, tenant, lease)

    async def said(self, task_id: str, tenant: str = ANONYMOUS) -> str | None:
        """What a task's programs said so far, both streams in the order of time; none when nothing of it runs."""
        texts = [job.said.text() for job in self._jobs if job.task_id == task_id and job.tenant == tenant]
        return "\n".join(texts) if texts else None

    async def cancel(self, task_id: str, tenant: str = ANONYMOUS) -> bool:
        """See `WorkerInterface.cancel`; returns when nothing of it runs any more."""
        wanted = [job for job in self._jobs if job.task_id == task_id and job.tenant == tenant]
        for job in wanted:
            job.stop("cancelled", "cancelled")
        for job in wanted:
            await job.over.wait()
        return bool(wanted)

    async def _do(
        self,
        operation: Operation,
        package: Package,
        task_id: str,
        op_name: str,
        settings: Mapping[str, Any],
        tenant: str,
        lease: Shown | None,
    ) -> Body:
        """Carry an operation out, however long its caller stays."""
        await self.open()
        if self.pool.draining:
            raise BlockedError.of("AKF-E501", "the worker ends, and runs nothing more", hint="ask another worker")
        job = _Job(operation, task_id, tenant)
        began = time.monotonic()
        self._jobs.add(job)
        self.events.publish("started", operation=operation.name, task=task_id, job=job.number)
        body = operation.failed("infra_error", "")
        job.carried = asyncio.create_task(self._carry_out(job, package, op_name, settings, lease))
        try:
            body = await _to_its_end(job)
        finally:
            self._jobs.discard(job)
            job.over.set()
            self.outcomes[operation.name, body["outcome"]] += 1
            self.seconds[operation.name] += time.monotonic() - began
            self.events.publish(
                "finished", operation=operation.name, task=task_id, job=job.number, outcome=body["outcome"]
            )
        return body

    async def _carry_out(
        self, job: _Job, package: Package, op_name: str, settings: Mapping[str, Any], lease: Shown | None
    ) -> Body:
        operation = job.operation
        limit_s = scripts.seconds(settings.get("timeout"), scripts.PROFILE_S)
        kill = partial(job.stop, "infra_error", "its lease was lost")
        default = None if self.backend == "cpu" else 0
        under = (
            self.pool.for_task(job.task_id, job.tenant, kill, default=default)
            if lease is None
            else self.pool.under(lease.id, lease.token, kill)
        )
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(limit_s):
                    slot = await stack.enter_async_context(under)
            except TimeoutError:
                hint = "acquire a device first: then nobody else has it"
                message = f"no device was free for {job.operation.name} within {limit_s:g} s"
                raise BlockedError.of("AKF-E503", message, hint=hint) from None
            until = time.monotonic() + limit_s
            folder = await stack.enter_async_context(self._place(job.number))
            work = folder / _WORK
            try:
                await asyncio.to_thread(_unpack, package, work, self._bounds)
            except PackageError as error:
                return operation.failed("candidate_failed", f"Failed to extract package: {error}")
            except OSError as error:
                return operation.failed("infra_error", f"the package could not be unpacked: {error.strerror}")
            run = partial(self._run, folder, until, job.said.feed)
            self.events.publish("running", task=job.task_id, job=job.number, device=slot.device)
            body = await operation.run(Place(work, run, self.python, self.backend), op_name, settings)
        if body["outcome"] == "timeout":
            return operation.failed("timeout", operation.late.format(f"{limit_s:g}"))
        return body

    async def _run(self, folder: Path, until: float, heard: Callable[[bytes], None], argv: list[str]) -> Ended:
        left = until - time.monotonic()
        if left <= 0:
            return Ended("timeout", None, "", "")
        if self._runner is None:
            raise RuntimeError("the worker is not open")
        env = _environment(self._runner.place_of(folder), self.python)
        return await self._runner.run(Order(argv, env, folder, _WORK, left, heard))

    @asynccontextmanager
    async def _place(self, number: str) -> AsyncIterator[Path]:
        """A new folder for a package, for the time of a block."""
        folder = self._folder / "packages" / number
        for name in (_WORK, _HOME):
            (folder / name).mkdir(parents=True, mode=0o700)
        try:
            yield folder
        finally:
            removing = asyncio.create_task(asyncio.to_thread(_remove, folder))
            self._removing.add(removing)
            removing.add_done_callback(self._removing.discard)

    def _watched(self, event: str, lease: Lease, why: str) -> None:
        self.lease_events[event] += 1
        self.events.publish(event, task=lease.task, device=lease.device, lease=lease.id, why=why)

    def _clear(self) -> None:
        """Wait for what an earlier worker of this folder ran, and remove what it left.

        Raises:
            BlockedError: a process of it does not end.
        """
        (self._folder / "running").mkdir(exist_ok=True)
        until = time.monotonic() + _GONE_S
        for record in (self._folder / "running").iterdir():
            pid, _, start = record.name.partition(".")
            while alive(int(pid), int(start)):
                if time.monotonic() > until:
                    message = f"process {pid}, which an earlier worker started, does not end"
                    raise BlockedError.of("AKF-E502", message, found=int(pid), hint="is its device hung? see dmesg")
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
                time.sleep(0.01)
            record.unlink()
        _remove(self._folder / "packages")
        self.uploads.mkdir(parents=True, exist_ok=True)


async def _to_its_end(job: _Job) -> Body:
    """Wait for a job; when its caller goes away, end it first."""
    carried = job.carried
    if carried is None:
        raise RuntimeError("the job was not started")
    gone = False
    while not carried.done():
        try:
            await asyncio.wait([carried])
        except asyncio.CancelledError:
            gone = True
            job.stop("cancelled", "whoever asked for it went away")
    if gone:
        with suppress(BaseException):
            carried.result()
        raise asyncio.CancelledError
    if carried.cancelled():
        outcome, why = job.stopped or ("infra_error", "it was ended")
        return job.operation.failed(outcome, why)
    return carried.result()


def _unpack(package: Package, work: Path, bounds: Bounds) -> None:
    if isinstance(package, Path):
        with package.open("rb") as stream:
            unpack(stream, work, bounds)
    else:
        unpack(io.BytesIO(package), work, bounds)


def _remove(folder: Path) -> None:
    """Remove a folder that a program made, however deep or closed it is."""
    with suppress(OSError, RecursionError):
        shutil.rmtree(folder)
    if folder.exists():
        for argv in (["chmod", "-R", "u+rwX", str(folder)], ["rm", "-rf", str(folder)]):
            subprocess.run(argv, check=False, capture_output=True)


def _environment(place: str, python: str) -> dict[str, str]:
    """This process's environment without what is secret, and with a home of the package's own."""
    env = {name: value for name, value in os.environ.items() if not _SECRET.match(name)}
    user = site.getuserbase()
    if Path(user).is_dir():
        env["PYTHONUSERBASE"] = user
    env["PATH"] = f"{Path(python).parent}{os.pathsep}{env.get('PATH', os.defpath)}"
    return env | {"PYTHONUNBUFFERED": "1", "HOME": f"{place}/{_HOME}", "TMPDIR": place}


def _private() -> list[Path]:
    """Folders of this user's that no package needs: keys and secrets."""
    home = Path.home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "akf"
    state = Path(os.environ.get("XDG_STATE_HOME") or home / ".local/state") / "akf"
    named = [Path(os.environ[name]).absolute() for name in ("AKF_KEYS", "AKF_STATE") if os.environ.get(name)]
    return [config, state, home / ".ssh", home / ".gnupg", home / ".aws", *named]
