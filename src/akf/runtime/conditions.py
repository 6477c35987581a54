"""Conditions on results of nodes: what `when` and `until` may say, as data and never as code.

Invariants:
- A condition names a node, a place in its result by JSON pointer, and one comparison; `all`, `any` and `not` combine.
- What is not there equals nothing, is less than nothing and is in nothing. Numbers compare with numbers, text with
  text; true and false are no numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from akf.contracts.text import show

_MISSING = object()
_DEPTH = 16
_COMBINED = ("all", "any", "not")


def _same(found: Any, wanted: Any) -> bool:
    return bool(found == wanted) and isinstance(found, bool) == isinstance(wanted, bool)


def _ordered(found: Any, wanted: Any) -> bool:
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (found, wanted))
    return numbers or (isinstance(found, str) and isinstance(wanted, str))


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "equals": _same,
    "not_equals": lambda found, wanted: not _same(found, wanted),
    "in": lambda found, wanted: any(_same(found, each) for each in wanted),
    "exists": lambda found, wanted: (found is not _MISSING) == wanted,
    "less": lambda found, wanted: _ordered(found, wanted) and found < wanted,
    "at_most": lambda found, wanted: _ordered(found, wanted) and found <= wanted,
    "greater": lambda found, wanted: _ordered(found, wanted) and found > wanted,
    "at_least": lambda found, wanted: _ordered(found, wanted) and found >= wanted,
}


def holds(condition: Mapping[str, Any], results: Mapping[str, Any]) -> bool:
    """Whether a checked condition holds; a node that is not in `results` has no result."""
    if "all" in condition:
        return all(holds(each, results) for each in condition["all"])
    if "any" in condition:
        return any(holds(each, results) for each in condition["any"])
    if "not" in condition:
        return not holds(condition["not"], results)
    (name,) = (each for each in condition if each in COMPARISONS)
    found = at(results.get(condition["node"], _MISSING), condition.get("path", ""))
    return COMPARISONS[name](found, condition[name])


def at(value: Any, pointer: str) -> Any:
    """The value at a JSON pointer, or a thing that equals nothing."""
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdigit() and len(key) <= 9 and int(key) < len(value):  # noqa: PLR2004
            value = value[int(key)]
        else:
            return _MISSING
    return value


def missing(value: Any) -> bool:
    """Whether `at` found nothing."""
    return value is _MISSING


def nodes_of(condition: Mapping[str, Any]) -> Iterator[str]:
    """The nodes that a checked condition asks about."""
    for name in ("all", "any"):
        for each in condition.get(name, ()):
            yield from nodes_of(each)
    if "not" in condition:
        yield from nodes_of(condition["not"])
    if "node" in condition:
        yield condition["node"]


def faults(condition: Any, pointer: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """What is wrong with the form of a condition: places and words."""
    if not isinstance(condition, dict):
        yield pointer, "a condition is an object"
    elif depth > _DEPTH:
        yield pointer, f"a condition is nested at most {_DEPTH} deep"
    elif any(name in condition for name in _COMBINED):
        yield from _combination(condition, pointer, depth)
    else:
        yield from _comparison(condition, pointer)


def _combination(condition: dict[str, Any], pointer: str, depth: int) -> Iterator[tuple[str, str]]:
    name = next(each for each in _COMBINED if each in condition)
    parts = condition[name]
    if len(condition) != 1:
        yield pointer, f'"{name}" stands alone'
    elif name == "not":
        yield from faults(parts, f"{pointer}/not", depth + 1)
    elif not isinstance(parts, list) or not parts:
        yield f"{pointer}/{name}", f'"{name}" is a list of conditions, at least one'
    else:
        for index, each in enumerate(parts):
            yield from faults(each, f"{pointer}/{name}/{index}", depth + 1)


def _comparison(condition: dict[str, Any], pointer: str) -> Iterator[tuple[str, str]]:
    named = [name for name in condition if name in COMPARISONS]
    others = sorted(set(condition) - set(COMPARISONS) - {"node", "path"})
    path = condition.get("path", "")
    if others:
        yield pointer, f"a condition has no field {show(others[0])}"
    if not isinstance(condition.get("node"), str):
        yield pointer, 'a condition names a node under "node"'
    if not isinstance(path, str) or (path and not path.startswith("/")):
        yield f"{pointer}/path", "a path is a JSON pointer: empty, or beginning with /"
    if len(named) != 1:
        yield pointer, f"a condition has one of {', '.join(COMPARISONS)}"
    elif named[0] == "in" and not isinstance(condition["in"], list):
        yield f"{pointer}/in", '"in" is a list of values'
    elif named[0] == "exists" and not isinstance(condition["exists"], bool):
        yield f"{pointer}/exists", '"exists" is true or false'
