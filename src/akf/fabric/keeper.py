"""The keeper: a small process that starts packages' programs, each in namespaces of its own, and says how they ended.

It is run as a file, `python -I -S -B keeper.py`, with a socket as standard input, and imports the standard library
only. The service would have to start an interpreter for each program to do the same; the keeper only forks.

Invariants:
- A program runs below the first process of a PID namespace: when the program has ended, or that process is killed, the
  kernel ends everything in it, however it was started. That it has ended is said after that, never before.
- When the service dies, the keeper dies; when the keeper dies, everything that it started dies.
- A program sees the machine read-only. It writes in one folder, which stands for /tmp and /var/tmp, and in a /dev/shm
  of its own. Hidden folders are empty. It has the machine's devices, no network but its own loopback, no other process.
- It has no descriptor but 0, 1 and 2, no capability in its user namespace, and can gain no privilege. It may shut in
  what it starts by namespaces of its own.
- Where the kernel allows no namespaces (`isolation: "group"`) there is the end of the tree, by a sweep, no more.
- A set-up that fails is said as such. Nothing of the program has run then.
- The namespaces for the next program are made before it is asked for; each is one program's.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
from typing import Any, NoReturn

FAILED = 125
_MESSAGE_BYTES = 1 << 20
_DESCRIPTORS = 3
_LAST_CAPABILITY = 63
_SIGNALLED = 128
_ROUNDS = 1000
_TASKS = 4096
_GIVEN_ONCE = 301
_NOBODY = 65534
_OWN_PID_MAX = (6, 14)
"""Since this kernel a PID namespace has a bound of its own; before, the file is the whole machine's."""
_PDEATHSIG, _SUBREAPER, _CAP_DROP, _NO_NEW_PRIVS = 1, 36, 24, 38
_NAMESPACES = 0x10000000 | 0x00020000 | 0x20000000 | 0x08000000 | 0x04000000
_NEWNET = 0x40000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
_MOUNT_SETATTR = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_IFREQ, _UP, _SET_FLAGS = struct.Struct("16sh14x"), 1, 0x8914

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Start what comes, until the other side is gone."""
    _prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        return
    namespaces = sys.argv[2] == "namespaces"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reads them off
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's interrupt is the service's to answer
    server = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    while True:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            server.close()
            ours.close()
            os._exit(_shut_in(theirs) if namespaces else _swept(theirs))
        theirs.close()
        data, passed = _received(server)
        if not data:
            return
        with ours:
            try:
                socket.send_fds(ours, [data], passed)
            except OSError:  # whoever asked learns it from the report, which nobody holds any more
                pass
        for descriptor in passed:
            os.close(descriptor)


def _received(server: socket.socket) -> tuple[bytes, list[int]]:
    passed = array.array("i")
    data, ancillary, _, _ = server.recvmsg(_MESSAGE_BYTES, socket.CMSG_LEN(_DESCRIPTORS * passed.itemsize))
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            passed.frombytes(content[: len(content) - len(content) % passed.itemsize])
    return data, list(passed)


def _shut_in(channel: socket.socket) -> int:
    """Be the one outside: make the namespaces before anything is to run in them, and say what happens there."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _die_with_parent()
    os.setsid()
    alive, held = os.pipe()
    trouble, troubled = os.pipe()
    there, handed = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    first, why = 0, b""
    try:
        owner = os.geteuid(), os.getegid()
        user = owner[0] or _NOBODY  # from root without capabilities the kernel takes no namespace below this one
        _check(_libc.unshare(_NAMESPACES | _NEWNET), "unshare")
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {owner[0]} 1"),
            ("gid_map", "{0} {0} 1".format(owner[1])),
        ):
            _write(f"/proc/self/{name}", text)
        first = os.fork()
        if first == 0:
            for end in (held, trouble):
                os.close(end)
            channel.close()
            handed.close()
            _inside(there, alive, troubled)
    except OSError as error:
        why = _words(error)
    os.close(troubled)
    there.close()
    data, passed = _received(channel)
    if len(passed) != _DESCRIPTORS:
        return FAILED
    out, err, report = passed
    said = socket.socket(fileno=report)
    if first:
        _hand_over(said, first)
        try:
            socket.send_fds(handed, [data], [out, err])
        except OSError:  # it could not be made, and says why
            pass
    for descriptor in (out, err):
        os.close(descriptor)
    handed.close()
    status = FAILED
    if first:
        why = os.read(trouble, 4096)
        status = _status(os.waitpid(first, 0)[1])
    _say(said, {"failed": why.decode("utf-8", "replace")} if why else {"status": status})
    return 0


def _inside(there: socket.socket, alive: int, troubled: int) -> NoReturn:
    """Be the first process of the namespace: wait for a program, run it, and end with it."""
    try:
        _prctl(_PDEATHSIG, signal.SIGKILL)
        if select.select([alive], [], [], 0)[0]:  # the one outside died before it could be watched
            os._exit(FAILED)
        _arrange()
        data, passed = _received(there)
        if not data:
            os._exit(FAILED)
        there.close()
        order, (out, err) = json.loads(data), passed
        _give_place(order)
        program = os.fork()
        if program == 0:
            _become(order, out, err)
        for descriptor in (out, err, troubled):
            os.close(descriptor)
        while True:
            ended, status = os.waitpid(-1, 0)
            if ended == program:
                os._exit(_status(status))
    except OSError as error:
        os.write(troubled, _words(error))
    finally:
        os._exit(FAILED)


