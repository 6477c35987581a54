"""The files of a toolkit, by digest, to show that nobody changed them since a Campaign was frozen.

Invariants:
- Every regular file counts by the digest of all its bytes, read in pieces; sizes and times prove nothing and are not
  looked at.
- A link counts by its text. What it leads to outside the folder counts as well, once; inside it counts where it lies.
- Pipes, sockets and devices are named and never opened. A folder of more files or bytes than the bounds is refused.
- The digest holds no path of this machine: paths are relative to the folder that they lie in.
- The list of a digest is kept beside the user's state, under that digest, and believed only when it has it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import orjson

from akf.contracts.problems import BlockedError, ConflictError
from akf.contracts.tree import tree_digest
from akf.store.publish import make_folder, publish_file

MAX_FILES = 1_000_000
MAX_BYTES = 256 * 1024**3
LISTS = "trees"
Entry = tuple[str, bool, str]


class Tree(NamedTuple):
    """All files of some folders."""

    digest: str
    entries: tuple[Entry, ...]


def read_toolkit(roots: Mapping[str, Path]) -> Tree:
    """Read every file of these folders.

    Args:
        roots: folders, by the name that their files are listed under.

    Raises:
        BlockedError: a folder is missing, a file cannot be read, or there are too many.
    """
    entries: list[Entry] = []
    bytes_read = 0
    for name, root in sorted(roots.items()):
        try:
            for entry, size in _walk(name, root.resolve(strict=True)):
                entries.append(entry)
                bytes_read += size
                if len(entries) > MAX_FILES or bytes_read > MAX_BYTES:
                    message = f"{root} holds more than {MAX_FILES} files or {MAX_BYTES} bytes"
                    hint = "name the toolkit's own folder; other data does not belong into it"
                    raise BlockedError.of("AKF-E111", message, file=str(root), hint=hint)
        except OSError as error:
            where = error.filename or root
            message = f"the toolkit's file {where} cannot be read: {(error.strerror or str(error)).lower()}"
            hint = "every file counts, so every file must be readable: check owner and mode"
            raise BlockedError.of("AKF-E110", message, file=str(where), hint=hint) from error
    return Tree(tree_digest(entries), tuple(sorted(entries)))


def differing(before: Tree, now: Tree) -> list[str]:
    """`+ path`, `- path` and `~ path` of what was added, removed and changed, in order of the paths."""
    old = {path: rest for path, *rest in before.entries}
    new = {path: rest for path, *rest in now.entries}
    signs = {path: "~" if path in old and path in new else "+" if path in new else "-" for path in old.keys() | new}
    return [f"{signs[path]} {path}" for path in sorted(signs) if old.get(path) != new.get(path)]


def keep(tree: Tree, state: Path) -> None:
    """Keep the list of a tree under its digest."""
    path = _list_of(tree.digest, state)
    make_folder(path.parent)
    with suppress(ConflictError):
        publish_file(path, orjson.dumps(tree.entries))


def kept(digest: str, state: Path) -> Tree | None:
    """The list of a digest, where it is kept and still has that digest."""
    with suppress(OSError, ValueError, TypeError):
        entries = tuple(
            (str(path), bool(run), str(what)) for path, run, what in orjson.loads(_list_of(digest, state).read_bytes())
        )
        if tree_digest(entries) == digest:
            return Tree(digest, entries)
    return None


def _list_of(digest: str, state: Path) -> Path:
    return state / LISTS / f"{digest.partition(':')[2]}.json"


def _walk(name: str, root: Path) -> Iterator[tuple[Entry, int]]:
    """Entries with the bytes that were read for each."""
    pending = [(name, root)]
    seen = {_identity(root)}
    while pending:
        relative, folder = pending.pop()
        with os.scandir(folder) as found:
            children = sorted(found, key=lambda each: os.fsencode(each.name))
        for child in children:
            path, here = f"{relative}/{child.name}", Path(child.path)
            status = child.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                if (status.st_dev, status.st_ino) not in seen:
                    seen.add((status.st_dev, status.st_ino))
                    pending.append((path, here))
            elif stat.S_ISLNK(status.st_mode):
                yield from _link(path, here, root, seen, pending)
            elif stat.S_ISREG(status.st_mode):
                yield (path, bool(status.st_mode & stat.S_IXUSR), _digest(here)), status.st_size
            else:
                yield (path, False, "special"), 0


def _link(
    path: str, here: Path, root: Path, seen: set[tuple[int, int]], pending: list[tuple[str, Path]]
) -> Iterator[tuple[Entry, int]]:
    text = f"link {os.readlink(here)}"  # noqa: PTH115 - its very text
    try:
        target = here.resolve(strict=True)
    except (OSError, RuntimeError):
        yield (path, False, f"{text} to nothing"), 0
        return
    if target.is_relative_to(root):
        yield (path, False, text), 0
    elif target.is_file():
        yield (path, False, f"{text} to {_digest(target)}"), target.stat().st_size
    else:
        yield (path, False, text), 0
        if target.is_dir() and _identity(target) not in seen:
            seen.add(_identity(target))
            pending.append((path, target))


def _identity(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
