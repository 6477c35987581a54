"""The route pto_isa_direct: its command lines anywhere; the real headers, clang and the simulator where they are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support import toolchains

from akf.contracts.shipped import shipped
from akf.evaluate.emulate import emulate
from akf.routes.route import Job, SourceRefused, route

PTO = route("pto_isa_direct")
KERNELS = shipped("examples") / "kernels" / "pto_isa_direct"
TASKS = shipped("examples") / "tasks" / "ascend"
EVERY = ("rmsnorm", "softmax", "matmul")


def job(soc: str = "ascend910b4", **options: str) -> Job:
    return Job(("kernel.cpp", "launch.json"), options, soc, PTO.target(soc))


class TestPlan:
    @pytest.mark.parametrize(
        ("soc", "memory", "arch", "macro"),
        [
            ("ascend910b4", "A2A3", "dav-c220-vec", "MEMORY_BASE"),
            ("ascend910_9391", "A2A3", "dav-c220-vec", "MEMORY_BASE"),
            ("ascend950pr_9599", "A5", "dav-c310-vec", "REGISTER_BASE"),
        ],
    )
    def test_simulator_and_device_follow_the_soc(self, soc: str, memory: str, arch: str, macro: str) -> None:
        simulator, device = PTO.plan(job(soc)).steps
        assert {f"-DAKF_SIMULATED={memory}", "-D__CPU_SIM", "src/kernel.cpp"} <= set(simulator.argv)
        assert {f"--cce-aicore-arch={arch}", f"-D{macro}", "src/kernel.cpp"} <= set(device.argv)
        assert (simulator.makes, device.makes) == (("kernel.so",), ("kernel.o",))
        assert all(not word.startswith("/") for step in (simulator, device) for word in step.argv)

    def test_the_core_is_the_devices(self) -> None:
        simulator, device = PTO.plan(job(core="cube")).steps
        assert "--cce-aicore-arch=dav-c220-cube" in device.argv
        assert simulator == PTO.plan(job()).steps[0]

    @pytest.mark.parametrize("source", ["-o.cpp", "a b.cpp", "kernel.py"])
    def test_what_is_no_plain_source_is_refused(self, source: str) -> None:
        with pytest.raises(SourceRefused):
            PTO.plan(job()._replace(sources=(source,)))


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    del state
    monkeypatch.setenv("AKF_TOOLCHAINS", toolchains.folder_with("pto-isa-direct"))
    if not any(shutil.which(name) for name in PTO.data.program("clang++").places):
        pytest.skip("needs clang 19: apt-get install clang-19")
    pytest.importorskip("numpy", reason="needs numpy")


def simulated(source: Path, out: Path, soc: str = "ascend910b4") -> dict[str, Any]:
    return toolchains.build(source, "pto_isa_direct", soc, out).document


@pytest.mark.usefixtures("real")
class TestRealSimulator:
    @pytest.mark.parametrize("name", toolchains.but(EVERY, "matmul"))
    def test_the_shipped_kernel_computes_what_its_task_asks_for(self, name: str, tmp_path: Path) -> None:
        answer = simulated(KERNELS / name, tmp_path / "out")
        assert (answer["outcome"], answer["stage"], answer["reproducible"]) == ("built", "cpu_sim_so", True)
        assert (answer["stopped"]["code"], answer["stopped"]["tool"]) == ("TOOLCHAIN_MISSING", "bisheng")
        text = (tmp_path / "out" / "build.json").read_text()
        assert str(tmp_path) not in text
        tools = {tool["name"]: tool for tool in json.loads(text)["tools"]}
        assert tools["pto-isa"]["wheel_digest"].startswith("sha256:")
        shown = emulate(tmp_path / "out", TASKS / name)
        assert (shown["outcome"], shown["diagnostic"], shown["stage"]) == ("pass", True, "cpu_sim_so")
        task = json.loads((TASKS / name / "task.json").read_bytes())
        assert [case["case"] for case in shown["cases"]] == [each["id"] for each in (*task["rows"], *task["cases"])]

    @pytest.mark.parametrize("name", toolchains.but(EVERY, "matmul"))
    def test_the_tasks_wrong_kernel_does_not(self, name: str, tmp_path: Path) -> None:
        simulated(TASKS / name / "perturbed" / "pto_isa_direct", tmp_path / "out")
        shown = emulate(tmp_path / "out", TASKS / name)
        assert (shown["outcome"], "WRONG_RESULT" in shown["reasons"]) == ("fail", True)

    @pytest.mark.soak
    def test_memory_has_the_socs_size(self, tmp_path: Path) -> None:
        """A tile at 200 KiB lies beyond the unified buffer of A2 and inside that of 950."""
        shutil.copytree(KERNELS / "softmax", tmp_path / "src")
        file = tmp_path / "src" / "kernel.cpp"
        text = file.read_text()
        assert "TASSIGN(shifted, 0x8000);" in text
        file.write_text(text.replace("TASSIGN(shifted, 0x8000);", "TASSIGN(shifted, 0x32000);"))
        simulated(tmp_path / "src", tmp_path / "a2")
        simulated(tmp_path / "src", tmp_path / "a5", "ascend950pr_9599")
        assert emulate(tmp_path / "a5", TASKS / "softmax")["outcome"] == "pass"
        shown = emulate(tmp_path / "a2", TASKS / "softmax")
        assert shown["reasons"] == ["CHILD_CRASHED"]

    @pytest.mark.soak
    def test_a_source_that_is_wrong_is_refused(self, tmp_path: Path) -> None:
        shutil.copytree(KERNELS / "softmax", tmp_path / "src")
        file = tmp_path / "src" / "kernel.cpp"
        file.write_text(file.read_text().replace("TEXP(", "TEXPP("))
        answer = simulated(tmp_path / "src", tmp_path / "out")
        assert (answer["outcome"], answer["stopped"]["code"]) == ("failed", "SOURCE_REJECTED")
        assert any("TEXPP" in reason for reason in answer["reasons"])
