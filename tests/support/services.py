"""Services as real processes: AKF's Server and Worker Service, and one of the AIKG wire; with what jobs are made of."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parents[2]
ADDRESS = re.compile(rb"http://[^\s]+")
REFERENCE = """
import numpy


class Model:
    def __call__(self, x):
        return numpy.maximum(x, 0)


def get_inputs():
    return [numpy.random.rand(64, 64).astype("float32") - 0.5]


def get_init_inputs():
    return []
"""
GOOD = """
import numpy


class ModelNew:
    def __call__(self, x):
        return numpy.where(x > 0, x, 0).astype("float32")
"""
WRONG = "class ModelNew:\n    def __call__(self, x):\n        return x\n"
SLEEPS = "import time\n\nclass ModelNew:\n    def __call__(self, x):\n        time.sleep(60)\n        return x\n"
JOB: dict[str, Any] = {
    "op_name": "relu", "task_desc": REFERENCE, "backend": "cpu", "arch": "x86_64", "dsl": "cpp", "framework": "numpy",
}  # fmt: skip
Found = TypeVar("Found")


class Service:
    """A running process that said where it listens."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, said: Path) -> None:
        self.process = process
        self.url = url
        self.said = said

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def end(self, within_s: float = 20) -> int:
        """Ask it to end; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within_s)


@contextmanager
def started(words: list[str], env: dict[str, str] | None = None, within: Sequence[str] = ()) -> Iterator[Service]:
    """A service for the time of a block, started by the words of `within`."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        with said.open("wb") as out:
            process = subprocess.Popen(
                [*within, sys.executable, "-m", *words], stdout=out, stderr=subprocess.STDOUT, cwd=ROOT,
                env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        try:
            yield Service(process, until(lambda: _address(process, said)), said)
        finally:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], said: Path) -> str | None:
    text = said.read_bytes()
    found = ADDRESS.search(text)
    assert found or process.poll() is None, text.decode()
    return found[0].decode() if found and text.endswith(b"\n") else None


@contextmanager
def server(
    store: Path, *words: str, port: int = 0, env: dict[str, str] | None = None, within: Sequence[str] = ()
) -> Iterator[Service]:
    """AKF's Server."""
    with started(["akf", "server", "--port", str(port), "--store", str(store), *words], env, within) as service:
        yield service


@contextmanager
def akf_worker(
    folder: Path, *words: str, devices: str = "0", env: dict[str, str] | None = None, within: Sequence[str] = ()
) -> Iterator[Service]:
    """AKF's Worker Service."""
    own = ["akf", "worker", "--backend", "cpu", "--arch", "x86_64", "--devices", devices, "--port", "0"]
    with started([*own, "--folder", str(folder), *words], env, within) as service:
        yield service


@contextmanager
def aikg_worker(devices: str = "0,1", port: int = 0) -> Iterator[Service]:
    """A Worker Service of the AIKG wire."""
    with started(["tests.support.aikg_worker", "cpu", "x86_64", devices, str(port)]) as service:
        yield service


def until(ask: Callable[[], Found | None], within_s: float = 30) -> Found:
    """What an answer becomes, when it does."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        found = ask()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


def port_of(url: str) -> int:
    """The port of an address."""
    return int(url.rpartition(":")[2])
