"""P13: the Worker Service, call by call, against the existing AIKG service and against a plain FastAPI route.

Run it from anywhere: `python benchmarks/p13_worker_service.py`. The existing service is not there; it is taken from the
folder that `AKF_PEER_AIKG` names (the one that holds `akg_agents` or `ai_kernel_generator`), and without it its rows
say `peer missing`. The plain route does nothing but parse one form field and answer: it is what a service costs that
lends no device and writes nothing down.

Every side runs as a process of its own on this machine and is called on kept connections by the same client, which
writes bytes to sockets; what it costs itself is in the times of both. Before anything is timed each must lend a device,
take it back, and run a verification.

Rows:
- a device acquired and released, by one client, and by 64 clients for 4 devices (goal: the existing service's rate x3,
  and three tenths of its p99);
- what a verification that does nothing costs beyond its interpreter (goal: a third of the existing service's);
- 64 holders x 5 on 4 devices, 20 ms each (goal: devices used 90 % of the time or more);
- memory when idle (goal: half of the existing service's).

Growth: clients, at 1, 10 and 100, of a device acquired and released.
"""

import asyncio
import io
import json
import os
import select
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from benchmarks.side_by_side import compare, median_seconds, process, report, report_growth  # noqa: E402

PEER = "AKF_PEER_AIKG"
CALLS = 200
CLIENTS, DEVICES, HOLDS, HOLD_S = 64, 4, 5, 0.02
SIZES = (1, 10, 100)
ROUNDS = 9
START_S = 60.0
PLAIN = """
import sys, uvicorn
from typing import Annotated
from fastapi import FastAPI, Form
app = FastAPI()
@app.get("/api/v1/status")
async def status(): return {"status": "ready"}
@app.post("/api/v1/acquire_device")
async def acquire(task_id: Annotated[str, Form()]): return {"device_id": 0}
@app.post("/api/v1/release_device")
async def release(task_id: Annotated[str, Form()], device_id: Annotated[int, Form()]): return {"status": "ok"}
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", access_log=False)
"""


class Side:
    """One service that runs."""

    def __init__(self, name: str, port: int, pid: int) -> None:
        self.name = name
        self.port = port
        self.pid = pid
        self.idle_mib = self.memory_mib()

    def memory_mib(self) -> float:
        """Its resident memory, with that of its children."""
        own = [self.pid, *children(self.pid)]
        return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in own) * 4096 / 2**20


def children(pid: int) -> list[int]:
    found = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return found + [below for each in found for below in children(each)]


