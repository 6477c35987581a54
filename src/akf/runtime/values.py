"""What an agent may answer: JSON of bounded size, and a copy of it.

Invariants:
- What is kept shares nothing with the agent, so that nobody changes it afterwards.
- Size is counted while copying, and copying stops where it passes the limit: an answer of a gigabyte costs no gigabyte.
- Text is text: a lone surrogate is refused, since no file could hold it. Numbers are finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from akf.contracts.text import show

MAX_BYTES = 8 * 1024**2
_DEPTH = 64
_EACH = 8


class Garbage(ValueError):  # noqa: N818 - what it is, in the words of the page
    """An answer that cannot be kept, with the reason."""


def kept(value: Any, limit_bytes: int = MAX_BYTES) -> Any:
    """A copy of a JSON value.

    Raises:
        Garbage: it is no JSON, or larger than the limit.
    """
    if value is None or value is True or value is False:
        return value
    return _Copy(limit_bytes).of(value, 0)


def copied(value: Any) -> Any:
    """A copy of a JSON value that is known to be one."""
    if type(value) is dict:
        return {key: copied(each) for key, each in value.items()}
    if type(value) is list:
        return [copied(each) for each in value]
    return value


class _Copy:
    """One copy, and how much room is left for it."""

    def __init__(self, limit: int) -> None:
        self._limit = self._left = limit

    def of(self, value: Any, depth: int) -> Any:
        self._spend(_EACH)
        kind = type(value)
        if kind not in _KINDS:
            raise Garbage(f"it holds a {kind.__module__}.{kind.__qualname__}, which is no JSON")
        return _KINDS[kind](self, value, depth)

    def constant(self, value: Any, _: int) -> Any:
        return value

    def text(self, value: str, _: int) -> str:
        self._spend(len(value))
        if not value.isascii():
            try:
                self._spend(len(value.encode()) - len(value))
            except UnicodeEncodeError:
                raise Garbage("it holds text with a lone surrogate, which is no character") from None
        return value

    def whole(self, value: int, _: int) -> int:
        self._spend(value.bit_length() // 3)
        return value

    def fraction(self, value: float, _: int) -> float:
        if not math.isfinite(value):
            raise Garbage(f"it holds {value}, which is no JSON number")
        return value

    def items(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        self._enter(value, depth)
        return [self.of(each, depth + 1) for each in value]

    def fields(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        self._enter(value, depth)
        for key in value:
            if type(key) is not str:
                raise Garbage(f"it holds an object with the key {show(str(key))}, which is no text")
        return {self.text(key, depth): self.of(each, depth + 1) for key, each in value.items()}

    def _enter(self, value: Any, depth: int) -> None:
        if depth == _DEPTH:
            raise Garbage(f"it is nested deeper than {_DEPTH}")
        if len(value) * _EACH > self._left:
            self._spend(len(value) * _EACH)

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise Garbage(f"it is larger than {self._limit} bytes")


_KINDS: dict[type, Callable[[_Copy, Any, int], Any]] = {
    type(None): _Copy.constant,
    bool: _Copy.constant,
    str: _Copy.text,
    int: _Copy.whole,
    float: _Copy.fraction,
    list: _Copy.items,
    tuple: _Copy.items,
    dict: _Copy.fields,
}
