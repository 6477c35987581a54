"""Memory that parent and child share, and memory files that nobody can change any more.

Invariants:
- An artifact's bytes are checked against their digest and then sealed: what the child maps is what was checked.
- The arena's size is sealed: no child can cut it off below the parent.
- The parent writes and compares with the C library's memcpy, memset and memcmp; outputs are poisoned with 0xFF,
  which is NaN in every floating format.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import mmap
import os
from pathlib import Path

POISON = 0xFF
_F_ADD_SEALS = 1033
_SIZE_SEALS = 0x1 | 0x2 | 0x4  # no more seals, no shrinking, no growing
_SEALS = _SIZE_SEALS | 0x8  # and no writing
_MAP_SHARED_POPULATE = mmap.MAP_SHARED | 0x8000

_libc = ctypes.CDLL(None)
_libc.memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_libc.memcmp.restype = ctypes.c_int


class DigestMismatch(ValueError):  # noqa: N818 - it names what is the case
    """An artifact's bytes are not those of its digest."""


class SealedFile:
    """A memory file with one artifact's bytes that can no longer be changed."""

    def __init__(self, data: bytes) -> None:
        self.digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self.fd = os.memfd_create("object", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        view = memoryview(data)
        while view:
            view = view[os.write(self.fd, view) :]
        fcntl.fcntl(self.fd, _F_ADD_SEALS, _SEALS)
        status = os.fstat(self.fd)
        self.inode = status.st_ino
        self.device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"

    @classmethod
    def of(cls, path: str, digest: str) -> SealedFile:
        """Read a file and hold it to its digest."""
        sealed = cls(Path(path).read_bytes())
        if sealed.digest != digest:
            sealed.close()
            raise DigestMismatch(f"{path} has {sealed.digest}, not {digest}")
        return sealed

    def reread(self) -> str:
        """The digest of what the memory file holds now."""
        size = os.fstat(self.fd).st_size
        return f"sha256:{hashlib.sha256(os.pread(self.fd, size, 0)).hexdigest()}"

    def close(self) -> None:
        """Give the memory back (a child that maps it keeps its own reference)."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class Arena:
    """One shared mapping: operands, outputs, workspace."""

    def __init__(self, size: int) -> None:
        self.size = max(mmap.PAGESIZE, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
        self.fd = os.memfd_create("arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.size)
        fcntl.fcntl(self.fd, _F_ADD_SEALS, _SIZE_SEALS)
        self._map = mmap.mmap(self.fd, self.size, flags=_MAP_SHARED_POPULATE)
        self._hold = ctypes.c_char.from_buffer(self._map)
        self.base = ctypes.addressof(self._hold)

    def write(self, offset: int, source: int, count: int) -> None:
        """Copy bytes from an address into the arena."""
        self._inside(offset, count)
        ctypes.memmove(self.base + offset, source, count)

    def poison(self, offset: int, count: int) -> None:
        """Fill with the poison byte."""
        self._inside(offset, count)
        ctypes.memset(self.base + offset, POISON, count)

    def equal(self, offset: int, other: int, count: int) -> bool:
        """Whether the bytes at `offset` are those at an address."""
        self._inside(offset, count)
        return bool(_libc.memcmp(self.base + offset, other, count) == 0)

    def read(self, offset: int, count: int) -> bytes:
        """A private copy."""
        self._inside(offset, count)
        return ctypes.string_at(self.base + offset, count)

    def view(self, offset: int, count: int) -> memoryview:
        """The bytes themselves, not a copy; not to be used after `close`."""
        self._inside(offset, count)
        return memoryview((ctypes.c_ubyte * count).from_address(self.base + offset))

    def close(self) -> None:
        """Unmap."""
        if self.fd >= 0:
            del self._hold
            self._map.close()
            os.close(self.fd)
            self.fd = -1

    def _inside(self, offset: int, count: int) -> None:
        if offset < 0 or count < 0 or offset + count > self.size:
            raise IndexError("outside the arena")
