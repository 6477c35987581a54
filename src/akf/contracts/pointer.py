"""RFC 6901 pointers into JSON values."""

from __future__ import annotations

from akf.contracts.limits import MAX_POINTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def escape(key: str) -> str:
    """Write one key as a token of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key


def pointer_to(steps: Iterable[str | int]) -> str:
    """Return the JSON pointer of a path, or of the innermost container on it that `MAX_POINTER` has room for."""
    pointer = ""
    for step in steps:
        token = escape(str(step))
        if len(pointer) + len(token) >= MAX_POINTER:
            break
        pointer = f"{pointer}/{token}"
    return pointer


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
