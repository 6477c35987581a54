"""Runs in the child of the `binary` ABI: loads one shared object and launches it when told to.

Invariants:
- Imports the standard library only; knows no reference, no expected output, no id, no digest.
- Speaks in packets on one socket: each command carries a fresh nonce, its answer returns it.
- Between commands the process waits in a blocking read, after polling for a moment where it has a core of its own.

Self-contained: it is sent to the child as text.
"""

from __future__ import annotations

import ctypes
import gc
import json
import mmap
import os
import socket
import struct
import sys
import time
from array import array
from typing import Any, Optional

from . import confine

NONCE = 16
_MAX_PACKET = 1 << 16
_MAP_FAILED = ctypes.c_void_p(-1).value
_MAP_SHARED_POPULATE = mmap.MAP_SHARED | 0x8000


def map_arena(fd: int, size: int) -> int:
    """Map the arena; the mmap module would keep a descriptor of it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    where = libc.mmap(None, ctypes.c_size_t(size), protection, _MAP_SHARED_POPULATE, fd, ctypes.c_long(0))
    if where in {None, _MAP_FAILED}:
        raise OSError(ctypes.get_errno(), "mmap of the arena")
    return int(where)


class Worker:
    """The state between commands: the mapped arena, the loaded kernel, the bound table."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self._base = map_arena(setup["arena_fd"], setup["arena_bytes"])
        os.close(setup["arena_fd"])
        self._kernel_fd: int = setup["kernel_fd"]
        self._launcher_fd: int = setup["launcher_fd"]
        self._batch: Any = None
        self._function = ctypes.c_void_p()
        self._table: Optional[array[int]] = None
        self._width = 0
        self._address = 0
        self._integers: Any = None
        self._floats: Any = None
        gc.disable()

    def load(self, symbol: str) -> dict[str, Any]:
        """Load kernel and launcher from their sealed memory files."""
        kernel = ctypes.CDLL(f"/proc/self/fd/{self._kernel_fd}", mode=os.RTLD_NOW | os.RTLD_LOCAL)
        launcher = ctypes.CDLL(f"/proc/self/fd/{self._launcher_fd}", mode=os.RTLD_NOW | os.RTLD_LOCAL)
        self._function = ctypes.cast(getattr(kernel, symbol), ctypes.c_void_p)
        self._batch = launcher.akf_batch
        self._batch.restype = ctypes.c_int64
        os.close(self._kernel_fd)
        os.close(self._launcher_fd)
        return {"function": self._function.value}

    def bind(self, count: int, columns: list[list[int]], integers: list[int], floats: list[float]) -> dict[str, Any]:
        """Build the pointer table: column j of launch i is offset + i * stride."""
        self._width = len(columns)
        table = array("Q", bytes(8 * count * self._width))
        for index, (offset, stride) in enumerate(columns):
            if offset < 0:
                continue
            start = self._base + offset
            column = range(start, start + stride * count, stride) if stride else [start] * count
            table[index :: self._width] = array("Q", column)
        self._table = table
        self._address = table.buffer_info()[0]
        self._integers = (ctypes.c_int64 * max(1, len(integers)))(*integers)
        self._floats = (ctypes.c_double * max(1, len(floats)))(*floats)
        return {}

    def run(self, first: int, count: int) -> bytes:
        """Launch `count` rows of the table. Returns done, start and end on this process's own clock."""
        table = ctypes.c_void_p(self._address + 8 * first * self._width)
        start = time.perf_counter_ns()
        done = self._batch(self._function, table, self._integers, self._floats, ctypes.c_int64(count))
        return struct.pack("<qqq", done, start, time.perf_counter_ns())

    def answer(self, operation: bytes, body: bytes) -> bytes:
        """One command: its status and its result."""
        if operation == b"R":
            return b"k" + self.run(*struct.unpack("<QQ", body))
        value = json.loads(body)
        try:
            result = self.load(value["symbol"]) if operation == b"L" else self.bind(**value)
        except (OSError, AttributeError, MemoryError) as error:
            return b"e" + str(error)[:500].encode("utf-8", "replace")
        return b"k" + json.dumps(result).encode()


def _next(channel: socket.socket, spin_ns: int) -> bytes:
    """The next command: polled for a moment, so that a command on the heels of an answer needs no wake-up."""
    deadline = time.perf_counter_ns() + spin_ns
    while time.perf_counter_ns() < deadline:
        try:
            return channel.recv(_MAX_PACKET, socket.MSG_DONTWAIT)
        except BlockingIOError:
            continue
    return channel.recv(_MAX_PACKET)


def serve(fd: int, make: Any = Worker, further: Optional[dict[str, int]] = None) -> None:
    """Confine, then answer commands until the parent ends the process.

    Args:
        fd: the socket.
        make: makes the worker of the ABI.
        further: descriptors that have other numbers here than in the parent's words.
    """
    channel = socket.socket(fileno=fd)
    setup = {**json.loads(channel.recv(_MAX_PACKET)), **(further or {})}
    try:
        facts = confine.shut_in(setup)
        worker = make(setup)
    except (OSError, StopIteration, KeyError, RuntimeError) as error:  # the last one is a device's runtime
        channel.send(b"e" + str(error)[:500].encode("utf-8", "replace"))
        os._exit(96)
    channel.send(b"k" + json.dumps(facts).encode())
    spin_ns: int = setup["spin_ns"]
    while True:
        packet = _next(channel, spin_ns)
        if not packet:
            os._exit(0)
        channel.send(packet[:NONCE] + worker.answer(packet[NONCE : NONCE + 1], packet[NONCE + 1 :]))


if __name__ == "__main__":
    serve(int(sys.argv[1]))
