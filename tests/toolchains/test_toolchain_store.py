"""Registered toolchains: identity without places, published as a whole, read again field by field."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.support.cli import inside
from tests.support.installations import install
from tests.support.runs import tree

from akf.contracts.problems import AkfError, BlockedError, PreconditionError, UsageError
from akf.routes.route import route
from akf.toolchains import registry

pytestmark = pytest.mark.usefixtures("state")


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKF_TOOLCHAINS", str(tmp_path / "store"))
    return tmp_path / "store"


def program(path: Path, says: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)


@pytest.fixture
def cann(tmp_path: Path) -> Path:
    root = install(tmp_path / "machine" / "cann")
    program(root / "bin" / "bisheng", "bisheng 15.0.5")
    return root


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment with what looks like triton-ascend and AscendNPU-IR in it."""
    env = tmp_path / "machine" / "env"
    site = env / "lib" / "python3.11" / "site-packages"
    for name, version in (("triton_ascend", "3.2.0"), ("ascendnpu_ir", "1.2.0")):
        info = site / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n")
    (env / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.7\n")
    (env / "bin").mkdir()
    (env / "bin" / "python").symlink_to(sys.executable)
    program(site / "triton" / "_C" / "libtriton.so", "")
    program(site / "triton" / "backends" / "ascend" / "triton-adapter-opt", "LLVM 20.0.0git")
    for tool in ("compile", "compile-a5", "opt", "opt-a5"):
        commit = "f9d978b14443" if tool.endswith("a5") else "8796a8ac1508"
        program(
            site / "ascendnpuir" / "bin" / f"bishengir-{tool}", f"bishengir 1.2.0 (/b/bishengir {commit} 2026-07-29)"
        )
    return env


def test_a_toolkit_is_registered_with_what_each_route_can_reach(cann: Path, store: Path) -> None:
    document = inside("toolchain", "add", cann).accepted().document
    assert document["id"] == "cann-9.1.0"
    rows = {(row["route"], row["family"]): row for row in document["reach"]}
    assert rows["ascendc_direct", "ascend910b"]["lacking"] == ["kernel_operator.h"]
    program(cann / "compiler" / "tikcpp" / "tikcfw" / "kernel_operator.h", "")
    again = inside("toolchain", "add", cann, "--id", "with-headers").accepted().document
    rows = {(row["route"], row["family"]): row for row in again["reach"]}
    assert rows["ascendc_direct", "ascend910b"]["stage"] == "device_object"
    assert sorted(path.name for path in store.iterdir()) == ["cann-9.1.0", "with-headers"]


def test_the_identity_holds_no_path_of_the_machine(cann: Path, environment: Path, store: Path, tmp_path: Path) -> None:
    for folder, name in ((cann, "one"), (environment, "two")):
        registry.add_installed(folder, name)
        text = (store / name / "toolchain.json").read_text()
        assert str(tmp_path) not in text
        assert json.loads((store / name / "place.json").read_bytes())["roots"]


def test_the_same_installation_elsewhere_has_the_same_identity(cann: Path, tmp_path: Path) -> None:
    first = registry.add_installed(cann, "mine")
    cann.rename(tmp_path / "moved")
    (tmp_path / "store" / "mine").rename(tmp_path / "aside")
    assert registry.add_installed(tmp_path / "moved", "mine").value == first.value


def test_two_compilers_of_one_name_and_version_are_told_apart_by_commit_and_digest(environment: Path) -> None:
    tools = {tool["name"]: tool for tool in registry.add_installed(environment, None).value["tools"]}
    assert tools["bishengir-compile"]["commit"] == "8796a8ac1508"
    assert tools["bishengir-compile-a5"]["commit"] == "f9d978b14443"
    assert tools["bishengir-compile"]["files"] != tools["bishengir-compile-a5"]["files"]


def test_a_module_of_the_same_name_from_another_package_is_another_tool(environment: Path) -> None:
    """triton-ascend installs a module `triton`, as the CUDA package does; the route of that package is not served."""
    served = {row["route"] for row in registry.add_installed(environment, None).value["reach"]}
    assert "triton_ascend" in served
    assert "triton_cuda" not in served


def test_the_stage_that_is_out_of_reach_names_its_tool(environment: Path) -> None:
    rows = registry.add_installed(environment, None).value["reach"]
    row = next(row for row in rows if (row["route"], row["family"]) == ("triton_ascend", "ascend910b"))
    assert row["stages"] == ["frontend_ir", "linalg", "hivm_ir"]
    assert [each["tool"] for each in row["lacking"]] == ["hivmc"]
    assert "CANN" in row["lacking"][0]["get"]


def test_nothing_changed_is_said(cann: Path, environment: Path) -> None:
    registry.add_installed(cann, None)
    registry.add_installed(environment, None)
    checked = inside("toolchain", "check").accepted().document["toolchains"]
    assert checked == [{"id": "cann-9.1.0", "same": True}, {"id": "environment", "same": True}]


@pytest.mark.parametrize(
    ("change", "pointers"),
    [
        (lambda site: program(site / "ascendnpuir" / "bin" / "bishengir-opt", "x"), {"/contents_digest", "/tools"}),
        (lambda site: (site / "sitecustomize.py").write_text("print(1)\n"), {"/contents_digest"}),
        (lambda site: (site / "triton" / "__init__.py").write_text("evil = 1\n"), {"/contents_digest"}),
        (lambda site: (site / "triton_ascend-3.2.0.dist-info").rename(site / "x-1.dist-info"), {"/contents_digest"}),
    ],
    ids=["tool", "planted", "module", "package"],
)
def test_what_changed_is_named_field_by_field(change: object, pointers: set[str], environment: Path) -> None:
    registry.add_installed(environment, "mine")
    change(environment / "lib" / "python3.11" / "site-packages")  # type: ignore[operator]
    answer = inside("toolchain", "check", "mine").refused(3)
    assert answer.codes == {"AKF-I403"}
    found = {problem["pointer"] for problem in answer.problems}
    assert all(any(each.startswith(pointer) for each in found) for pointer in pointers)
    assert all(problem["expected"] != problem["found"] for problem in answer.problems)


def test_bytecode_beside_the_modules_is_no_change(environment: Path) -> None:
    """It is never used: builds read their bytecode from a folder of their own."""
    registry.add_installed(environment, "mine")
    site = environment / "lib" / "python3.11" / "site-packages"
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(site)], check=True)
    (site / "triton" / "__pycache__").mkdir(exist_ok=True)
    inside("toolchain", "check", "mine").accepted()


