"""What a Task must mean, and what of it a run takes."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.runs import Ready, change, new_run, task, tree

from akf.contracts.problems import AkfError, InvalidError, PreconditionError
from akf.opportunity.tasks import open_task

Value = dict[str, Any]
Edit = Callable[[Value], object]


class Bench:
    """A run without a Task, and a Task folder to change."""

    def __init__(self, ready: Ready, folder: Path) -> None:
        self.keys = ready.keys
        self.run = new_run(ready, folder / "runs")
        self.file = task(folder / "task")

    def refused(self, edit: Edit = lambda _: None) -> AkfError:
        """How the changed Task is refused; the run stays as it was."""
        change(self.file, edit)
        before = tree(self.run)
        with pytest.raises(AkfError) as refused:
            open_task(self.run, self.file, self.keys)
        assert tree(self.run) == before
        return refused.value


@pytest.fixture
def bench(ready: Ready, tmp_path: Path) -> Bench:
    return Bench(ready, tmp_path)


def places(error: AkfError) -> set[tuple[str, str | None]]:
    return {(problem.code, problem.pointer) for problem in error.problems}


def test_the_frozen_task_carries_its_reference_and_its_wrong_kernel(bench: Bench) -> None:
    frozen = open_task(bench.run, bench.file, bench.keys)
    assert frozen["reference"]["text"] == (bench.file.parent / "reference.py").read_text()
    assert {file["path"] for file in frozen["perturbed"][0]["files"]} == {"kernel.cpp", "launch.json"}
    assert frozen["opportunity"] is None
    assert [parent["kind"] for parent in frozen["parents"]] == ["Run"]


MEANING: list[tuple[str, str, Edit]] = [
    ("AKF-M030", "/rows/0/symbols/T", lambda v: v["rows"][0]["symbols"].update(T=17)),
    ("AKF-M030", "/cases/0/symbols", lambda v: v["cases"][0]["symbols"].update(H=4096)),
    ("AKF-M030", "/rows/0/symbols", lambda v: v["rows"][0].update(symbols={})),
    ("AKF-M030", "/abi/operands/0/shape/0", lambda v: v["abi"]["operands"][0]["shape"][0].update(max=32)),
    ("AKF-M031", "/rows/0/weight", lambda v: v["rows"][0].update(weight=0)),
    ("AKF-M032", "/rows/0/attributes/eps", lambda v: v["rows"][0]["attributes"].update(eps=0.5)),
    ("AKF-M032", "/rows/0/attributes", lambda v: v["rows"][0].update(attributes={})),
    ("AKF-M017", "/write_paths/0", lambda v: v.update(write_paths=["attempts"])),
    ("AKF-M001", "/rows/1", lambda v: v["rows"].append(dict(v["rows"][0]))),
    ("AKF-M001", "/abi/operands/3", lambda v: v["abi"]["operands"].append(dict(v["abi"]["operands"][0]))),
]


@pytest.mark.parametrize(("code", "place", "edit"), MEANING, ids=[f"{c}{p}" for c, p, _ in MEANING])
def test_meaning(bench: Bench, code: str, place: str, edit: Edit) -> None:
    error = bench.refused(edit)
    assert isinstance(error, InvalidError)
    assert (code, place) in places(error)


def test_numbers_that_a_hand_wrote_open_no_way_to_promotion(bench: Bench) -> None:
    opportunity = {
        "triage": {"kind": "Triage", "id": "triage", "digest": "sha256:" + "0" * 64},
        "hotspot": "rms-norm",
        "share_ratio": 0.9,
        "share_low_ratio": 0.9,
        "share_high_ratio": 0.9,
        "ceiling_ratio": 10,
        "needed_speedup_ratio": 1.1,
        "coverage_ratio": 1,
    }
    error = bench.refused(lambda value: value.update(opportunity=opportunity))
    assert ("AKF-M034", "/opportunity") in places(error)


UNKNOWN: list[tuple[str, Edit]] = [
    ("another operator", lambda v: v.update(op="layer_norm")),
    ("another route", lambda v: v.update(routes=["triton_ascend"])),
    ("one route of two", lambda v: v.update(routes=["host_cpp", "ascendc_direct"])),
    ("another dtype", lambda v: v["abi"]["operands"][0].update(dtype="float64")),
    ("a graph", lambda v: v.update(graph="graph")),
    ("another hidden size", lambda v: v["abi"]["operands"][0]["shape"].__setitem__(1, 4097)),
    ("a larger domain", lambda v: _domain(v, max=17)),
]


def _domain(value: Value, **bounds: int) -> None:
    size = {**value["domain"][0], **bounds}
    value["domain"] = [size]
    for operand in value["abi"]["operands"]:
        operand["shape"] = [size if isinstance(each, dict) else each for each in operand["shape"]]


@pytest.mark.parametrize(("name", "edit"), UNKNOWN, ids=[name for name, _ in UNKNOWN])
def test_what_no_capability_tuple_covers_fails_closed(bench: Bench, name: str, edit: Edit) -> None:
    del name
    error = bench.refused(edit)
    assert isinstance(error, PreconditionError)
    assert "AKF-P103" in {code for code, _ in places(error)}


def test_the_callsite_is_one_of_the_workloads(bench: Bench) -> None:
    error = bench.refused(lambda value: value.update(callsite="another"))
    assert places(error) == {("AKF-P104", "/callsite")}


def test_a_task_is_opened_once(bench: Bench) -> None:
    open_task(bench.run, bench.file, bench.keys)
    error = bench.refused()
    assert error.exit_code == 5


@pytest.mark.parametrize("what", ["reference.py", "perturbed/host_cpp", "perturbed/host_cpp/kernel.cpp", "perturbed"])
def test_a_link_in_its_folder_is_not_followed(bench: Bench, tmp_path: Path, what: str) -> None:
    path = bench.file.parent / what
    outside = tmp_path / "outside"
    shutil.move(path, outside)
    path.symlink_to(outside)
    error = bench.refused()
    assert "AKF-S103" in {code for code, _ in places(error)}


@pytest.mark.parametrize("path", ["../outside.py", "/etc/passwd", "perturbed/../../outside.py", "reference.txt", "."])
def test_a_reference_outside_its_folder_or_missing(bench: Bench, tmp_path: Path, path: str) -> None:
    (tmp_path / "outside.py").write_text("def reference(): ...")
    assert bench.refused(lambda value: value["reference"].update(path=path)).exit_code == 1


def test_a_reference_that_is_no_text(bench: Bench) -> None:
    (bench.file.parent / "reference.py").write_bytes(b"\xff\xfe")
    assert {code for code, _ in places(bench.refused())} == {"AKF-S102"}
