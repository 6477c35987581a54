"""The route triton_ascend: its command lines anywhere, and the real compilers of its packages where they are.

The toolchain is looked for in the folder that `AKF_TEST_TOOLCHAINS` names: `AKF_TOOLCHAINS=FOLDER akf toolchain add
--packages triton_ascend` makes it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support import toolchains
from tests.support.cli import Answer, inside

from akf.contracts.shipped import shipped
from akf.evaluate.emulate import emulate
from akf.routes.launch_spec import parse_spec
from akf.routes.route import Job, SourceRefused, Step, route
from akf.routes.sandbox import Ended, can_fix_layout

KERNELS = shipped("examples") / "kernels" / "triton_ascend"
BLOCK = {"softmax": ["BLOCK=1024"], "rmsnorm": ["BLOCK=4096"], "matmul": ["BM=64", "BN=64", "BK=64"]}
SOCS = {
    "ascend910b4": ("bishengir-compile", "Ascend910B4", "hivmc"),
    "ascend910_9391": ("bishengir-compile", "Ascend910_9391", "hivmc"),
    "ascend950pr_9599": ("bishengir-compile-a5", "Ascend950PR_9599", "hivmc-a5"),
}
TRITON = route("triton_ascend")


def job(soc: str = "ascend910b4", options: dict[str, str] | None = None, **changes: Any) -> Job:
    spec = parse_spec(json.loads((KERNELS / "softmax" / "launch.json").read_bytes()))
    chosen = {"constexpr.BLOCK": "1024"} if options is None else options
    return Job(("kernel.py", "launch.json"), chosen, soc, TRITON.target(soc), spec)._replace(**changes)


class TestPlan:
    @pytest.mark.parametrize("soc", SOCS)
    def test_the_compiler_and_its_target_follow_the_soc(self, soc: str) -> None:
        compiler, target, _ = SOCS[soc]
        steps = TRITON.plan(job(soc)).steps
        assert [step.tool for step in steps] == [
            "python", "triton-adapter-opt", "python", compiler, compiler.replace("compile", "opt"),
        ]  # fmt: skip
        assert f"--target={target}" in steps[3].argv
        assert all(not word.startswith("/") for step in steps for word in step.argv)

    def test_what_the_front_end_is_asked_says_every_specialisation(self) -> None:
        request = json.loads(TRITON.plan(job()).files["request.json"])
        assert request["arguments"] == ["x", "out", "n"]
        assert request["types"] == {"x": "*fp32", "out": "*fp32", "n": "i32"}
        assert request["constexprs"] == {"BLOCK": "1024"}
        assert (request["source"], request["kernel"], request["target"]) == ("src/kernel.py", "softmax", "Ascend910B4")

    @pytest.mark.parametrize(
        "changes",
        [
            {"options": {"constexpr.BLOCK": "__import__('os')"}},
            {"options": {"constexpr.a b": "1"}},
            {"options": {"kernel": "a.b"}},
            {"launch": None},
            {"sources": ("launch.json",)},
            {"sources": ("a.py", "b.py")},
            {"sources": ("-c.py",)},
        ],
        ids=["value", "name", "kernel", "no launch spec", "no source", "which source", "an option"],
    )
    def test_what_is_refused_before_anything_runs(self, changes: dict[str, Any]) -> None:
        with pytest.raises(SourceRefused):
            TRITON.plan(job(**changes))


HIVM = "module.hivm.opt.mlir"
# What bishengir-compile of ascendnpu-ir 1.2.0 said, with status 1 each time.
NO_HIVMC = (
    "[ERROR] Cannot find hivmc under $PATH \n[ERROR] Failed to run `hivmc --version`.\n"
    "k:1:1: error: External hivmc run fails\n"
)
OVERFLOW = (
    "[ERROR] Cannot find hivmc under $PATH \n"
    "[NOTE] Ub overflow detected; automatically set enable-code-motion to false and retrying compilation.\n"
    "k:2:3: error: ub overflow, requires 3145984 bits while 1572864 bits available! (possible reason: ...)\n"
)
SYNTAX = "k:52:1: error: custom op 'garbage' is unknown\n[ERROR] Failed to parse input file:  k\n"


@pytest.mark.parametrize(
    ("text", "made", "code", "said"),
    [
        (NO_HIVMC, {HIVM}, "TOOLCHAIN_MISSING", "hivmc is not installed"),
        (OVERFLOW, set(), "UB_OVERFLOW", "requires 3145984 bits while 1572864 bits available"),
        (SYNTAX, set(), "SOURCE_REJECTED", "custom op 'garbage'"),
        ("Segmentation fault\n", set(), "SOURCE_REJECTED", "Segmentation fault"),
    ],
    ids=["missing", "overflow", "syntax", "other"],
)
def test_one_exit_status_and_three_outcomes(text: str, made: set[str], code: str, said: str) -> None:
    step = Step("bishengir-compile", (), (HIVM,), ("kernel.o",))
    outcome = TRITON.classify(step, Ended(1, text, None, "none", False), frozenset(made))
    assert outcome is not None
    assert outcome.code == code
    assert said in outcome.message


@pytest.fixture(scope="session")
def compilers() -> str:
    folder = os.environ.get("AKF_TEST_TOOLCHAINS", "")
    if not (Path(folder) / "triton-ascend" / "toolchain.json").is_file():
        pytest.skip("needs AKF_TEST_TOOLCHAINS with a toolchain: akf toolchain add --packages triton_ascend")
    return folder


@pytest.fixture
def real(compilers: str, monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    del state
    monkeypatch.setenv("AKF_TOOLCHAINS", compilers)


def build(source: Path, soc: str, out: Path, *constexprs: str) -> Answer:
    options = [word for each in constexprs for word in ("--option", f"constexpr.{each}")]
    return inside("build", source, "--route", "triton_ascend", "--soc", soc, "--out", out, *options).accepted()


def edited(name: str, folder: Path, old: str, new: str) -> Path:
    folder.mkdir()
    for path in (KERNELS / name).iterdir():
        text = path.read_text()
        (folder / path.name).write_text(text.replace(old, new) if path.name == "kernel.py" else text)
    assert (folder / "kernel.py").read_text() != (KERNELS / name / "kernel.py").read_text()
    return folder


@pytest.mark.usefixtures("real")
class TestRealCompilers:
    @pytest.mark.parametrize("soc", SOCS)
    @pytest.mark.parametrize("name", toolchains.but(BLOCK, "softmax"))
    def test_a_source_becomes_ir_for_the_exact_soc_and_reproduces(self, name: str, soc: str, tmp_path: Path) -> None:
        answer = build(KERNELS / name, soc, tmp_path / "out", *BLOCK[name]).document
        assert (answer["outcome"], answer["stage"]) == ("built", "hivm_ir")
        assert (answer["stopped"]["code"], answer["stopped"]["tool"]) == ("TOOLCHAIN_MISSING", SOCS[soc][2])
        if can_fix_layout():
            assert answer["reproducible"] is True
            assert answer["reproduction"]["normalised_first"] == answer["reproduction"]["normalised_second"]
        text = (tmp_path / "out" / "build" / "candidate" / HIVM).read_text()
        assert "hivm.hir." in text
        assert "UB_SIZE" in text
        assert (SOCS[soc][1] in text) is (soc == "ascend950pr_9599"), "only the newer compiler writes the target down"
        value = json.loads((tmp_path / "out" / "build.json").read_bytes())
        tools = {tool["name"]: tool for tool in value["tools"]}
        assert re.fullmatch("[0-9a-f]{12}", tools[SOCS[soc][0]]["commit"])
        assert tools[SOCS[soc][0]]["wheel_digest"].startswith("sha256:")
        assert value["toolchains"][0]["id"] == "triton-ascend"
        assert value["toolkit"]["name"] == "bishengir"
        assert str(tmp_path) not in json.dumps(value)

    @pytest.mark.parametrize("name", toolchains.but(BLOCK, "softmax"))
    def test_the_shipped_kernel_computes_what_its_task_asks_for_and_the_wrong_one_does_not(
        self, name: str, tmp_path: Path
    ) -> None:
        """Both sources go through the real compiler; their Linalg IR is executed here for every row and case."""
        if not shutil.which("mlir-opt-19"):
            pytest.skip(TRITON.data.program("mlir-opt").get)
        pytest.importorskip("numpy", reason="needs numpy")
        task = shipped("examples") / "tasks" / "ascend" / name
        for source, out in ((KERNELS / name, "right"), (task / "perturbed" / "triton_ascend", "wrong")):
            answer = build(source, "ascend910b4", tmp_path / out, *BLOCK[name]).document
            assert (answer["outcome"], answer["stage"]) == ("built", "hivm_ir")
        right, wrong = emulate(tmp_path / "right", task), emulate(tmp_path / "wrong", task)
        assert (right["outcome"], right["stage"], right["diagnostic"]) == ("pass", "linalg", True)
        value = json.loads((task / "task.json").read_bytes())
        assert [case["case"] for case in right["cases"]] == [each["id"] for each in (*value["rows"], *value["cases"])]
        assert wrong["reasons"] == ["WRONG_RESULT"]
        found = {case["case"] for case in wrong["cases"] if case["outcome"] == "fail"}
        assert found >= {each["id"] for each in value["rows"]}, "the hit proof binds it for the timed rows"

    @pytest.mark.soak
    def test_several_outputs_and_bfloat16_are_compared_too(self, tmp_path: Path) -> None:
        if not shutil.which("mlir-opt-19"):
            pytest.skip(TRITON.data.program("mlir-opt").get)
        pytest.importorskip("numpy", reason="needs numpy")
        task = shipped("examples") / "traffic" / "campaign" / "task"
        wrong, right = task / "perturbed" / "triton_ascend", tmp_path / "src"
        shutil.copytree(wrong, right)
        text = (right / "kernel.py").read_text()
        old = "0.5 / (tl.sum(total * total, axis=0) / HIDDEN + eps)"
        assert old in text
        (right / "kernel.py").write_text(text.replace(old, "tl.rsqrt(tl.sum(total * total, axis=0) / HIDDEN + eps)"))
        for source, out in ((right, "right"), (wrong, "wrong")):
            build(source, "ascend910b4", tmp_path / out, "HIDDEN=1024")
        assert emulate(tmp_path / "right", task)["outcome"] == "pass"
        assert emulate(tmp_path / "wrong", task)["reasons"] == ["WRONG_RESULT"]

    @pytest.mark.soak
    def test_parameters_in_another_order_than_the_launch_specs_are_refused(self, tmp_path: Path) -> None:
        source = edited("softmax", tmp_path / "src", "softmax(x, out, n, ", "softmax(out, x, n, ")
        answer = build(source, "ascend910b4", tmp_path / "out", "BLOCK=1024").document
        assert (answer["outcome"], answer["stopped"]["code"]) == ("failed", "SOURCE_REJECTED")
        assert "out, x, n" in answer["reasons"][0]
        assert "x, out, n" in answer["reasons"][0]

    def test_an_overflow_is_the_sources_and_its_notes_are_kept(self, tmp_path: Path) -> None:
        answer = build(KERNELS / "softmax", "ascend910b4", tmp_path / "out", "BLOCK=65536").document
        assert (answer["outcome"], answer["stage"]) == ("failed", "linalg")
        assert answer["stopped"]["code"] == "UB_OVERFLOW"
        assert "requires 3145984 bits while 1572864 bits available" in answer["stopped"]["message"]
        assert any("enable-code-motion to false" in note for note in answer["notes"])

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [("power / tl.sum", "power /// tl.sum", "SyntaxError"), ("tl.exp(", "tl.expp(", "expp")],
        ids=["python", "triton"],
    )
    def test_a_source_that_is_wrong_is_refused(self, old: str, new: str, said: str, tmp_path: Path) -> None:
        source = edited("softmax", tmp_path / "src", old, new)
        answer = build(source, "ascend910b4", tmp_path / "out", "BLOCK=1024").document
        assert (answer["outcome"], answer["stage"], answer["stopped"]["code"]) == (
            "failed",
            "source",
            "SOURCE_REJECTED",
        )
        assert any(said in reason for reason in answer["reasons"])

    @pytest.mark.soak
    def test_a_source_that_forges_the_compilers_output_gains_nothing(self, tmp_path: Path) -> None:
        forge = (
            f'from pathlib import Path\nfor each in ("kernel.o", "{HIVM}"):\n    Path("out", each).write_text("x")\n'
        )
        source = edited("softmax", tmp_path / "src", "import triton\n", f"import triton\n{forge}")
        answer = build(source, "ascend910b4", tmp_path / "out", "BLOCK=1024").document
        assert answer["stage"] == "hivm_ir"
        assert "kernel.o" not in json.dumps(answer["outputs"])
        assert (tmp_path / "out" / "build" / "candidate" / HIVM).stat().st_size > 1000

    def test_a_missing_specialisation_is_named(self, tmp_path: Path) -> None:
        answer = build(KERNELS / "softmax", "ascend910b4", tmp_path / "out").document
        assert "constexpr.BLOCK" in answer["reasons"][0]
