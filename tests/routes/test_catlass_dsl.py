"""The route catlass_dsl: its command lines anywhere; the real package where it is, with recorded tools of CANN."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support import toolchains
from tests.support.cli import inside
from tests.support.installations import install
from tests.support.recorded import recorder

from akf.contracts.shipped import shipped
from akf.routes.catlass_dsl import LOWERED, STAND_IN
from akf.routes.launch_spec import parse_spec
from akf.routes.route import Job, SourceRefused, route

CATLASS = route("catlass_dsl")
KERNELS = shipped("examples") / "kernels" / "catlass_dsl"
SIZES = {
    "rmsnorm": ("symbol.T=8", "symbol.H=4096", "symbol.eps=1e-06"),
    "softmax": ("symbol.M=16", "symbol.N=1024"),
    "matmul": ("symbol.M=128", "symbol.N=128", "symbol.K=128"),
}
SOC = "ascend950pr_9599"


def job(**changes: Any) -> Job:
    spec = parse_spec(json.loads((KERNELS / "softmax" / "launch.json").read_bytes()))
    options = {"symbol.M": "16", "symbol.N": "1024"}
    return Job(("kernel.py", "launch.json"), options, SOC, CATLASS.target(SOC), spec)._replace(**changes)


class TestPlan:
    def test_sizes_become_shapes_and_strides(self) -> None:
        request = json.loads(CATLASS.plan(job()).files["request.json"])
        assert request["tensors"] == [{"dtype": "Float32", "shape": [16, 1024], "strides": [1024, 1]}] * 2
        assert (request["source"], request["kernel"], request["target"]) == ("src/kernel.py", "softmax", "3510")

    def test_the_stand_in_answers_for_its_version_and_nothing_else(self) -> None:
        plan = CATLASS.plan(job())
        assert set(plan.stand_ins) == {"hivmc-a5"}
        assert STAND_IN.encode() == plan.stand_ins["hivmc-a5"].program
        lowering, normal, finishing = plan.steps
        assert lowering.needs == ()
        assert normal.normalises
        assert finishing.needs == ("hivmc-a5", "ccec", "llvm-link")

    @pytest.mark.parametrize(
        "changes",
        [
            {"options": {"symbol.M": "16"}},
            {"options": {"symbol.M": "16", "symbol.N": "x"}},
            {"options": {"symbol.M": "16", "symbol.N": "-1"}},
            {"options": {"kernel": "a.b", "symbol.M": "16", "symbol.N": "64"}},
            {"launch": None},
            {"sources": ("launch.json",)},
        ],
        ids=["no size", "no number", "negative", "kernel", "no launch spec", "no source"],
    )
    def test_what_is_refused_before_anything_runs(self, changes: dict[str, Any]) -> None:
        with pytest.raises(SourceRefused):
            CATLASS.plan(job(**changes))

    def test_numbers_of_the_launch_spec_are_symbols_of_the_kernel(self) -> None:
        value = json.loads((KERNELS / "softmax" / "launch.json").read_bytes())
        value["args"].append({"name": "n", "kind": "scalar", "dtype": "int32", "value": "N"})
        with pytest.raises(SourceRefused, match="symbols of the kernel"):
            CATLASS.plan(job(launch=parse_spec(value)))


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch, state: Path) -> Path:
    del state
    folder = toolchains.folder_with("catlass-dsl")
    monkeypatch.setenv("AKF_TOOLCHAINS", folder)
    return Path(folder)


def lowered(source: Path, name: str, out: Path, soc: str = SOC) -> dict[str, Any]:
    return toolchains.build(source, "catlass_dsl", soc, out, *SIZES[name]).document


@pytest.mark.usefixtures("real")
class TestRealPackage:
    @pytest.mark.parametrize("name", toolchains.but(SIZES, "softmax"))
    def test_a_source_is_lowered_and_reproduces_raw_and_normalised(self, name: str, tmp_path: Path) -> None:
        answer = lowered(KERNELS / name, name, tmp_path / "out")
        assert (answer["outcome"], answer["stage"], answer["reproducible"]) == ("built", "lowered_mlir", True)
        assert (answer["stopped"]["code"], answer["stopped"]["tool"]) == ("TOOLCHAIN_MISSING", "hivmc-a5")
        assert answer["reproduction"]["normalised_first"] == answer["reproduction"]["normalised_second"]
        assert answer["reproduction"]["normalised_first"] != answer["reproduction"]["first"]

    @pytest.mark.soak
    def test_the_build_names_the_stand_in(self, tmp_path: Path) -> None:
        lowered(KERNELS / "softmax", "softmax", tmp_path / "out")
        tools = json.loads((tmp_path / "out" / "build.json").read_bytes())["tools"]
        (stand_in,) = [tool for tool in tools if tool.get("stand_in")]
        assert stand_in["name"] == "hivmc-a5"
        assert "stand-in of AKF" in stand_in["version_text"]

    @pytest.mark.soak
    def test_a_source_that_is_wrong_is_refused(self, tmp_path: Path) -> None:
        shutil.copytree(KERNELS / "softmax", tmp_path / "src")
        file = tmp_path / "src" / "kernel.py"
        file.write_text(file.read_text().replace("tla.exp(", "tla.expp("))
        answer = lowered(tmp_path / "src", "softmax", tmp_path / "out")
        assert (answer["outcome"], answer["stage"]) == ("failed", "source")
        assert answer["stopped"]["code"] == "SOURCE_REJECTED"
        assert any("expp" in reason for reason in answer["reasons"])

    @pytest.mark.soak
    def test_a_size_that_the_kernel_asks_for_is_named(self, tmp_path: Path) -> None:
        options = ("symbol.T=8", "symbol.H=64")
        answer = toolchains.build(KERNELS / "rmsnorm", "catlass_dsl", SOC, tmp_path / "out", *options).document
        assert any("symbol.eps=VALUE" in reason for reason in answer["reasons"])

    @pytest.mark.soak
    def test_with_cann_the_object_is_made_by_its_tools_of_the_lowered_mlir(self, real: Path, tmp_path: Path) -> None:
        """Recorded: CANN's tools are scripts that say what they were called with; no board and no CANN was seen."""
        cann = install(tmp_path / "cann")
        for name in ("hivmc-a5", "ccec", "llvm-link"):
            recorder(cann / "bin" / name)
        store = tmp_path / "store"
        shutil.copytree(real / "catlass-dsl", store / "catlass-dsl", symlinks=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AKF_TOOLCHAINS", str(store))
            inside("toolchain", "add", cann).accepted()
            out = tmp_path / "out"
            words = [word for each in SIZES["softmax"] for word in ("--option", each)]
            ids = [word for each in ("catlass-dsl", "cann-9.1.0") for word in ("--toolchain", each)]
            line = ["build", KERNELS / "softmax", "--route", "catlass_dsl", "--soc", SOC, "--out", out]
            answer = inside(*line, *words, *ids).accepted().document
        log = (out / "build" / "logs" / "candidate.txt").read_text()
        assert (answer["outcome"], answer["stage"]) == ("built", "device_object"), log
        assert f"$ hivmc-a5 out/{LOWERED} --target=Ascend950PR_9589" in log
        called = (out / "build" / "candidate" / "kernel.o").read_text()
        assert "--enable-hivm-compile=False" in called
        assert "--link-aicore-bitcode=" in called
