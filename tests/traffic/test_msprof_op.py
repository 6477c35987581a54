"""Folders of `msprof op` as Captures of single kernels."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support import opprof

from akf.contracts.canonical import jcs
from akf.contracts.loader import parse
from akf.contracts.problems import InvalidError, UsageError
from akf.contracts.schemas import validate
from akf.traffic.msprof_op import ingest
from akf.traffic.profiles import Options

OPTIONS = Options(id="x", title=None, data_class="internal")


def captured(*paths: Path) -> dict[str, Any]:
    """A Capture, which is valid."""
    capture = ingest(paths, OPTIONS)
    assert validate(parse(jcs(capture), "capture.json"), "Capture") == []
    return capture


def test_one_launch_by_hand(tmp_path: Path) -> None:
    capture = captured(opprof.vector_launch(tmp_path))
    (entry,) = capture["entries"]
    assert {name: entry[name] for name in ("kernel", "core_type", "blocks", "calls", "time_ns", "exposed_ns")} == {
        "kernel": "add_custom", "core_type": "AI_VECTOR_CORE", "blocks": 4, "calls": 1, "time_ns": 26060,
        "exposed_ns": 26060,
    }  # fmt: skip
    assert entry["balance"] == [
        {"unit": "aiv", "launches": 1, "blocks": 4, "mean_ns": 19000, "longest_ns": 23500, "last_ns": 10500}
    ]
    assert {"name": "aiv_mte2", "time_ns": 9500} in entry["counters"]
    assert {"name": "aiv_vec_fops", "unit": "operations", "value": 2097152} in entry["amounts"]
    assert capture["checks"] == [
        {"name": "blocks-within-task", "rank": 0, "expected_ns": 26060, "found_ns": 23500, "holds": True}
    ]
    assert [source["name"] for source in capture["sources"]] == [
        "rank0/ArithmeticUtilization.csv", "rank0/L2Cache.csv", "rank0/Memory.csv", "rank0/OpBasicInfo.csv",
        "rank0/PipeUtilization.csv", "rank0/ResourceConflictRatio.csv",
    ]  # fmt: skip
    assert capture["breakdown"] == []


def test_launches_of_one_kernel_add_up(tmp_path: Path) -> None:
    one = opprof.vector_launch(tmp_path / "add_custom" / "0", "_20260823101112")
    two = opprof.vector_launch(tmp_path / "add_custom" / "1", "_20260823101113")
    opprof.mixed_launch(tmp_path / "main_kernel" / "0")
    alone, both, all_of_it = captured(one), captured(one, two), captured(tmp_path)
    before, after = alone["entries"][0], both["entries"][0]
    for name in ("calls", "time_ns", "exposed_ns"):
        assert after[name] == 2 * before[name]
    for kind, number in (("counters", "time_ns"), ("amounts", "value"), ("balance", "mean_ns")):
        assert [each[number] for each in after[kind]] == [2 * each[number] for each in before[kind]]
    assert all_of_it["entries"][0] == after
    assert [entry["kernel"] for entry in all_of_it["entries"]] == ["add_custom", "main_kernel_mix_aic"]


def test_the_order_and_names_of_folders_do_not_matter(tmp_path: Path) -> None:
    one = opprof.vector_launch(tmp_path / "a")
    two = opprof.mixed_launch(tmp_path / "b")
    shutil.copytree(one, tmp_path / "z")
    assert jcs(captured(one, two)) == jcs(captured(two, tmp_path / "z"))


def test_what_one_launch_lacks_is_dropped(tmp_path: Path) -> None:
    opprof.vector_launch(tmp_path / "0")
    (opprof.vector_launch(tmp_path / "1") / "Memory.csv").unlink()
    names = {amount["name"] for amount in captured(tmp_path)["entries"][0]["amounts"]}
    assert "read_main_memory" not in names
    assert "aiv_vec_fops" in names


@pytest.mark.parametrize(
    ("clocks", "clock", "seen"),
    [
        ([("1800", "1800"), ("1800", "1800")], "steady", [1800]),
        ([("1650", "1800")], "changed", [1650]),
        ([("1800", "1800"), ("1650", "1650")], "changed", [1650, 1800]),
        ([("1800", "1800"), ("NA", "1800")], "unknown", [1800]),
        ([("1650", "1800"), ("NA", "NA")], "changed", [1650]),
    ],
)
def test_clocks(tmp_path: Path, clocks: list[tuple[str, str]], clock: str, seen: list[int]) -> None:
    for number, (current, rated) in enumerate(clocks):
        opprof.vector_launch(tmp_path / str(number), current=current, rated=rated)
    capture = captured(tmp_path)
    assert (capture["clock"], capture["clocks_mhz"]) == (clock, seen)


def test_a_block_that_outlasts_its_task_is_said(tmp_path: Path) -> None:
    folder = opprof.vector_launch(tmp_path)
    basic = folder / "OpBasicInfo.csv"
    basic.write_text(basic.read_text().replace("26.060000", "20.000000"))
    assert captured(folder)["checks"][0]["holds"] is False


def test_problems_of_all_launches_are_told_at_once(tmp_path: Path) -> None:
    for number in range(2):
        path = opprof.vector_launch(tmp_path / str(number)) / "PipeUtilization.csv"
        path.write_text(path.read_text().replace("23.500001", "fast"))
    with pytest.raises(InvalidError) as caught:
        ingest([tmp_path], OPTIONS)
    assert [problem.file for problem in caught.value.problems] == [
        str(tmp_path / "0" / "PipeUtilization.csv"), str(tmp_path / "1" / "PipeUtilization.csv"),
    ]  # fmt: skip


def test_one_table_is_no_launch(tmp_path: Path) -> None:
    with pytest.raises(InvalidError) as caught:
        ingest([opprof.vector_launch(tmp_path) / "PipeUtilization.csv"], OPTIONS)
    assert caught.value.problems[0].code == "AKF-F163"


@pytest.mark.parametrize("options", [replace(OPTIONS, platform="cuda"), replace(OPTIONS, step_kernel="mm")])
def test_options_that_do_not_fit(tmp_path: Path, options: Options) -> None:
    with pytest.raises(UsageError):
        ingest([opprof.vector_launch(tmp_path)], options)
