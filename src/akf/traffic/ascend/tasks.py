"""The kernels of one profile, as device tasks.

Invariants:
1. Where the profiler numbered steps, a task's step is its number, and a task without one lies in no step. Otherwise
   steps are spans of time, or one: from the first start to the last end.
2. The name of a kernel is the symbol of its binary where `task_time` tells it: by device, stream and task, and where
   these come again (a task's number has 16 bits), by the start as well. What PROFILING_ENABLE and its like record is no
   task.
3. A time of `aic` is a measurement for the cube's cores, one of `aiv` for the vector's, both for mixed kernels, none
   for others; elsewhere the profiler writes 0.0, which is left out. No blocks are no statement.
4. No row is there twice: a task with everything that is read of it the same is no second task.
5. A model's number other than `EAGER` is a graph's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import polars as pl

from akf.contracts.files import open_regular
from akf.contracts.problems import InvalidError, Problem
from akf.traffic.ascend import columns
from akf.traffic.cells import LONGEST_LINE
from akf.traffic.kernels import COLUMNS, WINDOW, family
from akf.traffic.reader import Progress, Reader
from akf.traffic.steps import cut
from akf.traffic.tables import Table

_COLLECTIVE = "hcom_"
_CORES = {"aic": ("AI_CORE", "MIX_AIC", "MIX_AIV"), "aiv": ("AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV")}
"""The kinds of core on which a unit's counters are measured."""
_UNKNOWN = "unknown"
_MARK = pl.col("start_ns") * 1_000_003 + pl.col("duration_ns")
"""What rows that are alike have in common, and others hardly ever."""
_LISTED = 20
_ONCE = "no kernel of a device starts twice at one time: export the profile again"


class Symbols(NamedTuple):
    """What `task_time` tells.

    Attributes:
        once: device, stream, task and symbol, where the three come once.
        again: device, stream, task, start_ns and symbol, where they come again.
        pseudo: Number of rows that are no tasks.
    """

    once: pl.DataFrame
    again: pl.DataFrame
    pseudo: int