class Connection:
    """A kept connection that sends whole requests and reads whole answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def post(self, path: str, body: bytes, kind: str = "application/x-www-form-urlencoded") -> bytes:
        """One request; the body of its answer."""
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        got = await self._reader.readuntil(b"\r\n\r\n")
        if not got.startswith(b"HTTP/1.1 200"):
            raise ValueError(f"{path}: {got[:200]!r}")
        size = int(got.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        return await self._reader.readexactly(size)

    def close(self) -> None:
        """Let it go."""
        self._writer.close()


async def connected(port: int) -> Connection:
    return Connection(*await asyncio.open_connection("127.0.0.1", port))


def cycles(port: int, clients: int, each: int, hold_s: float = 0.0) -> list[float]:
    """Devices acquired, held and released by clients at once; how long each acquisition and its release took in all.

    All clients are in one loop over plain sockets, so that what is timed is the service.
    """
    return Crowd(port, clients, each, hold_s).times


class Crowd:
    """Clients on kept connections, each of which acquires and releases again and again."""

    def __init__(self, port: int, clients: int, each: int, hold_s: float) -> None:
        self._poll = select.epoll()
        self._hold_s = hold_s
        self._left: dict[int, int] = {}
        self._sockets: dict[int, socket.socket] = {}
        self._acquires: dict[int, bytes] = {}
        self._asked: dict[int, float] = {}
        self._kept: dict[int, bytes] = {}
        self._holds: deque[tuple[float, int, bytes]] = deque()
        self.times: list[float] = []
        for number in range(clients):
            made = socket.create_connection(("127.0.0.1", port))
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            handle = made.fileno()
            self._sockets[handle], self._left[handle] = made, each
            self._acquires[handle] = post("/api/v1/acquire_device", b"task_id=task%d" % number)
            self._poll.register(handle, select.EPOLLIN)
        for handle in self._sockets:
            self._acquire(handle)
        while self._left:
            self._step()
        for made in self._sockets.values():
            made.close()
        self._poll.close()

    def _step(self) -> None:
        while self._holds and self._holds[0][0] <= time.perf_counter():
            _, handle, body = self._holds.popleft()
            self._sockets[handle].sendall(post("/api/v1/release_device", body))
        wait = max(0.0, self._holds[0][0] - time.perf_counter()) if self._holds else -1
        for handle, _ in self._poll.poll(wait):
            answer = self._kept.pop(handle, b"") + self._sockets[handle].recv(4096)
            if answer and not answer.endswith(b"}"):  # its body comes by itself
                self._kept[handle] = answer
                continue
            if not answer.startswith(b"HTTP/1.1 200"):
                raise ValueError(f"a call: {answer[:200]!r}")
            _, device, number = answer.partition(b'"device_id":')
            if device:
                self._granted(handle, number.rstrip(b"}").strip())
            else:
                self._released(handle)

    def _acquire(self, handle: int) -> None:
        self._asked[handle] = time.perf_counter()
        self._sockets[handle].sendall(self._acquires[handle])

    def _granted(self, handle: int, device: bytes) -> None:
        body = self._acquires[handle].rpartition(b"\r\n")[2] + b"&device_id=" + device
        if self._hold_s:
            self._holds.append((time.perf_counter() + self._hold_s, handle, body))
        else:
            self._sockets[handle].sendall(post("/api/v1/release_device", body))

    def _released(self, handle: int) -> None:
        self.times.append(time.perf_counter() - self._asked[handle])
        self._left[handle] -= 1
        if self._left[handle]:
            self._acquire(handle)
        else:
            del self._left[handle]


def post(path: str, body: bytes) -> bytes:
    """A form, as bytes."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    return b"%bContent-Length: %d\r\n\r\n%b" % (head.encode(), len(body), body)


def form(script: str) -> tuple[bytes, str]:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as made:
        info = tarfile.TarInfo("verify_relu.py")
        info.size = len(script)
        made.addfile(info, io.BytesIO(script.encode()))
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in (("task_id", "task"), ("op_name", "relu"), ("timeout", "60"))
    ]
    file = b'--x\r\nContent-Disposition: form-data; name="package"; filename="package.tar"\r\n'
    file += b"Content-Type: application/x-tar\r\n\r\n" + archive.getvalue() + b"\r\n--x--\r\n"
    return b"".join(parts) + file, "multipart/form-data; boundary=x"


def verifications(port: int, number: int, script: str = "") -> None:
    body, kind = form(script)

    async def run() -> None:
        connection = await connected(port)
        for _ in range(number):
            if not json.loads(await connection.post("/api/v1/verify", body, kind))["success"]:
                raise ValueError("a verification failed")
        connection.close()

    asyncio.run(run())


