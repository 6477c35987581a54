"""Where a task stands, as a function of its events.

Invariants:
- `apply` is the only thing that changes a state, and it looks at nothing but the event: the same events in the same
  order give the same state, now and from a journal.
- What follows by rule from an event (a node is skipped, a loop begins a round, the task is over) has happened in the
  state when `apply` returns, and is returned to be told; told again, it changes nothing.
- A node ends once in each round: an end that comes twice, or for another round or attempt, is refused.
- Work is linear in the edges: each need is counted down once.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from akf.runtime.conditions import at, holds, missing
from akf.runtime.graph import REFERENCE, Graph, Loop, Node

FINAL = frozenset({"finished", "failed", "cancelled"})
ENDED = frozenset({"finished", "failed", "skipped"})


class Told(NamedTuple):
    """Something that follows by rule."""

    kind: str
    node: str | None
    data: dict[str, Any]


class NodeState:
    """Where a node stands: waiting, ready, running, finished, failed or skipped."""

    __slots__ = ("attempt", "error", "previous", "result", "round", "status")

    def __init__(self) -> None:
        self.status = "waiting"
        self.attempt = 0
        self.round = 1
        self.result: Any = None
        self.previous: Any = None
        self.error: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """The state as JSON."""
        return {
            "status": self.status,
            "attempt": self.attempt,
            "round": self.round,
            "result": self.result,
            "error": self.error,
        }


class TaskState:
    """One task: its graph, its nodes, and whether it is over."""

    __slots__ = (
        "_behind", "_index", "_inner", "_left", "_loop_of", "_pending", "_todo", "graph", "nodes", "open_nodes",
        "ready", "status", "task",
    )  # fmt: skip

    def __init__(self, task: str, graph: Graph) -> None:
        self.task = task
        self.graph = graph
        self.status = "accepted"
        self.nodes: dict[str, NodeState] = {}
        self.ready: deque[str] = deque()
        self.open_nodes = len(graph.nodes)
        self._index: dict[str, Node] = {}
        self._behind: dict[str, list[str]] = {}
        self._pending: dict[str, int] = {}
        self._inner: dict[str, int] = {}
        self._loop_of: dict[str, Loop] = {}
        self._left: dict[str, int] = {}
        self._todo: deque[str] = deque()

    def node(self, node_id: str) -> Node:
        """A node of the graph."""
        return self._index[node_id]

    def apply(self, kind: str, node_id: str | None, data: dict[str, Any]) -> list[Told]:
        """Let an event happen; returns what follows by rule.

        Raises:
            ValueError: it cannot happen now.
        """
        told: list[Told] = []
        if kind in _KINDS:
            if self.status in FINAL:
                raise ValueError(f"the task is {self.status}; {kind} comes too late")
            _KINDS[kind](self, node_id, data, told)
        return told

    def results(self) -> list[Any]:
        """The results in the order of the nodes, null for a node that has none."""
        return [self.nodes[node.id].result if node.id in self.nodes else None for node in self.graph.nodes]

    def input_of(self, node_id: str) -> dict[str, Any]:
        """What an agent is given for a node."""
        node = self._index[node_id]
        if not node.needs:
            return {"id": node.id, "action": node.action, "input": node.input, "inputs": {}}
        inputs = {need: self.nodes[need].result for need in node.needs if self.nodes[need].status == "finished"}
        return {"id": node.id, "action": node.action, "input": self._resolved(node.input), "inputs": inputs}

    def previous_of(self, node_id: str) -> dict[str, Any]:
        """The results of the round before, of the loop that a node is in."""
        loop = self._loop_of.get(node_id)
        if loop is None or self.nodes[node_id].round == 1:
            return {}
        return {each: self.nodes[each].previous for each in loop.nodes if self.nodes[each].previous is not None}

    def to_json(self) -> dict[str, Any]:
        """The state as JSON: two states are the same exactly if these are."""
        nodes = {name: each.to_json() for name, each in self.nodes.items()}
        return {"task": self.task, "status": self.status, "nodes": nodes}

    def _resolved(self, value: Any) -> Any:
        if isinstance(value, dict):
            if REFERENCE in value:
                found = at(self.nodes[value[REFERENCE]].result, value.get("path", ""))
                return value.get("default") if missing(found) else found
            return {key: self._resolved(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._resolved(each) for each in value]
        return value

    def _start(self, _: str | None, __: dict[str, Any], told: list[Told]) -> None:
        self.status = "running"
        nodes = self.graph.nodes
        self._index = {node.id: node for node in nodes}
        self.nodes = {node.id: NodeState() for node in nodes}
        self._behind = {node.id: [] for node in nodes}
        self._pending = {node.id: len(node.needs) for node in nodes}
        for node in nodes:
            for need in node.needs:
                self._behind[need].append(node.id)
        for loop in self.graph.loops:
            self._left[loop.id] = len(loop.nodes)
            members = set(loop.nodes)
            for each in loop.nodes:
                self._loop_of[each] = loop
                self._inner[each] = sum(need in members for need in self._index[each].needs)
        self._todo.extend(node.id for node in nodes if not node.needs)
        self._settle(told)

    def _run(self, node_id: str | None, data: dict[str, Any], _: list[Told]) -> None:
        state = self._in(node_id, ("ready", "running"), data)
        state.status, state.attempt = "running", data["attempt"]

    def _finish(self, node_id: str | None, data: dict[str, Any], told: list[Told]) -> None:
        state = self._in(node_id, ("running",), data)
        state.status, state.result, state.error = "finished", data["result"], None
        self._end(node_id, told)

    def _fail(self, node_id: str | None, data: dict[str, Any], told: list[Told]) -> None:
        state = self._in(node_id, ("ready", "running"), data)
        state.status, state.error = "failed", data["error"]
        self._end(node_id, told)

    def _retry(self, node_id: str | None, data: dict[str, Any], _: list[Told]) -> None:
        state = self._in(node_id, ("running",), data)
        state.status, state.error = "ready", data["error"]

    def _resume(self, _: str | None, __: dict[str, Any], ___: list[Told]) -> None:
        """The runtime ended while nodes ran: they run again, and the try that was interrupted does not count."""
        self.ready.clear()
        for name, state in self.nodes.items():
            if state.status == "running":
                state.status, state.attempt = "ready", state.attempt - 1
            if state.status == "ready":
                self.ready.append(name)

    def _cancel(self, _: str | None, __: dict[str, Any], ___: list[Told]) -> None:
        self.status = "cancelled"
        self.ready.clear()

    def _in(self, node_id: str | None, statuses: tuple[str, ...], data: dict[str, Any]) -> NodeState:
        state = self.nodes.get(node_id or "")
        if state is None or state.status not in statuses or state.round != data.get("round", 1):
            found = "unknown" if state is None else f"{state.status} in round {state.round}"
            raise ValueError(f"node {node_id} is {found}")
        return state

    def _end(self, node_id: str | None, told: list[Told]) -> None:
        self._ended(node_id or "")
        self._settle(told)

    def _ended(self, node_id: str) -> None:
        loop = self._loop_of.get(node_id)
        if loop is None:
            self.open_nodes -= 1
            self._release(self._behind[node_id])
            return
        members = loop.nodes
        self._left[loop.id] -= 1
        self._release(each for each in self._behind[node_id] if each in members)

    def _release(self, names: Any) -> None:
        for name in names:
            self._pending[name] -= 1
            if not self._pending[name]:
                self._todo.append(name)

    def _settle(self, told: list[Told]) -> None:
        """Decide nodes whose needs have ended, then loops whose nodes have, until nothing follows."""
        while True:
            while self._todo:
                name = self._todo.popleft()
                why = self._why_not(self._index[name])
                if why is None:
                    self.nodes[name].status = "ready"
                    self.ready.append(name)
                else:
                    self.nodes[name].status = "skipped"
                    told.append(Told("node_skipped", name, {"round": self.nodes[name].round, "why": why}))
                    self._ended(name)
            over = [loop for loop in self.graph.loops if self._left.get(loop.id) == 0] if self.graph.loops else ()
            if not over:
                break
            for loop in over:
                self._round(loop, told)
        if not self.open_nodes:
            failed = [name for name, each in self.nodes.items() if each.status == "failed"]
            self.status = "failed" if failed or self._exhausted() else "finished"
            told.append(Told(self.status, None, {"failed": failed}))

    def _why_not(self, node: Node) -> str | None:
        if not node.needs and node.when is None:
            return None
        bad = [need for need in node.needs if self.nodes[need].status != "finished" or self._spent(need, node.id)]
        if bad and (node.join == "all" or len(bad) == len(node.needs)):
            return f"{bad[0]} {'ran out of rounds' if self._spent(bad[0], node.id) else self.nodes[bad[0]].status}"
        if node.when is not None:
            results = {need: self.nodes[need].result for need in node.needs if self.nodes[need].status == "finished"}
            if not holds(node.when, results):
                return "its condition does not hold"
        return None

    def _spent(self, need: str, node_id: str) -> bool:
        """Whether a need is in a loop that ran out of rounds, seen from outside of it."""
        loop = self._loop_of.get(need)
        if loop is None or node_id in loop.nodes or loop.exhausted == "go_on":
            return False
        return self._left[loop.id] < -1

    def _round(self, loop: Loop, told: list[Told]) -> None:
        """All nodes of a loop have ended: another round, or its end."""
        states = [self.nodes[each] for each in loop.nodes]
        number = states[0].round
        results = {each: self.nodes[each].result for each in loop.nodes if self.nodes[each].status == "finished"}
        done = holds(loop.until, results)
        broken = not results or any(each.status == "failed" for each in states)
        if not done and not broken and number < loop.max_rounds:
            self._left[loop.id] = len(loop.nodes)
            for each, state in zip(loop.nodes, states, strict=True):
                state.previous, state.result, state.error = state.result, None, None
                state.status, state.round, state.attempt = "waiting", number + 1, 0
                self._pending[each] = self._inner[each]
                if not self._inner[each]:
                    self._todo.append(each)
            told.append(Told("round", None, {"loop": loop.id, "round": number + 1}))
            return
        spent = not done and not broken
        self._left[loop.id] = -2 if spent else -1
        self.open_nodes -= len(loop.nodes)
        told.append(Told("loop_over", None, {"loop": loop.id, "rounds": number, "until": done}))
        for each in loop.nodes:
            self._release(name for name in self._behind[each] if name not in loop.nodes)

    def _exhausted(self) -> bool:
        return any(self._left.get(loop.id) == -2 and loop.exhausted == "fail" for loop in self.graph.loops)  # noqa: PLR2004


_KINDS = {
    "started": TaskState._start,  # noqa: SLF001 - its own
    "node_started": TaskState._run,  # noqa: SLF001
    "node_finished": TaskState._finish,  # noqa: SLF001
    "node_failed": TaskState._fail,  # noqa: SLF001
    "retried": TaskState._retry,  # noqa: SLF001
    "resumed": TaskState._resume,  # noqa: SLF001
    "cancelled": TaskState._cancel,  # noqa: SLF001
}
