"""Which agent answers a node.

Invariants:
- A node's action is the role of its agent. A role that nobody has is refused with the known ones and the nearest,
  unless the task names a default role.
"""

from __future__ import annotations

from typing import Any

from akf.contracts.problems import InvalidError, Problem, UsageError
from akf.runtime.graph import Graph
from akf.runtime.registry import AgentRegistry, Version


class Scheduler:
    """Chooses agents of a registry."""

    def __init__(self, registry: AgentRegistry) -> None:
        self.registry = registry

    def check(self, graph: Graph) -> None:
        """See that somebody answers to every role of a graph.

        Raises:
            InvalidError: nobody does; with every such role.
        """
        known = self.registry.agents
        if graph.default_role is not None and graph.default_role not in known:
            raise InvalidError([self._problem(graph.default_role, "the task's default role")])
        if graph.default_role is None:
            bad = [self._problem(role, f"node {node}") for role, node in graph.roles().items() if role not in known]
            if bad:
                raise InvalidError(bad)

    def select(self, node: dict[str, Any], default_role: str | None = None) -> Any:
        """The agent of a node.

        Raises:
            UsageError: nobody has its role.
        """
        found = self.registry.get(node["action"])
        if found is None and default_role is not None:
            found = self.registry.get(default_role)
        if found is None:
            raise self.registry.unknown(node["action"])
        return found

    def acquire(self, action: str, default_role: str | None) -> Version | None:
        """The version that a node starts on; None when nobody has the role now."""
        found = self.registry.acquire(action)
        return self.registry.acquire(default_role) if found is None and default_role is not None else found

    def refusal(self, action: str) -> UsageError:
        """Why a node cannot run."""
        return self.registry.unknown(action)

    def _problem(self, role: str, where: str) -> Problem:
        (problem,) = self.registry.unknown(role).problems
        return problem.replace(code="AKF-F705", message=f"{where}: {problem.message}")