@contextmanager
def running(name: str, argv: list[str], port: int, env: dict[str, str]) -> Iterator[Side]:
    started = subprocess.Popen(argv, env={**os.environ, **env}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + START_S
        while True:
            try:
                cycles(port, 1, 1)
                break
            except (OSError, ValueError, asyncio.IncompleteReadError):
                if time.monotonic() > until or started.poll() is not None:
                    raise ValueError(f"{name} did not start") from None
                time.sleep(0.1)
        yield Side(name, port, started.pid)
    finally:
        started.kill()
        started.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def ours(folder: Path) -> Iterator[Side]:
    port = free_port()
    devices = ",".join(map(str, range(DEVICES)))
    argv = [sys.executable, "-m", "akf", "worker", "--backend", "cpu", "--arch", "x86_64", "--devices", devices]
    env = {"PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    with running("ours", [*argv, "--port", str(port), "--folder", str(folder)], port, env) as side:
        verifications(port, 1)
        yield side


@contextmanager
def plain() -> Iterator[Side]:
    port = free_port()
    with running("a plain FastAPI route", [sys.executable, "-c", PLAIN, str(port)], port, {}) as side:
        yield side


@contextmanager
def peer(place: str) -> Iterator[Side]:
    port = free_port()
    package = next((name for name in ("akg_agents", "ai_kernel_generator") if (Path(place) / name).is_dir()), None)
    if package is None:
        raise ValueError(f"{PEER} names no folder with akg_agents or ai_kernel_generator")
    env = {"PYTHONPATH": place, "WORKER_BACKEND": "cpu", "WORKER_ARCH": "x86_64", "WORKER_HOST": "127.0.0.1"}
    env |= {"WORKER_PORT": str(port), "WORKER_DEVICES": ",".join(map(str, range(DEVICES)))}
    with running("the existing service", [sys.executable, "-m", f"{package}.worker.server"], port, env) as side:
        verifications(port, 1)
        yield side


def lending(own: Side, other: Side, goal: str) -> None:
    for clients, each in ((1, CALLS), (CLIENTS, 8)):
        times: dict[int, list[float]] = {own.port: [], other.port: []}

        def run(port: int, clients: int = clients, each: int = each, times: dict[int, list[float]] = times) -> None:
            times[port] += cycles(port, clients, each)

        comparison = compare(partial(run, own.port), partial(run, other.port), ROUNDS)
        row = f"{clients * each} devices acquired and released by {clients} at once, against {other.name}"
        report("P13", row, goal, comparison)
        print(f"    ours {clients * each / comparison.a_seconds:.0f} a second")
        late = [sorted(times[side.port])[len(times[side.port]) * 99 // 100] for side in (own, other)]
        told = f"{late[0] * 1e3:.2f} ms against {late[1] * 1e3:.2f} ms"
        print(f"    p99 of one acquisition and its release: goal <= 0.3x; measured {late[0] / late[1]:.3f}x ({told})")


def verifying(own: Side, other: Side) -> None:
    bare = median_seconds(process(sys.executable, "-c", ""), ROUNDS)
    comparison = compare(partial(verifications, own.port, 5), partial(verifications, other.port, 5), ROUNDS)
    ratio = (comparison.a_seconds / 5 - bare) / (comparison.b_seconds / 5 - bare)
    report("P13", f"5 verifications that do nothing, against {other.name}", "see the next line", comparison)
    print(f"    beyond the interpreter's {bare * 1e3:.1f} ms: {ratio:.3f}x (goal <= 0.33x)")


def alone(own: Side) -> None:
    bare = process(sys.executable, "-c", "")
    comparison = compare(partial(verifications, own.port, 1), bare, 15)
    report("P13", "a verification that does nothing, against its bare interpreter", "a figure, no goal", comparison)
    ideal = CLIENTS * HOLDS * HOLD_S / DEVICES
    wall = median_seconds(partial(cycles, own.port, CLIENTS, HOLDS, HOLD_S), ROUNDS)
    print(f"P18  {CLIENTS} holders x {HOLDS} on {DEVICES} devices, {HOLD_S * 1e3:.0f} ms each")
    print(f"    goal >= 90 % of the devices' time used; measured {100 * ideal / wall:.1f} % ({wall:.2f} s)")
    times = [median_seconds(partial(cycles, own.port, size, 4), 5) for size in SIZES]
    report_growth(SIZES, times)


def memory(own: Side, other: Side) -> None:
    ratio = own.idle_mib / other.idle_mib
    print(f"P13  memory when idle, against {other.name}\n    goal <= 0.5x; measured {ratio:.2f}x", end="")
    print(f" ({own.idle_mib:.0f} MiB against {other.idle_mib:.0f} MiB)")


def main() -> None:
    place = os.environ.get(PEER)
    with tempfile.TemporaryDirectory() as folder, ours(Path(folder)) as own:
        with plain() as other:
            told = f"{own.idle_mib:.0f} MiB against {other.idle_mib:.0f} MiB of {other.name}"
            print(f"P13  memory when idle: {told}; after a package {own.memory_mib():.0f} MiB, with what runs packages")
            lending(own, other, "<= 0.33x (3x the rate)")
        alone(own)
        if place is None:
            print(f"P13  against the existing service: peer missing ({PEER} is not set)")
            return
        with peer(place) as other:
            memory(own, other)
            lending(own, other, "<= 0.33x (3x the rate)")
            verifying(own, other)


if __name__ == "__main__":
    main()
