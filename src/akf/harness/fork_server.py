"""Runs as the template of python children: imports torch once, forks a pristine child per request.

Invariants:
- No candidate is ever loaded here; a child is a copy of the process as it was after the import.
- A child is handed to the program that measures: it becomes its child, and is confined like any other.
- One thread: `fork` copies only that one, and a process of more cannot enter a user name space.

Self-contained: it is sent to the process as text.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import socket
import sys
import time

from . import devices, python_child

_PACKET = 1 << 16
_PR_SET_PDEATHSIG = 1
_NAMES = ("channel", "log", "arena", "files")


def _forked(server: socket.socket, fds: list[int]) -> int:
    """Fork twice, so that the child falls to the subreaper that asked. Returns its id."""
    reader, writer = os.pipe()
    between = os.fork()
    if between:
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            pid = int(stream.read() or b"0")
        os.waitpid(between, 0)
        return pid
    try:
        between = os.getpid()
        pid = os.fork()
        if pid:
            os.write(writer, b"%d" % pid)
            os._exit(0)
        for fd in (server.fileno(), reader, writer):
            os.close(fd)
        while os.getppid() == between:
            time.sleep(0.0002)
        _become(dict(zip(_NAMES, fds)))  # noqa: B905 - no strict= in Python 3.9
    finally:
        os._exit(97)


def _become(given: dict[str, int]) -> None:
    """The child: a session of its own, its log as output."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for fd, target in ((nothing, 0), (given["log"], 1), (given["log"], 2)):
        os.dup2(fd, target)
    os.close(nothing)
    os.close(given["log"])
    python_child.main(given["channel"], {"arena_fd": given["arena"], "files_fd": given["files"]})


def serve(fd: int) -> None:
    """Import, say what is there, then fork on request until the asking side is gone."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    server = socket.socket(fileno=fd)
    request = json.loads(server.recv(_PACKET))
    ready = devices.prepare(request["device"], request["threads"])
    gc.collect()
    gc.freeze()  # a child's collections leave alone, and so do not copy, what all of them share
    server.send(json.dumps(ready).encode())
    while True:
        packet, fds, _, _ = socket.recv_fds(server, _PACKET, len(_NAMES))
        if not packet:
            os._exit(0)
        server.send(b"%d" % _forked(server, fds))
        for each in fds:
            os.close(each)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
