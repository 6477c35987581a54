"""The bytes of a file that is inspected.

Invariants:
- Only regular files are read, opened without waiting, whole, and at most `MAX_OBJECT_BYTES` of them: as much as the
  Builder takes from a tool. Nothing is read of a larger one.
- Digest and facts are of the same bytes: the file is read once.
"""

from __future__ import annotations

import os

from akf.contracts.files import open_regular, refusal
from akf.contracts.problems import InvalidError

MAX_OBJECT_BYTES = 256 * 1024**2
_PIECE = 1024**2


def read_object(path: str | os.PathLike[str]) -> bytes:
    """All bytes of a file.

    Raises:
        InvalidError: It is missing, no regular file, or too large.
        StorageError: The system refuses or fails.
    """
    name = os.fspath(path)
    descriptor = open_regular(name)
    try:
        size = os.fstat(descriptor).st_size
        parts: list[bytes] = []
        room = MAX_OBJECT_BYTES + 1 if size <= MAX_OBJECT_BYTES else 0
        while room and (part := os.read(descriptor, min(room, _PIECE))):
            parts.append(part)
            room -= len(part)
    except OSError as error:
        raise refusal(name, error) from error
    finally:
        os.close(descriptor)
    if not room:
        raise InvalidError.of(
            "AKF-F483",
            f"the file is larger than {MAX_OBJECT_BYTES} bytes, the most that a build may leave",
            file=name,
            expected=MAX_OBJECT_BYTES,
            found=max(size, MAX_OBJECT_BYTES + 1),
        )
    return b"".join(parts)
