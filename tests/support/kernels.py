"""A runtime for tests, with agents that are plain functions or coroutines."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from akf.runtime import (
    AgentRegistry,
    Compiler,
    Event,
    Journal,
    Kernel,
    Limits,
    Memory,
    Scheduler,
    TaskQueue,
    WorkerPool,
)


class Does:
    """An agent that does what a function does."""

    def __init__(self, role: str, run: Callable[..., Any]) -> None:
        self.role = role
        self.run = run


def made(
    *agents: Any,
    workers: int = 4,
    limit: int = 1000,
    journal: Path | None = None,
    keep_tasks: int = 100_000,
    limits: Limits | None = None,
    memory: Memory | None = None,
    kept: int = 16_384,
) -> Kernel:
    """A runtime that is not started."""
    registry = AgentRegistry()
    for agent in agents:
        registry.register(agent)
    scheduler = Scheduler(registry)
    pool = WorkerPool(workers, scheduler, memory or Memory())
    book = None if journal is None else Journal(journal, keep_tasks)
    return Kernel(Event(kept), Compiler(), scheduler, pool, TaskQueue(limit), journal=book, limits=limits)


@contextmanager
def running(*agents: Any, **options: Any) -> Iterator[Kernel]:
    """A runtime that runs tasks."""
    kernel = made(*agents, **options)
    try:
        with kernel:
            yield kernel
    finally:
        if kernel.journal is not None:
            kernel.journal.close()


def nodes(*forms: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The form of a graph."""
    return {"nodes": list(forms), **more}