class Kernels:
    """The lists of kernels of one profile.

    Args:
        paths: The files.
        rank: The rank, or None to take the device's number, or 0 where there is none.
        window: Number of the profile.
        symbols: What the tasks' binaries are called.
        progress: Told of bytes read.

    Attributes:
        digests: Of the files, once they are read.
        header: Of the last file.
        by_type: Columns rank, op_type, core_type, calls, time_ns: of all tasks that do not communicate, in steps or
            not.
        ranks: All ranks seen.
        named: Number of tasks whose binary is known.
        count: Number of tasks.
    """

    def __init__(
        self, paths: list[Path], rank: int | None, window: int, symbols: Symbols | None, progress: Progress
    ) -> None:
        self._paths = paths
        self._rank = rank
        self._window = window
        self._symbols = symbols
        self._progress = progress
        self.digests: list[str] = []
        self.header: tuple[str, ...] = ()
        self.unread: tuple[str, ...] = ()
        self.by_type = pl.DataFrame(
            schema={
                "rank": pl.Int64, "op_type": pl.Categorical, "core_type": pl.Categorical, "calls": pl.Int64,
                "time_ns": pl.Int64,
            }
        )  # fmt: skip
        self.ranks: set[int] = set()
        self.named = self.count = 0

    def numbered(self) -> bool:
        """Whether the files have a column for the numbers of steps, as far as their first lines can be read."""
        heads = []
        for path in self._paths:
            descriptor = open_regular(path)
            try:
                heads.append(os.read(descriptor, LONGEST_LINE).partition(b"\n")[0])
            finally:
                os.close(descriptor)
        return any(columns.STEP_ID.encode() in head.split(b",") for head in heads)

    def frames(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """File and tasks, with `step` as the profiler numbered it, or null.

        Raises:
            InvalidError: A file is malformed, holds a row twice, or two files are exports of the same tasks.
        """
        table = columns.KERNELS if self._symbols is None else columns.KERNELS_WITH_IDS
        self.digests, self.count, self.named = [], 0, 0
        self.by_type = self.by_type.clear()
        times: list[list[pl.DataFrame]] = []
        marks: list[pl.Series] = []
        for path in self._paths:
            reader = Reader(path, str(path), table, self._progress)
            times.append([])
            for frame in reader:
                self.header, self.unread = reader.header.names, reader.header.unread
                _refuse_steps(frame, str(path))
                marks.append(frame.select(_MARK).to_series())
                tasks = self._tasks(frame, reader.header.extra)
                self._count(tasks)
                if len(self._paths) > 1:
                    times[-1].append(tasks.select("rank", "kernel", "start_ns", "duration_ns"))
                yield str(path), tasks
            self.digests.append(reader.digest)
        if _come_again(marks):
            self._refuse_doubles(table, marks)
        for (one, first), (other, second) in combinations(_together(self._paths, times), 2):
            if _same(first, second):
                message = f"{one.name} and {other.name} hold the same tasks"
                raise InvalidError.of("AKF-F129", message, file=str(other), hint="keep one export of a profile")

    def _refuse_doubles(self, table: Table, marks: list[pl.Series]) -> None:
        """Read once more what may be there twice, and refuse what is."""
        every = pl.concat(marks)
        wanted = every.filter(every.is_duplicated()).unique()
        problems: list[Problem] = []
        for path in self._paths:
            frames = [frame.filter(_MARK.is_in(wanted.implode())) for frame in Reader(path, str(path), table)]
            rows = pl.concat(frames).sort("line")
            own = [name for name in rows.columns if name != "line"]
            first = rows.group_by(own, maintain_order=True).agg(first=pl.col("line").first())
            again = rows.join(first, on=own, nulls_equal=True).filter(pl.col("line") != pl.col("first")).sort("line")
            problems += [
                Problem("AKF-F138", f"the same task as in line {first}", str(path), line=line, hint=_ONCE)
                for line, first in again.select("line", "first").head(_LISTED).iter_rows()
            ]
        if problems:
            raise InvalidError(problems)

    def _tasks(self, frame: pl.DataFrame, counters: tuple[str, ...]) -> pl.DataFrame:
        core = pl.col("core_type")
        collective = core.is_in(columns.HCCL) | pl.col("kernel").cat.starts_with(_COLLECTIVE)
        if self._symbols is not None:
            frame = self._with_symbols(frame, self._symbols)
        # A collective runs on many tasks, and its name is what ranks share: only a kernel's binary takes its place.
        kernel = pl.col("kernel")
        if self._symbols is not None:
            kernel = pl.when(collective).then(kernel).otherwise(pl.coalesce("symbol", "kernel"))
        rank = pl.col("device").fill_null(0) if self._rank is None else pl.lit(self._rank, pl.Int64)
        unknown = pl.when(collective).then(pl.lit(columns.HCCL[0])).otherwise(pl.lit(_UNKNOWN)).cast(pl.Categorical)
        frame = frame.with_columns(core.is_in(cores).alias(f"{unit} ran") for unit, cores in _CORES.items())
        return frame.select(
            *(name for name in COLUMNS if name in frame.columns and name not in {"kernel", "core_type", "blocks"}),
            "line",
            rank=rank,
            kernel=kernel,
            core_type=core.fill_null(unknown),
            kind=pl.when(collective)
            .then(pl.lit("communication"))
            .otherwise(pl.lit("computing"))
            .cast(pl.Enum(["computing", "communication"])),
            graph=pl.col("model") != columns.EAGER,
            blocks=pl.when(pl.col("blocks") > 0).then("blocks"),
            step=pl.col("step_id") + WINDOW * self._window,
            **{name: pl.when(_runs(name)).then(name) for name in counters},
        )

    def _with_symbols(self, frame: pl.DataFrame, symbols: Symbols) -> pl.DataFrame:
        task = ["device", "stream", "task"]
        frame = frame.with_columns(pl.col("device").fill_null(0))
        once = frame.join(symbols.once, on=task, how="left", maintain_order="left")
        both = once.join(symbols.again, on=[*task, "start_ns"], how="left", maintain_order="left", suffix="_again")
        found = both.with_columns(symbol=pl.coalesce("symbol", "symbol_again")).drop("symbol_again")
        self.named += found.height - found["symbol"].null_count()
        return found

    def _count(self, tasks: pl.DataFrame) -> None:
        self.count += tasks.height
        self.ranks |= set(tasks["rank"].unique())
        own = tasks.filter(pl.col("kind") == "computing").select(
            "rank", "op_type", "core_type", calls=pl.lit(1, pl.Int64), time_ns="duration_ns"
        )
        sums = pl.col("calls", "time_ns").sum()
        self.by_type = (
            pl.concat([self.by_type, own.group_by("rank", "op_type", "core_type").agg(sums)])
            .group_by("rank", "op_type", "core_type")
            .agg(sums)
        )


def _come_again(marks: list[pl.Series]) -> bool:
    """Whether a mark is there twice."""
    every = pl.concat(marks).sort()
    return bool((every == every.shift(1)).any())


def _refuse_steps(frame: pl.DataFrame, file: str) -> None:
    """Refuse a number of a step that is none."""
    wrong = frame.filter(pl.col("step_id") >= WINDOW)
    if wrong.height:
        raise InvalidError(
            Problem("AKF-F115", f"Step Id {step} is no number of a step", file, line=line, hint="export it again")
            for step, line in wrong.select("step_id", "line").head(20).iter_rows()
        )


def read_symbols(paths: list[Path], progress: Progress) -> tuple[Symbols, list[str]]:
    """What `task_time` tells, and the files' digests."""
    readers = [Reader(path, str(path), columns.TASK_TIME, progress) for path in paths]
    rows = pl.concat([frame for reader in readers for frame in reader])
    task = ["device", "stream", "task"]
    named = rows.with_columns(pl.col("device").fill_null(0)).drop_nulls("symbol")
    named = named.unique([*task, "start_ns"], keep="none", maintain_order=True)
    often = pl.len().over(task)
    once = named.filter(often == 1).select(*task, "symbol")
    again = named.filter(often > 1).select(*task, "start_ns", "symbol")
    return Symbols(once, again, rows["symbol"].null_count()), [reader.digest for reader in readers]


def in_spans(tasks: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """The tasks, cut where the spans of their rank end.

    Args:
        tasks: As `Kernels.frames` gives them.
        spans: rank and `akf.traffic.steps.STEPS`.
    """
    parts = []
    for (rank,), of_rank in tasks.drop("step").group_by("rank", maintain_order=True):
        own = spans.filter(pl.col("rank") == rank).drop("rank")
        parts.append(cut(of_rank.with_columns(calls=pl.lit(1, pl.Int64)), own))
    found = pl.concat(parts)
    counters = [name for name in found.columns if name not in {*COLUMNS, "line", "calls"}]
    return found.with_columns(  # what a task's first part counts, its other parts do not count again
        pl.when((pl.col("calls") == 0) & pl.col(name).is_not_null()).then(0).otherwise(name).alias(name)
        for name in counters
    )


def starts_of(tasks: pl.DataFrame, marker: str) -> pl.DataFrame:
    """Rank and start_ns of the tasks whose name, name without its number, or operator is `marker`."""
    names = tasks.select("kernel", "op_type", "kind").unique()
    own = [row for row in names.iter_rows() if marker in {row[0], row[1], family(row[0], row[1], row[2])}]
    wanted = pl.DataFrame(own, {name: names.schema[name] for name in names.columns}, orient="row")
    return tasks.join(wanted, on=names.columns, how="semi", nulls_equal=True).select("rank", "start_ns")


def _together(paths: list[Path], times: list[list[pl.DataFrame]]) -> Iterator[tuple[Path, pl.DataFrame]]:
    """Each file with its tasks' times, where there are several."""
    if len(paths) > 1:
        yield from zip(paths, map(pl.concat, times), strict=True)


def _same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether most of the smaller table is in the larger one; slices of one export share at most a chance row."""
    both = one.unique().join(other.unique(), on=one.columns, how="semi", nulls_equal=True).height
    return 2 * both > min(one.height, other.height)


def _runs(counter: str) -> str:
    """The column that says whether the cores of a counter ran."""
    return next(f"{unit} ran" for unit in _CORES if counter.startswith(unit))
