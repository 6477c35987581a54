"""The profilers of the backends, with a program of ours in their place: what they write, lack and leave out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from akf.fabric import profilers
from akf.fabric.running import Ended

HEADER = "Op Name,Task Duration(us)"
RUNS = {"warmup_times": 1, "run_times": 2}


def profiled(work: Path, table: str | None, settings: dict[str, int] = RUNS) -> tuple[float | None, Ended]:
    """What msprof's table says; none is a msprof that writes no table."""

    async def run(argv: list[str]) -> Ended:
        assert argv[:2] == ["msprof", "--application=python profile_relu_generation.py"]
        if table is not None:
            folder = work / "PROF_1" / "mindstudio_profiler_output"
            folder.mkdir(parents=True)
            (folder / "op_summary_1.csv").write_text(table, encoding="utf-8")
        return Ended("ended", 0, "", "")

    return asyncio.run(profilers.timed(work, run, ["python", "profile_relu_generation.py"], "ascend", settings))


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "msprof"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n", encoding="ascii")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    return tmp_path


def test_the_runs_after_the_warm_up_count(on_path: Path) -> None:
    time_us, ended = profiled(on_path, f"{HEADER}\nrelu,90\nrelu,10\nrelu,12\nonce,500\n")
    assert (time_us, ended.succeeded) == (11.0, True)


def test_a_profiler_that_is_not_there_is_the_workers_fault_and_says_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    time_us, ended = profiled(tmp_path, None)
    assert (time_us, ended.how) == (None, "infra_error")
    assert "msprof is not on the PATH of this worker: source CANN's set_env.sh" in ended.detail


@pytest.mark.parametrize("table", [None, "Kernel,Time\nrelu,10\n"])
def test_a_profiler_without_a_table_that_is_known_is_the_workers_fault(on_path: Path, table: str | None) -> None:
    time_us, ended = profiled(on_path, table)
    assert (time_us, ended.how) == (None, "infra_error")
    assert "no table of kernels" in ended.detail


@pytest.mark.parametrize("rows", ["", "relu,10\n"])
def test_a_script_whose_kernels_do_not_count_is_no_fault_of_the_worker(on_path: Path, rows: str) -> None:
    time_us, ended = profiled(on_path, f"{HEADER}\n{rows}")
    assert (time_us, ended.how) == (None, "ended")
    assert "1 warm-ups and 2 runs" in ended.detail
