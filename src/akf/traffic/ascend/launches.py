"""When the host launched the tasks of a profile, as far as torch_npu's trace tells.

Invariants:
1. A kernel of the tables is the task of the trace that starts at the same nanosecond. A trace without any of the
   kernels is of another run, and refused.
2. The tables say how long a step is, not where it lies: gaps are looked at between its first and its last task, and
   what is before and after is idle.
3. Of two tasks that start together the earlier launch counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from akf.contracts.problems import InvalidError
from akf.traffic.ascend_trace import Seen
from akf.traffic.capture import LAUNCHES
from akf.traffic.gaps import host_gaps


def gaps(rows: pl.DataFrame, traces: Sequence[Seen]) -> pl.DataFrame:
    """Return rank, step, `host_gap_ns` and `launches` for each step.

    Args:
        rows: Tasks of one profile, all in steps: rank, step, start_ns, duration_ns.
        traces: Its traces.
    """
    known = pl.concat(trace.launches for trace in traces).group_by("start_ns").agg(pl.col("launch_ns").min())
    tasks = rows.join(known, on="start_ns", how="left")
    end = pl.col("start_ns") + pl.col("duration_ns")
    steps = (
        tasks.group_by("rank", "step")
        .agg(pl.col("start_ns").min(), end_ns=end.max())
        .sort("rank", "start_ns", "step")
        .with_columns(pl.min_horizontal("end_ns", pl.col("start_ns").shift(-1).over("rank")).alias("end_ns"))
    )
    launched = tasks.filter(pl.col("launch_ns").is_not_null()).group_by("rank", "step")
    counted = launched.agg(pl.len().cast(pl.Int64).alias(LAUNCHES))
    return (
        host_gaps(tasks, steps)
        .join(counted, on=["rank", "step"], how="left", maintain_order="left")
        .with_columns(pl.col(LAUNCHES).fill_null(0))
    )


def belongs(rows: pl.DataFrame, trace: Seen, file: str) -> None:
    """See that a trace is of the run that the tables are of.

    Raises:
        InvalidError: It is not.
    """
    if not rows.join(trace.tasks, on="start_ns", how="semi").height:
        text = "none of the kernels in the tables is in this trace"
        hint = "copy the folder that the profiler wrote as a whole"
        raise InvalidError.of("AKF-F158", text, file=file, line=1, hint=hint)
