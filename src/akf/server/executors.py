"""What runs a job: one executor per job type, from the entry-point group `akf.jobs`.

Invariants:
- An executor is a coroutine function of a `JobContext` that returns a `Conclusion`. What it raises ends the job as an
  error, never as the candidate's failure.
- It reaches devices through the context only, which gives each fault of the infrastructure another try elsewhere.
- `single` is part of AKF; an entry point of that name replaces it. A plug-in that cannot be loaded is named when a job
  of its type runs, and stops nothing else.
- `single` with code, `evolve` and `adaptive_search` are part of AKF. Who writes code is loaded by name when a
  job asks for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, NamedTuple

from akf.fabric.entries import Assignment, Want
from akf.fabric.manager import WorkerManager

GROUP = "akf.jobs"
OWN = {
    "single": "akf.server.single:run",
    "evolve": "akf.agents.executors:evolve",
    "adaptive_search": "akf.agents.executors:adaptive_search",
}
CODER = "akf.agents.executors:single"
WIRE_TYPES = ("single", "evolve")
NO_CODER = "no coder configured"
Emit = Callable[[str, dict[str, Any]], None]


class Conclusion(NamedTuple):
    """How a job ended."""

    status: Literal["completed", "failed", "error"]
    result: dict[str, Any] | None
    error: str | None = None
    outcome: str | None = None


class JobContext:
    """A job, for its executor.

    Args:
        task_id: the name of this start of the job, under which devices are held.
        user: whose it is.
        request: what was submitted and kept.
        workers: where it may run.
        emit: tells the job's readers of something.
    """

    def __init__(
        self, task_id: str, user: str, request: dict[str, Any], workers: WorkerManager, emit: Emit, patience_s: float
    ) -> None:
        self.task_id = task_id
        self.user = user
        self.request = request
        self.workers = workers
        self.emit = emit
        self._patience_s = patience_s

    @property
    def want(self) -> Want:
        """What the job's request asks of a worker."""
        request = self.request
        return Want(request["backend"], request["arch"], frozenset(request.get("tags") or ()))

    def log(self, text: str) -> None:
        """A line for the job's log."""
        self.emit("log", {"text": text})

    async def tried(self, code: str) -> Conclusion:
        """What `single` makes of some code for this job's reference."""
        own = JobContext(
            self.task_id, self.user, {**self.request, "init_code": code}, self.workers, self.emit, self._patience_s
        )
        return await executor("single")(own)

    async def on_device(
        self, body: Callable[[Assignment], Awaitable[dict[str, Any]]], want: Want | None = None
    ) -> dict[str, Any]:
        """What `body` answers on a device; faults of workers are told, and tried again elsewhere.

        Raises:
            BlockedError: no worker could run it.
        """

        async def told(assignment: Assignment) -> dict[str, Any]:
            self.emit("assigned", {"worker": assignment.name, "device": assignment.device})
            return await body(assignment)

        def fault(worker: str, why: str) -> None:
            self.emit("worker_fault", {"worker": worker, "why": why})

        return await self.workers.run(want or self.want, self.task_id, told, told=fault, patience_s=self._patience_s)


Executor = Callable[[JobContext], Awaitable[Conclusion]]


def job_types() -> list[str]:
    """Every type that may be submitted."""
    return sorted({*WIRE_TYPES, *OWN, *(point.name for point in entry_points(group=GROUP))})


def executor(job_type: str) -> Executor:
    """What runs jobs of a type."""
    found = [point for point in entry_points(group=GROUP) if point.name == job_type]
    if found:
        loaded: Executor = found[0].load()
        return loaded
    if job_type in OWN:
        own: Executor = EntryPoint(job_type, OWN[job_type], GROUP).load()
        return own
    return _nobody


async def written(job: JobContext) -> Conclusion:
    """What `single` does without code: somebody writes it."""
    coder: Executor = EntryPoint("coder", CODER, GROUP).load()
    return await coder(job)


async def _nobody(job: JobContext) -> Conclusion:
    del job
    return Conclusion("error", None, NO_CODER)
