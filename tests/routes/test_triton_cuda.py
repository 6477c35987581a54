"""The route triton_cuda: its command lines anywhere, and the real compilers of its package where they are; no GPU."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support import toolchains
from tests.support.cli import inside

from akf.contracts.shipped import shipped
from akf.routes.launch_spec import parse_spec
from akf.routes.route import Job, SourceRefused, route

CUDA = route("triton_cuda")
KERNELS = shipped("examples") / "kernels" / "triton_cuda"
BLOCK = {"softmax": ["BLOCK=1024"], "rmsnorm": ["BLOCK=4096"], "matmul": ["BM=64", "BN=64", "BK=64"]}


def job(soc: str = "sm_90", **changes: Any) -> Job:
    spec = parse_spec(json.loads((KERNELS / "softmax" / "launch.json").read_bytes()))
    options = {"constexpr.BLOCK": "1024"}
    return Job(("kernel.py", "launch.json"), options, soc, CUDA.target(soc), spec)._replace(**changes)


class TestPlan:
    @pytest.mark.parametrize(
        ("soc", "tool", "name"),
        [("sm_80", "ptxas", "sm_80"), ("sm_89", "ptxas", "sm_89"), ("sm_90", "ptxas-blackwell", "sm_90a")],
    )
    def test_the_assembler_follows_the_target(self, soc: str, tool: str, name: str) -> None:
        front, assembler = CUDA.plan(job(soc)).steps
        assert (front.tool, assembler.tool) == ("python", tool)
        assert f"--gpu-name={name}" in assembler.argv
        assert assembler.makes == ("kernel.cubin",)

    def test_what_the_front_end_is_asked_says_every_specialisation(self) -> None:
        request = json.loads(CUDA.plan(job()).files["request.json"])
        assert request["types"] == {"x": "*fp32", "out": "*fp32", "n": "i32"}
        assert (request["constexprs"], request["target"]) == ({"BLOCK": "1024"}, "90")
        assert request["shared_bytes"] == 227 * 1024

    @pytest.mark.parametrize(
        "changes",
        [{"launch": None}, {"sources": ("launch.json",)}, {"options": {"constexpr.BLOCK": "1; import os"}}],
        ids=["no launch spec", "no source", "no value"],
    )
    def test_what_is_refused_before_anything_runs(self, changes: dict[str, Any]) -> None:
        with pytest.raises(SourceRefused):
            CUDA.plan(job(**changes))


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    del state
    monkeypatch.setenv("AKF_TOOLCHAINS", toolchains.folder_with("triton-cuda"))


def built(source: Path, out: Path, *constexprs: str, soc: str = "sm_90") -> dict[str, Any]:
    return toolchains.build(source, "triton_cuda", soc, out, *(f"constexpr.{each}" for each in constexprs)).document


@pytest.mark.usefixtures("real")
class TestRealCompilers:
    @pytest.mark.parametrize("soc", toolchains.but(("sm_80", "sm_86", "sm_89", "sm_90"), "sm_90"))
    @pytest.mark.parametrize("name", toolchains.but(BLOCK, "softmax"))
    def test_a_source_becomes_a_cubin_for_the_exact_target(self, name: str, soc: str, tmp_path: Path) -> None:
        answer = built(KERNELS / name, tmp_path / "out", *BLOCK[name], soc=soc)
        assert (answer["outcome"], answer["stage"], answer["stopped"]) == ("built", "cubin", None)
        folder = tmp_path / "out" / "build" / "candidate"
        facts = json.loads((folder / "kernel.json").read_bytes())
        symbol = json.loads((KERNELS / name / "launch.json").read_bytes())["symbol"]
        assert (facts["name"], facts["num_warps"], facts["shared"] >= 0) == (symbol, 4, True)
        seen = inside("inspect", folder / "kernel.cubin").accepted().document
        assert [kernel["name"] for kernel in seen["kernels"]] == [symbol]
        assert answer["reproducible"] is True

    def test_an_overflow_is_the_sources(self, tmp_path: Path) -> None:
        answer = built(KERNELS / "matmul", tmp_path / "out", "BM=256", "BN=256", "BK=256")
        assert (answer["outcome"], answer["stopped"]["code"]) == ("failed", "UB_OVERFLOW")
        assert "shared memory overflow" in answer["stopped"]["message"]

    @pytest.mark.parametrize(
        ("old", "new", "said"), [("tl.exp(", "tl.expp(", "expp"), ("def softmax(", "def softmax((", "SyntaxError")]
    )
    def test_a_source_that_is_wrong_is_refused(self, old: str, new: str, said: str, tmp_path: Path) -> None:
        shutil.copytree(KERNELS / "softmax", tmp_path / "src")
        file = tmp_path / "src" / "kernel.py"
        file.write_text(file.read_text().replace(old, new))
        answer = built(tmp_path / "src", tmp_path / "out", *BLOCK["softmax"])
        assert (answer["outcome"], answer["stage"]) == ("failed", "source")
        assert answer["stopped"]["code"] == "SOURCE_REJECTED"
        assert any(said in reason for reason in answer["reasons"])

    @pytest.mark.parametrize(
        ("soc", "outcome"),
        [
            pytest.param("sm_80", ("cubin", None), marks=pytest.mark.soak),
            ("sm_90", ("frontend_ir", ("TOOLCHAIN_MISSING", "ptxas-blackwell"))),
        ],
    )
    def test_a_missing_assembler_is_named_by_who_needs_it(
        self, soc: str, outcome: tuple[str, tuple[str, str] | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The other target's assembler is there, and goes on working."""
        real_env = Path(toolchains.folder_with("triton-cuda")) / "triton-cuda" / "env"
        env = shutil.copytree(real_env, tmp_path / "env", symlinks=True, copy_function=os.link)
        next(env.rglob("ptxas-blackwell")).unlink()
        monkeypatch.setenv("AKF_TOOLCHAINS", str(tmp_path / "toolchains"))
        added = inside("toolchain", "add", env, "--id", "cut").accepted().document
        assert [row["lacking"] for row in added["reach"]] == [["ptxas-blackwell"]]
        answer = built(KERNELS / "softmax", tmp_path / "out", *BLOCK["softmax"], soc=soc)
        stopped = answer["stopped"] and (answer["stopped"]["code"], answer["stopped"]["tool"])
        assert (answer["outcome"], (answer["stage"], stopped)) == ("built", outcome)

    def test_a_missing_specialisation_is_named(self, tmp_path: Path) -> None:
        answer = built(KERNELS / "softmax", tmp_path / "out")
        assert any("constexpr.BLOCK=VALUE" in reason for reason in answer["reasons"])
