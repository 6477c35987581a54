"""A task from the moment it is accepted, and what is handed out when it is over."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, NamedTuple

from akf.runtime.graph import Graph
from akf.runtime.state import TaskState


class Outcome(NamedTuple):
    """How a task ended.

    Attributes:
        task: its id.
        status: finished, failed or cancelled.
        results: in the order of the nodes; null for a node without a result.
        errors: why nodes failed, by id: `reason`, `message` and, where there is one, `traceback`.
        statuses: how each node ended, by id.
    """

    task: str
    status: str
    results: list[Any]
    errors: dict[str, dict[str, Any]]
    statuses: dict[str, str]


class Results(list[Any]):
    """The results of a task in the order of its nodes, with its outcome."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.results)
        self.outcome = outcome


class Task:
    """One accepted task."""

    __slots__ = ("calls", "graph", "id", "nice", "state", "tenant", "waiters")

    def __init__(self, task_id: str, graph: Graph, tenant: str, nice: int) -> None:
        self.id = task_id
        self.graph = graph
        self.tenant = tenant
        self.nice = nice
        self.state: TaskState | None = None
        self.calls: set[Any] | None = None
        self.waiters: list[Future[Outcome]] | None = None


def outcome_of(state: TaskState) -> Outcome:
    """The outcome of a task that is over."""
    nodes = state.nodes.items()
    errors = {name: each.error for name, each in nodes if each.error is not None and each.status != "finished"}
    return Outcome(state.task, state.status, state.results(), errors, {name: each.status for name, each in nodes})
