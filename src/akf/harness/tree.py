"""A candidate of the `python` ABI: one file or a folder of files, sealed as one memory file.

Invariants:
- A single file's digest is that of its bytes; a folder's covers names, execute bits and contents with framing, as
  `akf.contracts.tree` computes it.
- Regular files only: a link, a socket or a name that is not text is refused, never followed.
- What is sealed is what was digested; the child gets it written out as a copy that it cannot change.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from .memory import DigestMismatch, SealedFile
from .outcome import HarnessError

MAX_BYTES, MAX_FILES = 64 * 1024**2, 2000
_SUFFIX = ".py"


@dataclass(frozen=True)
class Entry:
    """One file of the tree."""

    path: str
    executable: bool
    data: bytes


@dataclass(frozen=True)
class Bundle:
    """A sealed tree, the file of its module, and the function to call."""

    files: SealedFile
    digest: str
    module: str
    function: str
    single: bool = False

    @property
    def key(self) -> str:
        """What tells it from another: a file's digest does not cover its name."""
        return f"{self.digest} {self.module}"


def sealed_tree(path: str, digest: str, entry: str) -> Bundle:
    """Read a file or folder, hold it to its digest, seal it.

    Raises:
        DigestMismatch: it has other bytes.
        HarnessError: it is no tree of regular files, or names no module.
        OSError: it cannot be read.
    """
    entries, single = _read(Path(path))
    found = _sha256(entries[0].data) if single else tree_digest(entries)
    if found != digest:
        raise DigestMismatch(f"{path} has {found}, not {digest}")
    module, function = _module(entries, entry, path)
    return Bundle(SealedFile(packed(entries)), digest, module, function, single)


def tree_digest(entries: list[Entry]) -> str:
    """SHA-256 over the canonical list of files."""
    ordered = sorted(entries, key=lambda item: os.fsencode(item.path))
    lines = [{"digest": _sha256(item.data), "executable": item.executable, "path": item.path} for item in ordered]
    text = json.dumps(lines, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    return _sha256(text.encode())


def packed(entries: list[Entry]) -> bytes:
    """One line that lists the files, then their contents."""
    head = [[item.path, item.executable, len(item.data)] for item in entries]
    return json.dumps(head).encode() + b"\n" + b"".join(item.data for item in entries)


def reread(root: str, *, single: bool) -> str:
    """The digest of a tree as it lies in a process's file system."""
    entries = _walk(Path(root))
    return _sha256(entries[0].data) if single and len(entries) == 1 else tree_digest(entries)


def _read(root: Path) -> tuple[list[Entry], bool]:
    """Every file, and whether it is the only one by name."""
    single = stat.S_ISREG(root.lstat().st_mode)
    return [_entry(root, root.name)] if single else _walk(root), single


def _sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _walk(root: Path) -> list[Entry]:
    found: list[Entry] = []
    total = 0
    for folder, folders, files in os.walk(root, onerror=_raise):
        folders.sort()
        for name in [*folders, *files]:
            mode = os.lstat(os.path.join(folder, name)).st_mode  # noqa: PTH118 - as os.walk gives it
            if not (stat.S_ISDIR(mode) if name in folders else stat.S_ISREG(mode)):
                raise HarnessError("PATH_ESCAPE", f"{root}/{name} is neither a file nor a folder", 3)
        for name in sorted(files):
            path = Path(folder, name)
            found.append(_entry(path, path.relative_to(root).as_posix()))
            total += len(found[-1].data)
            if total > MAX_BYTES or len(found) > MAX_FILES:
                message = f"{root} has more than {MAX_FILES} files or {MAX_BYTES} bytes"
                raise HarnessError("ARTIFACT_UNREADABLE", message, 3)
    return found


def _raise(error: OSError) -> None:
    raise error


def _entry(path: Path, name: str) -> Entry:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as stream:
        status = os.fstat(fd)
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise HarnessError("ARTIFACT_UNREADABLE", f"{name!r} is not text", 3) from error
        return Entry(name, bool(status.st_mode & stat.S_IXUSR), stream.read(MAX_BYTES + 1))


def _module(entries: list[Entry], entry: str, path: str) -> tuple[str, str]:
    """The file to import and the function in it: `run`, or `module:run` where a folder holds several."""
    module, _, function = entry.rpartition(":")
    top = [item.path for item in entries if item.path.endswith(_SUFFIX) and "/" not in item.path]
    if module:
        wanted = [item.path for item in entries if item.path == module.replace(".", "/") + _SUFFIX]
    else:
        wanted = ["kernel.py"] if "kernel.py" in top else top
    if len(wanted) != 1 or not function.isidentifier():
        message = f"{path}: entry {entry!r} names no module; write MODULE:FUNCTION, or keep it in kernel.py"
        raise HarnessError("REQUEST_INVALID", message, 2)
    return wanted[0], function
