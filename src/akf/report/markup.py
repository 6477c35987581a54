"""Elements of HTML and SVG, and the one place where text is escaped.

Invariants:
- A child or attribute that is not `Markup` is text and is escaped; only this module makes `Markup` of text.
- No character reaches the page that is invalid in HTML or that could hide or reorder what stands beside it.
- Attributes come out in the order in which they were given.
"""

from __future__ import annotations

from html import escape

from akf.contracts.text import printable

_VOID = frozenset({"meta", "br", "col", "link"})
_SVG_EMPTY = frozenset({"path", "line", "circle", "polygon"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(words: str) -> Markup:
    """Escaped text, safe as content and in a quoted attribute."""
    return Markup(escape(printable(words), quote=True))


def joined(*parts: str) -> Markup:
    """Several pieces, one after the other."""
    return Markup("".join(part if isinstance(part, Markup) else text(part) for part in parts))


def tag(name: str, /, *children: str, **attributes: str | None) -> Markup:
    """An element; `class_` is `class`, other underscores are hyphens, None leaves an attribute out."""
    words = "".join(
        f' {key.removesuffix("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{words}>")
    if name in _SVG_EMPTY and not children:
        return Markup(f"<{name}{words}/>")
    return Markup(f"<{name}{words}>{joined(*children)}</{name}>")
