"""Jobs from submission to their end.

Invariants:
- An accepted job is in the store before its id is answered, and ends exactly once.
- Users get time by weight (`akf.fair`), each within quotas of waiting and of running jobs; of one user's jobs the
  smallest priority value runs next, then the oldest.
- A job is started when a worker that answers has room for it; until then it waits, and says so.
- A Server that is killed finds, when it starts again, what ran: its devices are given back, what still runs there is
  ended, and the job waits again, up to `MAX_STARTS` times. On a store that is shared another Server does it.
- A fault of the infrastructure is `error`, never `failed`; a disk that is full is neither: the job waits for room.
- A cancelled job is `cancelled` when its process tree has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from akf.contracts.problems import AkfError, BlockedError, StorageError
from akf.contracts.text import printable
from akf.fabric.entries import Want, described
from akf.fabric.manager import WorkerManager
from akf.server.checks import Refused
from akf.server.executors import Conclusion, JobContext, executor
from akf.server.store import OVER, Job, Store
from akf.server.waiting import Place, Waiting, needs_device, want_of

MAX_STARTS = 5
_TICK_S = 1.0
_PRUNE_S = 60.0
_LOOK_S = 0.2
_SILENT_PART = 0.6
"""After this part of its lease a Server that cannot be heard of ends what it runs: the rest is the time for that."""
ELSEWHERE_S = 45.0


class Limits(NamedTuple):
    """What one user, and the Server, may have at once."""

    running: int = 64
    running_per_user: int = 32
    waiting_per_user: int = 10_000
    keep_jobs: int = 100_000
    keep_s: float = 30 * 86400.0
    patience_s: float = 600.0


class ServerJobManager:
    """The jobs of a Server.

    Args:
        store: where they are kept.
        workers: where they run.
        limits: quotas and retention.
        nice: a user's nice value; 0 for who is not in it.
    """

    def __init__(
        self, store: Store, workers: WorkerManager, limits: Limits | None = None, nice: Mapping[str, int] | None = None
    ) -> None:
        self.store = store
        self.workers = workers
        self.limits = limits or Limits()
        self._waiting = Waiting(nice or {})
        self._running: dict[str, tuple[Place, asyncio.Task[None]]] = {}
        self._cancelled: set[str] = set()
        self._abandoned: set[str] = set()
        self._heard = time.monotonic()
        self._news = 0
        self._late: dict[str, tuple[Conclusion, str]] = {}
        self._stopping = False
        self._wake = asyncio.Event()
        self._readers: set[asyncio.Event] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Take up what an earlier Server left, and begin to dispatch."""
        self._adopt()
        for job in self.store.jobs(("pending",)):
            self._waiting.add(job)
        self._tasks = [asyncio.create_task(self._dispatch()), asyncio.create_task(self._give_back())]

    async def stop(self) -> None:
        """Stop without losing anything: what runs is ended on its worker, and waits for the next start."""
        self.ending()
        for task in self._tasks:
            task.cancel()
        for _, task in list(self._running.values()):
            task.cancel()
        running = [task for _, task in self._running.values()]
        await asyncio.gather(*self._tasks, *running, return_exceptions=True)

    def submit(self, request: dict[str, Any], user: str) -> Job:
        """Accept a job.

        Raises:
            Refused: the user has too many that are not over.
        """
        if self.store.waiting(user) >= self.limits.waiting_per_user:
            raise Refused(429, f"{self.limits.waiting_per_user} jobs of this user are not over yet")
        job = self.store.add(str(uuid.uuid4()), user, request)
        self._waiting.add(job)
        self._wake.set()
        self.told()
        return job

    async def cancel(self, identity: str) -> tuple[bool, str]:
        """End a job; whether it was cancelled, and its status before."""
        job = self.store.job(identity)
        if job is None:
            raise Refused(404, "Job not found")
        if job.status in OVER:
            return False, job.status
        running = self._running.get(identity)
        if running is None:
            self._waiting.remove(job)
            self._finish(identity, Conclusion("error", None, None, "cancelled"), status="cancelled")
            return await self._cancelled_elsewhere(identity) if self.store.shared else True, job.status
        self._cancelled.add(identity)
        self.emit(identity, "cancelling", {})
        running[1].cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.shield(asyncio.wait({running[1]}))
        ended = self.store.job(identity)
        status = ended.status if ended is not None else "cancelled"
        return status == "cancelled", status

    def lacking(self, job: Job) -> str | None:
        """What a job waits for that only people can bring: a worker that answers. None while it lacks nothing."""
        if job.status in OVER or not needs_device(job):
            return None
        want = want_of(job)
        task = self.task_of(job)
        if self.workers.capacity(want) or any(task in entry.held.values() for entry in self.workers.entries):
            return None
        known = [f"{entry.name} ({entry.breaker.reason})" for entry in self.workers.entries if entry.fits(want)]
        return f"no worker that answers is left for {described(want)}; " + (
            f"registered: {', '.join(known)}" if known else "none is registered"
        )

    async def said(self, job: Job) -> str | None:
        """What a job's candidate that runs said so far; none when none runs, or its worker cannot tell."""
        task = self.task_of(job)
        for entry in self.workers.entries if job.status == "running" else ():
            ask = getattr(entry.worker, "said", None)
            if ask is not None and task in entry.held.values():
                with suppress(BlockedError):
                    told: str | None = await ask(task)
                    return told
        return None

    @staticmethod
    def task_of(job: Job) -> str:
        """The name under which a start of a job holds devices; each start has its own, so that they are told apart."""
        return f"{job.id}_{job.starts}"

    async def _cancelled_elsewhere(self, identity: str) -> bool:
        """Whether a job that another Server runs, if any, is cancelled there."""
        until = time.monotonic() + ELSEWHERE_S
        while time.monotonic() < until:
            job = self.store.job(identity)
            if job is None or job.status in OVER:
                return job is None or job.status == "cancelled"
            self.store.want_cancel(identity)
            await asyncio.sleep(_LOOK_S)
        return False

    def emit(self, identity: str, kind: str, data: dict[str, Any]) -> None:
        """Tell a job's readers of something."""
        with suppress(StorageError):  # what is only told may be lost while the disk is full
            self.store.event(identity, kind, data)
        self.told()

    def told(self) -> None:
        """There is something new to read."""
        for reader in self._readers:
            reader.set()

    @contextlib.contextmanager
    def reader(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever there is something new."""
        event = asyncio.Event()
        self._readers.add(event)
        try:
            yield event
        finally:
            self._readers.discard(event)

    def ending(self) -> None:
        """The Server is told to end: readers are let go, so that it can."""
        self._stopping = True
        self.told()

    @property
    def stopping(self) -> bool:
        """Whether the Server is on its way out."""
        return self._stopping

    async def _dispatch(self) -> None:
        pruned = 0.0
        while True:
            self._wake.clear()
            self._finish_late()
            if self.store.shared:
                self._share()
            with suppress(StorageError):  # what was accepted waits until the disk has room again
                while self._start_next():
                    pass
                if time.monotonic() - pruned > _PRUNE_S:
                    self.store.prune(self.limits.keep_jobs, self.limits.keep_s)
                    pruned = time.monotonic()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _TICK_S)

    def _share(self) -> None:
        """Live with other Servers on one store: be heard of, take over from the dead, and see what the others did."""
        try:
            if not self.store.beat():
                self._abandon()
            self._heard = time.monotonic()
            self._adopt()
            for identity in self.store.cancels():
                if identity in self._running and identity not in self._cancelled:
                    self._cancelled.add(identity)
                    self._running[identity][1].cancel()
            self._waiting.become(self.store.pending(), self._fetched)
            news = self.store.last_event()
        except StorageError:
            if time.monotonic() - self._heard > _SILENT_PART * self.store.lease_s:
                self._abandon()
            return
        if news != self._news:
            self._news = news
            self.told()

    def _fetched(self, identity: str) -> Job | None:
        job = self.store.job(identity)
        return job if job is not None and job.status == "pending" and identity not in self._running else None

    def _abandon(self) -> None:
        """End what runs here: other Servers take this one for dead, and run it themselves."""
        for identity, (_, task) in self._running.items():
            if identity not in self._abandoned:
                self._abandoned.add(identity)
                task.cancel()

    def _adopt(self) -> None:
        """Have jobs of Servers that are dead wait again, as often as that is borne."""
        taken = self.store.take_over()
        unwanted = set(self.store.cancels()) if taken else set()
        for job in taken:
            if job.id in unwanted:
                self._finish(job.id, Conclusion("error", None, None, "cancelled"), status="cancelled")
            elif job.starts >= MAX_STARTS:
                self._finish(job.id, Conclusion("error", None, f"interrupted {job.starts} times", "infra_error"))
            else:
                self.store.requeue(job.id, "the Server was interrupted")

    def _start_next(self) -> bool:
        """Start the job whose turn it is; tells whether one was taken."""
        if len(self._running) >= self.limits.running:
            return False
        found = self._waiting.take(self._may_start, self._has_room)
        if found is None:
            return False
        turn, place = found
        job = self.store.job(place.id)
        try:
            started = job is not None and self.store.start(job.id)
        except StorageError:
            self._waiting.share.settle(turn, 0)
            if job is not None:
                self._waiting.add(job)
            raise
        if job is None or not started:
            self._waiting.share.settle(turn, 0)
            return True
        begun = time.monotonic_ns()
        task = asyncio.create_task(self._run(job))
        self._running[job.id] = (place, task)

        def ended(done: asyncio.Task[None]) -> None:
            self._running.pop(job.id, None)
            if done.cancelled():
                self._was_cancelled(job.id)
            self._cancelled.discard(job.id)
            self._abandoned.discard(job.id)
            self._waiting.share.settle(turn, time.monotonic_ns() - begun)
            self._wake.set()

        task.add_done_callback(ended)
        return True

    def _may_start(self, user: str) -> bool:
        return sum(place.user == user for place, _ in self._running.values()) < self.limits.running_per_user

    def _has_room(self, want: Want) -> bool:
        wants = [place.want for place, _ in self._running.values() if place.want is not None]
        taken = sum((each.backend, each.arch) == (want.backend, want.arch) for each in wants)
        return taken < self.workers.capacity(want)

    async def _run(self, job: Job) -> None:
        self.told()
        task_id = self.task_of(job._replace(starts=job.starts + 1))
        context = JobContext(
            task_id, job.user, job.request, self.workers, lambda kind, data: self.emit(job.id, kind, data),
            self.limits.patience_s,
        )  # fmt: skip
        try:
            conclusion = await self._with_room(job, context)
        except AkfError as error:
            outcome = "infra_error" if isinstance(error, BlockedError) else None
            conclusion = Conclusion("error", None, str(error.problems[0]), outcome)
        except Exception as error:  # noqa: BLE001 - whatever a plug-in does, its job ends and says why
            conclusion = Conclusion("error", None, printable(f"{type(error).__name__}: {error}")[:2000])
        self._finish(job.id, conclusion)

    async def _with_room(self, job: Job, context: JobContext) -> Conclusion:
        """What a job's executor makes of it; what could not be written is done again when there is room."""
        for _ in range(MAX_STARTS - 1):
            try:
                return await executor(job.request["job_type"])(context)
            except StorageError as error:
                await self._room(job.id, str(error.problems[0]))
        return await executor(job.request["job_type"])(context)

    async def _room(self, identity: str, why: str) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            with suppress(StorageError):
                self.store.event(identity, "disk_full", {"why": why})
                return

    def _was_cancelled(self, identity: str) -> None:
        """A running job was ended: by its user, or because the Server stops."""
        if identity in self._cancelled:
            self._finish(identity, Conclusion("error", None, None, "cancelled"), status="cancelled")
        else:
            with suppress(StorageError):  # it is found running, and waits, when the Server starts again
                self.store.requeue(identity, "the Server stopped")

    def _finish(self, identity: str, conclusion: Conclusion, status: str | None = None) -> None:
        self._late[identity] = (conclusion, status or conclusion.status)
        self._finish_late()

    def _finish_late(self) -> None:
        """Store how jobs ended; while the disk is full they are tried again."""
        for identity, (conclusion, status) in list(self._late.items()):
            result, error, outcome = conclusion.result, conclusion.error, conclusion.outcome
            try:
                self.store.finish(identity, status, result=result, error=error, outcome=outcome)
            except StorageError:
                return
            del self._late[identity]
        self.told()

    async def _give_back(self) -> None:
        """End what an earlier Server left running, and give its devices back, as soon as their workers answer."""
        while True:
            left = []
            with suppress(StorageError):
                left = self.store.holds()
            for name, task, device in left:
                entry = next((each for each in self.workers.entries if each.name == name), None)
                if entry is None or entry.held.get(device) == task:
                    continue
                try:
                    await entry.worker.cancel(task)
                    await entry.worker.release_device(task, device)
                    self.store.let_go(name, task, device)
                except (BlockedError, StorageError):
                    continue
            if not left and not self.store.shared:
                return
            await asyncio.sleep(_TICK_S)
