"""Where in a text values stand.

Invariants:
1. A place is an offset into the text; lines end at a line feed, lines and columns start at 1.
2. `find` reads a text that is known to be valid, steps over what nobody asked for at the speed of `json`, and needs no
   more memory than the largest value that it steps over.
"""

from __future__ import annotations

import json
import re

_BLOCK = 65_536
_SPACE = re.compile(r"[ \t\n\r]*+")
_BETWEEN = re.compile(r"[ \t\n\r,:]*+")


class Lines:
    """Turns offsets into lines and columns."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._before = [(0, -1)]  # of each block: lines that end before it, and where the last of them ends
        for start in range(0, len(text), _BLOCK):
            ended, last = self._before[-1]
            end = start + _BLOCK
            found = text.rfind("\n", start, end)
            self._before.append((ended + text.count("\n", start, end), last if found < 0 else found))

    def at(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of `offset`."""
        block = offset // _BLOCK
        ended, last = self._before[block]
        start = block * _BLOCK
        found = self._text.rfind("\n", start, offset)
        return ended + self._text.count("\n", start, offset) + 1, offset - (last if found < 0 else found)


class Place:
    """Where a value and its key start (-1: nowhere), and the places inside it that are kept."""

    __slots__ = ("inside", "key", "value")

    def __init__(self) -> None:
        self.key = -1
        self.value = -1
        self.inside: dict[str, Place] = {}


def find(text: str, root: Place) -> None:
    """Fill in the places of a tree, as far as the valid text has them."""
    start = _end(_SPACE, text, 0)
    root.key = start
    _visit(text, start, root, json.JSONDecoder())


def _visit(text: str, start: int, place: Place, decoder: json.JSONDecoder) -> None:
    place.value = start
    opener = text[start]
    if not place.inside or opener not in "[{":
        return
    missing = len(place.inside)
    pos, index = start + 1, 0
    while missing:
        pos = key_at = _end(_BETWEEN, text, pos)
        if text[pos] in "]}":
            return
        token = str(index)
        index += 1
        if opener == "{":
            token, pos = decoder.raw_decode(text, pos)
            pos = _end(_BETWEEN, text, pos)
        inner = place.inside.get(token)
        if inner is not None:
            inner.key = key_at
            _visit(text, pos, inner, decoder)
            missing -= 1
        if missing:
            _, pos = decoder.raw_decode(text, pos)


def _end(pattern: re.Pattern[str], text: str, pos: int) -> int:
    match = pattern.match(text, pos)
    return pos if match is None else match.end()
