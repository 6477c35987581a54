"""The harness run by a worker: one AKF package per command, under one lease for the whole of a gate.

Invariants:
- A package is the harness, its request and every object that the request names; paths in it are relative, digests stay,
  and the harness checks them where it runs.
- Every command shows the lease's fencing token, which the worker checks; a lease is renewed while it is held.
- The devices of this machine are leased here too, where the worker is this process.
- Whatever keeps a worker from answering is the machine's fault: nothing is said of the candidate, and nothing is run
  again under the same plan.
- What a worker answers counts only when it ran where the evaluator reads its facts: another machine is refused.
"""

from __future__ import annotations

import asyncio
import io
import os
import platform
import tarfile
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import orjson

from akf.contracts.problems import BlockedError, ConflictError, PreconditionError
from akf.fabric.interface import Leased, LeasingWorker
from akf.lease import Lease, Leases

OP_NAME = "akf_gate"
PROGRAM = Path(__file__).with_name("gate_program.py")
TTL_S = 60.0
_CLOSE_S = 30.0
_MARGIN_S = 5
_OUT = "out/"
T = TypeVar("T")
Open = Callable[[], Awaitable[LeasingWorker]]
Answered = tuple[int, str, dict[str, bytes]]
"""The harness's exit status, what it said, and its files."""


def packed(harness: Path, command: str, request: dict[str, Any]) -> bytes:
    """One command of the harness as a package; the same inputs give the same bytes."""
    files: dict[str, tuple[bytes, bool]] = {}
    artifacts = {}
    for role, each in sorted(request["artifacts"].items()):
        artifacts[role] = dict(each)
        for field in ("path", "launcher"):
            if each.get(field):
                artifacts[role][field] = f"objects/{role}/{field}/{Path(each[field]).name}"
                files |= _content(Path(each[field]), artifacts[role][field])
    files[f"verify_{OP_NAME}.py"] = PROGRAM.read_bytes(), False
    files["harness.pyz"] = harness.read_bytes(), False
    files["command"] = command.encode("ascii"), False
    files["request"] = orjson.dumps({**request, "artifacts": artifacts}), False
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(files):
            data, executable = files[name]
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o755 if executable else 0o644
            tar.addfile(member, io.BytesIO(data))
    return target.getvalue()


def _content(path: Path, name: str) -> Iterator[tuple[str, tuple[bytes, bool]]]:
    """A file, or every file of a folder, with whether it may be executed."""
    for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if each.is_file() and not each.is_symlink():
            below = f"/{each.relative_to(path).as_posix()}" if each != path else ""
            yield name + below, (each.read_bytes(), bool(each.stat().st_mode & 0o100))


class Elsewhere:
    """Leases for an evaluation, and its harness, both of one worker.

    Args:
        worker: the worker.
        loop: the event loop in which it lives, in another thread.
        here: the leases of this machine, where the worker runs in this process.
    """

    def __init__(self, worker: LeasingWorker, loop: asyncio.AbstractEventLoop, here: Leases | None = None) -> None:
        self._worker = worker
        self._loop = loop
        self._here = here
        self._leased: tuple[Lease, Leased, asyncio.Task[None]] | None = None
        self._outer: Lease | None = None

    def acquire(self, devices: Sequence[str], owner: str, wait_s: float = 0.0) -> Lease:
        """See `Leases.acquire`: one device, which the worker chooses.

        Raises:
            PreconditionError: several devices are asked for.
        """
        if len(set(devices)) != 1:
            message = f"a worker leases one device for a gate, and {len(set(devices))} are needed"
            raise PreconditionError.of("AKF-P503", message, expected=1, found=list(devices), hint="leave out --worker")
        if self._here is not None:
            self._outer = self._here.acquire(devices, owner, wait_s)
        try:
            leased = self._wait(self._worker.lease(owner, TTL_S, wait_s))
        except BaseException:
            self._release_outer()
            raise
        lease = Lease(tuple(devices), owner, leased.token)
        self._leased = lease, leased, self._wait(_started(self._renewed(leased)))
        return lease

    def check(self, lease: Lease) -> None:
        """See `Leases.check`."""
        leased = self._mine(lease)
        if self._here is not None and self._outer is not None:
            self._here.check(self._outer)
        self._wait(self._worker.renew(leased))

    def release(self, lease: Lease) -> bool:
        """See `Leases.release`; a worker that is gone has nothing to give back."""
        if self._leased is None or self._leased[0] != lease:
            return False
        _, leased, renewing = self._leased
        self._leased = None
        self._loop.call_soon_threadsafe(renewing.cancel)
        try:
            return self._wait(self._worker.give_back(leased))
        except BlockedError:
            return True
        finally:
            self._release_outer()

    def leave(self) -> None:
        """Give back what is still held."""
        if self._leased is not None:
            self.release(self._leased[0])

    def run(self, harness: Path, command: str, request: dict[str, Any], timeout_s: float) -> Answered:
        """One command of the harness under the lease.

        Raises:
            ConflictError: the lease does not hold any more.
            BlockedError: the worker gave no answer, or none that counts.
        """
        if self._leased is None:
            raise ConflictError.of("AKF-C502", "no lease is held", hint="run again")
        lease, leased, _ = self._leased
        package = packed(harness, command, request)
        work = self._worker.verify(package, lease.owner, OP_NAME, int(timeout_s) + _MARGIN_S, lease=leased.shown)
        return _answer(self._wait(work), command)

    def _mine(self, lease: Lease) -> Leased:
        if self._leased is None or self._leased[0] != lease:
            message = f"the lease with token {lease.token} was released"
            raise ConflictError.of("AKF-C502", message, found=lease.token, hint="run again")
        return self._leased[1]

    def _release_outer(self) -> None:
        if self._here is not None and self._outer is not None:
            self._here.release(self._outer)
            self._outer = None

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _renewed(self, leased: Leased) -> None:
        """Keep the lease; that it was lost is found at its next use."""
        while True:
            await asyncio.sleep(TTL_S / 4)
            try:
                await self._worker.renew(leased)
            except ConflictError:
                return
            except BlockedError:
                continue


