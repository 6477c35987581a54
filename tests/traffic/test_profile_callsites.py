"""From a framework's configuration to a profile of it: every kernel finds its callsite, and what is missing shows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.arms import drafted, written
from tests.support.cli import inside
from tests.support.launches import Row, kernels_of, launch, symbols

pytestmark = pytest.mark.usefixtures("state")
pytest.importorskip("polars", reason="polars is not installed")

HEADER = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
    "Wait Time(us),Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,"
    "Output Data Types,Output Formats,Context ID"
)
DTYPES = {"bfloat16": "DT_BF16", "float32": "FLOAT", "int32": "INT32", "int64": "INT64", None: "DT_UNDEFINED"}
SIZES = {"T": 16, "B": 16, "N": 3000, "M": 320}
SINGLE_OP = 2**32 - 1


def rows(workload: Row, arm: str, steps: int) -> Iterator[list[str]]:
    """Rows of decode steps, in which every callsite but the prefill's is called as often as the Workload says."""
    start = 1_000_000_000
    for step in range(steps):
        for site in workload["callsites"]:
            if "prefill" in site["id"]:
                continue
            kernel = kernels_of(site, arm)[0]
            sizes = {name: SIZES[name] for name in symbols(site)}
            name, inputs, outputs = launch(site, kernel, sizes)
            model = 3 if site["graph"]["mode"] == "graph" else SINGLE_OP
            for _ in range(site["calls_per_step"]):
                yield [
                    str(step), "0", str(model), "1", "2", name, name, "dynamic", "AI_CORE", f"{start}.125\t", "4.5",
                    "0", "20", "0", "NO", *operands(inputs), *operands(outputs), "N/A",
                ]  # fmt: skip
                start += 10


def operands(listed: list[dict[str, Any]]) -> list[str]:
    if not listed:
        return ["N/A"] * 3
    shapes = ";".join(",".join(map(str, operand["shape"])) for operand in listed)
    return [f'"{shapes}"', ";".join(DTYPES[operand["dtype"]] for operand in listed), ";".join("ND" for _ in listed)]


def profile(folder: Path, listed: list[list[str]]) -> Path:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER.split(","))
    writer.writerows(listed)
    path = folder / "kernel_details.csv"
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


@pytest.mark.parametrize(("arm", "tp"), [("vllm_ascend", 1), ("vllm_ascend", 4), ("sglang_ascend", 2), ("xllm", 1)])
def test_a_decode_profile_is_whole(arm: str, tp: int, tmp_path: Path) -> None:
    settings = {"enable_graph": True} if arm == "xllm" else {}
    workload = drafted(arm, tmp_path, settings, tp=tp).workload
    listed = list(rows(workload, arm, steps=2))
    words: list[str | Path] = ["--workload", written(tmp_path / "workload.json", workload), "--arm", arm]
    answer = inside("ingest", "profile", profile(tmp_path, listed), *words)
    assert answer.status == 0, answer.text
    assert {spot["callsite"] is not None for spot in answer.document["hotspots"]} == {True}
    counted = {
        line["callsite"]: (line["expected_calls"], line["seen_calls"]) for line in answer.document["completeness"]
    }
    for site in workload["callsites"]:
        calls = 0 if "prefill" in site["id"] else 2 * site["calls_per_step"]
        assert counted[site["id"]] == (calls, calls), site["id"]
    total = sum(int(float(row[10]) * 1000) for row in listed)
    assert answer.document["mapped_exposed_ns"] == total


def test_rows_that_a_graph_swallowed_are_missed(tmp_path: Path) -> None:
    """Some versions record attention alone of a replayed graph."""
    workload = drafted("vllm_ascend", tmp_path).workload
    listed = [
        row for row in rows(workload, "vllm_ascend", steps=2) if row[6] in {"FusedInferAttentionScore", "MatMulV2"}
    ]
    words: list[str | Path] = ["--workload", written(tmp_path / "workload.json", workload), "--arm", "vllm_ascend"]
    answer = inside("ingest", "profile", profile(tmp_path, listed), *words)
    counted = {
        line["callsite"]: (line["expected_calls"], line["seen_calls"]) for line in answer.document["completeness"]
    }
    assert counted["vllm_ascend.decode-attention"] == (72, 72)
    assert counted["vllm_ascend.swiglu"] == (72, 0)
    assert counted["vllm_ascend.add-rms-norm"] == (144, 0)
