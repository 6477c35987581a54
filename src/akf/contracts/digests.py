"""Digests of bytes and of files.

Invariants:
1. A digest is `sha256:` and 64 hexadecimal digits over exactly the bytes, so `sha256sum FILE` agrees.
2. Only regular files are read, of any size, in pieces.
3. Threads change the time that it takes, never the answer or its order.
"""

from __future__ import annotations

import os

from akf.contracts.files import open_regular, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_PIECE = 128 * 1024  # fits the second-level cache


def digest(data: bytes) -> str:
    """Return `sha256:<hex>` of some bytes."""
    import hashlib  # noqa: PLC0415 - loads OpenSSL

    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def digest_file(path: str | os.PathLike[str]) -> str:
    """Return `sha256:<hex>` of a regular file.

    Raises:
        InvalidError: It is missing or not a regular file.
        StorageError: It cannot be read.
    """
    return _digest_file(path, bytearray(_PIECE))


def digest_files(paths: Sequence[str | os.PathLike[str]], threads: int = 2) -> list[str]:
    """Return the digests of many files, in their order, read by several threads."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - costs start-up time

    def share(first: int) -> list[str]:
        piece = bytearray(_PIECE)
        return [_digest_file(path, piece) for path in paths[first::threads]]

    found = [""] * len(paths)
    with ThreadPoolExecutor(threads) as pool:
        for first, digests in enumerate(pool.map(share, range(threads))):
            found[first::threads] = digests
    return found


def _digest_file(path: str | os.PathLike[str], piece: bytearray) -> str:
    import hashlib  # noqa: PLC0415 - loads OpenSSL

    state = hashlib.sha256()
    view = memoryview(piece)
    descriptor = open_regular(path)
    try:
        while count := os.readv(descriptor, [piece]):
            state.update(view[:count])
    except OSError as error:
        raise refusal(os.fspath(path), error) from error
    finally:
        os.close(descriptor)
    return f"sha256:{state.hexdigest()}"
