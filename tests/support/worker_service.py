"""A Worker Service as a process, packages for it, and a client that calls it as an AIKG RemoteWorker does."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx

START_S = 60.0
WAIT_S = 30.0
_LISTENING = re.compile(r"listening on (http://\S+)")


def package(files: Mapping[str, str | bytes]) -> bytes:
    """A package as AIKG packs one: a plain tar with flat names."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def verify_package(script: str, op_name: str = "relu") -> bytes:
    """A package whose verification is this script."""
    return package({f"verify_{op_name}.py": script})


def eventually(true: Callable[[], bool], what: str, within_s: float = WAIT_S) -> None:
    """Wait until something holds."""
    until = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < until, f"not within {within_s} s: {what}"
        time.sleep(0.05)


def processes_with(marker: str) -> list[int]:
    """Processes whose command line holds a marker."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in line:
                found.append(int(folder.name))
    return found


def _client(patience: float) -> httpx.Client:
    return httpx.Client(timeout=patience, verify=False)  # noqa: S501 - no TLS here, whose set-up costs most of a call


class Service:
    """A running `akf worker`."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    def kill(self) -> None:
        """Kill it as the kernel does when memory runs out."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(WAIT_S)

    def get(self, path: str, **more: Any) -> httpx.Response:
        """One GET, on a connection of its own."""
        with _client(WAIT_S) as client:
            return client.get(self.url + path, **more)

    def post(self, path: str, data: dict[str, Any] | None = None, **more: Any) -> httpx.Response:
        """One POST, on a connection of its own, as an AIKG RemoteWorker makes it."""
        with _client(more.pop("patience", WAIT_S)) as client:
            return client.post(self.url + path, data=data, **more)

    def acquire(self, task_id: str, **more: Any) -> int:
        """A device."""
        answer = self.post("/api/v1/acquire_device", {"task_id": task_id}, **more)
        answer.raise_for_status()
        return int(answer.json()["device_id"])

    def release(self, task_id: str, device_id: int) -> None:
        """Give a device back."""
        answer = self.post("/api/v1/release_device", {"task_id": task_id, "device_id": str(device_id)})
        answer.raise_for_status()

    def send(self, operation: str, data: bytes, fields: dict[str, Any], **more: Any) -> httpx.Response:
        """A package, as an AIKG RemoteWorker sends it."""
        files = {"package": ("package.tar", data, "application/x-tar")}
        named = {name: str(value) for name, value in fields.items()}
        return self.post(f"/api/v1/{operation}", named, files=files, **more)

    def verify(self, script: str, task_id: str = "task", timeout: int = 20, **more: Any) -> dict[str, Any]:
        """Run a script as a verification."""
        fields = {"task_id": task_id, "op_name": "relu", "timeout": timeout}
        answer = self.send("verify", verify_package(script), fields, **more)
        answer.raise_for_status()
        body: dict[str, Any] = answer.json()
        return body

    def leases(self) -> list[dict[str, Any]]:
        """Every lease that holds."""
        found: list[dict[str, Any]] = self.get("/api/v1/leases").json()["leases"]
        return found

    def gauge(self, name: str, label: str = "") -> float:
        """A figure of /metrics."""
        text = self.get("/metrics").text
        found = re.search(rf"^{name}{re.escape(label)} ([0-9.e+-]+)$", text, re.MULTILINE)
        assert found, f"{name}{label} is not among the figures"
        return float(found[1])

    def free(self) -> float:
        """How many devices are free."""
        return self.gauge("akf_worker_devices", '{state="free"}')


@contextmanager
def service(
    folder: Path, *arguments: str, devices: str = "0", env: Mapping[str, str] | None = None
) -> Iterator[Service]:
    """A Worker Service for the time of a block; it is killed at the end."""
    argv = [sys.executable, "-m", "akf", "worker", "--backend", "cpu", "--arch", "x86_64", "--devices", devices]
    argv += ["--port", "0", "--folder", str(folder), *arguments]
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}
    )
    assert process.stderr is not None
    watchdog = threading.Timer(START_S, process.kill)
    watchdog.start()
    said = ""
    try:
        for line in process.stderr:
            said += line
            if found := _LISTENING.search(line):
                watchdog.cancel()
                threading.Thread(target=process.stderr.read, daemon=True).start()
                one = Service(process, found[1])
                eventually(partial(_answers, one), "the service answers", START_S)
                yield one
                return
        out = process.stdout.read() if process.stdout else ""
        raise AssertionError(f"the service did not start: {said}{out}")
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _answers(one: Service) -> bool:
    try:
        return one.get("/health").status_code == 200
    except httpx.TransportError:
        return False


def events_of(text: str) -> list[dict[str, Any]]:
    """The events of a stream, with their kind."""
    found = re.findall(r"id: (\d+)\nevent: (\w+)\ndata: (.*)\n\n", text)
    return [{"number": int(number), "kind": kind, **json.loads(data)} for number, kind, data in found]
