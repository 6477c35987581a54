"""The parent's handle of one child process: start, command, freeze, thaw, end.

Invariants:
- Every way in which a child can fail becomes a `ChildFailure` with a reason code.
- A packet that no command asked for, or that does not return the command's nonce, is `RESULT_FORGED`.
- When launches are answered, the child is one task: a further thread or process is `ASYNCHRONOUS_WORK`. A python
  child may keep threads that the kernel shows asleep, as torch's own pools do.
- `close` ends everything that the child started; nothing it left running survives it.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import resource
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, Optional, Union

from . import outcome
from .confine import CANDIDATE
from .memory import Arena, SealedFile
from .outcome import ChildFailure, HarnessError
from .sources import child_command
from .template import LIVE, Forked, Template
from .tree import Bundle, reread

_NONCE = 16
_PACKET = 1 << 16
_SETUP_FAILED = 96
_SIGNALLED = 128
_PF_EXITING = 0x4
_DIRECTORY_LINKS = 2
_SETTLES_S, _PAUSE_S = 0.1, 0.0005
_WAITS = {"x86_64": frozenset((7, 202, 232, 271, 281)), "aarch64": frozenset((22, 73, 98))}  # poll, epoll, futex
SPIN_LIMIT_NS = 200_000_000


@dataclass(frozen=True)
class Loadable:
    """A kernel and its launcher, sealed, with the symbol to launch."""

    kernel: SealedFile
    launcher: SealedFile
    symbol: str


@dataclass(frozen=True)
class Confinement:
    """How children are shut in."""

    isolation: str
    limits: dict[str, Any]
    cpu: Optional[int] = None
    spin_ns: int = 0
    device: str = "cpu"
    trees: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Mapping:
    """One line of a process's maps."""

    start: int
    end: int
    executable: bool
    device: str
    inode: int
    path: str


