"""Pieces of charts: a picture with its words, upright lines, labels, and numbers as coordinates.

Invariants:
- Coordinates along the page are percentages of the picture's width, with at most two decimals; heights are pixels.
- A picture says in words what it shows.
"""

from __future__ import annotations

from akf.report.markup import Markup, joined, tag

FULL = 100.0


def picture(words: str, height: int, *parts: Markup) -> Markup:
    """A picture over the whole width."""
    return tag("svg", joined(*parts), role="img", aria_label=words, width="100%", height=str(height))


def upright(x: float, y1: int, y2: int, kind: str) -> Markup:
    """A line from top to bottom."""
    return tag("line", class_=kind, x1=f"{fixed(x)}%", x2=f"{fixed(x)}%", y1=str(y1), y2=str(y2))


def label(x: float, y: float, words: str, anchor: str, kind: str | None = None) -> Markup:
    """Words at a place."""
    return tag("text", words, class_=kind, x=f"{fixed(x)}%", y=fixed(y), text_anchor=anchor)


def percent(part: float) -> str:
    """A share of the width."""
    return f"{fixed(FULL * part)}%"


def fixed(value: float) -> str:
    """A coordinate with at most two decimals."""
    return f"{value:.2f}".removesuffix(".00")
