"""The digest of a folder of files, with unambiguous framing.

Invariants:
- It covers names, the owner's execute permission and contents, in order of the names' bytes, and the options that
  change what is made of the files, where there are any.
- Fields are framed by canonical JSON, so that two different trees never share one digest.
- A name is its bytes: one that is not UTF-8 is written in hexadecimal under a key of its own. Two files of one name are
  no tree.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from akf.contracts.canonical import canonical_bytes, digest


def tree_digest(files: Iterable[tuple[str, bool, str]], options: Mapping[str, Any] | None = None) -> str:
    """Digest over (relative path, executable, content digest) of every file, in any order.

    Args:
        files: the tree.
        options: what else decides the result; without options the digest is the tree's alone.

    Raises:
        ValueError: two files have the same path.
    """
    ordered = sorted(files, key=lambda file: os.fsencode(file[0]))
    if len({path for path, _, _ in ordered}) != len(ordered):
        raise ValueError("two files of a tree have the same path")
    entries = [{**_named(path), "executable": executable, "digest": content} for path, executable, content in ordered]
    return digest(canonical_bytes(entries if options is None else {"files": entries, "options": dict(options)}))


def module_digest(build: Mapping[str, Any], subject: str) -> str:
    """Digest of one subject's module in a Build: of its outputs as a tree, none of them executable."""
    mine = [each for each in build["outputs"] if each["subject"] == subject]
    return tree_digest((each["path"].removeprefix(f"{subject}/"), False, each["digest"]) for each in mine)


def _named(path: str) -> dict[str, str]:
    try:
        path.encode()
    except UnicodeEncodeError:
        return {"path_bytes": os.fsencode(path).hex()}
    return {"path": path}
