"""Load a file: read, parse, validate.

Invariants:
1. What `load` returns has the shape its kind demands; its meaning is checked elsewhere.
2. A refusal lists every problem of the file.
"""

from __future__ import annotations

import os

from akf.contracts.loader import Document, parse, read_input
from akf.contracts.problems import InvalidError
from akf.contracts.schemas import validate


def load(path: str | os.PathLike[str], kind: str | None = None, *, file: str | None = None) -> Document:
    """Read, parse and validate one file as `kind`, or as the kind it names itself.

    Args:
        path: The file.
        kind: What it must be; None takes the file's own word for it.
        file: Its name in messages, the path by default.

    Raises:
        InvalidError: It is missing, malformed, or does not fit its schema.
        StorageError: It cannot be read.
    """
    data = read_input(path)
    document = parse(data, os.fspath(path) if file is None else file)
    problems = validate(document, kind)
    if problems:
        raise InvalidError(problems)
    return document
