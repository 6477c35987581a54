"""The JSON form of a graph: every fault of it at once, each at its place.

Invariants:
- Unknown fields are refused, so that a misspelt one is not a limit that silently does not hold.
- What a node's input refers to, and what its condition asks about, becomes a need of it.
- `Faults` collects places and words; who has the file knows the lines.
- A node or loop that is at fault is not left out: what can be read of it stays, so that nothing else is said to be
  unknown for its sake. One without an id of its own is named by its place, which no id can be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from akf.contracts.text import did_you_mean, show
from akf.runtime.conditions import faults, nodes_of
from akf.runtime.graph import REFERENCE, Graph, Loop, Node

MAX_NODES, MAX_LOOPS, MAX_ROUNDS, MAX_ATTEMPTS = 10_000, 100, 1_000, 100
SHOWN = 50
"""How many faults are listed; more are counted."""
_DAY_MS = 24 * 3600 * 1000
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}\Z")
_DEPTH = 64


class Fault(NamedTuple):
    """One thing that is wrong with a form."""

    code: str
    pointer: str
    message: str
    hint: str | None = None


class Faults(list[Fault]):
    """Faults as they are found."""

    def form(self, pointer: str, message: str, hint: str | None = None) -> None:
        """Note a fault of the form."""
        self.append(Fault("AKF-F701", pointer, message, hint))


Check = tuple[Callable[[Any], bool], str]
_TEXT: Check = (lambda value: isinstance(value, str) and bool(_ID.match(value)), "an id: letters, digits, . _ -")


def _whole(least: int, most: int) -> Check:
    def good(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return good, f"a whole number from {least} to {most}"


def _one_of(*words: str) -> Check:
    return lambda value: value in words and isinstance(value, str), f"one of {', '.join(words)}"


def _ids(least: int) -> Check:
    def good(value: Any) -> bool:
        if not isinstance(value, list) or len(value) < least:
            return False
        return all(isinstance(each, str) for each in value) and len(set(value)) == len(value)

    return good, f"a list of ids of nodes, each once{', at least one' if least else ''}"


_ANY: Check = (lambda _: True, "any value")
NODE: dict[str, Check] = {
    "id": _TEXT,
    "action": _TEXT,
    "input": _ANY,
    "needs": _ids(0),
    "join": _one_of("all", "any"),
    "when": _ANY,
    "attempts": _whole(1, MAX_ATTEMPTS),
    "backoff_ms": _whole(0, _DAY_MS),
    "timeout_ms": _whole(1, 7 * _DAY_MS),
}
LOOP: dict[str, Check] = {
    "id": _TEXT,
    "nodes": _ids(1),
    "until": _ANY,
    "max_rounds": _whole(1, MAX_ROUNDS),
    "exhausted": _one_of("fail", "go_on"),
}
GRAPH: dict[str, Check] = {
    "nodes": (lambda value: isinstance(value, list) and 1 <= len(value) <= MAX_NODES, f"a list of 1 to {MAX_NODES}"),
    "loops": (lambda value: isinstance(value, list) and len(value) <= MAX_LOOPS, f"a list of at most {MAX_LOOPS}"),
    "default_role": _TEXT,
}


def read(form: Any, found: Faults) -> Graph | None:
    """What can be read of a form; none where it has no list of nodes. It is a graph where nothing was found."""
    _fields(form, GRAPH, ("nodes",), "", found)
    fields = _readable(form, GRAPH, {"nodes": (), "loops": ()})
    nodes = [_node(each, f"/nodes/{index}", found) for index, each in enumerate(fields["nodes"])]
    loops = [_loop(each, f"/loops/{index}", found) for index, each in enumerate(fields["loops"])]
    return Graph(tuple(nodes), tuple(loops), fields.get("default_role")) if nodes else None


def _node(form: Any, pointer: str, found: Faults) -> Node:
    sound = _fields(form, NODE, ("id", "action"), pointer, found)
    values = form if sound else _readable(form, NODE, {"id": pointer, "action": pointer})
    when = values.get("when")
    if when is not None and not _condition(when, f"{pointer}/when", found):
        when = None
    needs = list(values.get("needs", ()))
    needs += _references(values.get("input"), f"{pointer}/input", found)
    if when is not None:
        needs += nodes_of(when)
    return Node(**{**values, "when": when, "needs": tuple(dict.fromkeys(needs))})


def _loop(form: Any, pointer: str, found: Faults) -> Loop:
    _fields(form, LOOP, ("id", "nodes", "until", "max_rounds"), pointer, found)
    values = _readable(form, LOOP, {"id": pointer, "nodes": (), "max_rounds": 1})
    if "until" not in values or not _condition(values["until"], f"{pointer}/until", found):
        values["until"] = {}
    return Loop(**{**values, "nodes": tuple(values["nodes"])})


def _readable(form: Any, known: dict[str, Check], usual: dict[str, Any]) -> dict[str, Any]:
    """The fields that are as they shall be, over what stands for those that are not."""
    fields = form if isinstance(form, dict) else {}
    return {**usual, **{name: each for name, each in fields.items() if name in known and known[name][0](each)}}


def _condition(form: Any, pointer: str, found: Faults) -> bool:
    wrong = list(faults(form, pointer))
    for where, message in wrong:
        found.form(where, message)
    return not wrong


def _references(value: Any, pointer: str, found: Faults, depth: int = 0) -> Iterator[str]:
    if depth > _DEPTH:
        found.form(pointer, f"an input is nested at most {_DEPTH} deep")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _references(each, f"{pointer}/{index}", found, depth + 1)
    elif isinstance(value, dict) and REFERENCE in value:
        path = value.get("path", "")
        good = isinstance(value[REFERENCE], str) and isinstance(path, str) and (not path or path.startswith("/"))
        if not good or set(value) - {REFERENCE, "path", "default"}:
            found.form(pointer, f'a reference is {{"{REFERENCE}": NODE}}, with "path" and "default" where wanted')
        else:
            yield value[REFERENCE]
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _references(each, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", found, depth + 1)


def _fields(form: Any, known: dict[str, Check], wanted: tuple[str, ...], pointer: str, found: Faults) -> bool:
    before = len(found)
    if not isinstance(form, dict):
        found.form(pointer, f"{show(form)} is no object with {', '.join(wanted)}")
        return False
    for name in form:
        if name not in known:
            near = did_you_mean(name, known)
            hint = f"did you mean {near}?" if near else f"known are {', '.join(known)}"
            found.form(
                f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}", f"there is no field {show(name)}", hint
            )
        elif not known[name][0](form[name]) and not (
            name in ("when", "timeout_ms", "default_role") and form[name] is None
        ):
            found.form(f"{pointer}/{name}", f"{name} is {show(form[name])}, not {known[name][1]}")
    for name in wanted:
        if name not in form:
            found.form(pointer, f"the field {name} is missing")
    return len(found) == before