def test_a_toolchain_that_is_gone_is_blocked(cann: Path) -> None:
    registry.add_installed(cann, None)
    cann.rename(cann.with_name("elsewhere"))
    assert inside("toolchain", "check").refused(6).codes == {"AKF-E403"}


def test_an_id_is_taken_once_and_a_refusal_leaves_nothing(cann: Path, store: Path, tmp_path: Path) -> None:
    inside("toolchain", "add", cann).accepted()
    before = tree(store)
    assert inside("toolchain", "add", cann).refused(5).codes == {"AKF-C101"}
    assert inside("toolchain", "add", tmp_path).refused(1).codes == {"AKF-S401"}
    empty = install(tmp_path / "empty")
    assert inside("toolchain", "add", empty, "--id", "empty").refused(6).codes == {"AKF-E404"}
    inside("toolchain", "add", cann, "--id", "NOT AN ID").refused(1)
    assert tree(store) == before


def test_usage(cann: Path) -> None:
    assert inside("toolchain", "add").refused(2).codes == {"AKF-U404"}
    assert inside("toolchain", "add", cann, "--packages", "triton_ascend").refused(2).codes == {"AKF-U404"}
    assert inside("toolchain", "add", "--packages", "ascendc_direct").refused(4).codes == {"AKF-P402"}
    assert inside("toolchain", "check", "nobody").refused(4).codes == {"AKF-P403"}


class TestChoice:
    def test_none_is_blocked_with_how_to_get_one(self) -> None:
        with pytest.raises(BlockedError, match="akf toolchain add --packages triton_ascend"):
            registry.serving(route("triton_ascend"), [])

    def test_the_only_one_that_serves_is_taken(self, cann: Path, environment: Path) -> None:
        registry.add_installed(cann, None)
        registry.add_installed(environment, None)
        assert [each.id for each in registry.serving(route("triton_ascend"), [])] == ["environment"]

    def test_of_several_one_must_be_named(self, environment: Path) -> None:
        for name in ("one", "two"):
            registry.add_installed(environment, name)
        with pytest.raises(UsageError, match="one, two"):
            registry.serving(route("triton_ascend"), [])
        assert [each.id for each in registry.serving(route("triton_ascend"), ["two"])] == ["two"]

    def test_one_that_is_not_there(self, cann: Path) -> None:
        registry.add_installed(cann, None)
        with pytest.raises(PreconditionError, match=r"did you mean cann-9.1.0"):
            registry.serving(route("triton_ascend"), ["cann-9.1"])

    def test_the_host_needs_none(self) -> None:
        assert registry.serving(route("host_cpp"), []) == []


class TestPackages:
    def test_wheels_that_are_not_the_pinned_ones_are_refused(self, tmp_path: Path, store: Path) -> None:
        wheels = tmp_path / "wheels"
        wheels.mkdir()
        name = "tilelang_ascend-0.1.4-cp311-cp311-manylinux2014_aarch64.whl"
        with zipfile.ZipFile(wheels / name, "w") as archive:
            archive.writestr("tilelang/3rdparty/pto-isa/include/pto/pto-inst.hpp", "// mine\n")
            archive.writestr(
                "tilelang_ascend-0.1.4.dist-info/METADATA",
                "Metadata-Version: 2.1\nName: tilelang-ascend\nVersion: 0.1.4\n",
            )
            archive.writestr(
                "tilelang_ascend-0.1.4.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: cp311-cp311-manylinux2014_aarch64\n"
            )
            archive.writestr("tilelang_ascend-0.1.4.dist-info/RECORD", "")
        with pytest.raises(AkfError) as caught:
            registry.add_packages(route("pto_isa_direct"), None, wheels)
        assert caught.value.problems[0].code == "AKF-E402"
        assert "hash" in str(caught.value).lower()
        assert not list(store.iterdir())

    def test_without_wheels_and_network_it_is_blocked_and_leaves_nothing(self, tmp_path: Path, store: Path) -> None:
        (tmp_path / "none").mkdir()
        with pytest.raises(BlockedError, match="AKF-E402"):
            registry.add_packages(route("catlass_cpp"), None, tmp_path / "none")
        assert not list(store.iterdir())
