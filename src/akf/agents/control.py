"""The control plane as everybody reaches it: the command line, as a process of its own.

Invariants:
- The words are a list; nothing of them goes through a shell, and no module of the working folder is imported.
- An answer is one JSON document or it is a fault.
- The process gets an environment of named variables only: no key of a model is among them.
- A process that is stopped, for whatever reason, takes its group with it.
- An answer is read up to `MAX_ANSWER` bytes, and what stands in it is data.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from akf.contracts.problems import AkfError, DefectError, PreconditionError, Problem
from akf.contracts.text import printable

MAX_ANSWER = 16 * 1024 * 1024
GRACE_S = 5.0
PASSED_ON = (
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "VIRTUAL_ENV", "LD_LIBRARY_PATH",
    "AKF_STATE", "AKF_LEASES", "AKF_TOOLCHAINS",
)  # fmt: skip


class Answer(NamedTuple):
    """What one command said."""

    status: int
    document: dict[str, Any]

    def need(self) -> dict[str, Any]:
        """The document of a command that succeeded.

        Raises:
            AkfError: the command's own problems, with its exit status.
        """
        if self.status == 0:
            return self.document
        raise refused(self.status, self.document)


def refused(status: int, document: Mapping[str, Any]) -> AkfError:
    """The refusal of a command, to be passed on with its exit status."""
    problems = [_problem(each) for each in document.get("problems", ()) if isinstance(each, dict)]
    error = next((kind for kind in AkfError.__subclasses__() if kind.exit_code == status), DefectError)
    return error(problems or [Problem("AKF-X720", f"a command ended with status {status} and gave no reason")])


def _problem(value: Mapping[str, Any]) -> Problem:
    fields = ("file", "pointer", "line", "column", "expected", "found", "hint")
    return Problem(str(value.get("code")), str(value.get("message")), **{name: value.get(name) for name in fields})


def akf(*words: str | Path, limit_s: float, cwd: Path | None = None) -> Answer:
    """Run one command to its end.

    Args:
        words: what stands after `akf`.
        limit_s: seconds after which it is stopped.
        cwd: folder to run in.

    Raises:
        PreconditionError: it was stopped because its time was over.
        DefectError: it gave no JSON document.
    """
    command = [sys.executable, "-P", "-m", "akf", *map(str, words)]
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    with tempfile.TemporaryFile() as out:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL, env=environment, cwd=cwd,
            start_new_session=True,
        ) as process:  # fmt: skip
            try:
                status = process.wait(limit_s)
            except subprocess.TimeoutExpired as error:
                _stop(process)
                message = f"akf {words[0]} took more than {limit_s:.0f} s and was stopped"
                raise PreconditionError.of("AKF-P722", message, hint="the limit is the Task's") from error
            except BaseException:
                _stop(process)
                raise
        out.seek(0)
        data = out.read(MAX_ANSWER + 1)
    try:
        document = orjson.loads(data) if len(data) <= MAX_ANSWER else None
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        start = printable(data[:200].decode(errors="replace"))
        raise DefectError.of("AKF-X720", f"akf {words[0]} ended with status {status} and no JSON document: {start!r}")
    return Answer(status, document)


def _stop(process: subprocess.Popen[bytes]) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
