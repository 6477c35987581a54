"""`python -m akf.routes.confine.enter`: shut in, then run one command; the fallback where there is no bubblewrap.

Invariants:
- Nothing of the command runs before every step has succeeded. A step that fails is said on the descriptor `report`,
  which the command does not get; silence there means that the command was started.
- The command has no descriptor but 0, 1 and 2, no terminal, no capability, and can gain no privilege.
- It ends with its command: in a PID namespace the kernel ends the rest, without one what is left is killed here.
- When the starter dies this dies, and in a PID namespace everything with it.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
from contextlib import suppress
from typing import Any, NoReturn

from akf.routes.confine import kernel, landlock, namespaces, seccomp, tasks

_FAILED = 125
_LAST_CAPABILITY = 63
_SIGNALLED = 128
_ROUNDS = 1000


def main() -> NoReturn:
    """Do what the argument says."""
    wanted = json.loads(sys.argv[1])
    report: int = wanted["report"]
    os.set_inheritable(report, False)
    sys.excepthook = lambda _kind, error, _trace: _say(report, error)
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != wanted["starter"]:
            os._exit(_FAILED)
        if wanted["namespaces"]:
            namespaces.leave()
            os._exit(_in_namespace(wanted, report))
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        os._exit(_alone(wanted, report))
    except OSError as error:
        _say(report, error)


def _in_namespace(wanted: dict[str, Any], report: int) -> int:
    """Be the one outside, with a first process inside."""
    alive, held = os.pipe()
    first = os.fork()
    if first == 0:
        try:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            os.close(held)
            if select.select([alive], [], [], 0)[0]:  # the one outside died before it could be watched
                os._exit(_FAILED)
            if wanted["tasks"] is not None:  # before this machine's /proc is gone
                tasks.bound(wanted["tasks"])
            namespaces.make_root(wanted["root"], wanted["mounts"])
            command = _start(wanted, report)
            _leave_descriptors()
            os._exit(_reap(command))
        except OSError as error:
            _say(report, error)
    os.closerange(0, held)
    os.closerange(held + 1, _open_files())
    return _status(os.waitpid(first, 0)[1])


def _alone(wanted: dict[str, Any], report: int) -> int:
    """Start the command without a namespace, and end whatever it leaves."""
    command = _start(wanted, report)
    _leave_descriptors()
    status = _reap(command)
    for _ in range(_ROUNDS):
        for child in _children():
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    return status


def _start(wanted: dict[str, Any], report: int) -> int:
    command = os.fork()
    if command:
        return command
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        _give_up(wanted)
        os.chdir(wanted["cwd"])
        os.closerange(3, report)
        os.closerange(report + 1, _open_files())
        os.execvpe(wanted["argv"][0], wanted["argv"], wanted["env"])  # noqa: S606 - the command is the Builder's
    except OSError as error:
        _say(report, error)


def _give_up(wanted: dict[str, Any]) -> None:
    """Limits, capabilities, files, system calls; in this order, because each step may forbid the ones before it."""
    for name, bounds in wanted["limits"].items():
        limit(getattr(resource, name), *bounds)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and what it starts would too
        signal.signal(number, signal.SIG_DFL)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if wanted["namespaces"]:
        for capability in range(_LAST_CAPABILITY + 1):
            with suppress(OSError):  # this kernel knows fewer
                kernel.prctl(kernel.PR_CAPBSET_DROP, capability)
    if wanted["landlock"]:
        landlock.restrict(**wanted["landlock"])
    if wanted["seccomp"]:
        seccomp.apply(bytes.fromhex(wanted["seccomp"]))


def limit(kind: int, soft: int, hard: int) -> None:
    """Bound this process, never above what it is bound to already."""
    _, most = resource.getrlimit(kind)
    hard = hard if most == resource.RLIM_INFINITY else min(hard, most)
    resource.setrlimit(kind, (min(soft, hard), hard))


def _reap(command: int) -> int:
    """Wait for everything that ends, until the command does."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == command:
            return _status(status)


def _status(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _SIGNALLED - code


def _children() -> list[int]:
    with open("/proc/thread-self/children", encoding="ascii") as stream:  # noqa: PTH123
        return [int(word) for word in stream.read().split()]


def _leave_descriptors() -> None:
    """What the command writes to is its own: this process would keep it open."""
    os.closerange(0, _open_files())


def _open_files() -> int:
    return min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 20)


def _say(report: int, error: BaseException) -> NoReturn:
    with suppress(OSError):
        os.write(report, str(getattr(error, "strerror", None) or error).encode("utf-8", "replace"))
    os._exit(_FAILED)


if __name__ == "__main__":
    main()
