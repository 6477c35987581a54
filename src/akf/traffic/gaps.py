"""Why the device stood still: because the host had launched nothing, or for another or an unknown reason.

Invariants:
1. A gap is time inside a step in which no task of the rank runs, on any stream.
2. The part of a gap before the host launched the task that ends it is the host's; what remains is not, nor is a gap
   whose end has no launch that is known: unknown fails closed.
3. Of several tasks that end a gap together, the first launch counts, if all are known.
4. A gap that reaches over the end of a step counts in each step by its part there.
"""

from __future__ import annotations

import polars as pl


def host_gaps(tasks: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Return `rank`, `step` and `host_gap_ns` for each step.

    Args:
        tasks: All tasks: `rank`, `start_ns`, `duration_ns`, `launch_ns` (null when unknown).
        steps: `rank`, `step`, `start_ns`, `end_ns`; the steps of a rank do not overlap.
    """
    parts = _host_parts(tasks, steps)
    ends = [
        steps.select("rank", "step", pl.col(moment).alias("moment"), pl.lit(sign).alias("sign"))
        for moment, sign in (("start_ns", -1), ("end_ns", 1))
    ]
    before = (
        pl.concat(ends)
        .sort("moment")
        .join_asof(parts, left_on="moment", right_on="from", by="rank", strategy="backward", check_sortedness=False)
        .with_columns(
            gone=(pl.col("gone") + pl.min_horizontal(pl.col("moment") - pl.col("from"), pl.col("length"))).fill_null(0)
        )
    )
    found = before.group_by("rank", "step").agg(host_gap_ns=(pl.col("gone") * pl.col("sign")).sum())
    return steps.select("rank", "step").join(found, on=["rank", "step"], how="left", maintain_order="left")


def _host_parts(tasks: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """The host's part of each gap: `rank`, `from`, `length`, and `gone`, the sum of those before it on its rank."""
    first = steps.group_by("rank").agg(first=pl.col("start_ns").min())
    moments = (
        tasks.group_by("rank", "start_ns")
        .agg(
            end=(pl.col("start_ns") + pl.col("duration_ns")).max(),
            launch=pl.when(pl.col("launch_ns").null_count() == 0).then(pl.col("launch_ns").min()),
        )
        .join(first, on="rank")
        .sort("rank", "start_ns")
        .with_columns(idle_from=pl.col("end").cum_max().shift(1).over("rank").fill_null(pl.col("first")))
    )
    return (
        moments.select(
            "rank", pl.col("idle_from").alias("from"), to=pl.min_horizontal("launch", "start_ns"), known="launch"
        )
        .filter(pl.col("known").is_not_null() & (pl.col("to") > pl.col("from")))
        .select("rank", "from", length=pl.col("to") - pl.col("from"))
        .with_columns(gone=pl.col("length").cum_sum().over("rank") - pl.col("length"))
        .sort("from", "rank")
    )
