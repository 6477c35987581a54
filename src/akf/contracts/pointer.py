"""RFC 6901 pointers into JSON values."""

from __future__ import annotations

from typing import Any


def parts(pointer: str) -> list[str]:
    """The unescaped segments."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def get(value: Any, pointer: str) -> Any:
    """What stands at the pointer; KeyError or IndexError when nothing does."""
    for part in parts(pointer):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def put(value: Any, pointer: str, item: Any) -> None:
    """Replace what stands at the pointer; the place must exist."""
    *path, last = parts(pointer)
    for part in path:
        value = value[int(part)] if isinstance(value, list) else value[part]
    if isinstance(value, list):
        value[int(last)] = item
    else:
        value[last] = item
