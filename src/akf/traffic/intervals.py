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
The line is cut where nothing runs, and its pieces are summed one after the other, so that little is held at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

COMPUTING, COMMUNICATION, WAITING = 0, 1, 2
KINDS = {"computing": COMPUTING, "communication": COMMUNICATION, "waiting": WAITING}
LINES = ("computing_ns", "communication_ns", "waiting_ns", "overlapped_ns")
AT_ONCE = 2**18


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
        tasks: group, key (0 and up), kind (`COMPUTING`, ...), start_ns, end_ns; all groups together last less than
            2^62 nanoseconds.
    """
    line = _end_to_end(tasks).sort("start")
    apart = (line["start"] >= line["end"].cum_max().shift(1)).fill_null(value=True)
    line = line.with_columns(apart=apart)
    states = ["group", "key", "computing", "communication", "waiting"]
    sums = pl.concat(_states(line[start:end]) for start, end in _pieces(apart))
    found = sums.group_by(states).agg(pl.col("length").sum())
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


def _pieces(apart: pl.Series) -> Iterator[tuple[int, int]]:
    """Where to cut the line: only before a task that starts after all others have ended."""
    cuts = apart.arg_true()
    start = 0
    while start < len(apart):
        place = int(cuts.search_sorted(start + AT_ONCE, side="left"))
        end = int(cuts[place]) if place < len(cuts) else len(apart)
        yield start, end
        start = end


def _states(line: pl.DataFrame) -> pl.DataFrame:
    """How long a piece of the line is in which state, and of which key alone: group, key, one flag a kind, length."""
    alone = pl.col("apart") & pl.col("apart").shift(-1).fill_null(value=True)
    single = line.filter(alone).group_by("group", "key", "kind").agg(length=(pl.col("end") - pl.col("start")).sum())
    kinds = {name: pl.col("kind") == kind for name, kind in KINDS.items()}
    key = pl.when(pl.col("kind") != WAITING).then("key")
    rest = _segments(line.filter(~alone)).group_by("group", "key", *KINDS).agg(pl.col("length").sum())
    return pl.concat([single.select("group", key, **kinds, length="length"), rest])


def _end_to_end(tasks: pl.DataFrame) -> pl.DataFrame:
    """The tasks with `start` and `end` on one line, where no two groups touch."""
    spans = tasks.group_by("group").agg(first=pl.col("start_ns").min(), last=pl.col("end_ns").max()).sort("group")
    at = 0
    shifts = []
    for first, last in spans.select("first", "last").iter_rows():
        shifts.append(at - first)
        at += last - first + 1
    shift = spans.select("group", shift=pl.Series(shifts, dtype=pl.Int64))
    return tasks.join(shift, on="group", how="left").select(
        "group", "key", "kind", start=pl.col("start_ns") + pl.col("shift"), end=pl.col("end_ns") + pl.col("shift")
    )


def _segments(tasks: pl.DataFrame) -> pl.DataFrame:
    """What runs between each two neighbouring instants at which a task starts or ends."""
    ends = []
    for instant, sign in (("start", 1), ("end", -1)):
        # All that waits is of one key that is no task's: 1. It never is the only one that runs and counts.
        key = pl.when(pl.col("kind") == WAITING).then(1).otherwise(pl.col("key") + 2).cast(pl.Int128)
        ends.append(
            tasks.select(
                *((pl.col("kind") == kind).cast(pl.Int64).mul(sign).alias(name) for name, kind in KINDS.items()),
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
        .with_columns(pl.col("group", "n", "s", "q", *KINDS).cum_sum(), length=pl.col("at").shift(-1) - pl.col("at"))
        .filter((pl.col("n") > 0) & (pl.col("length") > 0))
    )
    only = (pl.col("n") * pl.col("q") == pl.col("s") * pl.col("s")) & (pl.col("s") > pl.col("n"))
    return running.select(
        "length",
        *(pl.col(name) > 0 for name in KINDS),
        group=(pl.col("group") // pl.col("n")).cast(tasks.schema["group"]),
        key=pl.when(only).then(pl.col("s") // pl.col("n") - 2).cast(tasks.schema["key"]),
    )
