"""The digest of a folder of files, with unambiguous framing.

Invariants:
- It covers names, the owner's execute permission and contents, in order of the names' bytes.
- Fields are framed by canonical JSON, so that two different trees never share one digest.
"""

from __future__ import annotations

from collections.abc import Iterable

from akf.contracts.canonical import canonical_bytes, digest


def tree_digest(files: Iterable[tuple[str, bool, str]]) -> str:
    """Digest over (relative path, executable, content digest) of every file, in any order."""
    ordered = sorted(files, key=lambda file: file[0].encode())
    return digest(canonical_bytes([{"path": p, "executable": x, "digest": d} for p, x, d in ordered]))