@contextmanager
def elsewhere(open_worker: Open, here: Leases | None = None) -> Iterator[Elsewhere]:
    """A worker for the time of a block, in an event loop of its own.

    Args:
        open_worker: makes the worker, in that loop.
        here: see `Elsewhere`.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="akf-worker", daemon=True)
    thread.start()
    with ExitStack() as stack:
        stack.callback(loop.close)
        stack.callback(thread.join)
        stack.callback(loop.call_soon_threadsafe, loop.stop)
        worker = asyncio.run_coroutine_threadsafe(_opened(open_worker), loop).result()
        close = getattr(worker, "close", None) or getattr(worker, "aclose", None)
        if close is not None:
            stack.callback(lambda: asyncio.run_coroutine_threadsafe(close(), loop).result(_CLOSE_S))
        there = Elsewhere(worker, loop, here)
        stack.callback(there.leave)
        yield there


async def _opened(open_worker: Open) -> LeasingWorker:
    return await open_worker()


async def _started(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.create_task(work)


def _answer(body: dict[str, Any], command: str) -> Answered:
    """What the harness left, if the worker let it run to its end on this machine."""
    if body["outcome"] != "ok":
        message = f"the worker did not run `{command}` to its end: {body['outcome']}"
        hint = "nothing is said of the candidate; run it again, or on another worker"
        raise BlockedError.of("AKF-E508", message, found=body["log"][-1000:], hint=hint)
    try:
        said = orjson.loads(body["artifacts"]["ended.json"])
        status, errors, there = int(said["status"]), str(said["errors"]), said["machine"]
    except (KeyError, TypeError, ValueError) as error:
        message = f"the worker's answer to `{command}` is not whole"
        raise BlockedError.of("AKF-E508", message, found=sorted(body["artifacts"])[:20], hint="run it again") from error
    here = _machine()
    if there != here:
        differing = sorted(name for name in here if there.get(name) != here[name])
        message = f"the worker is another machine, or sees it otherwise: {', '.join(differing)}"
        hint = "a gate's identity is read where akf evaluate runs: run it on the worker's machine, with its interpreter"
        raise BlockedError.of("AKF-E507", message, expected=here, found=there, hint=hint)
    files = {
        name.removeprefix(_OUT): text.encode("utf-8")
        for name, text in body["artifacts"].items()
        if name.startswith(_OUT)
    }
    if status == 0 and "report.json" not in files:
        raise BlockedError.of("AKF-E508", f"the worker's answer to `{command}` lacks its report", hint="run it again")
    return status, errors, files


def _machine() -> dict[str, Any]:
    """What the package's program says of its machine, of this one."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return {"boot": boot, "cores": len(os.sched_getaffinity(0)), "python": platform.python_version()}
