"""Tasks cut at the ends of steps: nothing is lost inside, nothing is counted twice, every call counts once."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from akf.traffic.gaps import host_gaps
from akf.traffic.steps import STEPS, cut

Task = tuple[int, int, int, int | None]
TASKS = {"name": pl.Int64, "start_ns": pl.Int64, "duration_ns": pl.Int64, "launch_ns": pl.Int64}

_tasks = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 25), st.one_of(st.none(), st.integers(0, 60))), max_size=10
).map(lambda rows: [(number, *row) for number, row in enumerate(rows)])
_bounds = st.lists(st.integers(0, 70), min_size=2, max_size=6, unique=True).map(sorted)


def parts(tasks: list[Task], bounds: list[int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The parts and the steps, neighbouring ones with a hole after the first."""
    steps = [(step, start, end) for step, (start, end) in enumerate(pairwise(bounds)) if step != 1]
    frame = pl.DataFrame(tasks, schema=TASKS, orient="row").with_columns(task="name")
    table = pl.DataFrame(steps, schema=STEPS, orient="row")
    return cut(frame, table), table


@settings(deadline=None)
@given(_tasks, _bounds)
def test_every_nanosecond_of_a_task_is_in_its_step(tasks: list[Task], bounds: list[int]) -> None:
    found, steps = parts(tasks, bounds)
    seen = sorted(
        (name, step, now)
        for name, step, start, length in found.select("name", "step", "start_ns", "duration_ns").rows()
        for now in range(start, start + length)
    )
    assert seen == sorted(
        (name, step, now)
        for name, start, length, _ in tasks
        for now in range(start, start + length)
        for step, first, last in steps.rows()
        if first <= now < last
    )


@settings(deadline=None)
@given(_tasks, _bounds)
def test_a_task_that_lies_in_steps_is_one_call(tasks: list[Task], bounds: list[int]) -> None:
    found, steps = parts(tasks, bounds)
    calls = dict(found.group_by("name").agg(pl.col("calls").sum()).rows())
    assert set(calls.values()) <= {1}
    inside = {
        name
        for name, start, length, _ in tasks
        for _, first, last in steps.rows()
        if (start < last and start + length > first and length) or (not length and first <= start < last)
    }
    assert set(calls) == inside


@settings(deadline=None)
@given(_tasks, _bounds)
def test_busy_time_and_the_hosts_part_fit_into_the_step(tasks: list[Task], bounds: list[int]) -> None:
    found, steps = parts(tasks, bounds)
    one_rank = pl.lit(0, pl.Int64).alias("rank")
    gaps = dict(
        host_gaps(found.with_columns(one_rank), steps.with_columns(one_rank)).select("step", "host_gap_ns").rows()
    )
    for step, first, last in steps.rows():
        busy = {
            now
            for start, length in found.filter(pl.col("step") == step).select("start_ns", "duration_ns").rows()
            for now in range(start, start + length)
        }
        assert 0 <= gaps[step] <= (last - first) - len(busy)
