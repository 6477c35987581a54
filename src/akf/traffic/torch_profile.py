"""From traces of torch's own profiler, one for each rank, to a Capture.

Invariants:
1. All traces are of one platform. Each is one capture of its rank; a trace that names no rank is of rank 0.
2. Either all traces mark their steps, or none does: then each is one step, from its first start to its last end.
3. A device that stands still inside a step does so because of the host up to the launch that ends the gap, as far as
   launches are known (`akf.traffic.gaps`). On the CPU the host's launch of an operator is its start.
4. Steps are the profiler's: a marker is refused, because the host's marks say more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from akf.contracts.problems import Problem, UsageError
from akf.contracts.text import counted
from akf.traffic import kineto
from akf.traffic.capture import LAUNCHES, WALLS, Facts, build
from akf.traffic.events import Trace
from akf.traffic.gaps import host_gaps
from akf.traffic.kernels import COLUMNS, WINDOW, Tasks
from akf.traffic.kineto_fields import settings_of
from akf.traffic.profiles import Complaints, Options, Shown, Sources, alike, callsite_of, tool, with_completeness
from akf.traffic.steps import cut, window
from akf.traffic.torch_files import is_trace
from akf.traffic.watched import over

TOOL = "torch.profiler"


def ingest(paths: Sequence[Path], options: Options, shown: Shown = lambda _done, _all: None) -> dict[str, Any]:
    """Make a Capture of all traces under these paths.

    Raises:
        InvalidError: With the problems of all traces; or they do not belong together.
        StorageError: One cannot be read.
    """
    if options.step_kernel is not None:
        message = "--step-kernel: a trace of torch marks its steps by itself (ProfilerStep#N), or has none"
        raise UsageError.of("AKF-F135", message, found=options.step_kernel, hint="call profiler.step() once a step")
    files = list(_files(paths))
    complaints = Complaints()
    tasks, sources, walls = Tasks(), Sources(), []
    found: list[tuple[str, kineto.Read]] = []
    progress = over(files, shown)
    for number, file in enumerate(files):
        with complaints.noted():
            trace = Trace(file, str(file), progress)
            read = kineto.read(trace)
            found.append((trace.name, read))
            sources.add(read.rank or 0, "trace.json", trace.digest)
            walls.append(_add(read, number, tasks, trace.name))
    for problem in _together(found):
        complaints.add(problem)
    complaints.refuse()
    platform = found[0][1].platform
    options.expect(platform)
    settings = [dict(read.settings) for _, read in found]
    made_by = tool(TOOL, (f"schema {one.pop('schemaVersion', 'unknown')}" for one in settings), settings)
    ranks = {read.rank or 0 for _, read in found}
    facts = Facts(
        id=options.id,
        title=options.title or f"{TOOL}, {counted(len(ranks), 'rank')}",
        platform=platform,
        data_class=options.data_class,
        tool=made_by,
        sources=sources.named(),
        bounds="window" if found[0][1].steps.is_empty() else "profiler",
        stage=options.stage,
    )
    return with_completeness(build(tasks, pl.concat(walls), facts, callsite_of(options)), options)


def recorded(path: Path) -> dict[str, str]:
    """How the traces under a path were recorded, by what stands before their events."""
    return alike(_head(file) for file in _files([path]))


def _head(file: Path) -> dict[str, str]:
    trace = Trace(file, str(file))
    next(iter(trace), None)
    return {"tool": TOOL, **dict(settings_of(trace.head, on_device=True))}


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        for inside, below, names in os.walk(path):
            below.sort()
            yield from (file for name in sorted(names) if is_trace(file := Path(inside) / name))


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


def _together(found: list[tuple[str, kineto.Read]]) -> Iterator[Problem]:
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
