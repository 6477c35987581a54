"""Device tasks as every importer hands them over, gathered by what they are.

Invariants:
1. An importer gives frames with the columns `COLUMNS`, one row per task, in any order and any number of pieces. A
   column `line` says where a row stands; one `calls` is 0 in a row that goes on with a task which a step's end cut.
   Further columns are counters: nanoseconds that an average block was busy.
2. Tasks that differ in nothing but time and counters are of one key. What counts instances (a number behind the
   operator's type, or behind a collective's name) is no difference.
3. What is held of a task is its key, step, start and duration, until they are handed over; a collective also keeps the
   name that all ranks share. Whatever is a sum is summed at once.
4. A counter that some tasks of a key lack is no counter of that key. A task outside all steps counts for nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import polars as pl

from akf.contracts.problems import InvalidError, Problem
from akf.contracts.text import printable
from akf.traffic.operands import Operand, operands

KEY = (
    "rank", "kernel", "op_type", "core_type", "kind", "graph", "blocks",
    "input_shapes", "input_dtypes", "input_formats", "output_shapes", "output_dtypes", "output_formats",
)  # fmt: skip
"""int, text, text|null, text, `computing` or `communication`, bool|null, int|null, and six texts|null."""

COLUMNS = (*KEY, "step", "start_ns", "duration_ns")
"""`step` is an int, or null for a task outside all steps: its number, the same on all ranks, plus `WINDOW` times the
number of the capture that it belongs to, in any order (two profiles of one rank are two captures)."""

WINDOW = 2**32

LINE, CALLS = "line", "calls"
MAX_KEYS = 2**20
_LONGEST_NAME = 256
_SPANS_AT_ONCE = 64
_INSTANCE = re.compile(r"_{1,2}\d+(?:_\d+)*(?:@\d+)?$", re.ASCII)


class Key(NamedTuple):
    """What tasks are alike in."""

    rank: int
    kernel: str
    op_type: str | None
    core_type: str
    kind: str
    graph: bool | None
    blocks: int | None
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]


class Figures(NamedTuple):
    """Sums over the tasks of one key."""

    calls: int
    time_ns: int
    longest_ns: int


class Tasks:
    """Device tasks of all ranks.

    Attributes:
        keys: What they are; a key's number is its place here.
        outside: Number of rows that lay in no step.
    """

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self.outside = 0
        self._figures: list[Figures] = []
        self._counted: list[dict[str, int | None] | None] = []
        self._numbers: dict[Key, int] = {}
        self._seen: dict[tuple[object, ...], int] = {}
        self._spans: list[pl.DataFrame] = []
        self._computing: list[pl.DataFrame] = []
        self._collectives: list[pl.DataFrame] = []

    def add(self, frame: pl.DataFrame, file: str) -> None:
        """Take the tasks of one frame; `file` is what problems call it.

        Raises:
            InvalidError: Operands that contradict each other, with their line.
        """
        inside = frame.drop_nulls("step")
        self.outside += frame.height - inside.height
        if inside.is_empty():
            return
        frame = inside if CALLS in frame.columns else inside.with_columns(pl.lit(1).alias(CALLS))
        counters = [name for name in frame.columns if name not in {*COLUMNS, LINE, CALLS}]
        duration = pl.col("duration_ns")
        groups = frame.group_by(KEY).agg(
            pl.col("step", "start_ns"),
            duration,
            *(pl.when(pl.col(name).is_not_null().all()).then(pl.col(name).sum()).alias(name) for name in counters),
            pl.col(LINE).min() if LINE in frame.columns else pl.lit(None, pl.Int64).alias(LINE),
            calls=pl.col(CALLS).cast(pl.Int64).sum(),
            time=duration.sum(),
            longest=duration.max(),
        )
        numbers = self._number(groups.select(*KEY, LINE).sort(LINE).iter_rows(), file)
        groups = groups.with_columns(
            key=pl.Series([numbers[row] for row in groups.select(KEY).iter_rows()], dtype=pl.UInt32)
        )
        for number, calls, time, longest, *times in groups.select(
            "key", "calls", "time", "longest", *counters
        ).iter_rows():
            self._count(number, Figures(calls, time, longest), dict(zip(counters, times, strict=True)))
        self._hold(groups, frame)

    def _hold(self, groups: pl.DataFrame, frame: pl.DataFrame) -> None:
        """Keep what cannot be summed."""
        first, last = pl.col("start_ns").min(), (pl.col("start_ns") + pl.col("duration_ns")).max()
        self._spans.append(frame.group_by("rank", "step").agg(first=first, last=last))
        if len(self._spans) > _SPANS_AT_ONCE:
            self._spans = [self.spans()]
        lists = ("step", "start_ns", "duration_ns")
        communicates = pl.col("kind") == "communication"
        computing = groups.filter(~communicates).select("key", *lists)
        self._computing.append(computing.explode(lists, empty_as_null=False, keep_nulls=True))
        collectives = groups.filter(communicates).select("key", "rank", *lists, collective="kernel")
        if not collectives.is_empty():
            collectives = collectives.cast({"collective": pl.String}).cast({"collective": pl.Categorical})
            self._collectives.append(collectives.explode(lists, empty_as_null=False, keep_nulls=True))

    def spans(self) -> pl.DataFrame:
        """Of each step with a task, `first`, the first start, and `last`, the last end; by rank and step."""
        return (pl.concat(self._spans).group_by("rank", "step").agg(pl.col("first").min(), pl.col("last").max())).sort(
            "rank", "step"
        )

    def rows(self) -> pl.DataFrame:
        """All tasks that were not handed over yet: rank, step, start_ns, duration_ns; a copy of them."""
        times = ["rank", "step", "start_ns", "duration_ns"]
        ranks = pl.Series([key.rank for key in self.keys], dtype=pl.Int64)
        computing = (part.with_columns(rank=ranks.gather(part["key"])) for part in self._computing)
        return pl.concat([part.select(times) for part in (*computing, *self._collectives)])

    def computing(self) -> Iterator[pl.DataFrame]:
        """Hand over the tasks that compute, piece by piece: key, step, start_ns, duration_ns."""
        self._computing.reverse()
        while self._computing:
            yield self._computing.pop()

    def collectives(self) -> pl.DataFrame | None:
        """Hand over the tasks that communicate, if any: as the others, with `rank` and `collective`."""
        found, self._collectives = self._collectives, []
        return pl.concat(found) if found else None

    def _number(self, rows: Iterable[tuple[object, ...]], file: str) -> dict[tuple[object, ...], int]:
        problems: list[Problem] = []
        for *raw, line in rows:
            row = tuple(raw)
            if row in self._seen:
                continue
            try:
                key = _key(*row)  # type: ignore[arg-type]
            except ValueError as error:
                problems.append(Problem("AKF-F123", str(error), file, line=line))  # type: ignore[arg-type]
                continue
            number = self._numbers.setdefault(key, len(self.keys))
            if number == len(self.keys):
                self.keys.append(key)
                self._figures.append(Figures(0, 0, 0))
                self._counted.append(None)
            self._seen[row] = number
        if len(self._seen) > MAX_KEYS:
            hint = "profile fewer steps"
            problems.append(Problem("AKF-F124", f"more than {MAX_KEYS} different kernels", file, hint=hint))
        if problems:
            raise InvalidError(problems)
        return self._seen

    def _count(self, number: int, more: Figures, times: dict[str, int | None]) -> None:
        """Add some tasks of one key; a counter that is missing now or was missing before stays missing."""
        held = self._figures[number]
        longest = max(held.longest_ns, more.longest_ns)
        self._figures[number] = Figures(held.calls + more.calls, held.time_ns + more.time_ns, longest)
        counted = self._counted[number]
        if counted is None:
            self._counted[number] = times
            return
        for name in counted.keys() | times.keys():
            before, now = counted.get(name), times.get(name)
            counted[name] = None if before is None or now is None else before + now

    def figures(self, number: int) -> Figures:
        """The sums of one key."""
        return self._figures[number]

    def counters(self, number: int) -> dict[str, int]:
        """The summed time of one key by counter, in nanoseconds."""
        return {name: time for name, time in sorted((self._counted[number] or {}).items()) if time is not None}


def _key(
    rank: int, kernel: str, op_type: str | None, core_type: str, kind: str, graph: bool | None, blocks: int | None,
    *texts: str | None,
) -> Key:  # fmt: skip
    return Key(
        rank,
        named(family(kernel, op_type, kind)),
        None if op_type is None else named(op_type),
        named(core_type),
        kind,
        graph,
        blocks,
        operands(*texts[:3]),
        operands(*texts[3:]),
    )


def family(kernel: str, op_type: str | None, kind: str) -> str:
    """A kernel's name without what counts its instances."""
    if kind == "communication":
        return _INSTANCE.sub("", kernel) or kernel
    stem = kernel.rstrip("0123456789").removesuffix("_") if op_type else kernel
    return stem if op_type and stem != kernel and stem.endswith(op_type) else kernel


def named(text: str) -> str:
    """A name as it may stand in an artifact: printable, and of a length that every reader takes."""
    name = printable(text)
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 17]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"
