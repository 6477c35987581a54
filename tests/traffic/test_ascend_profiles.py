"""Profiles of torch_npu and msprof: every layout gives the same Capture, and every trap is handled or refused."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support import profiles
from tests.support.profiles import EAGER, Ran, msprof, torch_npu

from akf.contracts.canonical import canonical_bytes, parse_canonical
from akf.contracts.problems import InvalidError, UsageError
from akf.contracts.schemas import validate
from akf.traffic.ascend import folders
from akf.traffic.ascend.profile import ingest
from akf.traffic.profiles import Options

START = 1736408883704643212
MATMUL = Ran(
    "aclnnMatmul_MatMulV3Common_MatMulV3", "MatMulV3", "AI_CORE", START, 4000, shapes=("16,4096;4096,6144", "16,6144"),
    dtypes=("DT_BF16;DT_BF16", "DT_BF16"), pipes=(("aic", 3900), ("aic_mac", 1000), ("aic_mte2", 3500)),
)  # fmt: skip
NORM = Ran(
    "aclnnRmsNorm_RmsNorm_RmsNorm", "RmsNorm", "AI_VECTOR_CORE", START + 4500, 1000, shapes=("16,4096;4096", "16,4096"),
    dtypes=("FLOAT16;FLOAT", "FLOAT16"), blocks=40, pipes=(("aiv", 900), ("aiv_vec", 300), ("aiv_mte2", 800)),
)  # fmt: skip
COPY = Ran("trans_TransData_0", "TransData", "AI_VECTOR_CORE", START + 5500, 500, shapes=("2;", ""),
           dtypes=("BOOL;INT64", "UINT8"))  # fmt: skip
REDUCE = Ran("hcom_allReduce__586_0_1", "hcom_allReduce_", "HCCL", START + 5800, 2000)
STEP = (MATMUL, NORM, COPY, REDUCE)


def later(rows: Sequence[Ran], by: int, step: int | None) -> list[Ran]:
    return [ran._replace(start=ran.start + by, step=step) for ran in rows]


ROWS = [*STEP, *later(STEP, 10_000, 2)]
STAGES = {1: 10_000, 2: 10_000}
THREE_STEPS = [*ROWS, *later(STEP, 20_000, 3)]
THREE_STAGES = {**STAGES, 3: 10_000}


def capture(*paths: Path, **options: Any) -> dict[str, Any]:
    found = ingest(paths, Options(**({"id": "capture", "title": None, "data_class": "internal"} | options)))
    assert validate(parse_canonical(canonical_bytes(found), "capture.json"), "Capture") == []
    return found


def entry(found: dict[str, Any], kernel: str, rank: int = 0) -> dict[str, Any]:
    [one] = [one for one in found["entries"] if one["kernel"] == kernel and one["rank"] == rank]
    return dict(one)


def setting(found: dict[str, Any], name: str) -> str | None:
    return next((one["value"] for one in found["tool"]["settings"] if one["name"] == name), None)


def refused(*paths: Path, **options: Any) -> list[tuple[str, str | None, int | None]]:
    with pytest.raises(InvalidError) as error:
        capture(*paths, **options)
    return [(p.code, p.file and Path(p.file).name, p.line) for p in error.value.problems]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return capture(torch_npu(tmp_path_factory.mktemp("profile"), ROWS, stages=STAGES))


class TestByHand:
    def test_lines(self, found: dict[str, Any]) -> None:
        """Of 10,000 ns: 4,000 + 1,500 computed, the collective from 6,000 on when nothing computes, the rest idle."""
        assert found["breakdown"] == [
            {
                "rank": 0, "steps": 2, "step_ns": 20_000, "steps_ns": [10_000, 10_000], "bounds": "profiler",
                "computing_ns": 11_000, "communication_ns": 3_600, "waiting_ns": 0, "overlapped_ns": 400,
                "host_gap_ns": 0, "idle_ns": 5_400,
                "steps_lines": {
                    "computing_ns": [5_500] * 2, "communication_ns": [1_800] * 2, "waiting_ns": [0, 0],
                    "host_gap_ns": [0, 0], "idle_ns": [2_700] * 2,
                },
            }
        ]  # fmt: skip

    def test_an_entry(self, found: dict[str, Any]) -> None:
        assert entry(found, NORM.name) == {
            "rank": 0, "callsite": None, "kernel": NORM.name, "op_type": "RmsNorm", "symbols": {},
            "inputs": [
                {"shape": [16, 4096], "dtype": "float16", "layout": "ND"},
                {"shape": [4096], "dtype": "float32", "layout": "ND"},
            ],
            "outputs": [{"shape": [16, 4096], "dtype": "float16", "layout": "ND"}],
            "graph": "eager", "core_type": "AI_VECTOR_CORE", "blocks": 40, "calls": 2, "time_ns": 2_000,
            "exposed_ns": 2_000, "longest_ns": 1_000, "steps_exposed_ns": [1_000, 1_000],
            "counters": [
                {"name": "aiv", "time_ns": 1_800}, {"name": "aiv_mte2", "time_ns": 1_600},
                {"name": "aiv_mte3", "time_ns": 0}, {"name": "aiv_scalar", "time_ns": 0},
                {"name": "aiv_vec", "time_ns": 600},
            ],
        }  # fmt: skip

    def test_counters_of_a_core_that_did_not_run_are_left_out(self, found: dict[str, Any]) -> None:
        for kernel, prefix in ((MATMUL.name, "aic"), (NORM.name, "aiv")):
            assert {c["name"].partition("_")[0] for c in entry(found, kernel)["counters"]} == {prefix}
        assert entry(found, "hcom_allReduce")["counters"] == []

    def test_exposed_times(self, found: dict[str, Any]) -> None:
        exposed = {one["kernel"]: one["exposed_ns"] for one in found["entries"]}
        assert exposed == {
            MATMUL.name: 8_000,
            NORM.name: 2_000,
            "trans_TransData": 600,
            "hcom_allReduce": 3_600,
        }

    def test_checks(self, found: dict[str, Any]) -> None:
        assert {(one["name"], one["expected_ns"], one["found_ns"], one["holds"]) for one in found["checks"]} == {
            ("communication-against-step-trace", 3_600, 3_600, True),
            ("computing-against-step-trace", 11_000, 11_000, True),
            ("kernels-against-op-statistic", 11_000, 11_000, True),
            ("op-statistic-against-computing", 11_000, 11_000, True),
            ("step-trace-adds-up", 20_000, 20_000, True),
        }

    def test_host_and_settings(self, found: dict[str, Any]) -> None:
        tiling = {"rank": 0, "level": "acl", "api": "RmsNorm_Tiling", "calls": 6, "time_ns": 57_610}
        assert tiling in found["host"]
        assert setting(found, "aic_metrics") == "PipeUtilization"
        assert setting(found, "profiler_level") == "Level1"
        assert found["tool"]["name"] == "torch_npu.profiler"
        assert found["clock"] == "unknown"

    def test_sources_are_named_by_rank_and_kind(self, found: dict[str, Any]) -> None:
        names = [source["name"] for source in found["sources"]]
        assert names == [f"rank0/{kind}.csv" for kind in
                         ("api_statistic", "kernel_details", "op_statistic", "step_trace_time")]  # fmt: skip


def times(found: dict[str, Any]) -> Any:
    """What every layout must agree on."""
    kept = ("rank", "kernel", "op_type", "inputs", "outputs", "graph", "core_type", "blocks", "calls", "time_ns",
            "exposed_ns", "longest_ns", "counters")  # fmt: skip
    return [{name: one.get(name) for name in kept} for one in found["entries"]]


class TestLayouts:
    @pytest.mark.parametrize("layout", ["2023", "2025", "8.3.RC1"])
    def test_years_of_torch_npu(self, tmp_path: Path, layout: str) -> None:
        new = capture(torch_npu(tmp_path / "new", ROWS, stages=STAGES))
        old = capture(torch_npu(tmp_path / "old", ROWS, layout, stages=STAGES))
        assert times(old) == times(new)
        assert old["breakdown"] == new["breakdown"]

    @pytest.mark.parametrize("layout", list(profiles.OP_SUMMARY)[:-1])
    def test_msprof(self, tmp_path: Path, layout: str) -> None:
        new = capture(torch_npu(tmp_path / "new", ROWS, stages=STAGES))
        found = capture(msprof(tmp_path / "old", ROWS, layout))
        assert times(found) == times(new)
        assert found["tool"]["name"] == "msprof"
        assert setting(found, "aiv_num") == "40"
        [held] = [one for one in found["checks"] if one["name"] == "kernels-against-op-statistic"]
        assert held["holds"]

    def test_level0_has_no_types_shapes_and_cores(self, tmp_path: Path) -> None:
        found = capture(torch_npu(tmp_path, ROWS, "level0", stages=STAGES))
        norm = entry(found, NORM.name)
        assert (norm["core_type"], norm["inputs"], norm["outputs"], norm["counters"]) == ("unknown", [], [], [])
        assert "op_type" not in norm
        assert "blocks" not in norm
        assert found["breakdown"][0]["computing_ns"] == 11_000
        assert entry(found, "hcom_allReduce")["core_type"] == "HCCL"

    def test_msprof_without_counters(self, tmp_path: Path) -> None:
        found = capture(msprof(tmp_path, [ran for ran in ROWS if not ran.collective], "task-time l0"))
        assert {one["core_type"] for one in found["entries"]} == {"unknown"}
        assert setting(found, "aic_metrics") is None

    def test_other_metrics_are_named_and_give_no_pipes(self, tmp_path: Path) -> None:
        folder = torch_npu(tmp_path, ROWS, stages=STAGES)
        table = folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
        head, *lines = table.read_text().split("\n")
        head = head.replace("aic_mac_time(us)", "aic_l0a_read_bw(GB/s)")
        table.write_text("\n".join([head, *lines]))
        assert "aic_mac" not in {c["name"] for c in entry(capture(table), MATMUL.name)["counters"]}
        assert setting(capture(table), "aic_metrics") == "MemoryL0"

    def test_a_column_that_is_new_is_named(self, tmp_path: Path) -> None:
        table = torch_npu(tmp_path, ROWS) / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
        table.write_text(table.read_text().replace("Block Num", "Block Number", 1))
        assert setting(capture(table), "columns_not_read") == "Block Number"

    def test_graphs(self, tmp_path: Path) -> None:
        rows = [MATMUL, MATMUL._replace(model=7, start=MATMUL.start + 5000)]
        found = capture(torch_npu(tmp_path, rows))
        assert sorted(one["graph"] for one in found["entries"]) == ["eager", "graph"]
        assert EAGER == 2**32 - 1


class TestSteps:
    def test_rows_without_a_step_lie_in_none(self, tmp_path: Path) -> None:
        found = capture(torch_npu(tmp_path, [*ROWS, *later([NORM], -9000, None)], stages=STAGES))
        assert entry(found, NORM.name)["calls"] == 2
        assert setting(found, "tasks_outside_steps") == "1"

    @pytest.mark.parametrize("layout", ["2026", "2026 without steps"])
    def test_no_steps_are_one_window(self, tmp_path: Path, layout: str) -> None:
        found = capture(torch_npu(tmp_path, later(ROWS, 0, None), layout))
        [line] = found["breakdown"]
        assert (line["bounds"], line["steps"], line["step_ns"]) == ("window", 1, 17_800)

    def test_iterations_of_msprof(self, tmp_path: Path) -> None:
        ends = [(START + 10_000, 10_000), (START + 20_000, 10_000)]
        rows = [*STEP, *later(STEP, 10_000, 1), *later([NORM], 50_000, 1)]
        found = capture(msprof(tmp_path, rows, iterations=ends))
        [line] = found["breakdown"]
        assert (line["bounds"], line["steps_ns"]) == ("profiler", [10_000, 10_000])
        assert entry(found, NORM.name)["steps_exposed_ns"] == [1_000, 1_000]

    def test_iterations_that_overlap_are_refused(self, tmp_path: Path) -> None:
        ends = [(START + 10_000, 10_000), (START + 19_000, 10_000)]
        assert refused(msprof(tmp_path, STEP, iterations=ends)) == [("AKF-F134", "step_trace_20260823101530.csv", 3)]

    def test_an_iteration_twice_is_refused(self, tmp_path: Path) -> None:
        ends = [(START + 10_000, 10_000), (START + 20_000, 10_000)]
        folder = msprof(tmp_path, STEP, iterations=ends)
        [table] = folder.rglob("step_trace_*.csv")
        table.write_text(table.read_text().replace("\n2,", "\n1,"))
        assert refused(folder) == [("AKF-F134", table.name, 3)]

    def test_a_step_twice_is_refused(self, tmp_path: Path) -> None:
        folder = torch_npu(tmp_path, ROWS, stages=STAGES) / "ASCEND_PROFILER_OUTPUT"
        table = folder / "step_trace_time.csv"
        lines = table.read_text().splitlines()
        table.write_text("\n".join([*lines, lines[1]]) + "\n")
        assert refused(folder) == [("AKF-F134", table.name, 4)]
        table.write_text("\n".join(lines) + "\n")
        (folder / "step_trace_time_1.csv").write_text(table.read_text())
        assert refused(folder) == [("AKF-F134", folder.name, None)] * 2

    def test_a_number_that_is_no_steps_is_refused(self, tmp_path: Path) -> None:
        rows = [*STEP, MATMUL._replace(start=START + 9_000, step=2**32)]
        folder = torch_npu(tmp_path, rows, stages={1: 9_000, 2**32: 4_000})
        assert refused(folder) == [("AKF-F115", "kernel_details.csv", 6), ("AKF-F134", "step_trace_time.csv", 3)]

    @pytest.mark.parametrize("marker", [NORM.name, "RmsNorm", "trans_TransData"])
    def test_a_marker_cuts_steps_from_run_to_run(self, tmp_path: Path, marker: str) -> None:
        rows = [ran for number in range(4) for ran in later(STEP, number * 10_000, None)]
        found = capture(msprof(tmp_path, rows), step_kernel=marker)
        [line] = found["breakdown"]
        assert (line["bounds"], line["steps_ns"]) == ("marker", [10_000] * 3)
        assert line["computing_ns"] == 3 * 5_500
        assert entry(found, MATMUL.name)["calls"] == 3

    def test_a_task_that_a_marker_cuts_counts_once(self, tmp_path: Path) -> None:
        long = MATMUL._replace(start=START + 8_000, duration=6_000, pipes=(("aic", 5_000),))
        marks = [NORM._replace(start=START + number * 10_000, duration=10) for number in range(3)]
        found = capture(msprof(tmp_path, [*marks, long]), step_kernel="RmsNorm")
        cut = entry(found, MATMUL.name)
        assert (cut["calls"], cut["time_ns"], cut["steps_exposed_ns"]) == (1, 6_000, [2_000, 3_990])
        assert cut["counters"][0] == {"name": "aic", "time_ns": 5_000}

    def test_a_marker_that_runs_once_marks_nothing(self, tmp_path: Path) -> None:
        assert refused(msprof(tmp_path, STEP), step_kernel="RmsNorm") == [
            ("AKF-F134", "op_summary_20260823101530.csv", None)
        ]


class TestRanks:
    def test_all_ranks_of_a_folder_and_what_they_wait(self, tmp_path: Path) -> None:
        torch_npu(tmp_path, ROWS, stages=STAGES, name="a_ascend_pt")
        slow = [ran._replace(start=ran.start + 1_500, duration=500) if ran.collective else ran for ran in ROWS]
        torch_npu(tmp_path, slow, stages=STAGES, rank=1, name="b_ascend_pt")
        found = capture(tmp_path)
        first, second = found["breakdown"]
        assert (first["rank"], first["communication_ns"], first["waiting_ns"]) == (0, 1_000, 2_600)
        assert (second["rank"], second["communication_ns"], second["waiting_ns"]) == (1, 1_000, 0)
        assert all(one["holds"] for one in found["checks"])
        assert [entry(found, "hcom_allReduce", rank)["exposed_ns"] for rank in (0, 1)] == [1_000, 1_000]

    def test_order_on_disk_is_no_matter(self, tmp_path: Path) -> None:
        one = torch_npu(tmp_path / "x", ROWS, stages=STAGES)
        two = torch_npu(tmp_path / "x", ROWS, stages=STAGES, rank=1, name="other_ascend_pt")
        mixed = list(ROWS)
        random.Random(7).shuffle(mixed)
        three = torch_npu(tmp_path / "y", mixed, stages=STAGES)
        bytes_of = [canonical_bytes(capture(*paths)) for paths in ((one, two), (two, one), (tmp_path / "x",))]
        assert len(set(bytes_of)) == 1
        found, shuffled = capture(one), capture(three)
        for held in (found, shuffled):
            del held["sources"]
        assert found == shuffled

    def test_disjoint_profiles_of_a_rank_are_one_after_the_other(self, tmp_path: Path) -> None:
        first = torch_npu(tmp_path / "a", ROWS, stages=STAGES)
        second = torch_npu(tmp_path / "b", later(ROWS, 10**6, 1), stages={1: 20_000})
        found = capture(second, first)
        assert found["breakdown"][0]["steps_ns"] == [10_000, 10_000, 20_000]
        assert {source["name"] for source in found["sources"]} >= {
            "rank0/kernel_details.csv",
            "rank0/kernel_details.2.csv",
        }

    def test_the_same_profile_twice_is_refused(self, tmp_path: Path) -> None:
        folder = torch_npu(tmp_path, ROWS)
        assert refused(folder, folder) == [("AKF-F129", None, None)]

    def test_slices_of_an_export_are_one_and_two_exports_are_refused(self, tmp_path: Path) -> None:
        whole = msprof(tmp_path / "whole", ROWS)
        sliced = msprof(tmp_path / "sliced", ROWS)
        out = sliced / "mindstudio_profiler_output"
        next(out.glob("op_summary_*")).unlink()
        for number, rows in enumerate((ROWS[:4], ROWS[4:])):
            text = profiles.kernel_table(rows, profiles.OP_SUMMARY["cann9"])
            (out / f"op_summary_slice_{number}_20260823101530.csv").write_text(text)
        assert times(capture(sliced)) == times(capture(whole))
        twice = next((whole / "mindstudio_profiler_output").glob("op_summary_*"))
        twice.with_name("op_summary_20260824101530.csv").write_text(twice.read_text())
        assert refused(whole) == [("AKF-F129", "op_summary_20260824101530.csv", None)]

    def test_devices_of_msprof_stand_for_ranks(self, tmp_path: Path) -> None:
        found = capture(msprof(tmp_path, [*STEP, *(ran._replace(device=3) for ran in STEP)]))
        assert [line["rank"] for line in found["breakdown"]] == [0, 3]
        checks = [(one["rank"], one["holds"]) for one in found["checks"]]
        assert checks == [(0, True), (3, True)]

    def test_a_statistic_that_knows_no_device_is_of_the_only_one(self, tmp_path: Path) -> None:
        folder = msprof(tmp_path, [ran._replace(device=3) for ran in STEP])
        table = next(folder.rglob("op_statistic_*"))
        table.write_text(profiles.op_statistic(STEP, device=False))
        assert [one["holds"] for one in capture(folder)["checks"]] == [True]

    def test_settings_that_differ_are_refused(self, tmp_path: Path) -> None:
        torch_npu(tmp_path, ROWS, name="a_ascend_pt")
        info = profiles.profiler_info(1, level="Level2", torch_npu_version="2.9.0")
        torch_npu(tmp_path, ROWS, rank=1, info=info, name="b_ascend_pt")
        assert refused(tmp_path) == [("AKF-F133", None, None)] * 2

    def test_tools_and_cuts_are_not_mixed(self, tmp_path: Path) -> None:
        one, two = torch_npu(tmp_path, ROWS), msprof(tmp_path, later(STEP, 10**6, 1))
        assert refused(one, two) == [("AKF-F133", None, None)]
        three = torch_npu(tmp_path, later(STEP, 10**6, None), rank=1, name="c_ascend_pt")
        assert refused(one, three) == [("AKF-F134", None, None)]


class TestBinaries:
    @staticmethod
    def symbol(ran: Ran) -> str:
        return f"{ran.op_type}_{'0123456789abcdef' * 2}_{ran.task}"

    def test_task_time_names_the_binary(self, tmp_path: Path) -> None:
        rows = [ran._replace(task=number) for number, ran in enumerate(STEP)]
        found = capture(msprof(tmp_path, rows, symbol=self.symbol))
        assert {one["kernel"] for one in found["entries"]} == {
            *(self.symbol(ran) for ran in rows if not ran.collective), "hcom_allReduce",
        }  # fmt: skip
        assert entry(found, self.symbol(rows[1]))["op_type"] == "RmsNorm"
        assert setting(found, "task_time_pseudo_tasks") == "2"
        assert setting(found, "kernels_named_by_binary") == "3"

    def test_a_task_number_that_comes_again_is_told_apart_by_its_start(self, tmp_path: Path) -> None:
        rows = [MATMUL, NORM, COPY._replace(task=1)]  # stream 2, task 0 twice
        found = capture(msprof(tmp_path, rows, symbol=self.symbol))
        assert {one["kernel"] for one in found["entries"]} == {self.symbol(ran) for ran in rows}

    def test_what_has_no_row_keeps_its_name(self, tmp_path: Path) -> None:
        folder = msprof(tmp_path, [MATMUL, NORM._replace(task=1)], symbol=self.symbol)
        table = next(folder.rglob("task_time_*"))
        table.write_text("".join(line for line in table.read_text().splitlines(keepends=True) if "RmsNorm" not in line))
        assert entry(capture(folder), NORM.name)["calls"] == 1


class TestChecks:
    def test_a_kernel_that_is_missing_shows(self, tmp_path: Path) -> None:
        folder = torch_npu(tmp_path, ROWS, stages=STAGES) / "ASCEND_PROFILER_OUTPUT"
        (folder / "kernel_details.csv").write_text(
            profiles.kernel_table([ran for ran in ROWS if ran is not NORM], profiles.KERNEL_DETAILS["2026"])
        )
        held = {one["name"]: one["holds"] for one in capture(folder)["checks"]}
        assert not held["kernels-against-op-statistic"]
        assert held["op-statistic-against-computing"]

    def test_times_that_move_from_one_operator_to_another_show(self, tmp_path: Path) -> None:
        folder = torch_npu(tmp_path, ROWS, stages=STAGES) / "ASCEND_PROFILER_OUTPUT"
        table = folder / "op_statistic.csv"
        table.write_text(table.read_text().replace("MatMulV3", "MatMulV2"))
        held = {one["name"]: one["holds"] for one in capture(folder)["checks"]}
        assert not held["kernels-against-op-statistic"]

    def test_a_stage_that_does_not_add_up_shows(self, tmp_path: Path) -> None:
        folder = torch_npu(tmp_path, ROWS, stages=STAGES) / "ASCEND_PROFILER_OUTPUT"
        table = folder / "step_trace_time.csv"
        table.write_text(table.read_text().replace(",10.0,", ",99.0,"))
        held = {one["name"]: one["holds"] for one in capture(folder)["checks"]}
        assert not held["step-trace-adds-up"]


class TestContradictions:
    """What cannot be, whoever made it: refused with the line, with or without the tables that would show it."""

    @pytest.mark.parametrize("traced", [True, False])
    def test_a_task_with_the_number_of_another_step(self, tmp_path: Path, traced: bool) -> None:
        rows = [*THREE_STEPS]
        rows[1] = rows[1]._replace(step=3)  # of step 1, in line 3
        folder = torch_npu(tmp_path, rows, stages=THREE_STAGES if traced else None)
        assert refused(folder) == [("AKF-F136", "kernel_details.csv", 9)]
        rows[1] = rows[1]._replace(step=2)  # step 2 begins before step 1 has started its last task, in line 5
        folder = torch_npu(tmp_path / "again", rows, stages=THREE_STAGES if traced else None)
        assert refused(folder) == [("AKF-F136", "kernel_details.csv", 5)]

    def test_a_number_that_the_step_trace_does_not_know(self, tmp_path: Path) -> None:
        rows = [*THREE_STEPS]
        rows[-1] = rows[-1]._replace(step=4)
        folder = torch_npu(tmp_path, rows, stages={**THREE_STAGES, 4: 1})
        table = folder / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv"
        table.write_text("".join(table.read_text().splitlines(keepends=True)[:-1]))
        assert refused(folder) == [("AKF-F136", "kernel_details.csv", len(rows) + 1)]

    def test_a_step_that_is_longer_than_what_lies_around_it(self, tmp_path: Path) -> None:
        """Step 2 has room from the last start of step 1 to the first start of step 3: 14,200 ns, and the rounding."""
        for stage, fits in ((15_100, True), (15_400, False)):
            folder = torch_npu(tmp_path / str(stage), THREE_STEPS, stages={**THREE_STAGES, 2: stage})
            if fits:
                assert capture(folder)["breakdown"][0]["steps_ns"][1] == stage
            else:
                assert refused(folder) == [("AKF-F134", "step_trace_time.csv", 3)]

    def test_without_a_step_trace_a_task_is_cut_where_its_step_ends(self, tmp_path: Path) -> None:
        rows = [*ROWS]
        rows[3] = rows[3]._replace(duration=6_000)  # from 5,800 on, 1,800 ns into step 2
        found = capture(torch_npu(tmp_path, rows))
        line = found["breakdown"][0]
        assert line["bounds"] == "profiler"
        assert line["steps_ns"][0] == 10_000
        assert [sum(each) for each in zip(*line["steps_lines"].values(), strict=True)] == line["steps_ns"]
        assert all(one["holds"] for one in found["checks"])
        [collective] = [entry for entry in found["entries"] if entry["kernel"].startswith("hcom_")]
        assert (collective["calls"], collective["time_ns"]) == (2, 8_000)

    @pytest.mark.parametrize("layout", ["level0", "2026"])
    def test_a_row_that_is_there_twice(self, tmp_path: Path, layout: str) -> None:
        folder = torch_npu(tmp_path, [*ROWS, ROWS[2]], layout=layout)
        (folder / "ASCEND_PROFILER_OUTPUT" / "op_statistic.csv").unlink(missing_ok=True)
        assert refused(folder) == [("AKF-F138", "kernel_details.csv", len(ROWS) + 2)]

    def test_two_kernels_at_one_time_are_two(self, tmp_path: Path) -> None:
        other = NORM._replace(name="aclnnCast_Cast_Cast", op_type="Cast")
        found = capture(torch_npu(tmp_path, [*STEP, other]))
        assert sum(entry["calls"] for entry in found["entries"]) == 5


class TestFolders:
    @pytest.fixture
    def profile(self, tmp_path: Path) -> Path:
        return torch_npu(tmp_path / "ranks", ROWS, stages=STAGES)

    def test_any_folder_on_the_way_will_do(self, profile: Path, tmp_path: Path) -> None:
        bare = tmp_path / "bare"
        (profile / "ASCEND_PROFILER_OUTPUT").rename(bare)
        (bare / "profiler_info_0.json").write_text((profile / "profiler_info_0.json").read_text())
        whole = torch_npu(tmp_path / "again", ROWS, stages=STAGES)
        paths = (bare, whole, whole.parent, whole / "ASCEND_PROFILER_OUTPUT")
        assert len({canonical_bytes(capture(path)) for path in paths}) == 1

    def test_what_lies_beside_the_export_is_the_same_profile(self, profile: Path) -> None:
        before = capture(profile)
        msprof(profile, ROWS)
        assert capture(profile) == before

    def test_a_link_is_not_followed(self, profile: Path, tmp_path: Path) -> None:
        (profile.parent / "link").symlink_to(tmp_path)
        assert refused(profile.parent) == [("AKF-F128", "link", None)]
        assert capture(profile)["breakdown"]

    @pytest.mark.parametrize(
        ("name", "hint"), [("x_ascend_pt", "analyse"), ("PROF_1_2_3", "--export=on"), ("else", "name a")]
    )
    def test_what_was_not_exported_is_refused_with_the_way(self, tmp_path: Path, name: str, hint: str) -> None:
        (tmp_path / name / "device_0").mkdir(parents=True)
        with pytest.raises(InvalidError) as error:
            capture(tmp_path / name)
        assert [(p.code, hint in (p.hint or "")) for p in error.value.problems] == [("AKF-F127", True)]

    def test_a_table_without_kernels_is_refused(self, profile: Path) -> None:
        table = profile / "ASCEND_PROFILER_OUTPUT" / "op_statistic.csv"
        assert refused(table) == [("AKF-F127", "op_statistic.csv", None)]
        assert refused(profile / "nothing.csv") == [("AKF-F001", "nothing.csv", None)]

    def test_a_look_is_bounded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        deep = tmp_path
        for _ in range(folders.MAX_DEPTH + 2):
            deep /= "x"
        deep.mkdir(parents=True)
        assert [code for code, _, _ in refused(tmp_path)] == ["AKF-F131"]
        monkeypatch.setattr(folders, "MAX_SEEN", 5)
        for number in range(9):
            (deep / str(number)).touch()
        assert [code for code, _, _ in refused(deep)] == ["AKF-F131"]

    @pytest.mark.parametrize(
        "info",
        [
            {"rank_id": 3},
            {"rank_id": "x"},
            {"rank_id": 0.5},
        ],
    )
    def test_an_info_that_contradicts_is_refused(self, tmp_path: Path, info: Any) -> None:
        folder = torch_npu(tmp_path, ROWS, info=info)
        assert refused(folder) == [("AKF-F132", "profiler_info_0.json", None)]

    @pytest.mark.parametrize(
        ("text", "code", "line"),
        [
            ('{"rank_id": 0,\n "rank_id": 1}', "AKF-S006", 2),
            ('{"config": {\n "common_config": {},\n "common_config": {}}}', "AKF-S006", 3),
            ('{"rank_id": 0,\n}', "AKF-S004", 2),
            ('{"rank_id": NaN}', "AKF-S007", 1),
            ("[]", "AKF-F132", 1),
            ("{}\n{}", "AKF-F132", 2),
            ("", "AKF-S001", 1),
        ],
    )
    def test_an_info_that_is_no_strict_json_is_refused(self, tmp_path: Path, text: str, code: str, line: int) -> None:
        folder = torch_npu(tmp_path, ROWS)
        [info] = folder.rglob("profiler_info_0.json")
        info.write_text(text, encoding="utf-8")
        assert refused(folder) == [(code, "profiler_info_0.json", line)]

    def test_an_epoch_in_nanoseconds_is_a_number(self, tmp_path: Path) -> None:
        info = profiles.profiler_info(0, end_info={"collectionTimeEnd": 1736408884023552840})
        assert capture(torch_npu(tmp_path, ROWS, info=info))["breakdown"][0]["rank"] == 0

    def test_types_that_changed_between_versions(self, tmp_path: Path) -> None:
        info = profiles.profiler_info("2", torch_npu_version="2.7.1", cann_version="8.3.RC1")
        info["config"]["experimental_config"]["_export_type"] = "text"
        found = capture(torch_npu(tmp_path, ROWS, rank=2, info=info))
        assert found["breakdown"][0]["rank"] == 2
        assert found["tool"]["version"] == "2.7.1"
        assert setting(found, "cann_version") == "8.3.RC1"

    @pytest.mark.parametrize("config", [None, [], {"common_config": [], "experimental_config": "x"}])
    def test_settings_of_another_form_are_not_taken(self, tmp_path: Path, config: Any) -> None:
        found = capture(torch_npu(tmp_path, ROWS, info={"rank_id": 0, "config": config}))
        assert setting(found, "profiler_level") is None

    def test_another_platform_than_named_is_refused(self, profile: Path) -> None:
        with pytest.raises(UsageError, match="of ascend, not of cuda"):
            capture(profile, platform="cuda")


class TestRefused:
    """Each file in its own way: one problem each, with its line, all at once, and no Capture."""

    def test_a_short_row(self, tmp_path: Path) -> None:
        folder = msprof(tmp_path, ROWS, "mixed words")
        table = next(folder.rglob("op_summary_*"))
        lines = table.read_text().split("\n")
        lines[3] = lines[3].replace(",1736408883704648.712,", ",", 1)
        table.write_text("\n".join(lines))
        assert refused(folder) == [("AKF-F113", table.name, 4)]

    def test_all_files_at_once(self, tmp_path: Path) -> None:
        folder = torch_npu(tmp_path, ROWS, stages=STAGES) / "ASCEND_PROFILER_OUTPUT"
        (folder / "memory_record.csv").write_text("Component,Timestamp(us)\n" + "APP,1.69512E+15\n" * 30)
        (folder / "operator_memory.csv").write_text(
            "Name,Size(KB),Allocation Time(us),Release Time(us)\nx,1,1.5\t,2.5\t\ny,1,1.5E+3,\n"
        )
        table = folder / "kernel_details.csv"
        table.write_text(table.read_text().replace('"""16,4096"""', '"""16,4096;"""', 1))
        (folder / "op_statistic.csv").write_text("")
        trace = folder / "step_trace_time.csv"
        trace.write_text(trace.read_text().replace("Stage", "Stages"))
        assert refused(folder) == [
            ("AKF-F123", "kernel_details.csv", 3),
            ("AKF-F114", "memory_record.csv", 2),
            ("AKF-F119", "op_statistic.csv", None),
            ("AKF-F114", "operator_memory.csv", 3),
            ("AKF-F111", "step_trace_time.csv", 1),
        ]

    def test_memory_that_was_not_spoiled_is_fine_and_no_source(self, tmp_path: Path) -> None:
        folder = torch_npu(tmp_path, ROWS) / "ASCEND_PROFILER_OUTPUT"
        (folder / "memory_record.csv").write_text("Component,Timestamp(us)\nAPP,1706704429088523.015\t\n")
        assert not any("memory" in source["name"] for source in capture(folder)["sources"])


def test_nothing_of_this_machine_is_in_a_capture(tmp_path: Path) -> None:
    secret = "alice-at-secret-host"  # noqa: S105 - what must not leak
    info = profiles.profiler_info(0, hostname=secret, user=secret, path=f"/home/{secret}")
    torch_npu(tmp_path / secret, ROWS, stages=STAGES, info=info, name=f"{secret}_12_2026_ascend_pt")
    text = canonical_bytes(capture(tmp_path / secret)).decode()
    other = canonical_bytes(capture(msprof(tmp_path / secret, ROWS, name=f"PROF_{secret}"))).decode()
    paths = profiles.profiler_info(0, torch_npu_version=f"/home/{secret}/build", cann_version=f"C:\\{secret}")
    paths["config"]["common_config"]["activities"] = [f"/home/{secret}", {"x": f"/{secret}"}]
    said = capture(torch_npu(tmp_path / "paths", ROWS, stages=STAGES, info=paths))
    assert (said["tool"]["version"], setting(said, "cann_version")) == ("withheld: it holds a path",) * 2
    assert secret not in canonical_bytes(said).decode()
    for word in (secret, "secret-host", "4711", "20260823", str(tmp_path), "collectionTimeEnd"):
        assert word not in text
        assert word not in other
    assert json.loads(text)["data_class"] == "internal"
