"""An Ascend C operator: device code and the host parts that run inside the engine.

Recorded: `tests.support.cann_host` stands where CANN's compiler, headers and libraries would be. The binding to torch
is compiled for real where torch and torch_npu are.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support import toolchains
from tests.support.cann_host import host_side
from tests.support.cli import inside

from akf.contracts.shipped import shipped
from akf.routes.route import Job, SourceRefused, route

KERNEL = shipped("examples") / "kernels" / "ascendc_direct" / "rmsnorm"
ASCENDC = route("ascendc_direct")
SOURCES = tuple(sorted(path.relative_to(KERNEL).as_posix() for path in KERNEL.rglob("*") if path.is_file()))
HOST_PARTS = {"host_tiling", "infer_shape", "aclnn", "torch_binding"}
pytestmark = pytest.mark.usefixtures("compiler", "state")


def job(*sources: str, soc: str = "ascend910b4") -> Job:
    return Job(sources or SOURCES, {}, soc, ASCENDC.target(soc))


def build(source: Path, out: Path, *ids: str, name: str = "ascendc_direct") -> dict[str, Any]:
    words = [word for each in ids for word in ("--toolchain", each)]
    return inside("build", source, "--route", name, "--soc", "ascend910b4", "--out", out, *words).accepted().document


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKF_TOOLCHAINS", str(tmp_path / "store"))
    return tmp_path / "store"


class TestPlan:
    def test_the_device_comes_first_and_every_part_has_its_own_step(self) -> None:
        steps = ASCENDC.plan(job()).steps
        assert [step.tool for step in steps] == ["bisheng", "g++", "g++", "op_build", "g++", "g++", "g++"]
        assert [step.part for step in steps] == [False, *[True] * 6]
        made = {name for step in steps for name in step.makes}
        assert {part.file for part in ASCENDC.data.parts} <= made
        assert steps[0].argv[-3:] == ("src/op_kernel/rms_norm_row.cpp", "-o", "out/kernel.o")
        assert all(not word.startswith("/") for step in steps for word in step.argv)

    @pytest.mark.parametrize(
        ("file", "words"),
        [
            ("host_tiling.so", ["-DOP_TILING_LIB", "-D_GLIBCXX_USE_CXX11_ABI=0", "-lrt2_registry", "-lnnopbase"]),
            ("infer_shape.so", ["-DOP_PROTO_LIB", "out/op_proto.cc", "-lexe_graph", "-lregister"]),
            ("aclnn.so", ["out/aclnn_rms_norm_row.cpp", "-lascendcl", "-lnnopbase"]),
            ("torch_binding.so", ["{packages}/torch_npu/include", "-ltorch_npu", "-Wl,-z,defs"]),
        ],
    )
    def test_a_parts_command_line_is_its_own(self, file: str, words: list[str]) -> None:
        (step,) = (step for step in ASCENDC.plan(job()).steps if file in step.makes)
        assert set(words) <= set(step.argv)

    def test_an_operator_without_a_binding_has_no_step_for_one(self) -> None:
        sources = [each for each in SOURCES if not each.startswith("torch_binding/")]
        assert "torch_binding.so" not in {name for step in ASCENDC.plan(job(*sources)).steps for name in step.makes}

    def test_a_kernel_alone_is_no_operator(self) -> None:
        assert len(ASCENDC.plan(job("kernel.asc")).steps) == 1

    @pytest.mark.parametrize(
        "sources",
        [
            ("op_host/a.cpp", "op_host/b.cpp", "op_kernel/a.cpp"),
            ("op_host/a.cpp", "op_kernel/a.cpp", "op_kernel/b.cpp"),
            ("op_host/a.cpp", "a.cpp"),
            ("op_host/a.h", "op_kernel/a.cpp"),
            ("op_host/-a b.cpp", "op_kernel/a.cpp"),
        ],
        ids=["two registrations", "two kernels", "no kernel", "no registration", "an option"],
    )
    def test_a_tree_that_is_no_operator_is_refused(self, sources: tuple[str, ...]) -> None:
        with pytest.raises(SourceRefused):
            ASCENDC.plan(job(*sources))


class TestUpToCann:
    def test_every_part_is_an_output_with_its_role_and_trust(self, store: Path, tmp_path: Path) -> None:
        del store
        inside("toolchain", "add", host_side(tmp_path / "cann")).accepted()
        answer = build(KERNEL, tmp_path / "out", "cann-9.1.0")
        assert (answer["outcome"], answer["stage"], answer["toolkit"]["name"]) == ("built", "device_object", "cann")
        value = json.loads((tmp_path / "out" / "build.json").read_bytes())
        found = {output["role"]: output["trust"] for output in value["outputs"] if output["role"] != "log"}
        assert found == dict.fromkeys(HOST_PARTS - {"torch_binding"}, "host_code") | {"kernel_object": "device_code"}
        assert value["stopped"]["tool"] in {"torch", "torch_npu"}
        assert "runs inside the engine that serves the operator" in " ".join(value["notes"])
        assert (tmp_path / "out" / "build" / "candidate" / "host_tiling.so").read_bytes()[:4] == b"\x7fELF"
        assert not list((tmp_path / "out" / "build").rglob("other.cpp")), "what nobody asked for is not kept"
        assert str(tmp_path) not in json.dumps(value)

    def test_what_is_missing_for_one_part_keeps_no_other_from_being_made(self, store: Path, tmp_path: Path) -> None:
        del store
        inside("toolchain", "add", host_side(tmp_path / "cann", op_build=False)).accepted()
        build(KERNEL, tmp_path / "out", "cann-9.1.0")
        value = json.loads((tmp_path / "out" / "build.json").read_bytes())
        roles = {output["role"] for output in value["outputs"]}
        assert roles == {"log", "kernel_object", "host_tiling"}
        said = "\n".join(value["notes"])
        assert "infer_shape.so is not made: op_build is missing (tools/opbuild/op_build)" in said
        assert "aclnn.so is not made: op_build is missing" in said

    @pytest.mark.parametrize("part", ["op_host", "op_kernel"])
    def test_host_code_that_does_not_compile_fails_the_build(self, part: str, store: Path, tmp_path: Path) -> None:
        del store
        inside("toolchain", "add", host_side(tmp_path / "cann")).accepted()
        shutil.copytree(KERNEL, tmp_path / "src")
        file = tmp_path / "src" / part / ("rms_norm_row.cpp" if part == "op_host" else "rms_norm_row_tiling.h")
        file.write_text(file.read_text() + "this is no declaration;\n")
        answer = build(tmp_path / "src", tmp_path / "out", "cann-9.1.0")
        assert (answer["outcome"], answer["stopped"]["code"]) == ("failed", "SOURCE_REJECTED")
        assert "before 'this'" in " ".join(answer["reasons"])

    def test_templates_bring_host_parts_too(self) -> None:
        catlass = route("catlass_cpp")
        steps = catlass.plan(Job(SOURCES, {}, "ascend910b4", catlass.target("ascend910b4"))).steps
        assert "{headers}/catlass/include" in steps[0].argv
        assert [step.makes for step in steps[1:]] == [step.makes for step in ASCENDC.plan(job()).steps[1:]]


def test_nothing_installed_is_blocked_at_the_compiler(store: Path, tmp_path: Path) -> None:
    del store
    line = ["build", KERNEL, "--route", "ascendc_direct", "--soc", "ascend910b4", "--out", tmp_path / "out"]
    (problem,) = inside(*line).refused(6).document["problems"]
    assert (problem["expected"], "bin/bisheng" in problem["message"]) == ("bisheng", True)
    assert not (tmp_path / "out").exists()


def test_the_binding_to_torch_is_compiled_for_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKF_TOOLCHAINS", toolchains.folder_with("torch-npu"))
    answer = build(KERNEL, tmp_path / "out", "torch-npu")
    assert (answer["outcome"], answer["stage"], answer["reproducible"]) == ("built", "host_parts", True)
    assert (answer["stopped"]["code"], answer["stopped"]["tool"]) == ("TOOLCHAIN_MISSING", "bisheng")
    assert answer["toolkit"]["name"] == "gcc", "no CANN took part"
    value = json.loads((tmp_path / "out" / "build.json").read_bytes())
    (output,) = (each for each in value["outputs"] if each["role"] != "log")
    assert (output["role"], output["trust"]) == ("torch_binding", "host_code")
    assert b"akf_ops" in (tmp_path / "out" / "build" / "candidate" / "torch_binding.so").read_bytes()
    said = "\n".join(value["notes"])
    assert "host_tiling.so is not made: op_def_registry.h is missing (include/register/op_def_registry.h)" in said
    assert str(tmp_path) not in json.dumps(value)


SHARES = """
#include <cstdio>
#include "rms_norm_row_tiling.h"
int main() {
    const uint64_t memory = 192 * 1024;
    for (uint32_t rows = 1; rows <= 300; ++rows)
        for (uint32_t cores = 1; cores <= 48; ++cores) {
            const RmsNormRowTiling tiling = rms_norm_row_tiling(rows, 4096, 1e-6f, cores, memory);
            if (tiling.cores == 0 || tiling.cores > cores || tiling.cores > rows) return 1;
            if (rms_norm_row_first(tiling, 0) != 0 || rms_norm_row_first(tiling, tiling.cores) != rows) return 2;
            uint32_t least = rows, most = 0;
            for (uint32_t core = 0; core < tiling.cores; ++core) {
                const uint32_t share = rms_norm_row_first(tiling, core + 1) - rms_norm_row_first(tiling, core);
                least = share < least ? share : least;
                most = share > most ? share : most;
            }
            if (least == 0 || most - least > 1) return 3;
        }
    const RmsNormRowTiling large = rms_norm_row_tiling(4294967295u, 64, 0, 48, memory);
    if (rms_norm_row_first(large, 48) != 4294967295u) return 4;
    if (rms_norm_row_tiling(1, 65536, 0, 48, memory).cores != 0) return 5;
    if (rms_norm_row_tiling(0, 64, 0, 48, memory).cores != 0) return 6;
    if (rms_norm_row_tiling(1, 64, 0, 0, memory).cores != 0) return 7;
    std::puts("held");
}
"""


def test_the_shipped_tiling_gives_every_row_to_one_core(tmp_path: Path) -> None:
    program = tmp_path / "shares"
    command = ["g++", "-O1", "-Wall", "-Werror", "-I", str(KERNEL / "op_kernel"), "-x", "c++", "-", "-o", str(program)]
    subprocess.run(command, input=SHARES.encode(), check=True, timeout=120)
    assert subprocess.run([str(program)], capture_output=True, check=True, timeout=60).stdout == b"held\n"
