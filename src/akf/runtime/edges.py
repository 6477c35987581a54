"""What follows from the edges of a graph: unknown nodes, cycles with their path, loops that cannot be.

Invariants:
- A cycle is found with a shortest way through any one of its nodes, and named in the order in which it is gone.
- A loop counts as one node for all that stands outside: a way that leaves it and comes back is a cycle, too.
- A node is in at most one loop; a loop's condition asks about nodes of the loop.
- What is wrong in one place hides nothing in another: cycles are looked for among the needs that are known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from akf.contracts.text import did_you_mean, show
from akf.runtime.conditions import nodes_of
from akf.runtime.form import SHOWN, Fault, Faults
from akf.runtime.graph import Graph


def check(graph: Graph, found: Faults) -> None:
    """Note everything that is wrong between the nodes."""
    places: dict[str, int] = {}
    for index, node in enumerate(graph.nodes):
        if node.id in places:
            found.append(Fault("AKF-F702", f"/nodes/{index}/id", f"a second node has the id {show(node.id)}"))
        places.setdefault(node.id, index)
    for index, node in enumerate(graph.nodes):
        if node.needs:
            _known(node.needs, places, f"/nodes/{index}", f"node {show(node.id)} needs", found)
    loops = _loops(graph, places, found)
    needs = {name: graph.nodes[index].needs for name, index in places.items()}
    if found:
        needs = {name: tuple(need for need in each if need in places) for name, each in needs.items()}
    path = cycle(needs) or (_through_loops(needs, loops) if loops else None)
    if path is not None:
        found.append(_cycle(path, f"/nodes/{places[path[0]]}/needs"))


def cycle(needs: Mapping[str, Iterable[str]]) -> list[str] | None:
    """A shortest cycle through one node that is on one, in the direction of the work; none where there is none."""
    if not any(needs.values()):
        return None
    behind: dict[str, list[str]] = {name: [] for name in needs}
    for name, each in needs.items():
        for need in each:
            behind[need].append(name)
    left = _stuck(needs, behind)
    if not left:
        return None
    # What is stuck is on a cycle or behind one: who goes by needs arrives on one.
    at, seen = next(iter(left)), set[str]()
    while at not in seen:
        seen.add(at)
        at = min(left[at])
    came: dict[str, str] = {}
    waiting = deque([at])
    while at not in came:
        here = waiting.popleft()
        for name in behind[here]:
            if name in left and name not in came:
                came[name] = here
                waiting.append(name)
    path = [at]
    while len(path) == 1 or path[-1] != at:
        path.append(came[path[-1]])
    return path[::-1]


def _stuck(needs: Mapping[str, Iterable[str]], behind: Mapping[str, list[str]]) -> dict[str, set[str]]:
    """Nodes that could never begin, with the needs that they wait for."""
    left = {name: set(each) for name, each in needs.items()}
    ready = deque(name for name, each in left.items() if not each)
    while ready:
        done = ready.popleft()
        del left[done]
        for name in behind[done]:
            left[name].discard(done)
            if not left[name]:
                ready.append(name)
    return left


def _loops(graph: Graph, places: Mapping[str, int], found: Faults) -> dict[str, str]:
    """The loop of each node that is in one."""
    loops: dict[str, str] = {}
    names: set[str] = set()
    for index, loop in enumerate(graph.loops):
        pointer = f"/loops/{index}"
        if loop.id in names:
            found.append(Fault("AKF-F704", f"{pointer}/id", f"a second loop has the id {show(loop.id)}"))
        names.add(loop.id)
        _known(loop.nodes, places, f"{pointer}/nodes", f"loop {show(loop.id)} has", found)
        for node_id in loop.nodes:
            if loops.setdefault(node_id, loop.id) != loop.id:
                message = f"node {show(node_id)} is in two loops, {loops[node_id]} and {loop.id}"
                found.append(Fault("AKF-F704", f"{pointer}/nodes", message, "loops share no node and stand in no loop"))
        for node_id in nodes_of(loop.until):
            if node_id not in loop.nodes:
                message = f"the loop's condition asks about {show(node_id)}, which is not in the loop"
                found.append(Fault("AKF-F704", f"{pointer}/until", message, "ask about a node that runs in each round"))
    return loops


def _through_loops(needs: Mapping[str, Iterable[str]], loops: Mapping[str, str]) -> list[str] | None:
    """A cycle that is there because a loop's nodes end together."""

    def group(name: str) -> str:
        return f"loop {loops[name]}" if name in loops else name

    outer: dict[str, set[str]] = {group(name): set() for name in needs}
    for name, each in needs.items():
        outer[group(name)] |= {group(need) for need in each} - {group(name)}
    path = cycle(outer)
    if path is None:
        return None
    members = {group(name): name for name in reversed(list(needs))}
    return [members[name] for name in path]


def _known(ids: Iterable[str], places: Mapping[str, int], pointer: str, words: str, found: Faults) -> None:
    for each in ids:
        if each not in places:
            near = did_you_mean(each, places) if len(found) < SHOWN else None
            named = [name for name in places if not name.startswith("/")][:10]
            hint = f"did you mean {near}?" if near else f"nodes are {', '.join(named)}"
            found.append(Fault("AKF-F702", pointer, f"{words} {show(each)}, which is no node", hint))


def _cycle(path: list[str], pointer: str) -> Fault:
    hint = "take one edge away, or let these nodes be a loop with `until` and `max_rounds`"
    return Fault("AKF-F703", pointer, f"nodes wait for each other: {' -> '.join(path)}", hint)
