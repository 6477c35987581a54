"""The harness as a program: packed once, started under an interpreter, answered in files.

Invariants:
- The harness runs as a zipapp in a process of its own; nothing of it is imported here.
- It dies with the evaluator. Where it is handed to a worker, the worker ends it.
- What it answers is read only when it ended as agreed; anything else is a BlockedError or an IntegrityError.
- Its digest is over the zipapp's bytes, which are the same for the same sources.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from akf.contracts.canonical import digest_file
from akf.contracts.problems import BlockedError, DefectError, IntegrityError, InvalidError

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MAIN = b"import sys\nfrom akf_harness.main import main\nsys.exit(main(sys.argv[1:]))\n"
_INTEGRITY, _BLOCKED = 3, 6
_BAD_REFERENCE = "harness: REFERENCE_INVALID"


Elsewhere = Callable[[Path, str, dict[str, Any], float], tuple[int, str, dict[str, bytes]]]
"""Runs a command of the packed harness somewhere: exit status, what it said, its files.

A BlockedError or a ConflictError of it is the machine's fault.
"""


class Program(NamedTuple):
    """The packed harness, and who runs it; none is a process of this machine."""

    path: Path
    digest: str
    elsewhere: Elsewhere | None = None


class Answer(NamedTuple):
    """What one command of the harness left."""

    report: dict[str, Any]
    files: dict[str, bytes]


def pack(out: Path, elsewhere: Elsewhere | None = None) -> Program:
    """Write the harness as a deterministic zipapp into the folder `out`."""
    target = out / "harness.pyz"
    package = Path(__file__).resolve().parents[1] / "harness"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "__main__.py", _MAIN)
        for path in sorted(package.glob("*.py"), key=lambda path: path.name):
            _add(archive, f"akf_harness/{path.name}", path.read_bytes())
    return Program(target, digest_file(target), elsewhere)


def run(
    program: Program,
    command: str,
    request: dict[str, Any],
    work: Path,
    timeout_s: float,
    interpreter: str = sys.executable,
) -> Answer:
    """Run one command of the harness.

    Args:
        program: the packed harness.
        command: `check`, `calibrate` or `measure`.
        request: the request.
        work: an existing folder; the command gets a new one in it.
        timeout_s: seconds before the whole process group is killed.
        interpreter: the arm's; it needs numpy, and torch where an object of the request is Python.

    Raises:
        BlockedError: the machine cannot do it, or it took too long.
        IntegrityError: an object is not what its digest says.
        InvalidError: the Task's reference does not run.
    """
    if program.elsewhere is not None:
        status, said, files = program.elsewhere(program.path, command, request, timeout_s)
        _ended(status, said, command)
        return Answer(orjson.loads(files.pop("report.json")), files)
    out = work / command
    out.mkdir()
    path = work / f"{command}.json"
    path.write_bytes(orjson.dumps(request))
    process = subprocess.Popen(
        [interpreter, "-I", "-B", str(program.path), command, str(path), str(out)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={"PATH": os.defpath, "LANG": "C.UTF-8"},
        preexec_fn=partial(_die_with, os.getpid()),  # noqa: PLW1509 - no threads here; its own children die with it in turn
    )
    try:
        _, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        message = f"the harness did not finish `{command}` within {timeout_s:.0f} s"
        raise BlockedError.of(
            "AKF-E104", message, hint="run on an idle machine, or raise the Task's evaluation_s"
        ) from error
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stderr is not None:
            process.stderr.close()
    _ended(process.returncode, errors.decode("utf-8", "replace"), command)
    files = {file.name: file.read_bytes() for file in sorted(out.iterdir()) if file.is_file()}
    return Answer(orjson.loads(files.pop("report.json")), files)


def require_numpy() -> None:
    """Refuse beforehand where the harness could not start.

    Raises:
        BlockedError: this interpreter lacks numpy.
    """
    if find_spec("numpy") is None:
        raise _no_numpy()


def _no_numpy() -> BlockedError:
    hint = 'python -m pip install "ascend-kernel-forge[host]"'
    message = "the harness needs numpy, which this interpreter lacks"
    return BlockedError.of("AKF-E102", message, expected="numpy", hint=hint)


def _die_with(parent: int) -> None:
    """An evaluator that is killed takes its harness along, which would disturb the next one."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it was killed before this
        os._exit(1)


def _ended(returncode: int, errors: str, command: str) -> None:
    if returncode == 0:
        return
    lines = errors.strip().splitlines()
    text = lines[-1][:400] if lines else f"exit status {returncode}"
    if "No module named 'numpy'" in errors:
        raise _no_numpy()
    if returncode < 0:
        number = -returncode
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        message = f"the harness was ended by {name} during `{command}`"
        raise BlockedError.of("AKF-E103", message, hint="is there memory enough? nothing was judged; run it again")
    if returncode == _INTEGRITY:
        raise IntegrityError.of("AKF-I215", f"the harness refused an object: {text}")
    if returncode == _BLOCKED:
        raise BlockedError.of(
            "AKF-E103", f"the harness cannot measure here: {text}", hint="see the message; nothing was judged"
        )
    if text.startswith(_BAD_REFERENCE):
        hint = "correct reference.py and open it as a new Task: a frozen one is never changed"
        raise InvalidError.of("AKF-M033", f"the Task's reference cannot be used: {text}", hint=hint)
    raise DefectError.of("AKF-X002", f"the harness failed at `{command}`: {text}", found=lines[-8:])


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, data)
