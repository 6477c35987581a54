"""Small words about JSON values and schemas, for messages.

Invariants:
1. Text from a document comes out printable and cut to length.
"""

from __future__ import annotations

import re
from functools import cache

from akf.contracts.text import printable, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def describe(about: Any) -> str | None:
    """Return a hint from a schema's description and example."""
    if not isinstance(about, dict):
        return None
    parts = [about["description"]] if isinstance(about.get("description"), str) else []
    examples = about.get("examples")
    if isinstance(examples, list) and examples and isinstance(examples[0], str | int | float):
        parts.append(f"For example {show(examples[0])}")
    return " ".join(parts) or None


def as_found(value: Any) -> Any:
    """Return a value as `found`: scalars as they are, containers by their size."""
    if isinstance(value, str):
        return printable(value[:200])
    return show(value) if isinstance(value, dict | list) else value


def type_of(value: Any) -> str:
    """Return JSON's name of a value's type."""
    if value is None:
        return "null"
    names = {bool: "boolean", str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return names[type(value)]


def article(name: str) -> str:
    """Return the name of a type or a kind with its article."""
    if name == "null":
        return name
    return f"an {name}" if name[:1].lower() in {"a", "e", "i", "o"} else f"a {name}"


def is_number(text: str) -> bool:
    """Say whether text is a number that was quoted."""
    return re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text.strip()) is not None


@cache
def wants_path(pattern: str) -> bool:
    """Say whether a pattern accepts relative paths and refuses the ones that leave their folder."""
    try:
        compiled = re.compile(pattern)
    except re.error:
        return False
    accepted = all(compiled.search(path) for path in ("a/b.c", "src/x_y-1.cpp"))
    return accepted and not any(compiled.search(path) for path in ("../a", "/a", "a//b", "a/../b"))
