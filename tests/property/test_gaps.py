"""Time in which the device stands still is divided by what the host did; nothing is lost and nothing counts twice."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from akf.traffic.gaps import host_gaps
from akf.traffic.selftime import Op, segments

TASKS = {"rank": pl.Int64, "start_ns": pl.Int64, "duration_ns": pl.Int64, "launch_ns": pl.Int64}
STEPS = {"rank": pl.Int64, "step": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64}
Task = tuple[int, int, int, int | None]

_task = st.tuples(st.integers(0, 1), st.integers(0, 60), st.integers(0, 12), st.one_of(st.none(), st.integers(-5, 60)))
_bounds = st.lists(st.integers(0, 70), min_size=2, max_size=6, unique=True).map(sorted)


def steps_of(bounds: list[list[int]]) -> list[tuple[int, int, int, int]]:
    """Neighbouring steps on each rank."""
    return [
        (rank, step, start, end)
        for rank, moments in enumerate(bounds)
        for step, (start, end) in enumerate(pairwise(moments))
    ]


def by_hand(tasks: list[Task], steps: list[tuple[int, int, int, int]]) -> dict[tuple[int, int], int]:
    """Look at every nanosecond by itself."""
    found = {}
    for rank, step, start, end in steps:
        mine = [task for task in tasks if task[0] == rank]
        count = 0
        for now in range(start, end):
            if any(task[1] <= now < task[1] + task[2] for task in mine):
                continue
            after = sorted(task[1] for task in mine if task[1] > now)
            ending = [task[3] for task in mine if after and task[1] == after[0]]
            launches = [launch for launch in ending if launch is not None]
            count += bool(ending) and len(launches) == len(ending) and now < min(launches)
        found[rank, step] = count
    return found


def gaps(tasks: list[Task], steps: list[tuple[int, int, int, int]]) -> dict[tuple[int, int], int]:
    frame = host_gaps(pl.DataFrame(tasks, schema=TASKS, orient="row"), pl.DataFrame(steps, schema=STEPS, orient="row"))
    return {(rank, step): time for rank, step, time in frame.rows()}


@settings(deadline=None)
@given(st.lists(_task, max_size=12), st.lists(_bounds, min_size=2, max_size=2))
def test_every_nanosecond_counts_where_it_belongs(tasks: list[Task], bounds: list[list[int]]) -> None:
    steps = steps_of(bounds)
    assert gaps(tasks, steps) == by_hand(tasks, steps)


@settings(deadline=None)
@given(st.lists(_task, max_size=12), _bounds, st.randoms())
def test_the_order_of_tasks_does_not_matter(tasks: list[Task], bounds: list[int], random: object) -> None:
    shuffled = list(tasks)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    steps = steps_of([bounds])
    assert gaps(tasks, steps) == gaps(shuffled, steps)


@settings(deadline=None)
@given(st.lists(_task, max_size=12), _bounds)
def test_without_launches_nothing_is_the_hosts(tasks: list[Task], bounds: list[int]) -> None:
    blind: list[Task] = [(rank, start, duration, None) for rank, start, duration, _ in tasks]
    assert set(gaps(blind, steps_of([bounds])).values()) <= {0}


_op = st.tuples(st.integers(0, 40), st.integers(0, 20), st.sampled_from("abc")).map(
    lambda op: (op[0], op[0] + op[1], op[2], None, None)
)


@settings(deadline=None)
@given(st.lists(_op, max_size=10))
def test_self_times_cover_the_union_once(ops: list[Op]) -> None:
    pieces = sorted((start, end) for start, end, *_ in segments(ops) if end > start)
    assert all(one[1] <= two[0] for one, two in pairwise(pieces))
    covered = {now for start, end in pieces for now in range(start, end)}
    assert covered == {now for op in ops for now in range(op[0], op[1])}
    assert {number for _, _, number, _ in segments(ops)} == set(range(len(ops)))


@settings(deadline=None)
@given(st.lists(_op, max_size=10), st.randoms())
def test_self_times_do_not_depend_on_the_order(ops: list[Op], random: object) -> None:
    shuffled = list(ops)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert list(segments(ops)) == list(segments(shuffled))


def test_a_parent_keeps_what_its_children_leave() -> None:
    parent: Op = (0, 10, "p", None, None)
    child: Op = (2, 5, "c", None, None)
    assert [(start, end, op[2]) for start, end, _, op in segments([child, parent])] == [
        (0, 2, "p"),
        (2, 5, "c"),
        (5, 10, "p"),
    ]
