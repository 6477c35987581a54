"""The sweep against a model that looks at every nanosecond."""

from __future__ import annotations

from collections import Counter
from unittest import mock

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from akf.traffic import intervals
from akf.traffic.intervals import COMMUNICATION, COMPUTING, LINES, WAITING, Swept, sweep, waiting

Task = tuple[int, int, int, int, int]


def swept(tasks: list[Task]) -> Swept:
    names = ["group", "key", "kind", "start_ns", "end_ns"]
    return sweep(pl.DataFrame(tasks, dict.fromkeys(names, pl.Int64), orient="row"))


def lines(tasks: list[Task]) -> dict[int, tuple[int, ...]]:
    return {group: tuple(row) for group, *row in swept(tasks).lines.iter_rows()}


def exposed(tasks: list[Task]) -> dict[tuple[int, int], int]:
    return {(group, key): time for group, key, time in swept(tasks).exposed.iter_rows()}


def by_the_nanosecond(tasks: list[Task]) -> tuple[dict[int, tuple[int, ...]], dict[tuple[int, int], int]]:
    """The meaning: which line each instant belongs to, and whose it is if it is one key's alone."""
    found: dict[int, Counter[str]] = {group: Counter() for group, *_ in tasks}
    alone: Counter[tuple[int, int]] = Counter()
    instants = {(group, at) for group, _, _, start, end in tasks for at in range(start, end)}
    for group, at in instants:
        running = [(key, kind) for g, key, kind, start, end in tasks if g == group and start <= at < end]
        kinds = {kind for _, kind in running}
        line = next(
            name for kind, name in zip((COMPUTING, COMMUNICATION, WAITING), LINES, strict=False) if kind in kinds
        )
        found[group][line] += 1
        if COMPUTING in kinds and len(kinds) > 1:
            found[group]["overlapped_ns"] += 1
        if WAITING not in kinds and len({key for key, _ in running}) == 1:
            alone[group, running[0][0]] += 1
    return {group: tuple(held[name] for name in LINES) for group, held in found.items()}, dict(alone)


TASKS = st.lists(
    st.builds(
        lambda group, key, kind, start, length: (group, key, kind, start, start + length),
        st.integers(0, 2), st.integers(0, 3), st.sampled_from([COMPUTING, COMPUTING, COMMUNICATION, WAITING]),
        st.integers(0, 30), st.integers(0, 12),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


@settings(max_examples=60)
@given(TASKS, st.sampled_from([1, 3, 2**18]))
def test_the_sweep_is_what_every_nanosecond_says(tasks: list[Task], at_once: int) -> None:
    with mock.patch.object(intervals, "AT_ONCE", at_once):
        assert (lines(tasks), exposed(tasks)) == by_the_nanosecond(tasks)


@settings(max_examples=60)
@given(TASKS, st.randoms(use_true_random=False))
def test_the_order_of_tasks_is_no_matter(tasks: list[Task], random: object) -> None:
    other = tasks.copy()
    random.shuffle(other)  # type: ignore[attr-defined]
    assert [frame.rows() for frame in swept(other)] == [frame.rows() for frame in swept(tasks)]


@settings(max_examples=60)
@given(TASKS, TASKS)
def test_a_further_task_lowers_no_union(tasks: list[Task], more: list[Task]) -> None:
    def busy(held: list[Task]) -> dict[int, int]:
        return {group: sum(row[:3]) for group, row in lines(held).items()}

    before, after = busy(tasks), busy(tasks + more)
    assert all(after[group] >= time for group, time in before.items())
    computing = {group: row[0] for group, row in lines(tasks + more).items()}
    assert all(computing[group] >= row[0] for group, row in lines(tasks).items())


@settings(max_examples=60)
@given(TASKS, TASKS)
def test_disjoint_windows_add_up(tasks: list[Task], others: list[Task]) -> None:
    later = [(group + 3, key, kind, start, end) for group, key, kind, start, end in others]
    assert lines(tasks + later) == lines(tasks) | lines(later)
    assert exposed(tasks + later) == exposed(tasks) | exposed(later)


def test_large_keys_stay_apart() -> None:
    tasks = [(0, 2**31, COMPUTING, 0, 10), (0, 2**31 + 1, COMPUTING, 5, 15), (0, 2**31 + 1, COMPUTING, 12, 20)]
    assert exposed(tasks) == {(0, 2**31): 5, (0, 2**31 + 1): 10}


def test_times_since_1970() -> None:
    start = 1736408883704643212
    assert exposed([(0, 0, COMPUTING, start, start + 5), (0, 1, COMPUTING, start + 5, start + 7)]) == {
        (0, 0): 5,
        (0, 1): 2,
    }


def waits(rows: list[tuple[int, int, str, int, int]]) -> list[tuple[int, int]]:
    frame = pl.DataFrame(rows, ["rank", "step", "collective", "start_ns", "duration_ns"], orient="row")
    return sorted(waiting(frame).select("rank", "waiting_ns").rows())


class TestWaiting:
    def test_it_is_what_the_shortest_rank_does_not_need(self) -> None:
        assert waits([(0, 1, "hcom_allReduce__1_0_1", 0, 100), (1, 1, "hcom_allReduce__1_0_1", 70, 30)]) == [
            (0, 70),
            (1, 0),
        ]

    def test_the_same_name_again_is_the_next_collective(self) -> None:
        rows = [(0, 1, "a", 0, 50), (0, 1, "a", 60, 10), (1, 1, "a", 5, 45), (1, 1, "a", 55, 15)]
        assert waits(rows) == [(0, 0), (0, 5), (1, 0), (1, 5)]

    def test_one_rank_alone_tells_nothing(self) -> None:
        assert waits([(0, 1, "a", 0, 50), (0, 1, "b", 60, 10)]) == [(0, 0), (0, 0)]

    def test_ranks_that_do_not_agree_are_not_compared(self) -> None:
        assert waits([(0, 1, "a", 0, 50), (1, 1, "a", 0, 40), (1, 1, "a", 50, 9)]) == [(0, 0), (1, 0), (1, 0)]

    def test_steps_are_kept_apart(self) -> None:
        assert waits([(0, 1, "a", 0, 50), (1, 2, "a", 0, 40)]) == [(0, 0), (1, 0)]
