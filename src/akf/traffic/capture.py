"""From device tasks to a Capture.

Invariants:
1. A Capture is about the tasks that lie in steps. Times, calls and counters of an entry are sums over them, so that two
   captures of different ranks, or of different steps, add up to the capture of both. What ranks wait for one another is
   only seen when they are captured together.
2. A step lasts as long as the importer says; where it says nothing, to the next step's first task, and the last one to
   the end of its last task. Should more run in a step than fits, the step is as long as what runs, and a check says so.
3. Several captures of one rank are put in the order of time, and do not overlap. Ranks are compared in what they ran
   together: captures of ranks that lie further apart than the clocks of two hosts are not of one recording.
4. At most `MAX_STEPS` times are kept: beyond, each is of a run of neighbouring steps, whose numbers differ by one step.
   The lines of a step add up to its time, as those of the rank do.
5. The same tasks make the same bytes, whatever their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from akf.contracts.limits import MAX_SAFE_INTEGER
from akf.contracts.problems import InvalidError, Problem
from akf.traffic.entries import MAX_STEPS, entries_of, order
from akf.traffic.intervals import COMMUNICATION, COMPUTING, LINES, WAITING, Swept, sweep, waiting
from akf.traffic.kernels import WINDOW, Tasks
from akf.traffic.profiles import CallsiteOf, nowhere

APART_NS = 60 * 10**9
WALLS = {"rank": pl.Int64, "step": pl.Int64, "step_ns": pl.Int64, "host_gap_ns": pl.Int64}
"""What an importer knows of a step: how long it took, and for how much of it the device stood still because of the
host; null where it is not known."""
SPLIT = (*LINES[:3], "host_gap_ns", "idle_ns")
"""The lines that add up to a step."""
LAUNCHES = "launches"
"""A further column, where the host's launches were looked for: of how many tasks the launch is known."""


@dataclass(frozen=True)
class Facts:
    """What a Capture says besides times; all lists in any order."""

    id: str
    title: str
    platform: str
    data_class: str
    tool: Mapping[str, Any]
    sources: Sequence[Mapping[str, str]]
    bounds: str | None
    stage: str | None = None
    checks: Sequence[Mapping[str, Any]] = ()
    host: Sequence[Mapping[str, Any]] = ()
    clocks_mhz: Iterable[int] = ()


def build(tasks: Tasks, walls: pl.DataFrame, facts: Facts, callsite_of: CallsiteOf = nowhere) -> dict[str, Any]:
    """Make the Capture.

    Args:
        tasks: All tasks of all ranks.
        walls: `WALLS`, and `LAUNCHES` or not, for as many steps as the importer knows.
        facts: The rest.
        callsite_of: Finds the callsite of a kernel and the sizes of its symbols.

    Raises:
        InvalidError: No task lies in a step, two captures of a rank overlap, or times are impossible.
    """
    if not tasks.keys:
        raise InvalidError.of("AKF-F126", "no task lies in a step", hint="profile whole steps")
    if LAUNCHES not in walls.columns:
        walls = walls.with_columns(pl.lit(None, pl.Int64).alias(LAUNCHES))
    steps = _steps(tasks.spans(), walls)
    longest = max(tasks.figures(number).time_ns for number in range(len(tasks.keys)))
    if max(longest, steps["step_ns"].cast(pl.Int128).sum()) > MAX_SAFE_INTEGER:
        raise InvalidError.of("AKF-F125", "more than a hundred days were captured: some times are damaged")
    entries, of_key = entries_of(tasks, max(steps["run"]) + 1, callsite_of)
    swept = sweep(_laid_out(tasks, steps, of_key))
    breakdown, checks = _breakdown(steps, swept, facts.bounds)
    _expose(entries, steps, swept)
    clocks = sorted(set(facts.clocks_mhz))
    found: dict[str, Any] = {
        "schema_version": 1,
        "kind": "Capture",
        "id": facts.id,
        "title": facts.title,
        "platform": facts.platform,
        "data_class": facts.data_class,
        "tool": dict(facts.tool),
        "sources": sorted(map(dict, facts.sources), key=lambda source: source["name"]),
        "entries": sorted(entries.values(), key=order),
        "breakdown": breakdown,
        "checks": sorted([*map(dict, facts.checks), *checks], key=lambda check: (check["name"], check["rank"])),
        "host": sorted(map(dict, facts.host), key=lambda cost: (cost["rank"], cost["level"], cost["api"])),
        "clocks_mhz": clocks,
        "clock": ("unknown", "steady", "changed")[min(len(clocks), 2)],
    }
    return found | ({} if facts.stage is None else {"stage": facts.stage})


