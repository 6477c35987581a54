"""What a program says, kept within bounds: its beginning, its end, and the lines that mean something.

Invariants:
- Whatever a program writes, it is read, so that it never waits for its reader; what is kept is bounded.
- A marker line is kept wherever it stands.
- What is left out is said, in the place where it stood.
"""

from __future__ import annotations

import re

HEAD_BYTES = 256 * 1024
TAIL_BYTES = 256 * 1024
_MARKER = re.compile(rb"REFERENCE_CHECK_SUCCESS|REFERENCE_GENERATION_SUCCESS|PROFILE_RESULT: ?[0-9.eE+-]{1,32}")
_LONGEST_MARKER = 64
_MARKERS = 16


class BoundedLog:
    """One stream of a program.

    Args:
        head_bytes: how much of its beginning is kept.
        tail_bytes: how much of its end is kept.
    """

    def __init__(self, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._left_out = 0
        self._seam = b""
        self._markers: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Take what came."""
        space = self._head_bytes - len(self._head)
        if space > 0:
            self._head += data[:space]
            data = data[space:]
        self._tail += data
        if len(self._tail) > 2 * self._tail_bytes:  # twice, so that little is moved
            self._drop(len(self._tail) - self._tail_bytes)

    def text(self) -> str:
        """What is kept."""
        if not self._left_out and len(self._tail) <= self._tail_bytes:
            return (self._head + self._tail).decode("utf-8", "replace")
        self._drop(max(0, len(self._tail) - self._tail_bytes))
        found = b"".join(b"\n" + each for each in self._markers)
        note = f"\n[{self._left_out} bytes are left out here]".encode()
        return (bytes(self._head) + note + found + b"\n" + bytes(self._tail)).decode("utf-8", "replace")

    def _drop(self, size: int) -> None:
        dropped = self._seam + bytes(self._tail[:size])
        del self._tail[:size]
        self._left_out += size
        end = len(dropped) - _LONGEST_MARKER if size else 0
        for found in _MARKER.finditer(dropped + bytes(self._tail[:_LONGEST_MARKER])):
            if found.start() < max(end, 0) and len(self._markers) < _MARKERS:
                self._markers.append(found[0])
        self._seam = dropped[max(end, 0) :]
