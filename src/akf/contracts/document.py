"""A parsed file, and where in it its values stand.

Invariants:
1. A place is looked for only when somebody asks, in one pass over the text.
2. What is not there is located at the nearest container that is.
"""

from __future__ import annotations

from akf.contracts.pointer import parts
from akf.contracts.problems import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from akf.contracts.places import Lines, Place

_SMALL = 256 * 1024


class Document:
    """A parsed file: its value, its name in messages, and the bytes it came from."""

    __slots__ = ("_lines", "_places", "file", "source", "value")

    def __init__(self, value: dict[str, Any], file: str, source: bytes) -> None:
        self.value = value
        self.file = file
        self.source = source
        self._lines: Lines | None = None
        self._places: Place | None = None

    def __repr__(self) -> str:
        return f"Document({self.file!r}, {len(self.source)} bytes)"

    def locate(self, pointer: str, *, key: bool = False) -> tuple[int, int]:
        """Return line and column of the value at `pointer` (or of its key).

        What is not there is located at the nearest container that is.
        """
        self.prefetch((pointer,))
        assert self._lines is not None  # noqa: S101 - prefetch sets both
        assert self._places is not None  # noqa: S101
        place = self._places
        for token in parts(pointer):
            inner = place.inside.get(token)
            if inner is None or inner.value < 0:
                break
            place = inner
        return self._lines.at(place.key if key else place.value)

    def prefetch(self, pointers: Iterable[str]) -> None:
        """Find many places in one pass over the text; of a small document, all of them."""
        from akf.contracts.places import Lines, Place, find  # noqa: PLC0415 - only on trouble

        if self._places is None:
            text = self.source.decode()
            self._places, self._lines = Place(), Lines(text)
            if len(self.source) <= _SMALL:
                self._scan(text)
            else:
                find(text, self._places)
        if len(self.source) <= _SMALL:
            return
        news = False
        for pointer in pointers:
            place = self._places
            for token in parts(pointer):
                news = news or token not in place.inside
                place = place.inside.setdefault(token, Place())
        if news:
            find(self.source.decode(), self._places)

    def _scan(self, text: str) -> None:
        from akf.contracts.scanner import Scanner, Stop  # noqa: PLC0415 - only on trouble

        try:
            Scanner(text, self.file, places=self._places).scan()
        except Stop as defect:  # pragma: no cover - the source was accepted before
            raise AssertionError(f"{self.file} was valid and is not any more") from defect

    def problem(
        self,
        code: str,
        message: str,
        pointer: str = "",
        *,
        key: bool = False,
        expected: Any = None,
        found: Any = None,
        hint: str | None = None,
    ) -> Problem:
        """Make a problem at `pointer` in this file."""
        line, column = self.locate(pointer, key=key)
        return Problem(code, message, self.file, pointer, line, column, expected, found, hint)
