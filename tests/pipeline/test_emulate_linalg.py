"""Linalg IR executed on this machine: right passes, wrong is named, what cannot be executed is neither."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.support.linalg import SOFTMAX, carrying, edited

from akf.contracts.canonical import digest
from akf.contracts.problems import BlockedError, InvalidError, PreconditionError
from akf.contracts.shipped import shipped
from akf.evaluate import emulate_launch
from akf.evaluate.emulate import emulate
from akf.routes import emulator
from akf.routes.route import route

pytest.importorskip("numpy", reason="needs numpy")

TASK = shipped("examples") / "tasks" / "ascend" / "softmax"
NEEDS = [route("triton_ascend").data.program(name) for name in ("mlir-opt", "mlir-translate", "clang")]


@pytest.fixture
def tools() -> None:
    """Skip where the tools are not, with what would install them."""
    if not all(shutil.which(each.places[0]) for each in NEEDS):
        pytest.skip(NEEDS[0].get)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The Task with one row and two cases."""
    value = json.loads((TASK / "task.json").read_bytes())
    value |= {"rows": value["rows"][:1], "cases": value["cases"][1:3]}
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "task.json").write_text(json.dumps(value))
    (tmp_path / "task" / "reference.py").write_bytes((TASK / "reference.py").read_bytes())
    return tmp_path / "task"


@pytest.mark.usefixtures("tools")
class TestExecuted:
    def test_what_is_right_passes_for_every_row_and_case(self, tmp_path: Path) -> None:
        build = carrying(tmp_path / "b")
        shown = emulate(build, TASK)
        assert (shown["outcome"], shown["reasons"], shown["diagnostic"]) == ("pass", [], True)
        assert (shown["stage"], shown["object"]) == ("linalg", digest(SOFTMAX.encode()))
        assert len(shown["cases"]) == 8
        assert [tool["name"] for tool in shown["compiled"]["tools"]] == ["mlir-opt", "mlir-translate", "clang"]
        assert str(tmp_path) not in json.dumps(shown)
        assert emulate(build, TASK) == shown, "the same IR gives the same object and the same figures"

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (("math.exp %distance", "math.exp2 %distance"), "WRONG_RESULT"),
            (("arith.muli %px, %n", "arith.muli %py, %n"), "NON_FINITE"),
            (("fill ins(%none : f32) outs(%local", "fill ins(%nothing : f32) outs(%local"), "WRONG_RESULT"),
            (("// more", "memref.store %nothing, %x[%offset] : memref<?xf32>"), "INPUT_MUTATED"),
            (
                (
                    "// more",
                    "%below = arith.constant -1 : index memref.store %nothing, %out[%below] : memref<?xf32>",
                ),
                "OUT_OF_BOUNDS_WRITE",
            ),
        ],
        ids=["arithmetic", "which program", "masked lanes", "an input", "before a tensor"],
    )  # fmt: skip
    def test_what_is_wrong_is_named(self, change: tuple[str, str], reason: str, small: Path, tmp_path: Path) -> None:
        shown = emulate(carrying(tmp_path / "b", edited(change)), small)
        assert shown["outcome"] == "fail"
        assert reason in shown["reasons"]

    def test_on_chip_memory_that_nobody_wrote_is_no_number(self, small: Path, tmp_path: Path) -> None:
        """Without the fill, lanes behind the row hold what the program before it left there, on a device too."""
        text = edited(("      linalg.fill ins(%none : f32) outs(%local : memref<1024xf32>)\n", ""))
        shown = emulate(carrying(tmp_path / "b", text), small)
        assert [case["reasons"] for case in shown["cases"]] == [[], ["NON_FINITE"], ["NON_FINITE"]]

    def test_a_program_that_never_ends_is_stopped(
        self, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:

        monkeypatch.setattr(emulate_launch, "LIMITS", emulate_launch.LIMITS._replace(wall_s=0.5))
        loop = (
            "scf.while : () -> () { %go = arith.constant true scf.condition(%go) } "
            "do { memref.store %nothing, %out[%offset] : memref<?xf32> scf.yield }"
        )
        shown = emulate(carrying(tmp_path / "b", edited(("// more", loop))), small)
        assert shown["reasons"] == ["CHILD_TIMEOUT"]

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("hivm.hir.pipe_barrier[<PIPE_ALL>]", "hivm"),
            ("this is no operation", "custom op 'this' is unknown"),
        ],
    )
    def test_ir_that_this_machine_does_not_know_is_no_verdict(self, line: str, said: str, tmp_path: Path) -> None:
        with pytest.raises(PreconditionError) as caught:
            emulate(carrying(tmp_path / "b", edited(("// more", line))), TASK)
        (problem,) = caught.value.problems
        assert problem.code == "AKF-P500"
        assert "mlir-opt" in problem.message
        assert said in problem.message


def test_a_missing_tool_is_blocked_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BlockedError) as caught:
        emulate(carrying(tmp_path / "b"), TASK)
    assert caught.value.exit_code == 6
    (problem,) = caught.value.problems
    assert (problem.code, problem.expected) == ("AKF-E101", "mlir-opt")
    assert "apt-get install mlir-19-tools" in str(problem.hint)


def test_a_kernel_of_another_task_is_refused_before_any_tool_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidError) as caught:
        emulate(carrying(tmp_path / "b"), TASK.parent / "matmul")
    assert caught.value.problems[0].code == "AKF-M043"


def test_programs_are_numbered_with_the_first_dimension_fastest() -> None:
    found = [tuple(each.value for each in numbers) for numbers in emulator.programs([2, 3, 2])]
    assert found == [(x, y, z) for z in range(2) for y in range(3) for x in range(2)]