def _steps(spans: pl.DataFrame, walls: pl.DataFrame) -> pl.DataFrame:
    """All steps: rank, step, step_ns and host_gap_ns, with four numbers.

    `window` is the capture's place among those of its rank, `number` the step's within it; `group` is the place among
    all steps in the order of rank and time, `run` the place in lists of times.
    """
    windows = _windows(spans)
    count, place = pl.len().over("rank"), pl.int_range(pl.len()).over("rank")
    following = pl.col("first").shift(-1).over("rank", "window")
    computed = pl.max_horizontal(pl.col("last"), following) - pl.col("first")
    return (
        spans.join(walls, on=["rank", "step"], how="full", coalesce=True)
        .with_columns(capture=pl.col("step") // WINDOW, number=pl.col("step") % WINDOW)
        .join(windows, on=["rank", "capture"])
        .sort("rank", "window", "number")
        .with_columns(
            pl.col("step_ns").fill_null(computed),
            pl.col("host_gap_ns").fill_null(0),
            group=pl.int_range(pl.len(), dtype=pl.UInt32),
            run=pl.when(count > MAX_STEPS).then(place * MAX_STEPS // count).otherwise(place),
        )
    )


def _windows(spans: pl.DataFrame) -> pl.DataFrame:
    """The place of each capture among those of its rank: rank, capture, window."""
    found = (
        spans.group_by("rank", capture=pl.col("step") // WINDOW)
        .agg(pl.col("first").min(), pl.col("last").max())
        .sort("rank", "first", "capture")
        .with_columns(window=pl.int_range(pl.len()).over("rank"), before=pl.col("last").shift(1).over("rank"))
    )
    overlapping = found.filter(pl.col("first") < pl.col("before"))["rank"].unique().sort()
    if len(overlapping):
        raise InvalidError(
            Problem(
                "AKF-F129",
                f"two captures of rank {rank} overlap in time",
                hint="name each profile once; a rank that the profiler did not record is taken for 0",
            )
            for rank in overlapping
        )
    for window, first, last in (
        found.group_by("window").agg(pl.col("first").max(), pl.col("last").min()).sort("window").iter_rows()
    ):
        if first - last > APART_NS:
            ranks = ", ".join(map(str, found.filter(pl.col("window") == window)["rank"].sort()))
            message = f"the ranks {ranks} were not recorded together: {(first - last) // 10**9} s lie between them"
            hint = "take together the ranks of one recording; captures of one rank are told apart by its number"
            raise InvalidError.of("AKF-F133", message, hint=hint)
    return found.select("rank", "capture", "window")


def _laid_out(tasks: Tasks, steps: pl.DataFrame, of_key: pl.Series) -> pl.DataFrame:
    """The tasks as the sweep wants them; a collective that waits is cut in two."""
    ranks = pl.Series([key.rank for key in tasks.keys], dtype=pl.Int64)
    wait, start = pl.col("waiting_ns"), pl.col("start_ns")
    end = start + pl.col("duration_ns")

    def kind(number: int) -> pl.Expr:
        return pl.lit(number, pl.UInt8).alias("kind")

    parts = []
    for part in tasks.computing():
        placed = _placed(part.with_columns(rank=ranks.gather(part["key"])), steps, of_key)
        parts.append(placed.select("group", "key", kind(COMPUTING), "start_ns", end_ns=end))
    collectives = tasks.collectives()
    if collectives is not None:
        found = waiting(_placed(collectives, steps, of_key))
        parts.append(found.select("group", "key", kind(COMMUNICATION), start_ns=start + wait, end_ns=end))
        waits = found.filter(wait > 0)
        parts.append(waits.select("group", "key", kind(WAITING), "start_ns", end_ns=start + wait))
    return pl.concat(parts)


def _placed(tasks: pl.DataFrame, steps: pl.DataFrame, of_key: pl.Series) -> pl.DataFrame:
    """The tasks with their `group`, their entry's number as `key`, and `step` as all ranks number it."""
    shared = pl.col("window") * WINDOW + pl.col("number")
    places = steps.select("rank", "step", "group", shared=shared)
    return (
        tasks.join(places, on=["rank", "step"], how="left")
        .with_columns(key=of_key.gather(tasks["key"]), step="shared")
        .drop("shared")
    )


def _breakdown(
    steps: pl.DataFrame, swept: Swept, bounds: str | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    busy = pl.sum_horizontal(LINES[:3])
    lines = (
        steps.join(swept.lines, on="group", how="left")
        .sort("group")
        .with_columns(pl.col(LINES).fill_null(0), said_ns="step_ns")
        .with_columns(step_ns=pl.max_horizontal("step_ns", busy))
        .with_columns(host_gap_ns=pl.min_horizontal("host_gap_ns", pl.col("step_ns") - busy))
        .with_columns(idle_ns=pl.col("step_ns") - busy - pl.col("host_gap_ns"))
    )
    found, checks = [], []
    for (rank,), of_rank in lines.group_by("rank", maintain_order=True):
        sums = {name: int(of_rank[name].sum()) for name in (*LINES, "step_ns", "host_gap_ns", "idle_ns", "said_ns")}
        said = sums.pop("said_ns")
        runs = of_rank.group_by("run", maintain_order=True).agg(pl.col("step_ns", *SPLIT).sum())
        known = {} if of_rank[LAUNCHES].null_count() else {LAUNCHES: int(of_rank[LAUNCHES].sum())}
        cut = {} if bounds is None else {"bounds": bounds}
        walls, split = runs["step_ns"].to_list(), {name: runs[name].to_list() for name in SPLIT}
        line = {"rank": rank, "steps": of_rank.height, "steps_ns": walls, **cut, **known, **sums, "steps_lines": split}
        found.append(line)
        if said != sums["step_ns"]:
            differ = {"expected_ns": said, "found_ns": sums["step_ns"], "holds": False}
            checks.append({"name": "tasks-fit-into-steps", "rank": rank, **differ})
    return found, checks


def _expose(entries: dict[int, dict[str, Any]], steps: pl.DataFrame, swept: Swept) -> None:
    """Add the exposed times to the entries."""
    runs = dict(steps.group_by("rank").agg(pl.col("run").max() + 1).iter_rows())
    for entry in entries.values():
        entry["steps_exposed_ns"] = [0] * runs[entry["rank"]]
    times = swept.exposed.join(steps.select("group", "run"), on="group", how="left")
    for key, run, time in times.group_by("key", "run").agg(pl.col("exposed_ns").sum()).iter_rows():
        entries[key]["steps_exposed_ns"][run] = time
    for entry in entries.values():
        entry["exposed_ns"] = sum(entry["steps_exposed_ns"])
