"""Markdown: written so that it shows exactly what was meant, and read as far as the tests need it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_FENCE = re.compile(r"(?P<fence>`{3,})(?P<info>[^`]*)")


class Block(NamedTuple):
    """A fenced block: its info string, its lines, the line it starts on, and the heading above it."""

    info: str
    lines: tuple[str, ...]
    number: int
    heading: str

    @property
    def marks(self) -> dict[str, str]:
        """The words after the language: `run` or `name=value`."""
        words = (word.partition("=") for word in self.info.split()[1:])
        return {name: value for name, _, value in words}


def blocks(text: str) -> Iterator[Block]:
    """Every fenced block of a page.

    Raises:
        ValueError: A block is not closed.
    """
    heading, opened, info, start = "", "", "", 0
    body: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _FENCE.fullmatch(line)
        if opened and line == opened:
            yield Block(info, tuple(body), start, heading)
            opened, body = "", []
        elif opened:
            body.append(line)
        elif match:
            opened, info, start = match["fence"], match["info"].strip(), number
        elif line.startswith("#"):
            heading = line.lstrip("# ")
    if opened:
        raise ValueError(f"the block of line {start} is not closed")


def prose(text: str) -> str:
    """A page without its fenced blocks."""
    kept, opened = [], ""
    for line in text.splitlines():
        match = _FENCE.fullmatch(line)
        if opened:
            opened = "" if line == opened else opened
        elif match:
            opened = match["fence"]
        else:
            kept.append(line)
    return "\n".join(kept) + "\n"


def plain(text: str) -> str:
    """Text that shows as it is; what stands in backticks stays code."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if index % 2 else re.sub(r"([<*\[\]])", r"\\\1", part) for index, part in enumerate(parts))


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """A table."""
    cells = [list(head), *map(list, rows)]
    cells.insert(1, ["---"] * len(cells[0]))
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in cells]


def shown(text: str) -> list[str]:
    """A block of text to look at."""
    return ["```text shown", *(line.rstrip() for line in text.splitlines()), "```"]


def page(lines: Iterable[str]) -> str:
    """The text of a page."""
    return "\n".join(lines).rstrip("\n") + "\n"


def first_line(text: str) -> str:
    """The first line of a docstring."""
    return plain(text.strip().split("\n", 1)[0])


def written(source: str) -> str:
    """What a page that is written whole says of itself."""
    return f"Written by `python docs/generate.py` from {source}. Do not edit this page."
