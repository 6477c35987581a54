"""GPUs as `nvidia-smi` shows them, in the layout of driver 580; the figures are invented, the text is our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from akf.evaluate import environment, machine_checks
from akf.frameworks import nvidia_smi
from akf.frameworks.machine import Die
from akf.lease import FileLeases, held

HEAD = "index, uuid, mig.mode.current, utilization.gpu [%], clocks.current.sm [MHz], clocks.max.sm [MHz]\n"
APPS = "gpu_uuid, pid\n"
IDLE = "0, GPU-a, Disabled, 0 %, 345 MHz, 1980 MHz\n"
NAME = "gpu-0-die-0"


def test_an_idle_gpu() -> None:
    assert nvidia_smi.parsed(HEAD + IDLE, APPS) == {NAME: Die(NAME, (), 0, 345, 1980)}


def test_processes_are_those_of_its_own_uuid() -> None:
    dies = nvidia_smi.parsed(HEAD + IDLE, APPS + "GPU-a, 449\nGPU-b, 450\nGPU-a, [N/A]\n")
    assert dies[NAME].processes == (449,)
    assert machine_checks.exclusive([NAME], dies)["outcome"] == "blocked"
    assert machine_checks.exclusive([NAME], dies, own=[449])["outcome"] == "pass"


def test_a_divided_gpu_is_no_device() -> None:
    dies = nvidia_smi.parsed(HEAD + IDLE.replace("Disabled", "Enabled"), APPS)
    assert machine_checks.exclusive([NAME], dies)["reasons"] == ["DEVICE_MISSING"]


def test_a_power_limit_under_load_shows_as_a_low_clock() -> None:
    dies = nvidia_smi.parsed(HEAD + IDLE.replace("345", "1455"), APPS)
    assert machine_checks.clock([NAME], dies)["reasons"] == ["CLOCK_LOW"]


@pytest.mark.parametrize(
    "text", ["", "No devices were found\n", HEAD, HEAD.replace("uuid", "name") + IDLE, HEAD + "0, GPU-a\n"]
)
def test_other_texts_show_no_gpu(text: str) -> None:
    assert nvidia_smi.parsed(text, APPS) == {}


@pytest.mark.parametrize("value", ["[N/A]", "1980", "1980 GHz", "- MHz"])
def test_a_value_without_its_unit_is_unread(value: str) -> None:
    assert nvidia_smi.parsed(HEAD + IDLE.replace("1980 MHz", value), APPS)[NAME].rated_mhz is None


def test_without_a_list_of_processes_they_are_unread() -> None:
    assert nvidia_smi.parsed(HEAD + IDLE, None)[NAME].processes is None
    assert nvidia_smi.parsed(HEAD + IDLE, "error")[NAME].processes is None


def test_without_the_tool_there_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert nvidia_smi.dies([0]) == {}


def test_only_the_asked_ones_through_a_real_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second = IDLE.replace("0, GPU-a", "1, GPU-b")
    texts = {"gpu": HEAD + IDLE + second, "compute-apps": APPS + "GPU-b, 7\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    program = tmp_path / "nvidia-smi"
    cases = f"--query-gpu=*) exec /bin/cat {tmp_path}/gpu;; *) exec /bin/cat {tmp_path}/compute-apps;;"
    program.write_text(f'#!/bin/sh\ncase "$1" in {cases} esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert nvidia_smi.dies([1]) == {"gpu-1-die-0": Die("gpu-1-die-0", (7,), 0, 345, 1980)}


def test_a_gate_without_a_gpu_blocks_and_never_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    campaign = {
        "platform": "cuda",
        "environment": {"soc": {"family": "hopper", "name": "h200"}},
        "ranks": {"devices": [{"rank": 0, "npu": 0, "die": 0}]},
        "baseline": {"incumbent_digest": "sha256:" + "0" * 64},
        "acceptance": {"gains": []},
    }
    with held(FileLeases(tmp_path / "leases"), [NAME], "test") as holding:
        checks = environment.checks(campaign, environment.cuda(campaign), holding)
    assert {check["name"]: check["outcome"] for check in checks} == {
        "identity": "blocked",
        "leases": "pass",
        "exclusive": "blocked",
        "clock": "blocked",
        "baseline_health": "blocked",
    }