def _arrange() -> None:
    """Mounts, processes and network, as far as they are the same for every program."""
    _mount("none", "/", None, _REC | _PRIVATE)
    _attributes("/", _AT_RECURSIVE, put=_RDONLY | _NOSUID)
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    if tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) >= _OWN_PID_MAX:
        _write("/proc/sys/kernel/pid_max", str(_GIVEN_ONCE + _TASKS))
    if os.path.isdir("/dev/shm"):
        _mount("none", "/dev/shm", "tmpfs", _NOSUID | _NODEV, "mode=1777")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, _SET_FLAGS, _IFREQ.pack(b"lo", _UP))


def _give_place(order: dict[str, Any]) -> None:
    """The program's own folder, and nothing of what is hidden from it."""
    own = os.open(order["folder"], os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)  # its name may be hidden below
    shown = [(folder, os.open(folder, os.O_PATH | os.O_DIRECTORY)) for folder in order["shown"]]
    for folder in order["hidden"]:
        if os.path.isdir(folder):
            _mount("none", folder, "tmpfs", _RDONLY | _NOSUID | _NODEV, "size=4k,mode=555")
    for target in ("/tmp", "/var/tmp"):
        if os.path.isdir(target):
            _mount(f"/proc/self/fd/{own}", target, None, _BIND)
            _attributes(target, 0, taken=_RDONLY)
    for folder, descriptor in shown:
        os.makedirs(folder, exist_ok=True)
        _mount(f"/proc/self/fd/{descriptor}", folder, None, _BIND)


def _swept(channel: socket.socket) -> int:
    """Without namespaces: start it, and end whatever of it is left afterwards, or when this is told to."""
    _die_with_parent()
    os.setsid()
    data, passed = _received(channel)
    if len(passed) != _DESCRIPTORS:
        return FAILED
    channel.close()
    order, (out, err, report) = json.loads(data), passed
    said = socket.socket(fileno=report)
    _prctl(_SUBREAPER, 1)
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    program = os.fork()
    if program == 0:
        signal.set_wakeup_fd(-1)
        _become(order, out, err)
    for descriptor in (out, err):
        os.close(descriptor)
    _hand_over(said, os.getpid(), sweeps=True)
    status = None
    while status is None:
        if signal.SIGTERM in os.read(told, 64):
            status = _SIGNALLED + signal.SIGKILL
        status = _ended(program, status)
    for _ in range(_ROUNDS):
        below = _below(os.getpid())
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for child in below:
                _signal(child, number)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    _say(said, {"status": status})
    return 0


def _ended(program: int, status: int | None) -> int | None:
    """Read off what has ended; the program's status when it is among it."""
    while True:
        try:
            ended, code = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if ended == 0:
            return status
        if ended == program and status is None:
            status = _status(code)


def _below(root: int) -> list[int]:
    found = [root]
    for pid in found:
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as stream:
                found += [int(word) for word in stream.read().split()]
        except OSError:
            continue
    return found[1:]


def _become(order: dict[str, Any], out: int, err: int) -> NoReturn:
    """Become the program."""
    try:
        _prctl(_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        wanted = order["file_bytes"]
        resource.setrlimit(resource.RLIMIT_FSIZE, (wanted, wanted) if most < 0 else (min(wanted, most),) * 2)
        if order["isolation"] == "namespaces":
            for capability in range(_LAST_CAPABILITY + 1):
                _libc.prctl(_CAP_DROP, capability, 0, 0, 0)
        _prctl(_NO_NEW_PRIVS, 1)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.closerange(3, 1 << 16)
        os.chdir(order["cwd"])
        os.execvpe(order["argv"][0], order["argv"], order["env"])
    except OSError as error:
        os.write(2, f"cannot start {order['argv'][0]}: {error.strerror}\n".encode())
    finally:
        os._exit(FAILED + 2)


def _hand_over(said: socket.socket, pid: int, *, sweeps: bool = False) -> None:
    """Give the other side a handle by which it ends the tree."""
    handle = os.pidfd_open(pid)
    socket.send_fds(said, [json.dumps({"started": pid, "sweeps": sweeps}).encode()], [handle])
    os.close(handle)


def _say(said: socket.socket, what: dict[str, Any]) -> None:
    try:
        said.send(json.dumps(what).encode())
    except OSError:
        pass


def _words(error: OSError) -> bytes:
    return (error.strerror or str(error)).encode("utf-8", "replace")


def _die_with_parent() -> None:
    parent = os.getppid()
    _prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent or parent == 1:
        os._exit(FAILED)


def _status(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _SIGNALLED - code


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as stream:
        stream.write(text)


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    words = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _check(_libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]), f"mount {target}")


def _attributes(target: str, flags: int, put: int = 0, taken: int = 0) -> None:
    wanted = struct.pack("QQQQ", put, taken, 0, 0)
    done = _libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), flags, wanted, len(wanted))
    _check(done, f"mount attributes of {target}")


def _prctl(option: int, value: int) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    main()
