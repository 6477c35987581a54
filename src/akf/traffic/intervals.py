"""Where the time of a step goes: unions of intervals that overlap, never their sum.

Invariants:
1. At each instant of a step the device computes if any computing task runs; else it communicates if a collective
   transfers; else it waits if a collective waits for a slower rank; else it is idle. So the lines add up to the step.
2. A key's exposed time is the union of its tasks where nothing of another key runs. A collective that waits counts as
   something that runs, and its waiting is exposed time of none.
3. A collective waits in the beginning, for as long as it takes longer than the same collective on the rank where it is
   shortest. Ranks are compared only where they agree how often a collective ran in a step.
4. Everything is whole nanoseconds: the same tasks give the same figures, in any order and on any number of threads.

How it is computed. All groups (a rank's step each) are laid end to end on one line. A task that overlaps no other is
exposed by itself. Of the rest, starts and ends are sorted; running sums of how many tasks run (n), of their keys (s)
and of the keys' squares (q) tell where one key runs alone: n * q == s * s holds exactly there (Cauchy and Schwarz).
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from akf.contracts.problems import InvalidError

COMPUTING, COMMUNICATION, WAITING = 0, 1, 2
LINES = ("computing_ns", "communication_ns", "waiting_ns", "overlapped_ns")
_LONGEST = 2**62


class Swept(NamedTuple):
    """What a sweep found.

    Attributes:
        lines: group and `LINES`; `overlapped_ns` is communication or waiting that computing covers.
        exposed: group, key and `exposed_ns`, where that is not zero.
    """

    lines: pl.DataFrame
    exposed: pl.DataFrame


def waiting(collectives: pl.DataFrame) -> pl.DataFrame:
    """The leading part of collectives in which they wait.

    Args:
        collectives: rank, step (as all ranks number it), collective, start_ns, duration_ns.

    Returns:
        The same rows, in another order, with `waiting_ns`.
    """
    shared = ["step", "collective"]
    order = pl.col("start_ns").rank("ordinal").over([*shared, "rank"])
    often = pl.len().over([*shared, "rank"])
    ranks = pl.col("rank").n_unique().over(shared)
    agreed = (ranks > 1) & (pl.col("often").min().over(shared) == pl.col("often").max().over(shared))
    shortest = pl.col("duration_ns").min().over([*shared, "order"])
    return (
        collectives.sort("start_ns", "duration_ns")
        .with_columns(order=order, often=often)
        .with_columns(waiting_ns=pl.when(agreed).then(pl.col("duration_ns") - shortest).otherwise(0))
        .drop("order", "often")
    )


def sweep(tasks: pl.DataFrame) -> Swept:
    """Find what runs alone and what each group's time is.

    Args:
        tasks: group, key (0 and up), kind (`COMPUTING`, ...), start_ns, end_ns.
    """
    line = _end_to_end(tasks)
    before = pl.col("end").cum_max().shift(1)
    apart = (pl.col("start") >= before).fill_null(value=True)
    line = line.sort("start").with_columns(apart=apart)
    alone = pl.col("apart") & pl.col("apart").shift(-1).fill_null(value=True)
    line = line.with_columns(alone=alone)
    single = line.filter("alone").select("group", "key", "kind", length=pl.col("end") - pl.col("start"))
    segments = _segments(line.filter(~pl.col("alone")))
    alone_there = single.select(
        "group",
        "length",
        computing=pl.col("kind") == COMPUTING,
        communication=pl.col("kind") == COMMUNICATION,
        waiting=pl.col("kind") == WAITING,
        key=pl.when(pl.col("kind") != WAITING).then("key"),
    )
    found = pl.concat([alone_there, segments.select(alone_there.columns)])
    computing, communication, waits = pl.col("computing"), pl.col("communication"), pl.col("waiting")
    masks = (
        computing,
        ~computing & communication,
        ~computing & ~communication & waits,
        computing & (communication | waits),
    )
    lines = found.group_by("group").agg(
        *(pl.col("length").filter(mask).sum().alias(name) for name, mask in zip(LINES, masks, strict=True))
    )
    exposed = (
        found.filter(pl.col("key").is_not_null() & (pl.col("length") > 0))
        .group_by("group", "key")
        .agg(exposed_ns=pl.col("length").sum())
    )
    return Swept(lines.sort("group"), exposed.sort("group", "key"))


def _end_to_end(tasks: pl.DataFrame) -> pl.DataFrame:
    """The tasks with `start` and `end` on one line, where no two groups touch."""
    spans = tasks.group_by("group").agg(first=pl.col("start_ns").min(), last=pl.col("end_ns").max()).sort("group")
    at = 0
    shifts = []
    for first, last in spans.select("first", "last").iter_rows():
        shifts.append(at - first)
        at += last - first + 1
    if at > _LONGEST:
        raise InvalidError.of("AKF-F125", "the captured time is longer than a century: some times are damaged")
    shift = spans.select("group", shift=pl.Series(shifts, dtype=pl.Int64))
    return tasks.join(shift, on="group", how="left").select(
        "group", "key", "kind", start=pl.col("start_ns") + pl.col("shift"), end=pl.col("end_ns") + pl.col("shift")
    )


def _segments(tasks: pl.DataFrame) -> pl.DataFrame:
    """What runs between each two neighbouring instants at which a task starts or ends."""
    kinds = {"computing": COMPUTING, "communication": COMMUNICATION, "waiting": WAITING}
    ends = []
    for instant, sign in (("start", 1), ("end", -1)):
        # All that waits is of one key that is no task's: 1. It never is the only one that runs and counts.
        key = pl.when(pl.col("kind") == WAITING).then(1).otherwise(pl.col("key") + 2).cast(pl.Int128)
        ends.append(
            tasks.select(
                *((pl.col("kind") == kind).cast(pl.Int64).mul(sign).alias(name) for name, kind in kinds.items()),
                at=pl.col(instant),
                group=pl.col("group").cast(pl.Int64) * sign,
                n=pl.lit(sign, pl.Int128),
                s=key * sign,
                q=key * key * sign,
            )
        )
    running = (
        pl.concat(ends)
        .sort("at")
        .with_columns(pl.col("group", "n", "s", "q", *kinds).cum_sum(), length=pl.col("at").shift(-1) - pl.col("at"))
        .filter((pl.col("n") > 0) & (pl.col("length") > 0))
    )
    only = (pl.col("n") * pl.col("q") == pl.col("s") * pl.col("s")) & (pl.col("s") > pl.col("n"))
    return running.select(
        "length",
        *(pl.col(name) > 0 for name in kinds),
        group=(pl.col("group") // pl.col("n")).cast(tasks.schema["group"]),
        key=pl.when(only).then(pl.col("s") // pl.col("n") - 2).cast(tasks.schema["key"]),
    )