def _read(path: str) -> str:
    """A small file of /proc, without pathlib: a hot path."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, _PACKET).decode("utf-8", "replace")
    finally:
        os.close(fd)


def _tasks(pid: int) -> list[str]:
    """The threads of a process; none when it is gone."""
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - a hot path
    except (FileNotFoundError, ProcessLookupError):
        return []


def children_of(pid: int) -> list[int]:
    """Direct children, from the kernel's own list."""
    found: list[int] = []
    for task in _tasks(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += [int(item) for item in _read(f"/proc/{pid}/task/{task}/children").split()]
    return found


def _task_stat(pid: int, task: str) -> tuple[str, int]:
    """State and flags of one thread; `X` when it is gone."""
    try:
        fields = _read(f"/proc/{pid}/task/{task}/stat").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "X", _PF_EXITING
    return fields[0], int(fields[6])


def _sleeps(pid: int, task: str) -> bool:
    """Whether a stopped thread was stopped in a wait without end, as one of an idle pool is."""
    try:
        number = _read(f"/proc/{pid}/task/{task}/syscall").split()[0]
    except (OSError, IndexError):
        return False
    return number.isdigit() and int(number) in _WAITS.get(platform.machine(), frozenset())


def _stands(pid: int) -> bool:
    """Whether no thread of a process can run: each is stopped or has ended."""
    return all(_task_stat(pid, task)[0] in "TtZX" for task in _tasks(pid))


def _oom_kills() -> int:
    """How many processes the kernel has killed for want of memory since it started."""
    try:
        lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def _cpu_of_ended() -> float:
    """CPU seconds of children that were waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def descendants(pid: int) -> list[int]:
    """Children, their children, and so on."""
    found: list[int] = []
    queue = [pid]
    while queue:
        for child in children_of(queue.pop()):
            found.append(child)
            queue.append(child)
    return found


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _text(value: object) -> str:
    """What a child says, as text that every encoder takes."""
    return str(value)[:500].encode("utf-8", "replace").decode()


def _line(value: object) -> int:
    """What a child says is a number of a line."""
    return value if isinstance(value, int) and 0 <= value < 1 << 31 else 0


class Child:
    """One child process with one loaded kernel."""

    def __init__(
        self,
        loadable: Union[Loadable, Bundle],
        arena: Arena,
        confinement: Confinement,
        template: Optional[Template] = None,
    ) -> None:
        self._timeout = float(confinement.limits["timeout_s"])
        self._spin = socket.MSG_DONTWAIT if confinement.spin_ns else 0
        self._log_fd = os.memfd_create("log", os.MFD_CLOEXEC)
        self._failed: Optional[ChildFailure] = None
        self._stopped: set[int] = set()
        self._watched: list[int] = []
        self._cpu_s = int(confinement.limits["cpu_s"])
        self._oom_kills = _oom_kills()
        self._python = isinstance(loadable, Bundle)
        self._single = isinstance(loadable, Bundle) and loadable.single
        self._tree: Optional[str] = None
        self._copies = isinstance(loadable, Bundle) and confinement.device != "cpu"
        self.log = ""
        self.facts: dict[str, Any] = {}
        self.pid = 0
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = mine
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            whole, part = divmod(self._timeout, 1.0)
            mine.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", int(whole), int(part * 1e6)))
        setup: dict[str, Any] = {
            "isolation": confinement.isolation,
            "limits": {
                **confinement.limits,
                "memory_bytes": int(confinement.limits["memory_bytes"]) + arena.size,
            },
            "cpu": confinement.cpu,
            "spin_ns": confinement.spin_ns,
            "arena_fd": arena.fd,
            "arena_bytes": arena.size,
        }
        self._process: Union[subprocess.Popen[bytes], Forked]
        with theirs:
            if isinstance(loadable, Bundle):
                if template is None:
                    raise TypeError("a module needs a template to fork from")
                setup |= {"device": confinement.device, "tree": confinement.trees.get(loadable.key, "")}
                self._tree = setup["tree"] or CANDIDATE
                first = {"module": loadable.module, "function": loadable.function}
                self._process = template.fork([theirs.fileno(), self._log_fd, arena.fd, loadable.files.fd])
            else:
                setup |= {"kernel_fd": loadable.kernel.fd, "launcher_fd": loadable.launcher.fd}
                first = {"symbol": loadable.symbol}
                self._process = subprocess.Popen(
                    child_command(theirs.fileno()),
                    env={},
                    pass_fds=(theirs.fileno(), arena.fd, loadable.kernel.fd, loadable.launcher.fd),
                    stdin=subprocess.DEVNULL,
                    stdout=self._log_fd,
                    stderr=self._log_fd,
                    cwd="/",
                    start_new_session=True,
                )
        self.session = self._process.pid
        LIVE.add(self.session)
        try:
            mine.send(json.dumps(setup).encode())
            greeting = self._receive()
            if greeting[:1] != b"k":
                self._fail(outcome.ISOLATION_UNAVAILABLE, greeting[1:].decode("utf-8", "replace"))
            self.facts = json.loads(greeting[1:])
            self.pid = self._inner(confinement.isolation)
            self._own = frozenset(_tasks(self.pid))  # the first, and those of a device's runtime
            self._watch(alone=confinement.isolation == "userns")
            function = self.ask(b"L", first, "function")["function"]
            self.function = function if isinstance(function, int) else 0
        except BaseException:
            self.close()
            raise

    def _inner(self, isolation: str) -> int:
        if isolation != "userns":
            return self._process.pid
        inner = children_of(self._process.pid)
        if len(inner) != 1:
            self._fail(outcome.ISOLATION_UNAVAILABLE, "the kernel does not list the child's inner process")
        return inner[0]

    def _watch(self, *, alone: bool) -> None:
        """Open the kernel's lists of the child's threads and children; without a PID name space ours too."""
        ours = [] if alone else [f"/proc/self/task/{os.getpid()}/children"]
        try:
            for path in (f"/proc/{self.pid}/task", f"/proc/{self.pid}/task/{self.pid}/children", *ours):
                self._watched.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            self._fail(outcome.ISOLATION_UNAVAILABLE, f"the kernel does not list the child's tasks: {error}")

    def ask(self, operation: bytes, command: dict[str, Any], *expected: str) -> dict[str, Any]:
        """A command whose answer is JSON with the expected members."""
        nonce = self._begin()
        self._send(nonce + operation + json.dumps(command).encode())
        answer = self._checked(self._receive(), nonce)
        try:
            value = json.loads(answer)
        except (ValueError, RecursionError):
            self._fail(outcome.RESULT_FORGED, "an answer that is not JSON")
        if not isinstance(value, dict) or not set(expected) <= set(value):
            self._fail(outcome.RESULT_FORGED, "an answer of another form")
        return value

    def run(self, first: int, count: int, meanwhile: Optional[Callable[[], bool]] = None) -> tuple[int, int]:
        """Launch and time. Returns the parent's nanoseconds and the child's own, untrusted figure.

        While the answer is polled for, on a core of our own, `meanwhile` is called until it returns true.

        After launches the child is stopping, and it was found alone: nothing else can finish what it answered for.
        """
        if count and self._copies:
            self.ask(b"S", {})
        nonce = self._begin()
        packet = nonce + b"R" + struct.pack("<QQ", first, count)
        start = time.perf_counter_ns()
        self._send(packet)
        answer = self._poll(start, meanwhile) if self._spin else self._receive()
        elapsed = time.perf_counter_ns() - start
        if count:
            self._expect_alone()
        body = self._checked(answer, nonce)
        try:
            done, begun, ended = struct.unpack("<qqq", body)
        except struct.error:
            self._fail(outcome.RESULT_FORGED, "an answer of another size")
        if done != count:
            self._fail(outcome.RESULT_FORGED, f"{done} launches done, {count} asked for")
        if count and self._copies:
            self._fetch()
        return elapsed, ended - begun

    def _fetch(self) -> None:
        """Let the stopped child run on, to copy its results from the device."""
        _kill(self.pid, signal.SIGCONT)
        self.ask(b"F", {})

    def _expect_alone(self) -> None:
        """Exactly one task may exist. The stop comes first: afterwards only another process could still work."""
        _kill(self.pid, signal.SIGSTOP)
        tasks, children, *ours = self._watched
        try:
            further = os.pread(children, _PACKET, 0)
            threads = os.fstat(tasks).st_nlink - _DIRECTORY_LINKS
        except (FileNotFoundError, ProcessLookupError):
            return  # it ended: the next command says how
        strangers = [pid for fd in ours for pid in map(int, os.pread(fd, _PACKET, 0).split()) if pid not in LIVE]
        if further or strangers:
            self._fail(outcome.ASYNCHRONOUS_WORK, "a process that the kernel has started outlives the launch")
        if threads > len(self._own) and self._live_threads():
            self._fail(outcome.ASYNCHRONOUS_WORK, "a thread that the kernel has started outlives the launch")

    def _live_threads(self) -> int:
        """Threads beyond our own that are not on their way out: one that was joined may still be leaving.

        Threads of a module that sleep do not count. A thread that was just stopped, or let run, is seen asleep a moment
        later only; one that works is seen at work, or stopped at work, all the time.
        """
        deadline = time.monotonic() + (_SETTLES_S if self._python else 0.0)
        while True:
            further = [task for task in _tasks(self.pid) if task not in self._own]
            further = [task for task in further if not _task_stat(self.pid, task)[1] & _PF_EXITING]
            if self._python:
                further = [task for task in further if not _sleeps(self.pid, task)]
            if not further or time.monotonic() >= deadline:
                return len(further)
            time.sleep(_PAUSE_S)

    def freeze(self) -> None:
        """Stop the whole tree; returns when no task of it can run."""
        self._stopped = set()
        deadline = time.monotonic() + self._timeout
        while not self._stands():
            if time.monotonic() > deadline:
                self._fail(outcome.CHILD_TIMEOUT, "the child does not stop")
        self._expect_silence()

    def _stands(self) -> bool:
        """One round: stop what is not stopped yet; true when all of it was, and nothing was added meanwhile."""
        tree = {self.pid, *descendants(self.pid)}
        for pid in tree - self._stopped:
            _kill(pid, signal.SIGSTOP)
        self._stopped |= tree
        return all(_stands(pid) for pid in tree) and tree == {self.pid, *descendants(self.pid)}

    def thaw(self) -> None:
        """Let the tree run on."""
        for pid in self._stopped:
            _kill(pid, signal.SIGCONT)
        self._stopped = set()

    def trace(self) -> list[dict[str, Any]]:
        """One untimed call, watched: the exceptions that the candidate swallowed, as far as the child can tell."""
        if self._copies:
            self.ask(b"S", {})
        found = self.ask(b"T", {}, "swallowed")["swallowed"]
        self._expect_alone()
        if self._copies:
            self._fetch()
        try:
            return [
                {
                    "exception": _text(each["exception"]),
                    "function": _text(each["function"]),
                    "line": _line(each["line"]),
                }
                for each in found
            ]
        except (TypeError, KeyError):
            self._fail(outcome.RESULT_FORGED, "an answer of another form")

    def tree(self) -> str:
        """The digest of a module's files as they lie in the child's file system; empty for a shared object."""
        if self._tree is None:
            return ""
        return reread(f"/proc/{self.pid}/root{self._tree}", single=self._single)

    def cpu_ns(self) -> int:
        """Processor time of all its threads, from the kernel."""
        try:
            return time.clock_gettime_ns((~self.pid << 3) | 2)
        except OSError:
            return 0

    def maps(self) -> list[Mapping]:
        """What the process maps, from the kernel."""
        found = []
        for line in Path(f"/proc/{self.pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines():
            span, permissions, _, device, inode, *path = line.split(maxsplit=5)
            start, end = (int(part, 16) for part in span.split("-"))
            found.append(Mapping(start, end, "x" in permissions, device, int(inode), path[0] if path else ""))
        return found

    def left_running(self) -> int:
        """How many threads and processes the child has started that still exist."""
        return len(descendants(self.pid)) + self._live_threads()

    def close(self) -> None:
        """End the child and everything below it, keep a bounded piece of its log."""
        process = self._process
        if self.pid:
            _kill(self.pid, signal.SIGSTOP)
            for pid in reversed(descendants(self.pid)):
                _kill(pid, signal.SIGKILL)
            _kill(self.pid, signal.SIGKILL)
        else:
            for pid in reversed(descendants(process.pid)):
                _kill(pid, signal.SIGKILL)
            process.kill()
        _kill(process.pid, signal.SIGCONT)  # the candidate may have stopped whoever waits for it
        try:
            process.wait(self._timeout + 5)
        except subprocess.TimeoutExpired:
            raise HarnessError(outcome.ISOLATION_UNAVAILABLE, "a child that was killed does not end", 6) from None
        LIVE.discard(process.pid)
        _reap_orphans()
        self._socket.close()
        for fd in self._watched:
            os.close(fd)
        self._watched = []
        if self._log_fd >= 0:
            self.log = os.pread(self._log_fd, 4096, 0).decode("utf-8", "replace")
            os.close(self._log_fd)
            self._log_fd = -1

    def _begin(self) -> bytes:
        if self._failed is not None:
            raise self._failed
        self._expect_silence()
        return os.urandom(_NONCE)

    def _expect_silence(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            if self._socket.recv(_PACKET, socket.MSG_DONTWAIT):
                self._fail(outcome.RESULT_FORGED, "a packet that no command asked for")

    def _send(self, packet: bytes) -> None:
        try:
            self._socket.send(packet)
        except OSError:
            self._ended()

    def _receive(self) -> bytes:
        try:
            packet = self._socket.recv(_PACKET)
        except BlockingIOError:
            if self._process.poll() is None:
                self._fail(outcome.CHILD_TIMEOUT, f"no answer within {self._timeout} s")
            packet = b""
        except ConnectionError:
            packet = b""
        if not packet:
            self._ended()
        return packet

    def _poll(self, start: int, meanwhile: Optional[Callable[[], bool]]) -> bytes:
        """As `_receive`, on a core of our own: without the wake-up that would be in the measured time."""
        give_up = start + SPIN_LIMIT_NS
        while time.perf_counter_ns() < give_up:
            try:
                packet = self._socket.recv(_PACKET, socket.MSG_DONTWAIT)
            except BlockingIOError:
                if meanwhile is not None and meanwhile():
                    meanwhile = None
                continue
            except ConnectionError:
                break
            if packet:
                return packet
            break
        return self._receive()

    def _checked(self, packet: bytes, nonce: bytes) -> bytes:
        if packet[:_NONCE] != nonce:
            self._fail(outcome.RESULT_FORGED, "an answer with another nonce")
        status, body = packet[_NONCE : _NONCE + 1], packet[_NONCE + 1 :]
        if status == b"r":
            self._refused(body)
        if status != b"k":
            self._fail(outcome.CHILD_LOAD_FAILED, body[:500].decode("utf-8", "replace"))
        return body

    def _refused(self, body: bytes) -> NoReturn:
        """What a python child says of its candidate: untrusted, and at worst to the candidate's own loss."""
        try:
            code, detail = json.loads(body)
        except (ValueError, TypeError, RecursionError):
            self._fail(outcome.RESULT_FORGED, "a refusal that is not JSON")
        if not isinstance(code, str) or code not in outcome.REFUSED_RESULTS:
            self._fail(outcome.RESULT_FORGED, "a refusal without a known code")
        self._fail(code, _text(detail))

    def _ended(self) -> NoReturn:
        before = _cpu_of_ended()
        try:
            status = self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._fail(outcome.RESULT_FORGED, "the child closed its channel and runs on")
        number = -status if status < 0 else status - _SIGNALLED
        if status == _SETUP_FAILED:
            self._fail(outcome.ISOLATION_UNAVAILABLE, "the child could not be confined")
        if number <= 0:
            self._fail(outcome.CHILD_EXITED, f"exit status {status}")
        if number == signal.SIGKILL:
            self._killed(_cpu_of_ended() - before)
        if number == signal.SIGXCPU:
            self._fail(outcome.CHILD_TIMEOUT, "out of CPU seconds")
        known = number in set(signal.Signals)
        self._fail(outcome.CHILD_CRASHED, signal.Signals(number).name if known else f"signal {number}")

    def _killed(self, cpu_s: float) -> NoReturn:
        """Who sent SIGKILL is not recorded; a limit is named only when it was seen to be reached."""
        if _oom_kills() > self._oom_kills:
            self._fail(outcome.CHILD_OOM, "killed while the kernel was short of memory")
        if cpu_s >= self._cpu_s:
            self._fail(outcome.CHILD_TIMEOUT, "out of CPU seconds")
        self._fail(outcome.CHILD_KILLED, "ended by SIGKILL, not at a limit of memory or CPU seconds")

    def _fail(self, code: str, detail: str) -> NoReturn:
        self._failed = ChildFailure(code, detail)
        raise self._failed


def _reap_orphans() -> None:
    """Kill and reap what a child without a PID namespace left to us, its nearest subreaper."""
    for pid in children_of(os.getpid()):
        if pid not in LIVE:
            for below in reversed(descendants(pid)):
                _kill(below, signal.SIGKILL)
            _kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
