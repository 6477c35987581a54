"""A draft's placeholders, filled by hand into a new file.

Invariants:
- The draft is never changed; the filled file appears whole or not at all, and replaces nothing.
- Only placeholders are filled: a field that holds a value keeps it.
- What is filled in must satisfy the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from akf.contracts.documents import load
from akf.contracts.loader import Document, parse
from akf.contracts.pointer import put
from akf.contracts.problems import InvalidError, Problem, UsageError
from akf.contracts.rules.placeholders import blockers
from akf.contracts.schemas import schema, validate
from akf.contracts.text import printable
from akf.store.publish import make_folder, publish_file

KEYS = "/trust/keys"


def fill_draft(file: Path, values: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """Fill placeholders of one file.

    Args:
        file: the draft.
        values: JSON value by pointer.
        out: the filled file; it must not exist.

    Raises:
        InvalidError: a pointer is no placeholder, or a value does not satisfy the schema.
        ConflictError: `out` exists.
    """
    document = load(file)
    kind = document.value["kind"]
    open_now = [blocker["pointer"] for blocker in blockers(schema(kind), document.value, document.file)]
    hint = "only placeholders can be filled; akf validate-campaign lists them"
    closed = [
        Problem(
            "AKF-M050", f"{pointer!r} is not a placeholder of {file}", str(file), pointer, expected=open_now, hint=hint
        )
        for pointer in values
        if pointer not in open_now
    ]
    if closed:
        raise InvalidError(closed)
    value = copy_of(document)
    for pointer, item in values.items():
        put(value, pointer, item)
    data = render(value)
    problems = validate(parse(data, f"{file}, filled"), kind)
    if problems:
        raise InvalidError(problems)
    make_folder(out.absolute().parent)
    publish_file(out, data, mode=0o644)
    return {"file": str(out), "filled": list(values)}


def assignment(text: str) -> tuple[str, Any]:
    """`POINTER=VALUE` as it stands on a command line; VALUE is JSON, or else text.

    Raises:
        UsageError: it holds bytes that are no text, or null, which is what stands there already.
    """
    pointer, _, content = text.partition("=")
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise UsageError.of("AKF-U001", f"--set: {printable(text)} is not UTF-8 text")
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        return pointer, content
    if value is None:
        raise UsageError.of("AKF-U001", f"--set: null fills nothing at {printable(pointer)}")
    return pointer, value


def render(value: dict[str, Any]) -> bytes:
    """Hand-written form: indented, in the order of the draft."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def copy_of(document: Document | None) -> dict[str, Any]:
    """A draft's value to work on, without the editor's `$schema`."""
    value: dict[str, Any] = orjson.loads(orjson.dumps(document.value if document else {}))
    value.pop("$schema", None)
    return value
