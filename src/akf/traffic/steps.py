"""Which part of which task lies in which step.

Invariants:
1. A task is launched in a step if the moment of its launch lies in the host's span of that step.
2. A step on a device lasts from the first task that was launched in it to the next step's first; the last one to the
   end of its last task or of the host's span, whichever is later. So steps on a device touch and do not overlap.
3. A task is cut where steps end. Each part counts in its step, the call with the first part that lies in a step; what
   lies in no step is left out. So what runs in a step is inside it, and steps add up to the whole.
"""

from __future__ import annotations

import polars as pl

STEPS = {"step": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64}


def device_steps(tasks: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Return the steps on the device, as `STEPS`.

    Args:
        tasks: launch_ns (null when unknown), start_ns, duration_ns.
        spans: `STEPS` on the host; they do not overlap.
    """
    told = spans.sort("start_ns").rename({"start_ns": "from", "end_ns": "told"})
    found = (
        tasks.drop_nulls("launch_ns")
        .sort("launch_ns")
        .join_asof(told, left_on="launch_ns", right_on="from", strategy="backward")
        .filter(pl.col("launch_ns") < pl.col("told"))
        .group_by("step", "told")
        .agg(pl.col("start_ns").min(), last=(pl.col("start_ns") + pl.col("duration_ns")).max())
        .sort("start_ns", "step")
    )
    last = pl.max_horizontal("last", "told")
    return found.select("step", "start_ns", end_ns=pl.col("start_ns").shift(-1).fill_null(last))


def cut(tasks: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Return the parts of the tasks that lie in steps, with `step` and `calls`: 1 in the first part of a call, else 0.

    Args:
        tasks: start_ns, duration_ns, and whatever else belongs to a task. Rows with one `task` are one call; without
            that column, each is a call of its own.
        steps: `STEPS`; they do not overlap.
    """
    steps = steps.sort("start_ns").rename({"start_ns": "step_start", "end_ns": "step_end"})
    starts = steps["step_start"]
    end = pl.col("start_ns") + pl.col("duration_ns")
    kept = [name for name in tasks.columns if name != "calls"]
    if "task" not in kept:
        tasks = tasks.with_row_index("task")
    return (
        tasks.with_columns(
            first=starts.search_sorted(tasks["start_ns"], side="right").cast(pl.Int64) - 1,
            last=starts.search_sorted(tasks.select(end).to_series(), side="left").cast(pl.Int64),
        )
        .with_columns(
            place=pl.int_ranges(pl.col("first").clip(lower_bound=0), pl.max_horizontal("last", pl.col("first") + 1))
        )
        .explode("place", empty_as_null=False)
        .join(steps.with_row_index("place").cast({"place": pl.Int64}), on="place")
        .with_columns(
            start_ns=pl.max_horizontal("start_ns", "step_start"), end_ns=pl.min_horizontal(end, pl.col("step_end"))
        )
        .filter(
            (pl.col("end_ns") > pl.col("start_ns"))
            | ((pl.col("duration_ns") == 0) & (pl.col("start_ns") < pl.col("step_end")))
        )
        .sort("task", "start_ns", "end_ns")
        .with_columns(
            duration_ns=pl.col("end_ns") - pl.col("start_ns"),
            calls=(pl.int_range(pl.len()).over("task") == 0).cast(pl.Int64),
        )
        .select(*kept, "step", "calls")
    )


def window(tasks: pl.DataFrame) -> pl.DataFrame:
    """Return one step, 0, from the first start to the last end: for tasks of which nobody marked steps."""
    end = pl.max_horizontal(pl.col("start_ns") + pl.col("duration_ns"), pl.col("start_ns") + 1)
    return tasks.select(step=pl.lit(0, pl.Int64), start_ns=pl.col("start_ns").min(), end_ns=end.max()).head(1)
