"""Leases of one machine: a file per device, locked by the kernel.

Invariants:
- Who holds a device holds an exclusive `flock` on its file. The kernel drops it when the holder ends in whatever way,
  so nothing expires and nobody's lease is taken from a process that may still run.
- Several devices are taken in the order of their names, and none is kept while another is waited for: takers in
  opposite orders cannot wait for each other.
- The token is on the disk before the lease is given. It is one more than the largest that a file of these devices
  holds; a file's first token is the time in milliseconds, so tokens rise even where files were lost.
- A file is one record of fixed size, written in one call: token, then who holds it, for people. It is never removed.
  Whoever may write the folder may write the file.
- A record that cannot be read is refused. A token is not guessed.
- A fork of the holder is no holder: it drops what it inherited, so a helper that outlives its parent keeps nothing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from akf.contracts.problems import ConflictError, IntegrityError, UsageError
from akf.contracts.text import printable
from akf.lease.protocol import Lease
from akf.store._system import alive, process_start, storage, storage_error

VARIABLE = "AKF_LEASES"
MACHINE = Path("/var/tmp/akf-leases")  # noqa: S108 - shared by all users on purpose; links are not followed
RECORD_BYTES = 512
_TOKEN_DIGITS = 20
_OWNER_BYTES = 300
_POLL_S = 0.02
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


class _Held(NamedTuple):
    path: Path
    descriptor: int


def default_folder() -> Path:
    """Where this machine's leases are: ``$AKF_LEASES``, else a folder that all its users share."""
    return Path(os.environ.get(VARIABLE) or MACHINE)


