"""Folders of `msprof op`: times and amounts by column name, balance by block, or one problem with a line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import opprof

from akf.contracts.problems import InvalidError, Problem
from akf.traffic.op_launch import Blocks, folders, read


def refused(folder: Path) -> tuple[Problem, ...]:
    with pytest.raises(InvalidError) as caught:
        read(folder, "")
    return caught.value.problems


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_vector_kernel(tmp_path: Path) -> None:
    found = read(opprof.vector_launch(tmp_path), "")
    assert (found.kernel, found.core_type, found.blocks, found.duration_ns) == (
        "add_custom",
        "AI_VECTOR_CORE",
        4,
        26060,
    )
    assert found.mhz == (1800, 1800)
    assert found.balance == {"aiv": Blocks(4, 19000, 23500, 10500)}
    assert found.counters == {"aiv_vec": 1500, "aiv_mte2": 9500, "aiv_scalar_mte2_stall": 250}
    assert found.amounts == {
        "read_main_memory": ("bytes", 4 * 1024 * 1024 + 4 * 128),
        "write_main_memory": ("bytes", 4 * 512 * 1024),
        "GM_to_UB": ("bytes", 4 * 1024 * 1024),
        "aiv_mte2_instructions": ("instructions", 64),
        "aiv_vec_fops": ("operations", 4 * 524288),
        "aiv_write_cache_hit": ("accesses", 40),
        "aiv_write_cache_miss_allocate": ("accesses", 8),
        "aiv_r0_read_cache_hit": ("accesses", 400),
        "aiv_r0_read_cache_miss_allocate": ("accesses", 6),
    }
    assert len(found.sources) == 6


def test_a_mixed_kernel_has_a_balance_for_each_kind_of_core(tmp_path: Path) -> None:
    found = read(opprof.mixed_launch(tmp_path), "")
    assert (found.core_type, found.blocks) == ("MIX_AIC", 1)
    assert found.balance == {"aic": Blocks(1, 9000, 9000, 9000), "aiv": Blocks(2, 4000, 5000, 5000)}
    assert found.counters == {
        "aic_cube": 314, "aic_mte2": 4500, "aiv_vec": 1500, "aiv_mte2": 600, "aiv_scalar_mte2_stall": 0,
    }  # fmt: skip


def test_310p_has_no_blocks(tmp_path: Path) -> None:
    found = read(opprof.launch_310p(tmp_path), "")
    assert (found.balance, found.counters, found.mhz) == ({}, {"aic_vec": 2500, "aic_mte2": 12250}, (None, None))


def test_950_has_other_columns(tmp_path: Path) -> None:
    found = read(opprof.launch_950(tmp_path), "")
    assert found.amounts == {"aiv_read_close_hit": ("accesses", 15), "aiv_write_far_victim": ("accesses", 1)}
    assert found.balance == {"aiv": Blocks(2, 21000, 21500, 21500)}  # of the first table that has block times


def test_printed_ratios_change_nothing(tmp_path: Path) -> None:
    one = read(opprof.vector_launch(tmp_path / "one"), "")
    other = opprof.vector_launch(tmp_path / "other")
    edit(other / "PipeUtilization.csv", "0.072239", "0.999999")
    assert read(other, "").counters == one.counters


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    one = read(opprof.vector_launch(tmp_path / "one"), "")
    other = opprof.vector_launch(tmp_path / "other")
    head, *rows = (other / "PipeUtilization.csv").read_text().splitlines()
    (other / "PipeUtilization.csv").write_text("\n".join([head, *reversed(rows)]) + "\n")
    again = read(other, "")
    assert (again.balance, again.counters) == (one.balance, one.counters)


def test_what_one_block_lacks_is_no_counter(tmp_path: Path) -> None:
    folder = opprof.vector_launch(tmp_path)
    edit(folder / "PipeUtilization.csv", ",12.0,", ",NA,")
    assert "aiv_mte2" not in read(folder, "").counters


def test_launches_are_found_at_any_depth_in_one_order(tmp_path: Path) -> None:
    opprof.vector_launch(tmp_path / "OPPROF_1" / "add_custom" / "1", "_20260823101112")
    opprof.mixed_launch(tmp_path / "OPPROF_1" / "add_custom" / "0")
    (tmp_path / "OPPROF_1" / "dump").mkdir()
    found = [folder.relative_to(tmp_path).as_posix() for folder in folders(tmp_path)]
    assert found == ["OPPROF_1/add_custom/0", "OPPROF_1/add_custom/1"]
    assert [kind for kind, _ in read(tmp_path / found[1], found[1]).sources][:2] == ["OpBasicInfo", "PipeUtilization"]


@pytest.mark.parametrize(
    ("file", "old", "new", "code", "line", "says"),
    [
        ("OpBasicInfo", "Op Type", "Kind", "AKF-F111", 1, '"Op Type"'),
        ("OpBasicInfo", ",vector,", ",tensor,", "AKF-F161", 2, '"tensor"'),
        ("OpBasicInfo", "26.060000", "2.6E+1", "AKF-F114", 2, "exponent"),
        ("OpBasicInfo", "26.060000", "NA", "AKF-F116", 2, "must be filled"),
        ("OpBasicInfo", "26.060000", "-26.06", "AKF-F115", 2, "negative"),
        ("PipeUtilization", "2,vector0,", "2,vector0,NA,", "AKF-F113", 4, "cells"),
        ("PipeUtilization", "2,vector0,", "2,scalar0,", "AKF-F161", 4, '"scalar0"'),
        ("PipeUtilization", "2,vector0,", "1,vector0,", "AKF-F161", 4, "stands twice"),
        ("PipeUtilization", "2,vector0,", "NA,vector0,", "AKF-F161", 4, "null"),
        ("PipeUtilization", "23.500001", "fast", "AKF-F115", 4, '"fast"'),
        ("Memory", "1024.125", "1e", "AKF-F115", 2, '"1e"'),
    ],
)
def test_malformed(tmp_path: Path, file: str, old: str, new: str, code: str, line: int, says: str) -> None:
    folder = opprof.vector_launch(tmp_path)
    edit(folder / f"{file}.csv", old, new)
    problem = refused(folder)[0]
    assert (problem.code, problem.file, problem.line) == (code, f"{file}.csv", line)
    assert says in problem.message


def test_two_launches_in_one_folder_are_refused(tmp_path: Path) -> None:
    opprof.vector_launch(tmp_path, "_20260823101112")
    opprof.vector_launch(tmp_path, "_20260823101113")
    (problem,) = refused(tmp_path)
    assert (problem.code, problem.file) == ("AKF-F163", "ArithmeticUtilization_20260823101113.csv")


def test_two_rows_of_basic_facts_are_refused(tmp_path: Path) -> None:
    folder = opprof.vector_launch(tmp_path)
    path = folder / "OpBasicInfo.csv"
    path.write_text(path.read_text() + path.read_text().splitlines()[1] + "\n")
    (problem,) = refused(folder)
    assert (problem.code, problem.line) == ("AKF-F161", 3)


def test_a_launch_without_its_basic_facts_is_refused(tmp_path: Path) -> None:
    folder = opprof.vector_launch(tmp_path / "add_custom")
    (folder / "OpBasicInfo.csv").unlink()
    (problem,) = refused(folder)
    assert (problem.code, problem.file) == ("AKF-F163", "add_custom")
