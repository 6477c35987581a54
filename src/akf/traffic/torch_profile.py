"""Traces of torch's own profiler, one for each rank, as device tasks in steps.

Invariants:
1. All traces are of one platform. Each is one capture of its rank; a trace that names no rank is of rank 0.
2. Either all traces mark their steps, or none does: then each is one step, from its first start to its last end.
3. A device that stands still inside a step does so because of the host up to the launch that ends the gap, as far as
   launches are known (`akf.traffic.gaps`). On the CPU the host's launch of an operator is its start.
4. A setting that differs between traces is stated for none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from akf.contracts.problems import InvalidError, Problem
from akf.traffic import kineto
from akf.traffic.capture import LAUNCHES, WALLS
from akf.traffic.events import Trace
from akf.traffic.gaps import host_gaps
from akf.traffic.kernels import COLUMNS, WINDOW, Tasks
from akf.traffic.steps import cut, window

TOOL = "torch.profiler"


@dataclass(frozen=True)
class Profile:
    """What a Capture is built from."""

    tasks: Tasks
    walls: pl.DataFrame
    platform: str
    tool: dict[str, Any]
    sources: list[dict[str, str]]
    bounds: str


def gather(traces: Iterable[Trace], say: Callable[[str], object] = lambda _: None) -> Profile:
    """Read the traces.

    Args:
        traces: The traces, in any order.
        say: Told the name of each before it is read.

    Raises:
        InvalidError: With the problems of all traces; or they do not belong together.
        StorageError: One cannot be read.
    """
    tasks, walls, sources = Tasks(), [], []
    found: list[tuple[str, kineto.Read]] = []
    problems: list[Problem] = []
    for number, trace in enumerate(traces):
        say(trace.name)
        try:
            read = kineto.read(trace)
        except InvalidError as error:
            problems += error.problems
            continue
        found.append((trace.name, read))
        sources.append({"name": trace.name, "digest": trace.digest})
        walls.append(_add(read, number, tasks, trace.name))
    problems += _together(found)
    if problems:
        raise InvalidError(problems)
    first = found[0][1]
    settings = set(first.settings).intersection(*(read.settings for _, read in found))
    listed = [{"name": name, "value": value} for name, value in sorted(settings) if name != "schemaVersion"]
    schema = dict(settings).get("schemaVersion", "unknown")
    return Profile(
        tasks,
        pl.concat(walls),
        first.platform,
        {"name": TOOL, "version": f"schema {schema}", "settings": listed},
        sources,
        "window" if first.steps.is_empty() else "profiler",
    )


def _add(read: kineto.Read, number: int, tasks: Tasks, name: str) -> pl.DataFrame:
    """Add the tasks of one trace, and return its walls."""
    steps = window(read.tasks) if read.steps.is_empty() else read.steps
    rank = pl.lit(read.rank or 0, pl.Int64).alias("rank")
    step = pl.col("step") + number * WINDOW
    parts = cut(read.tasks, steps).with_columns(rank, step)
    tasks.add(parts.select(*COLUMNS, "calls"), name)
    steps = steps.with_columns(rank, step)
    known = parts.filter(pl.col("launch_ns").is_not_null()).group_by("step").agg(pl.col("calls").sum().alias(LAUNCHES))
    return (
        host_gaps(parts, steps)
        .join(steps.select("step", step_ns=pl.col("end_ns") - pl.col("start_ns")), on="step")
        .join(known, on="step", how="left")
        .with_columns(pl.col(LAUNCHES).fill_null(0))
        .select(*WALLS, LAUNCHES)
    )


def _together(found: list[tuple[str, kineto.Read]]) -> Iterable[Problem]:
    """What keeps traces apart."""
    told = [
        (name, f"the platform is {read.platform}", f"steps are {'not ' if read.steps.is_empty() else ''}marked")
        for name, read in found
    ]
    hints = ("capture each platform by itself", "profile all ranks in the same way")
    for place, hint in enumerate(hints, 1):
        first = {what[place]: what[0] for what in reversed(told)}
        if len(first) > 1:
            listed = " and ".join(f"{what} in {name}" for what, name in sorted(first.items()))
            yield Problem("AKF-F156", f"the traces do not belong together: {listed}", hint=hint)
