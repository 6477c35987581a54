"""A task as a directed acyclic graph of nodes, with bounded loops.

Invariants:
- Values only: a graph is what its JSON form says, and `to_json` gives that form back. `akf.runtime.compiler` is where
  a form is checked; who builds a graph by hand passes it there.
- `needs` of a node hold every node that its input, its condition or its list of needs names. Order is that of the file.
- A loop is a set of nodes that run round after round until its condition holds. Nodes behind it wait for its end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

REFERENCE = "$result"
"""The key of an object, in a node's input, that stands for another node's result."""


class Node(NamedTuple):
    """One call of an agent."""

    id: str
    action: str
    input: Any = None
    needs: tuple[str, ...] = ()
    join: str = "all"
    when: dict[str, Any] | None = None
    attempts: int = 1
    backoff_ms: int = 100
    timeout_ms: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The node's form; what is as usual is left out."""
        form: dict[str, Any] = {"id": self.id, "action": self.action, "input": self.input}
        usual = Node._field_defaults
        for name in ("needs", "join", "when", "attempts", "backoff_ms", "timeout_ms"):
            value = getattr(self, name)
            if value != usual[name]:
                form[name] = list(value) if name == "needs" else value
        return form


class Loop(NamedTuple):
    """Nodes that run again until a condition holds, at most so many rounds."""

    id: str
    nodes: tuple[str, ...]
    until: dict[str, Any]
    max_rounds: int
    exhausted: str = "fail"

    def to_json(self) -> dict[str, Any]:
        """The loop's form."""
        return {
            "id": self.id,
            "nodes": list(self.nodes),
            "until": self.until,
            "max_rounds": self.max_rounds,
            "exhausted": self.exhausted,
        }


class Graph(NamedTuple):
    """Nodes in the order of their results, and loops."""

    nodes: tuple[Node, ...]
    loops: tuple[Loop, ...] = ()
    default_role: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The graph's form."""
        form: dict[str, Any] = {"nodes": [node.to_json() for node in self.nodes]}
        if self.loops:
            form["loops"] = [loop.to_json() for loop in self.loops]
        if self.default_role is not None:
            form["default_role"] = self.default_role
        return form

    def roles(self) -> dict[str, str]:
        """Roles that are asked for, each with the first node that asks."""
        found: dict[str, str] = {}
        for node in self.nodes:
            found.setdefault(node.action, node.id)
        return found
