"""Routes whose compiler comes with CANN: what is named when it is missing, and what it would be called with.

Recorded: `tests.support.recorded` stands where CANN's tools would be. That a command line is what the real tool takes
is not shown here, nor anywhere without CANN.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import inside
from tests.support.installations import install
from tests.support.recorded import BANNER, recorder

from akf.contracts.shipped import shipped
from akf.routes.launch_spec import parse_spec
from akf.routes.route import Job, SourceRefused, route

KERNELS = shipped("examples") / "kernels"
SPEC = parse_spec(json.loads((KERNELS / "pypto_tensor_ptoas" / "matmul" / "launch.json").read_bytes()))
SIZES = {"symbol.M": "128", "symbol.N": "64", "symbol.K": "256"}


def job(name: str, soc: str, source: str = "kernel.py", **options: str) -> Job:
    return Job((source, "launch.json"), {**SIZES, **options}, soc, route(name).target(soc), SPEC)


def argv(name: str, soc: str, index: int, source: str = "kernel.py", **options: str) -> tuple[str, ...]:
    return route(name).plan(job(name, soc, source, **options)).steps[index].argv


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Path) -> Path:
    del state
    monkeypatch.setenv("AKF_TOOLCHAINS", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("ascendc_direct", "bin/bisheng"),
        ("catlass_cpp", "bin/bisheng"),
        ("tilelang_ascend_ascendc", "tilelang/lib/libtvm.so"),
        ("tilelang_ascend_pto_headers", "tilelang/lib/libtvm.so"),
        ("tilelang_ascend_npuir", "tilelang/__init__.py"),
        ("pypto_tensor_ptoas", "pypto/__init__.py"),
        ("pypto_pro_cce", "pypto/__init__.py"),
    ],
)
def test_nothing_installed_is_blocked_at_the_exact_file(name: str, missing: str, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("")
    line = ["build", tmp_path / "kernel.py", "--route", name, "--soc", "ascend950pr_9599", "--out", tmp_path / "out"]
    refused = inside(*line).refused(6)
    assert refused.codes == {"AKF-E101"}
    (problem,) = refused.document["problems"]
    assert missing in problem["message"]
    assert any(word in problem["hint"] for word in ("install", "build"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "soc", "words"),
    [
        ("ascendc_direct", "ascend910b4", ["--npu-arch=dav-2201", "-x", "asc"]),
        ("ascendc_direct", "ascend950pr_9599", ["--npu-arch=dav-3510", "-x", "asc"]),
        ("catlass_cpp", "ascend910_9391", ["--npu-arch=dav-2201", "catlass/include"]),
    ],
)
def test_with_cann_the_compiler_is_called_and_named(name: str, soc: str, words: list[str], tmp_path: Path) -> None:
    cann = install(tmp_path / "cann")
    recorder(cann / "bin" / "bisheng")
    (cann / "compiler" / "tikcpp" / "tikcfw").mkdir(parents=True)
    (cann / "compiler" / "tikcpp" / "tikcfw" / "kernel_operator.h").write_text("")
    ids = ["cann-9.1.0"]
    inside("toolchain", "add", cann).accepted()
    if name == "catlass_cpp":
        headers = tmp_path / "store" / "headers"
        (headers / "headers" / "catlass" / "include").mkdir(parents=True)
        where: dict[str, Any] = {"roots": {}, "wheels": {}, "origin": "packages", "route": name}
        (headers / "place.json").write_text(json.dumps(where))
        value = json.loads((tmp_path / "store" / "cann-9.1.0" / "toolchain.json").read_bytes())
        (headers / "toolchain.json").write_text(json.dumps({**value, "id": "headers"}))
        ids.append("headers")
    (tmp_path / "kernel.asc").write_text("// a source\n")
    line = ["build", tmp_path / "kernel.asc", "--route", name, "--soc", soc, "--out", tmp_path / "out"]
    answer = inside(*line, *(word for each in ids for word in ("--toolchain", each))).accepted().document
    assert (answer["outcome"], answer["stage"], answer["toolkit"]["name"]) == ("built", "device_object", "cann")
    called = (tmp_path / "out" / "build" / "candidate" / "kernel.o").read_text()
    assert all(word in called for word in words)
    value = json.loads((tmp_path / "out" / "build.json").read_bytes())
    assert value["tools"][0]["version_text"] == BANNER
    assert str(tmp_path) not in json.dumps(value)


def test_one_object_is_made_of_one_ascend_c_source() -> None:
    with pytest.raises(SourceRefused, match="include the others"):
        route("ascendc_direct").plan(job("ascendc_direct", "ascend910b4", "a.asc")._replace(sources=("a.asc", "b.cpp")))


def test_tilelangs_command_lines_are_its_own() -> None:
    ascendc = argv("tilelang_ascend_ascendc", "ascend950pr_9599", 1)
    assert ascendc[:4] == ("--npu-arch=dav-2201", "-O2", "-std=c++17", "-xasc"), "whatever the platform"
    assert ascendc[-3:] == ("out/kernel.cpp", "-o", "out/kernel.so")
    for soc, words in (
        ("ascend910b4", ("--cce-aicore-arch=dav-c220", "-DMEMORY_BASE")),
        ("ascend950pr_9599", ("--cce-aicore-arch=dav-c310", "-DREGISTER_BASE")),
    ):
        assert argv("tilelang_ascend_pto_headers", soc, 1)[:2] == words


@pytest.mark.parametrize(
    ("name", "soc", "lower"),
    [
        ("tilelang_ascend_ascendc", "ascend910b4", {"target": "ascendc", "platform": "A2"}),
        ("tilelang_ascend_ascendc", "ascend910_9391", {"target": "ascendc", "platform": "A3"}),
        ("tilelang_ascend_pto_headers", "ascend950pr_9599", {"target": "pto", "platform": "A5"}),
        ("tilelang_ascend_npuir", "ascend910b4", {}),
    ],
)
def test_tilelang_is_asked_for_target_and_platform(name: str, soc: str, lower: dict[str, str]) -> None:
    request = json.loads(route(name).plan(job(name, soc)).files["request.json"])
    assert request["lower"] == lower
    assert request["symbols"] == {"M": "128", "N": "64", "K": "256"}


def test_npu_ir_is_compiled_as_tritons_is() -> None:
    plan = route("tilelang_ascend_npuir").plan(job("tilelang_ascend_npuir", "ascend950pr_9599"))
    assert [step.tool for step in plan.steps] == ["python", "bishengir-compile-a5"]
    assert plan.steps[1].argv[:2] == ("out/kernel.linalg.mlir", "--target=Ascend950PR_9599")


class TestPypto:
    @pytest.mark.parametrize(
        ("soc", "pto", "core"), [("ascend910b4", "a3", "c220"), ("ascend950pr_9599", "a5", "c310")]
    )
    def test_the_assembler_and_the_compiler_follow_the_soc(self, soc: str, pto: str, core: str) -> None:
        assemble = argv("pypto_tensor_ptoas", soc, 1)
        assert assemble == ("out/program.pto", f"--pto-arch={pto}", "--enable-insert-sync", "-o", "out/kernel.cpp")
        for name in ("pypto_tensor_ptoas", "pypto_pro_cce"):
            if name == "pypto_pro_cce" and soc == "ascend910b4":
                continue  # it compiles for 950 only
            assert f"--cce-aicore-arch=dav-{core}-cube" in argv(name, soc, 2, core="cube")

    def test_cce_sources_are_asked_for_where_cann_is(self) -> None:
        plan = route("pypto_pro_cce").plan(job("pypto_pro_cce", "ascend950pr_9599"))
        assert [step.tool for step in plan.steps] == ["python", "python", "bisheng"]
        assert plan.steps[1].needs == ("bisheng",)
        assert plan.steps[1].variables["ASCEND_HOME_PATH"] == "{toolkit}"
        assert "ASCEND_HOME_PATH" not in plan.steps[0].variables
