"""From profiles of torch_npu and msprof to a Capture.

Invariants:
1. All profiles of a Capture were made by one tool of one version with the same settings.
2. A rank is what the profiler recorded; msprof knows devices only, and a device's number stands for the rank.
3. Steps are cut by a marker if one is named; else by the profiler's own numbers, or by msprof's iterations; else the
   profile is one step, from its first start to its last end. A marked step lasts from one run of the marker to the
   next, so the last run begins none.
4. The trace of torch_npu tells when tasks were launched and at which clock; what it says of times is compared with the
   tables where all tasks lie in steps. Without it, or without a launch, a gap is idle time.
5. Tables that nothing is taken from (memory) are looked at all the same: a time that a spreadsheet spoiled in one file
   says that none can be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from akf.contracts.files import open_regular
from akf.contracts.problems import InvalidError, Problem
from akf.contracts.text import counted
from akf.traffic import ascend_trace
from akf.traffic.ascend import columns, launches, settings, statistics
from akf.traffic.ascend.folders import MSPROF, Site, find
from akf.traffic.ascend.numbered import Starts, refuse_numbers
from akf.traffic.ascend.tasks import Kernels, in_spans, read_symbols, starts_of
from akf.traffic.ascend_trace import Seen
from akf.traffic.capture import LAUNCHES, WALLS, Facts, build
from akf.traffic.cells import LONGEST_LINE
from akf.traffic.events import Trace
from akf.traffic.kernels import WINDOW, Tasks, named
from akf.traffic.profiles import Complaints, Options, Shown, Sources, alike, callsite_of, tool, with_completeness
from akf.traffic.reader import Progress
from akf.traffic.tables import read_header
from akf.traffic.watched import over

_LOOKED_AT = {"memory_record": columns.MEMORY_RECORD, "operator_memory": columns.OPERATOR_MEMORY}


def ingest(paths: Sequence[Path], options: Options, shown: Shown = lambda _done, _all: None) -> dict[str, Any]:
    """Make a Capture of all profiles under these paths.

    Raises:
        InvalidError: With the problems of all files.
        StorageError: A file cannot be read.
    """
    sites = find(paths)
    options.expect("ascend")
    progress = _progress(sites, shown)
    complaints = Complaints()
    profiles = [_Profile(site, window, options, progress) for window, site in enumerate(sites)]
    tasks = Tasks()
    for profile in profiles:
        profile.read(tasks, complaints)
    complaints.refuse()
    for profile in profiles:
        profile.explain(tasks, complaints)
    complaints.refuse()
    if len(names := sorted({site.tool for site in sites})) > 1:
        raise InvalidError.of("AKF-F133", f"the profiles were made by different tools: {', '.join(names)}")
    made_by = tool(names[0], (p.version for p in profiles), (p.settings for p in profiles))
    figures = {
        "tasks_outside_steps": tasks.outside,
        "task_time_pseudo_tasks": sum(profile.pseudo for profile in profiles),
        "kernels_named_by_binary": sum(profile.named for profile in profiles),
    }
    made_by["settings"] += [{"name": name, "value": str(count)} for name, count in figures.items() if count]
    made_by["settings"].sort(key=lambda setting: setting["name"])
    ranks = sorted({rank for profile in profiles for rank in profile.ranks})
    title = f"{names[0]}, {counted(len(ranks), 'rank')}"
    sources = Sources()
    for profile in profiles:
        for kind, digest in profile.digests:
            sources.add(min(profile.ranks), kind, digest)
    facts = Facts(
        id=options.id,
        title=options.title or title,
        platform="ascend",
        data_class=options.data_class,
        tool=made_by,
        sources=sources.named(),
        bounds=_bounds(profiles),
        stage=options.stage,
        host=[cost for profile in profiles for cost in profile.host],
        clocks_mhz=[mhz for profile in profiles for _, seen in profile.traces for mhz in seen.clocks_mhz if mhz],
    )
    walls = pl.concat([pl.DataFrame(schema=WALLS), *(profile.walls for profile in profiles)], how="diagonal")
    capture = build(tasks, walls, facts, callsite_of(options))
    checks = [*capture["checks"], *(found for profile in profiles for found in profile.checks)]
    for line in capture["breakdown"]:
        own = [profile for profile in profiles if line["rank"] in profile.ranks]
        checks += _line_checks(own, line, whole=not tasks.outside)
    capture["checks"] = statistics.summed(checks)
    return with_completeness(capture, options)


def recorded(path: Path) -> dict[str, str]:
    """How the profiles under a path were recorded, by their settings and the first lines of their lists of kernels."""
    found = []
    for site in find([path]):
        told = settings.of_site(site)
        found.append({"tool": f"{site.tool} {told.version}", **told.settings})
        for file in site.kernels:
            with open(open_regular(file), "rb") as lines:  # noqa: PTH123 - an open descriptor
                header, _ = read_header(lines.readline(LONGEST_LINE).rstrip(), columns.KERNELS, str(file))
            if header is not None:
                found[-1].setdefault("aic_metrics", columns.metrics(header.names) or "none")
                found[-1]["steps"] = "numbered" if columns.STEP_ID in header.names else "not numbered"
    return alike(found)


def _line_checks(profiles: list[_Profile], line: dict[str, Any], *, whole: bool) -> list[dict[str, Any]]:
    """Whether the lines of a rank are those of its step traces, and of its traces where no task lies outside steps."""
    found = []
    steps = [profile.steps for profile in profiles if profile.steps is not None]
    if len(steps) == len(profiles) and line["bounds"] == "profiler":
        found += statistics.line_checks(pl.concat(steps), line)
    if whole and all(profile.traces and len(profile.ranks) == 1 for profile in profiles):
        found += statistics.trace_checks([seen for profile in profiles for _, seen in profile.traces], line)
    return found


def _progress(sites: list[Site], shown: Shown) -> Progress:
    known = {*_TABLES, *_LOOKED_AT, "task_time", "kernel_details", "op_summary"}
    tables = [path for site in sites for kind, paths in site.tables.items() if kind in known for path in paths]
    return over([*tables, *(path for site in sites for path in site.traces)], shown)


def _bounds(profiles: list[_Profile]) -> str:
    bounds = {profile.bounds for profile in profiles}
    if len(bounds) > 1:
        raise InvalidError.of(
            "AKF-F134",
            f"the profiles cut their steps differently: {', '.join(sorted(bounds))}",
            hint="cut all of them by --step-kernel NAME, or take together only what was recorded alike",
        )
    return bounds.pop()


class _Profile:
    """One profile while it is read; what it adds to the Capture."""

    def __init__(self, site: Site, window: int, options: Options, progress: Progress) -> None:
        self._site = site
        self._window = window
        self._marker = options.step_kernel
        self._progress = progress
        self.version = "unknown"
        self.settings: dict[str, str] = {}
        self.bounds = "window"
        self.ranks: set[int] = set()
        self.steps: pl.DataFrame | None = None
        self.walls = pl.DataFrame(schema=WALLS)
        self.checks: list[dict[str, Any]] = []
        self.host: list[dict[str, Any]] = []
        self.digests: list[tuple[str, str]] = []
        self.pseudo = self.named = 0
        self.traces: list[tuple[str, Seen]] = []

    def read(self, tasks: Tasks, complaints: Complaints) -> None:
        """Read all of it, and note every refusal."""
        rank = None
        with complaints.noted():
            rank = self._recorded()
        for kind, table in _LOOKED_AT.items():
            for path in self._site.tables.get(kind, ()):
                with complaints.noted():
                    statistics.table(path, table, self._progress)
        found: dict[str, list[pl.DataFrame]] = {}
        for kind, table in _TABLES.items():
            for path in self._site.tables.get(kind, ()):
                with complaints.noted():
                    frame, digest = statistics.table(path, table, self._progress)
                    found.setdefault(kind, []).append(frame)
                    self.digests.append((f"{kind}.csv", digest))
        for kind in ("step_trace_time", "step_trace"):
            if kind in found:
                with complaints.noted():
                    refuse_numbers(pl.concat(found[kind]), self._site.tables[kind])
        with complaints.noted():
            self._kernels(tasks, rank, found)
        for path in self._site.traces:
            with complaints.noted():
                trace = Trace(path, str(path), self._progress)
                self.traces.append((str(path), ascend_trace.read(trace)))
                self.digests.append((path.name, trace.digest))

    def explain(self, tasks: Tasks, complaints: Complaints) -> None:
        """Say for how much of a step the device waited for the host, where traces tell."""
        if not self.traces or not tasks.keys:
            return
        rows = tasks.rows().filter(pl.col("step") // WINDOW == self._window)
        for file, seen in self.traces:
            with complaints.noted():
                launches.belongs(rows, seen, file)
        told = launches.gaps(rows, [seen for _, seen in self.traces])
        walls = self.walls.drop("host_gap_ns").join(told, on=["rank", "step"], how="full", coalesce=True)
        self.walls = walls.select(*WALLS, LAUNCHES)

    def _recorded(self) -> int | None:
        told = settings.of_site(self._site)
        self.version = told.version
        self.settings = told.settings
        return told.rank

    def _kernels(self, tasks: Tasks, rank: int | None, found: dict[str, list[pl.DataFrame]]) -> None:
        symbols = None
        if "task_time" in self._site.tables:
            symbols, digests = read_symbols(self._site.tables["task_time"], self._progress)
            self.digests += [("task_time.csv", digest) for digest in digests]
            self.pseudo = symbols.pseudo
        kernels = Kernels(self._site.kernels, rank, self._window, symbols, self._progress)
        self._add(tasks, kernels, found)
        self.ranks = kernels.ranks
        self.named = kernels.named
        kind = "kernel_details" if "kernel_details" in self._site.tables else "op_summary"
        self.digests += [(f"{kind}.csv", digest) for digest in kernels.digests]
        if (set_of_metrics := columns.metrics(kernels.header)) is not None:
            self.settings.setdefault("aic_metrics", set_of_metrics)
        if new := columns.new_columns(kernels.unread):
            self.settings["columns_not_read"] = named(", ".join(new))
        for own in sorted(self.ranks):
            self._tables(own, kernels, found)

    def _add(self, tasks: Tasks, kernels: Kernels, found: dict[str, list[pl.DataFrame]]) -> None:
        if self._marker is not None:
            self._add_spans(tasks, kernels, self._marked(kernels, self._marker), "marker")
        elif "step_trace" in found:
            spans = statistics.iterations(pl.concat(found["step_trace"]), str(self._site.tables["step_trace"][0]))
            self._add_spans(tasks, kernels, spans, "profiler")
        else:
            trace = found.get("step_trace_time")
            self._add_numbered(tasks, kernels, None if trace is None else pl.concat(trace))

    def _add_numbered(self, tasks: Tasks, kernels: Kernels, stages: pl.DataFrame | None) -> None:
        """Take the steps that the profiler numbered, or the whole as one where it numbered none."""
        before = tasks.outside
        self.bounds = "profiler" if kernels.numbered() else "window"
        alone = self.bounds == "profiler" and stages is None  # then steps end where the next ones start
        starts = Starts()
        for file, frame in kernels.frames():
            if self.bounds == "profiler":
                starts.add(file, frame)
            if not alone:
                tasks.add(frame if self.bounds == "profiler" else self._as_one(frame), file)
        if self.bounds == "profiler" and starts.empty():  # there is a column, and no number in it
            tasks.outside = before
            self.bounds = "window"
            for file, frame in kernels.frames():
                tasks.add(self._as_one(frame), file)
        elif self.bounds == "profiler":
            starts.refuse(stages, str(self._site.tables.get("step_trace_time", [""])[0]))
            if alone:
                self._add_spans(tasks, kernels, starts.spans(), "profiler", numbered=True)

    def _as_one(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(step=pl.lit(WINDOW * self._window, pl.Int64))

    def _add_spans(
        self, tasks: Tasks, kernels: Kernels, spans: pl.DataFrame, bounds: str, *, numbered: bool = False
    ) -> None:
        """Take what lies in the spans; where tasks are numbered, of the tasks that have a number."""
        self.bounds = bounds
        for file, frame in kernels.frames():
            inside = in_spans(frame.drop_nulls("step") if numbered else frame, spans)
            tasks.outside += frame.height - int(inside["calls"].sum())
            tasks.add(inside.with_columns(pl.col("step") + WINDOW * self._window), file)
        self.walls = spans.select(
            "rank",
            step=pl.col("step") + WINDOW * self._window,
            step_ns=pl.col("end_ns") - pl.col("start_ns"),
            host_gap_ns=pl.lit(None, pl.Int64),
        )

    def _marked(self, kernels: Kernels, marker: str) -> pl.DataFrame:
        starts = pl.concat([starts_of(frame, marker) for _, frame in kernels.frames()]).sort("rank", "start_ns")
        spans = starts.with_columns(
            step=pl.int_range(pl.len()).over("rank"), end_ns=pl.col("start_ns").shift(-1).over("rank")
        ).drop_nulls("end_ns")
        if missing := sorted(kernels.ranks - set(spans["rank"])):
            raise InvalidError(
                Problem(
                    "AKF-F134",
                    f"{named(marker)} runs less than twice on rank {rank}, so it marks no whole step",
                    str(self._site.kernels[0]),
                    hint="name a kernel that runs once a step, as the profiler names it",
                )
                for rank in missing
            )
        return spans.select(*statistics.SPANS)

    def _tables(self, rank: int, kernels: Kernels, found: dict[str, list[pl.DataFrame]]) -> None:
        own = {kind: pl.concat(frames) for kind, frames in found.items()}
        if self._site.tool == MSPROF:
            own = {kind: statistics.of_device(frame, rank) for kind, frame in own.items()}
        if "step_trace_time" in own:
            self.steps = own["step_trace_time"]
            self.checks += statistics.step_checks(self.steps, rank)
            if self.bounds == "profiler":
                self.walls = statistics.walls(self.steps, rank, self._window)
        if "op_statistic" in own:
            by_type = kernels.by_type.filter(pl.col("rank") == rank)
            self.checks += statistics.operator_checks(own["op_statistic"], by_type, self.steps, rank)
        if "api_statistic" in own and rank == min(self.ranks):
            self.host = statistics.host(own["api_statistic"], rank)


_TABLES = {
    "op_statistic": columns.OP_STATISTIC,
    "step_trace_time": columns.STEP_TRACE_TIME,
    "step_trace": columns.STEP_TRACE,
    "api_statistic": columns.API_STATISTIC,
}
