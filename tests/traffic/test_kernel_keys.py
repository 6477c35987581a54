"""Tasks are gathered by what they are: names, operands, counters."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from akf.contracts.problems import InvalidError
from akf.traffic.kernels import KEY, Tasks, family, named
from akf.traffic.operands import Operand, operands

TYPES: dict[str, Any] = {
    **dict.fromkeys(KEY, pl.String), "rank": pl.Int64, "graph": pl.Boolean, "blocks": pl.Int64, "step": pl.Int64,
    "start_ns": pl.Int64, "duration_ns": pl.Int64, "line": pl.Int64, "aiv_vec": pl.Int64,
}  # fmt: skip
TASK: dict[str, Any] = dict.fromkeys(TYPES) | {
    "rank": 0, "step": 1, "kernel": "aclnnRelu_Relu_Relu", "op_type": "Relu",
    "core_type": "AI_VECTOR_CORE", "kind": "computing", "start_ns": 10, "duration_ns": 5, "line": 2, "aiv_vec": 3,
}  # fmt: skip


def gathered(*rows: dict[str, Any]) -> Tasks:
    tasks = Tasks()
    tasks.add(pl.DataFrame([TASK | row for row in rows], TYPES), "rank0/kernels.csv")
    return tasks


class TestNames:
    @pytest.mark.parametrize(
        ("kernel", "op_type", "kind", "expected"),
        [
            ("trans_TransData_12", "TransData", "computing", "trans_TransData"),
            ("Conv2D1", "Conv2D", "computing", "Conv2D"),
            ("MatMulV2", "MatMulV2", "computing", "MatMulV2"),
            ("aclnnMatmul_MatMulV3Common_MatMulV3", "MatMulV3", "computing", "aclnnMatmul_MatMulV3Common_MatMulV3"),
            ("trans_TransData_0", None, "computing", "trans_TransData_0"),
            ("triton_fused_add_0", "triton_fused_add_0", "computing", "triton_fused_add_0"),
            ("hcom_allReduce__586_0_1", "hcom_allReduce_", "communication", "hcom_allReduce"),
            ("hcom_broadcast__483_0", None, "communication", "hcom_broadcast"),
            ("hcom_allGather__606_11_1@1368", None, "communication", "hcom_allGather"),
        ],
    )
    def test_what_counts_instances_is_left_out(
        self, kernel: str, op_type: str | None, kind: str, expected: str
    ) -> None:
        assert family(kernel, op_type, kind) == expected

    def test_names_are_printable_short_and_still_different(self) -> None:
        assert named("a\x1b[0m") == "a\\x1b[0m"
        one, other = named("x" * 300 + "1"), named("x" * 300 + "2")
        assert len(one) == len(other) == 256
        assert one != other


class TestOperands:
    def test_places_of_absent_operands_are_kept(self) -> None:
        found = operands('"512,16;8,2048,16;;8"', "DT_BF16;FLOAT;UINT64;INT64", "ND;NCL;ND;ND")
        assert found == (
            Operand((512, 16), "bfloat16", "ND"),
            Operand((8, 2048, 16), "float32", "NCL"),
            Operand((), "UINT64", "ND"),
            Operand((8,), "int64", "ND"),
        )

    def test_a_scalar_and_nothing_at_all(self) -> None:
        assert operands('""', "FLOAT", "ND") == (Operand((), "float32", "ND"),)
        assert operands(None, None, None) == ()
        assert operands(None, "FLOAT16;BOOL", None) == (Operand(None, "float16", None), Operand(None, "bool", None))

    def test_a_size_that_was_not_known_is_no_shape(self) -> None:
        assert operands('"-1,4"', None, None) == (Operand(None, None, None),)

    @pytest.mark.parametrize(
        ("shapes", "dtypes"), [('"2;3"', "FLOAT"), ('"2"', "FLOAT;FLOAT"), ('"2,x"', "FLOAT"), ('"2,,3"', "FLOAT")]
    )
    def test_contradictions_are_refused_with_their_line(self, shapes: str, dtypes: str) -> None:
        with pytest.raises(InvalidError) as error:
            gathered({}, {"input_shapes": shapes, "input_dtypes": dtypes, "line": 7})
        assert [(p.code, p.file, p.line) for p in error.value.problems] == [("AKF-F123", "rank0/kernels.csv", 7)]


class TestKeys:
    def test_instances_are_one_key(self) -> None:
        tasks = gathered(*({"kernel": f"trans_TransData_{n}", "op_type": "TransData", "line": n} for n in range(3)))
        assert [key.kernel for key in tasks.keys] == ["trans_TransData"]
        assert pl.concat(list(tasks.computing()))["key"].to_list() == [0, 0, 0]
        assert tasks.figures(0) == (3, 15, 5)
        assert tasks.counters(0) == {"aiv_vec": 9}

    @pytest.mark.parametrize(
        "other",
        [
            {"rank": 1}, {"kernel": "b"}, {"op_type": None}, {"core_type": "AI_CORE"}, {"graph": True}, {"blocks": 8},
            {"input_shapes": '"2"'}, {"output_dtypes": "FLOAT"},
        ],
    )  # fmt: skip
    def test_what_differs_is_a_key_of_its_own(self, other: dict[str, Any]) -> None:
        assert len(gathered({}, other).keys) == 2

    def test_a_collective_keeps_the_name_that_ranks_share(self) -> None:
        row = {"kernel": "hcom_allReduce__586_0_1", "op_type": "hcom_allReduce_", "kind": "communication"}
        tasks = gathered(row, row | {"kernel": "hcom_allReduce__586_1_1"}, {})
        collectives = tasks.collectives()
        assert collectives is not None
        assert sorted(collectives["collective"]) == [
            "hcom_allReduce__586_0_1",
            "hcom_allReduce__586_1_1",
        ]
        assert len(tasks.keys) == 2

    def test_a_counter_that_one_task_lacks_is_none(self) -> None:
        assert gathered({}, {"aiv_vec": None}).counters(0) == {}
        tasks = gathered({"aiv_vec": None})
        tasks.add(pl.DataFrame([TASK], TYPES), "rank0/kernels.csv")
        assert tasks.counters(0) == {}

    def test_pieces_are_one(self) -> None:
        tasks = gathered({})
        tasks.add(pl.DataFrame([TASK | {"start_ns": 20}], TYPES), "rank0/kernels.csv")
        tasks.add(pl.DataFrame([], TYPES), "rank0/kernels.csv")
        assert tasks.spans().rows() == [(0, 1, 10, 25)]
        assert [part["start_ns"].to_list() for part in tasks.computing()] == [[10], [20]]
        assert list(tasks.computing()) == []
        assert len(tasks.keys) == 1
        assert tasks.counters(0) == {"aiv_vec": 6}
