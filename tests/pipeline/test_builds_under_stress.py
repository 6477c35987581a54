"""`akf build` as real processes: many at once, and killed at any moment. What appears is whole, and nothing goes on."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.runs import CANDIDATES

from akf.contracts.canonical import digest
from akf.contracts.documents import load

pytestmark = pytest.mark.usefixtures("state", "compiler")
KERNEL = CANDIDATES / "rmsnorm-fused" / "src" / "kernel.cpp"


def _start(source: Path, out: Path, scratch: Path) -> subprocess.Popen[bytes]:
    scratch.mkdir(exist_ok=True)
    line = ["build", source, "--route", "host_cpp", "--soc", "native", "--out", out, "--quiet"]
    return subprocess.Popen(
        [sys.executable, "-m", "akf", *map(str, line)],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _source(folder: Path, number: int) -> Path:
    folder.mkdir()
    path = folder / "kernel.cpp"
    path.write_text(f'{KERNEL.read_text()}\nextern "C" const char* number() {{ return "number-{number:04d}-"; }}\n')
    return path


def _at_once(folder: Path, count: int) -> None:
    sources = [_source(folder / f"src{n}", n) for n in range(count)]
    processes = [_start(source, folder / f"out{n}", folder / "scratch") for n, source in enumerate(sources)]
    assert [process.wait() for process in processes] == [0] * count
    identities = set()
    for n in range(count):
        value = load(folder / f"out{n}" / "build.json", "Build").value
        (made,) = (each for each in value["outputs"] if each["role"] == "kernel_object")
        data = (folder / f"out{n}" / "build" / made["path"]).read_bytes()
        assert f"number-{n:04d}-".encode() in data
        assert digest(data) == made["digest"]
        assert value["reproduction"]["reproducible"] is True
        identities.add((value["inputs_digest"], value["source_digest"], made["digest"]))
    assert len({each for three in identities for each in three}) == 3 * count


def test_builds_at_once_keep_their_identities_apart(tmp_path: Path) -> None:
    _at_once(tmp_path, 3)


@pytest.mark.soak
def test_ten_builds_at_once_on_this_machine_keep_their_identities_apart(tmp_path: Path) -> None:
    _at_once(tmp_path, 10)


def _killed(folder: Path, count: int, longest_s: float) -> None:
    chance = random.Random(20261130)
    source = _source(folder / "src", 0)
    scratch = folder / "scratch"
    for n in range(count):
        out = folder / f"out{n}"
        process = _start(source, out, scratch)
        time.sleep(chance.uniform(0, longest_s))
        process.kill()
        process.wait()
        if out.exists():
            value = json.loads((out / "build.json").read_bytes())
            for each in value["outputs"]:
                assert digest((out / "build" / each["path"]).read_bytes()) == each["digest"]
        until = time.monotonic() + 20
        while (left := _below(scratch)) and time.monotonic() < until:
            time.sleep(0.02)
        assert not left


def _below(scratch: Path) -> list[str]:
    """What still runs that was started with this folder of temporaries."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if os.fsencode(scratch) in words:
            found.append(words.decode(errors="replace"))
    return found


def test_a_killed_build_leaves_nothing_canonical_and_nothing_running(tmp_path: Path) -> None:
    _killed(tmp_path, 3, 1.5)


@pytest.mark.soak
def test_builds_that_are_killed_at_many_moments_leave_nothing_canonical(tmp_path: Path) -> None:
    _killed(tmp_path, 60, 2.5)
