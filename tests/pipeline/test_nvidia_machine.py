"""GPUs as `nvidia-smi` shows them, in the layout of driver 580; the figures are invented, the text is our own."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from akf.evaluate import environment, machine_checks
from akf.frameworks import cuda_machine, nvidia_smi
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
    monkeypatch.setattr(cuda_machine, "COMPILER", "pytest")
    wanted = {
        **campaign(),
        "baseline": {"incumbent_digest": "sha256:" + "0" * 64},
        "acceptance": {"gains": []},
    }
    with held(FileLeases(tmp_path / "leases"), [NAME], "test") as holding:
        checks = environment.checks(wanted, environment.cuda(wanted), holding)
    assert {check["name"]: check["outcome"] for check in checks} == {
        "identity": "blocked",
        "leases": "pass",
        "exclusive": "blocked",
        "clock": "blocked",
        "baseline_health": "blocked",
    }


def campaign(**environment: Any) -> dict[str, Any]:
    """A Campaign that this machine meets as far as it can be read, where the tool says sm_90."""
    return {
        "platform": "cuda",
        "environment": {
            "soc": {"family": "sm_90", "name": "sm_90"},
            "toolkit": {"name": "cuda", "version": metadata.version("pytest"), "build": "sha256:0"},
            "python": platform.python_version(),
            "frameworks": [{"name": "pytest", "revision": metadata.version("pytest")}],
            **environment,
        },
        "ranks": {"devices": [{"rank": 0, "npu": 0, "die": 0}]},
    }


def identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any], capability: str) -> Any:
    """The check where a tool answers with this capability; the package that compiles is one that is here."""
    (tmp_path / "text").write_text(f"index, compute_cap\n0, {capability}\n", encoding="utf-8")
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nexec /bin/cat {tmp_path}/text\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(cuda_machine, "COMPILER", "pytest")
    found = environment.cuda(wanted)
    return machine_checks.identity({"environment": wanted["environment"]}, found.reading)


def test_the_identity_lacks_only_what_an_installation_does_not_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = identity(tmp_path, monkeypatch, campaign(), "9.0")
    assert (check["outcome"], check["reasons"]) == ("blocked", ["FACT_UNREAD"])
    assert check["note"] == f"/environment/toolkit/build: {cuda_machine.NO_WHEEL}"


@pytest.mark.parametrize(
    ("different", "pointer"),
    [
        ({"soc": {"family": "sm_90", "name": "sm_80"}}, "/environment/soc/name"),
        ({"python": "3.1.4"}, "/environment/python"),
        ({"frameworks": [{"name": "pytest", "revision": "0.0.1"}]}, "/environment/frameworks/0/revision"),
        ({"toolkit": {"name": "cuda", "version": "0.0.1", "build": "x"}}, "/environment/toolkit/version"),
    ],
)
def test_every_field_that_differs_is_named(
    different: dict[str, Any], pointer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = identity(tmp_path, monkeypatch, campaign(**different), "9.0")
    assert (check["outcome"], check["reasons"]) == ("incomparable", ["IDENTITY_MISMATCH"])
    assert check["note"].startswith(f"{pointer}: the Campaign has ")


@pytest.mark.parametrize("capability", ["[N/A]", "", "9.x"])
def test_a_capability_that_is_none_is_unread(capability: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = identity(tmp_path, monkeypatch, campaign(), capability)
    assert check["outcome"] == "blocked"
    assert check["note"].startswith("/environment/soc/family: the GPUs have different or unknown capabilities")


def test_a_missing_tool_and_a_missing_package_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    wanted = campaign(frameworks=[{"name": "no-such-framework", "revision": "1"}])
    note = machine_checks.identity({"environment": wanted["environment"]}, environment.cuda(wanted).reading)["note"]
    assert cuda_machine.NO_TOOL in note
    assert "no-such-framework is not installed in the interpreter that measures" in note
