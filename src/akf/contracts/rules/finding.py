"""Problems of meaning, placed in the document that they are about."""

from __future__ import annotations

from akf.contracts.loader import Document
from akf.contracts.problems import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def at(document: Document, pointer: str, code: str, message: str, **more: Any) -> Problem:
    """A Problem at `pointer` of `document`, with its line and column."""
    line, column = document.locate(pointer)
    return Problem(code, message, file=document.file, pointer=pointer, line=line, column=column, **more)


def duplicates(document: Document, pointer: str, names: list[str], what: str) -> list[Problem]:
    """One problem for every name that stands more than once in the list at `pointer`."""
    seen: set[str] = set()
    found = []
    for index, name in enumerate(names):
        if name in seen:
            message = f"{what} {name!r} is named twice"
            found.append(at(document, f"{pointer}/{index}", "AKF-M001", message, found=name, hint="keep one of them"))
        seen.add(name)
    return found
