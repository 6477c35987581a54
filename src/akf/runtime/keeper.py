"""The program that holds one agent's process and everything that it starts; it imports nothing of AKF.

Invariants:
- It reads one line of JSON, forks, and lets the child answer on standard output; what the child prints goes to
  standard error.
- It is the reaper of all that descends from it, also of what was put into another session. When the child ends, or
  standard input does (because the runtime lets go, or is dead), every descendant is killed before it ends itself.
- The kernel tells it of the runtime's end as well: who else may hold the other end of standard input keeps nothing
  alive. Likewise the child ends with its keeper.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import json
import os
import resource
import select
import signal
import sys
import traceback
from contextlib import suppress
from typing import Any

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_TRACE = 8192


class _Over(Exception):  # noqa: N818 - what it is
    """The runtime is dead."""


def main() -> int:
    """Keep one process."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    request = json.loads(_line())
    keeper = os.getpid()
    child = os.fork()
    if not child:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os._exit(_child(request) if os.getppid() == keeper else 1)
    os.close(1)
    ended = os.pidfd_open(child)
    with suppress(_Over):
        signal.signal(signal.SIGTERM, _over)
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() == request["runtime"]:
            select.select([ended, 0], [], [])
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    status = 1
    while True:
        for each in _descendants():
            _kill(each)
        try:
            pid, found = os.wait()
        except ChildProcessError:
            break
        if pid == child:
            status = os.waitstatus_to_exitcode(found) % 256
    return status


def _over(*_: object) -> None:
    raise _Over


def _line() -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        part = os.read(0, 65536)
        if not part:
            sys.exit(1)
        data += part
    return data


def _descendants() -> list[int]:
    found, waiting = [], [os.getpid()]
    while waiting:
        pid = waiting.pop()
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123 - starts faster without pathlib
                children = [int(each) for each in file.read().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += children
        waiting += children
    return found


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _child(request: dict[str, Any]) -> int:
    answer = os.dup(1)
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if request["memory_bytes"] is not None:
        resource.setrlimit(resource.RLIMIT_AS, (request["memory_bytes"],) * 2)
    try:
        sys.path[:] = request["path"]
        text = json.dumps({"value": _function(request["target"])(request["node"])}, allow_nan=False)
    except BaseException as error:  # noqa: BLE001 - told to the runtime, whatever it is
        form = {
            "type": type(error).__name__,
            "message": str(error)[:1000],
            "traceback": traceback.format_exc()[-_TRACE:],
        }
        text = json.dumps({"error": form})
    data = text.encode()
    while data:
        data = data[os.write(answer, data) :]
    sys.stdout.flush()
    sys.stderr.flush()
    return 0


def _function(target: str) -> Any:
    place, _, name = target.partition(":")
    if place.endswith(".py"):
        spec = importlib.util.spec_from_file_location("akf_process_agent", place)
        assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - a path that ends in .py has both
        found: Any = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = found
        spec.loader.exec_module(found)
    else:
        found = importlib.import_module(place)
    for part in name.split("."):
        found = getattr(found, part)
    return found


if __name__ == "__main__":
    sys.exit(main())
