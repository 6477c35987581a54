"""Excerpts of large documents, so that explaining their errors takes bounded memory.

The validator copies the failing value into every error: a document of 16 MiB with twenty errors at its top would be
copied twenty times, and a million bad rows would make a million errors before the first can be looked at.

Invariants:
1. An excerpt keeps the fields of every object that the schema knows, and the first items of every list, at least
   `LEAST` of each that has as many: nothing required goes missing by cutting.
2. Lists that were cut are kept aside, and their later items can be put in the place of the first, window by window.
3. Where a document has too many small containers even for that, values are blanked; what an excerpt says about a
   blank or about the length of a cut list is not true of the document (`distorts`).
4. The original is never changed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    Steps = tuple[str | int, ...]

WINDOW = 1_000
BUDGET = 4_000
LEAST = 4
LONGEST_TEXT = 100_000


class Excerpt:
    """A cut copy of `value`: lists longer than a window, objects with many unknown fields, long text."""

    def __init__(self, value: Any, known: frozenset[str]) -> None:
        self._known = known
        self._left = BUDGET
        self.complete = True
        self._blank: set[Steps] = set()
        self.cut: list[tuple[Steps, list[Any]]] = []
        self.value = self._copy(value, ())

    def distorts(self, steps: Sequence[str | int]) -> bool:
        """Say whether the value at `steps` is blanked, or a list that was cut."""
        place = tuple(steps)
        return place in self._blank or any(place == cut for cut, _ in self.cut)

    def windows(self) -> Iterator[tuple[Steps, int]]:
        """Put the later items of each cut list in its place, one window after the other.

        Yields the list's place and the index of its first item that is there now.
        """
        for steps, items in tuple(self.cut):
            holder = self.value
            for step in steps[:-1]:
                holder = holder[step]
            first = holder[steps[-1]]
            for start in range(len(first), len(items), WINDOW):
                self._left = BUDGET
                window = items[start : start + WINDOW]
                holder[steps[-1]] = [self._copy(item, (*steps, at)) for at, item in enumerate(window)]
                yield steps, start
            holder[steps[-1]] = first

    def _copy(self, value: Any, steps: Steps) -> Any:
        self._left -= 1
        if self._left < -BUDGET:
            self.complete = False
            self._blank.add(steps)
            return None
        if isinstance(value, dict):
            return self._object(value, steps)
        if isinstance(value, list):
            return self._list(value, steps)
        return value[:LONGEST_TEXT] if isinstance(value, str) else value

    def _object(self, value: dict[str, Any], steps: Steps) -> dict[str, Any]:
        copied: dict[str, Any] = {}
        for key, item in value.items():
            if key in self._known or len(copied) < LEAST or (self._left > 0 and len(copied) < WINDOW):
                copied[key] = self._copy(item, (*steps, key))
            else:
                self.complete = False
        return copied

    def _list(self, value: list[Any], steps: Steps) -> list[Any]:
        copied: list[Any] = []
        for index, item in enumerate(value):
            if index >= LEAST and (index >= WINDOW or self._left <= 0):
                self.complete = False
                self.cut.append((steps, value))
                break
            copied.append(self._copy(item, (*steps, index)))
        return copied


def known_fields(schema: Any) -> frozenset[str]:
    """Return every name that a schema gives to a field, anywhere."""
    names: set[str] = set()
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            names.update(node.get("properties", ()))
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return frozenset(names)
