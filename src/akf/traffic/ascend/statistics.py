"""What a profile's other tables say, and whether they agree with the list of kernels.

Invariants:
1. `op_statistic` leaves communication out: its total is the step trace's Computing, and operator by operator it is what
   the kernels sum up to. That holds to the rounding of kernels and rows: half a nanosecond each, taken as one.
2. A step is as long as its computing, its communication that nothing covers and its free time. The profiler computes
   these from floating-point microseconds since 1970, which are a quarter of a microsecond apart.
3. A figure that does not agree is said, and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from akf.contracts.problems import InvalidError, Problem
from akf.traffic.ascend.columns import HCCL
from akf.traffic.ascend_trace import Seen
from akf.traffic.kernels import WINDOW, named
from akf.traffic.reader import Progress, Reader
from akf.traffic.steps import STEPS
from akf.traffic.tables import Table

STEP_ROUNDING_NS = 1000
MAX_HOST = 4096
SPANS = {"rank": pl.Int64, **STEPS}
"""Steps as times, of all ranks."""


def table(path: Path, kind: Table, progress: Progress) -> tuple[pl.DataFrame, str]:
    """A small table as a whole, and its digest."""
    reader = Reader(path, str(path), kind, progress)
    return pl.concat(list(reader)), reader.digest


def walls(steps: pl.DataFrame, rank: int, window: int) -> pl.DataFrame:
    """How long the profiler says that each step took."""
    return steps.drop_nulls("step").select(
        rank=pl.lit(rank, pl.Int64),
        step=pl.col("step") + WINDOW * window,
        step_ns="stage_ns",
        host_gap_ns=pl.lit(None, pl.Int64),
    )


def check(name: str, rank: int, expected: int, found: int, rounding: int, *, also: bool = True) -> dict[str, Any]:
    """One figure of two files."""
    holds = also and abs(expected - found) <= rounding
    return {"name": name, "rank": rank, "expected_ns": expected, "found_ns": found, "holds": holds}


def step_checks(steps: pl.DataFrame, rank: int) -> list[dict[str, Any]]:
    """Whether the lines of the step trace add up to its steps."""
    lines = int(steps.select(pl.sum_horizontal("computing_ns", "communication_ns", "free_ns").sum()).item())
    stage = int(steps["stage_ns"].sum())
    return [check("step-trace-adds-up", rank, stage, lines, STEP_ROUNDING_NS * steps.height)]


def operator_checks(
    statistic: pl.DataFrame, by_type: pl.DataFrame, steps: pl.DataFrame | None, rank: int
) -> list[dict[str, Any]]:
    """Whether `op_statistic` agrees with the kernels, operator by operator, and with the step trace."""
    own = _by_operator(statistic.filter(~pl.col("core_type").is_in(HCCL).fill_null(value=False)))
    seen = _by_operator(by_type)
    agree = own.keys() == seen.keys() and all(
        calls == seen[name][0] and abs(time - seen[name][1]) <= calls + 1 for name, (calls, time) in own.items()
    )
    total, kernels = sum(time for _, time in own.values()), sum(time for _, time in seen.values())
    rounding = sum(calls + 1 for calls, _ in own.values())
    found = [check("kernels-against-op-statistic", rank, total, kernels, rounding, also=agree)]
    if steps is not None:
        computing = int(steps["computing_ns"].sum())
        rounding += STEP_ROUNDING_NS * steps.height
        found.append(check("op-statistic-against-computing", rank, computing, total, rounding))
    return found


def line_checks(steps: pl.DataFrame, line: dict[str, Any]) -> list[dict[str, Any]]:
    """Whether the Capture's own lines are the profiler's."""
    own = {"computing": line["computing_ns"], "communication": line["communication_ns"] + line["waiting_ns"]}
    rounding = STEP_ROUNDING_NS * steps.height
    return [
        check(f"{name}-against-step-trace", line["rank"], int(steps[f"{name}_ns"].sum()), time, rounding)
        for name, time in own.items()
    ]


def trace_checks(traces: Sequence[Seen], line: dict[str, Any]) -> list[dict[str, Any]]:
    """Whether the Capture's own lines are those of the trace's overlap layer, whose rows are rounded one by one."""
    own = {
        "computing": ("Computing", line["computing_ns"]),
        "communication": ("Communication(Not Overlapped)", line["communication_ns"] + line["waiting_ns"]),
    }
    rounding = sum(trace.overlap_rows for trace in traces)
    return [
        check(
            f"trace-{name}-against-kernels",
            line["rank"],
            sum(trace.overlap_ns[layer] for trace in traces),
            time,
            rounding,
        )
        for name, (layer, time) in own.items()
        if all(layer in trace.overlap_ns for trace in traces)
    ]


def host(interfaces: pl.DataFrame, rank: int) -> list[dict[str, Any]]:
    """The host's time by interface; of very many, those with the most."""
    sums = interfaces.group_by("level", "api").agg(pl.col("calls", "time_ns").sum()).filter(pl.col("calls") > 0)
    rows = sums.with_columns(pl.col("level", "api").cast(pl.String)).sort(
        "time_ns", "level", "api", descending=[True, False, False]
    )
    return [
        {"rank": rank, "level": named(level), "api": named(api), "calls": calls, "time_ns": time}
        for level, api, calls, time in rows.head(MAX_HOST).iter_rows()
    ]


def _by_operator(rows: pl.DataFrame) -> dict[tuple[str | None, str | None], tuple[int, int]]:
    sums = rows.group_by("op_type", "core_type").agg(pl.col("calls", "time_ns").sum())
    return {(op_type, core): (calls, time) for op_type, core, calls, time in sums.iter_rows()}


def summed(checks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The checks, those of one name and rank as one."""
    summed: dict[tuple[str, int], dict[str, Any]] = {}
    for one in checks:
        held = summed.setdefault((one["name"], one["rank"]), {**one, "expected_ns": 0, "found_ns": 0, "holds": True})
        held["expected_ns"] += one["expected_ns"]
        held["found_ns"] += one["found_ns"]
        held["holds"] &= one["holds"]
    return [summed[key] for key in sorted(summed)]


def of_device(table: pl.DataFrame, device: int) -> pl.DataFrame:
    """The rows of one device; all of a table that knows none."""
    if "device" not in table.columns or table["device"].null_count() == table.height:
        return table
    return table.filter(pl.col("device").fill_null(0) == device)


def iterations(trace: pl.DataFrame, file: str) -> pl.DataFrame:
    """Spans of msprof's iterations: rank and `STEPS`."""
    spans = trace.select(
        pl.col("device").fill_null(0).alias("rank"),
        "step",
        "line",
        start_ns=pl.col("end_ns") - pl.col("length_ns"),
        end_ns="end_ns",
    ).sort("rank", "start_ns")
    lines = spans.filter(pl.col("start_ns") < pl.col("end_ns").shift(1).over("rank"))["line"]
    if len(lines):
        message = "the iteration begins before the one before it ends"
        raise InvalidError(Problem("AKF-F134", message, file, line=line) for line in lines.head(20))
    return spans.select(*SPANS)
