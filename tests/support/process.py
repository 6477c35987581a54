"""Run a function in a child: as another user, at the same moment as others, or to be killed."""

import json
import os
import signal
import stat
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

NOBODY = 65534


def fork() -> int:
    """Fork without the warning about the threads of pytest-xdist, which the child does not use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


class Child:
    """A function that runs in a fork; `result` waits for what it returned."""

    def __init__(self, function: Callable[[], Any], *, uid: int | None = None) -> None:
        self._reader, writer = os.pipe()
        self.pid = fork()
        if self.pid == 0:
            _run(function, uid, writer)
        os.close(writer)

    def result(self) -> Any:
        """Return what the function returned, or raise AssertionError with the child's traceback."""
        with os.fdopen(self._reader, "rb") as stream:
            said = stream.read()
        os.waitpid(self.pid, 0)
        told = json.loads(said or b'{"trace": "the child said nothing"}')
        if "trace" in told:
            raise AssertionError(told["trace"])
        return told["value"]

    def kill(self) -> None:
        """Kill the child and wait until it is gone."""
        os.close(self._reader)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def in_child(function: Callable[[], Any], *, uid: int | None = None) -> Any:
    """Run a function in a fork, as another user if asked, and return what it returns (JSON)."""
    return Child(function, uid=uid).result()


def together(functions: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run functions at the same moment, each in a process of its own."""
    reader, writer = os.pipe()

    def waiting(function: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            os.close(writer)
            os.read(reader, 1)  # returns when every copy of the other end is closed
            return function()

        return run

    children = [Child(waiting(function)) for function in functions]
    os.close(reader)
    os.close(writer)
    return [child.result() for child in children]


def _run(function: Callable[[], Any], uid: int | None, writer: int) -> NoReturn:
    try:
        if uid is not None and os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        told = {"value": function()}
    except BaseException:  # noqa: BLE001 - reported to the parent, which raises
        told = {"trace": traceback.format_exc()}
    try:
        data = json.dumps(told).encode()
        while data:
            data = data[os.write(writer, data) :]
    finally:
        os._exit(0)


def open_to_others(folder: Path) -> None:
    """Let another user come to a folder of this test's; or what refuses that user is something else than is tested."""
    for each in (folder, *folder.parents):
        status = each.stat()
        if status.st_uid == os.geteuid() and not status.st_mode & stat.S_ISVTX:
            each.chmod(stat.S_IMODE(status.st_mode) | 0o055)