class FileLeases:
    """Leases that are kept in a folder.

    Args:
        folder: where; it is made when it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[Lease, list[_Held]] = {}
        _EVERY.add(self)

    def acquire(self, devices: Sequence[str], owner: str, wait_s: float = 0.0) -> Lease:
        """See `Leases.acquire`."""
        names = tuple(sorted(set(devices)))
        wrong = [name for name in names if not _NAME.fullmatch(name)]
        if wrong or not names:
            message = (
                f"{printable(wrong[0])!r} is no name of a device" if wrong else "a lease names at least one device"
            )
            raise UsageError.of("AKF-U120", message, expected=_NAME.pattern, found=list(wrong))
        self._make_folder()
        deadline = time.monotonic() + wait_s
        while True:
            taken, busy = self._try(names)
            if busy is None:
                break
            if time.monotonic() >= deadline:
                raise _busy(busy)
            os.close(busy.descriptor)
            time.sleep(_POLL_S)
        try:
            lease = Lease(names, owner, _next_token([_token(held) for held in taken]))
            for held in taken:
                _write(held, lease.token, owner)
        except BaseException:
            _close(taken)
            raise
        self._held[lease] = taken
        return lease

    def check(self, lease: Lease) -> None:
        """See `Leases.check`: the files are still those that were locked, and name this token and process."""
        taken = self._held.get(lease, [])
        if not taken:
            raise _lost(lease, "it was released, or is not this process's")
        for held in taken:
            with storage(held.path, "read"):
                own = os.fstat(held.descriptor)
            try:
                there = held.path.lstat()
            except OSError:
                raise _lost(lease, f"{held.path} is gone") from None
            record = _read(held)
            if (there.st_dev, there.st_ino) != (own.st_dev, own.st_ino):
                raise _lost(lease, f"{held.path} is another file now")
            if _number(record) != lease.token or _holder(record).get("pid") != os.getpid():
                raise _lost(lease, f"{held.path} names token {_number(record)}")

    def release(self, lease: Lease) -> bool:
        """See `Leases.release`."""
        taken = self._held.pop(lease, None)
        if taken is None:
            return False
        for held in taken:
            with suppress(OSError):  # the kernel drops the lock all the same
                _write(held, lease.token, None)
        _close(taken)
        return True

    def _make_folder(self) -> None:
        with storage(self._folder, "create"):
            if self._folder.is_symlink():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self._folder))
            if self._folder.is_dir():
                return
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                self._folder.mkdir()
                if self._folder == MACHINE:
                    self._folder.chmod(0o1777)

    def _try(self, names: tuple[str, ...]) -> tuple[list[_Held], _Held | None]:
        """All of them, or the one that another has."""
        taken: list[_Held] = []
        try:
            for name in names:
                held = self._open(name)
                try:
                    fcntl.flock(held.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    _close(taken)
                    return [], held
                except OSError as error:
                    os.close(held.descriptor)
                    raise storage_error(held.path, error, "lock") from error
                taken.append(held)
        except BaseException:
            _close(taken)
            raise
        return taken, None

    def forked(self) -> None:
        """Drop, in a fork, what the parent holds; it holds on."""
        for taken in self._held.values():
            for held in taken:
                os.close(held.descriptor)
        self._held.clear()

    def _open(self, name: str) -> _Held:
        path = self._folder / f"{name}.lease"
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        with storage(path, "lock"):
            with suppress(FileNotFoundError):  # first without O_CREAT, which the kernel refuses for another user's file
                return _Held(path, os.open(path, flags))
            with suppress(FileExistsError):
                descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
                os.fchmod(descriptor, 0o644 | self._folder.stat().st_mode & 0o022)
                return _Held(path, descriptor)
            return _Held(path, os.open(path, flags))


_EVERY: weakref.WeakSet[FileLeases] = weakref.WeakSet()


def _forked() -> None:
    for leases in _EVERY:
        leases.forked()


os.register_at_fork(after_in_child=_forked)


def _next_token(tokens: list[int | None]) -> int:
    known = [token for token in tokens if token is not None]
    fresh = time.time_ns() // 1_000_000 if len(known) < len(tokens) else 0
    return max([fresh, *(token + 1 for token in known)])


def _token(held: _Held) -> int | None:
    record = _read(held)
    return _number(record) if record else None


def _read(held: _Held) -> bytes:
    with storage(held.path, "read"):
        record = os.pread(held.descriptor, RECORD_BYTES, 0)
    if record and (len(record) != RECORD_BYTES or not record[:_TOKEN_DIGITS].isdigit()):
        message = f"{held.path} is not a lease's record, so the next token is not known"
        hint = "nobody holds it now if this command came so far: remove the file; its tokens go on from the clock"
        raise IntegrityError.of("AKF-I410", message, file=str(held.path), hint=hint)
    return record


def _number(record: bytes) -> int:
    return int(record[:_TOKEN_DIGITS] or b"0")


def _holder(record: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        value = orjson.loads(record[_TOKEN_DIGITS:])
        if isinstance(value, dict):
            return value
    return {}


def _write(held: _Held, token: int, owner: str | None) -> None:
    pid = os.getpid()
    who = {"owner": _short(owner), "pid": pid, "start": process_start(pid)} if owner is not None else {}
    record = b"%020d" % token + orjson.dumps(who)
    with storage(held.path, "write"):
        os.pwrite(held.descriptor, record.ljust(RECORD_BYTES - 1) + b"\n", 0)
        os.fdatasync(held.descriptor)


def _short(text: str) -> str:
    """Printable, and short enough for the record whatever it holds."""
    shown = printable(text)[:_OWNER_BYTES]
    while len(orjson.dumps(shown)) > _OWNER_BYTES:
        shown = shown[:-1]
    return shown


def _close(taken: list[_Held]) -> None:
    """Unlock before closing: a fork that has not dropped its copies yet would keep the lock."""
    for held in taken:
        with suppress(OSError):
            fcntl.flock(held.descriptor, fcntl.LOCK_UN)
        os.close(held.descriptor)


def _busy(held: _Held) -> ConflictError:
    holder = "another process"
    with suppress(OSError, ValueError, TypeError, KeyError):
        who = _holder(os.pread(held.descriptor, RECORD_BYTES, 0))
        pid = int(who["pid"])
        if alive(pid, int(who["start"])):
            stopped = ", which is stopped" if _stopped(pid) else ""
            holder = f"process {pid} ({printable(str(who['owner']))}){stopped}"
    os.close(held.descriptor)
    device = held.path.stem
    hint = "run again when it has ended (akf evaluate --wait SECONDS), or end it: the kernel frees the device then"
    return ConflictError.of(
        "AKF-C120", f"the device {device} is leased by {holder}", file=str(held.path), found=holder, hint=hint
    )


def _stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in {b"T", b"t"}


def _lost(lease: Lease, why: str) -> ConflictError:
    devices = ", ".join(lease.devices)
    hint = "what ran since it was lost may have been disturbed: run it again under a new lease"
    return ConflictError.of(
        "AKF-C121",
        f"the lease of {devices} with token {lease.token} does not hold: {why}",
        found=lease.token,
        hint=hint,
    )
