"""The search: it can be repeated, asks nothing twice, and finds the best with a quarter of the questions."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akf.agents.files import Files
from akf.agents.search import Search
from akf.agents.space import Point, Space, load_space
from akf.agents.trial import Trial
from akf.agents.tuner import tune

SPACES = Path(__file__).resolve().parents[2] / "examples" / "spaces"
MATMUL = load_space(SPACES / "matmul")


def trial(speed: float | None) -> Trial:
    return Trial("pass" if speed else "fail", () if speed else ("WRONG_RESULT",), (), speed, speed, speed)


def machine(space: Space, speed: Callable[[Point], float | None]) -> Callable[[Files, bool], Trial]:
    """A machine on which a point has a given speed."""
    known = {space.render(point)["kernel.cpp"]: speed(point) for point in space.points()}
    return lambda files, timed: trial(known[files["src/kernel.cpp"]] if timed else 1.0)


def hill(best: Point) -> Callable[[Point], float]:
    """Speed falls with each step away from the best point, in each direction by another measure."""
    return lambda point: math.prod(
        1 - 0.07 * (place + 1) * abs(a - b) for place, (a, b) in enumerate(zip(point, best, strict=True))
    )


@pytest.mark.parametrize("name", ["rmsnorm", "softmax", "matmul"])
def test_a_quarter_of_the_questions_finds_a_point_near_the_best(name: str) -> None:
    space = load_space(SPACES / name)
    points = list(space.points())[::9]
    speeds = []
    for number, best in enumerate(points):
        found = tune(space, machine(space, hill(best)), seed=number)
        assert found.evaluations <= space.size // 4
        assert found.speed is not None
        speeds.append(found.speed)
    assert min(speeds) >= 0.85
    assert sum(speed >= 0.95 for speed in speeds) >= 0.9 * len(speeds)


def test_chance_alone_does_worse() -> None:
    best = (3, 2, 2, 2)
    speeds = sorted(hill(best)(point) for point in MATMUL.points())
    middle = speeds[len(speeds) // 2]
    asked = Search(MATMUL, 1)
    first = asked.ask(4)
    assert max(map(hill(best), first)) < 0.95, "the first points alone must not decide this test"
    assert middle < 0.6


@given(seed=st.integers(0, 2**32), answers=st.lists(st.one_of(st.none(), st.floats(0.1, 9)), min_size=12, max_size=12))
def test_the_same_answers_give_the_same_questions_and_none_twice(seed: int, answers: list[float | None]) -> None:
    def asked() -> list[Point]:
        search = Search(MATMUL, seed, 3)
        found = []
        for answer in answers:
            (point,) = search.ask(1)
            search.tell(point, answer)
            found.append(point)
        return found

    points = asked()
    assert points == asked()
    assert len(set(points)) == len(points)


def test_a_space_is_asked_for_to_its_end_and_no_further() -> None:
    search = Search(MATMUL, 7)
    found: list[Point] = []
    while points := search.ask(10):
        found += points
        for point in points:
            search.tell(point, 1.0)
    assert sorted(found) == sorted(MATMUL.points())


def test_what_fails_is_never_the_best_and_its_like_is_avoided() -> None:
    def speed(point: Point) -> float | None:
        return None if point[2] == 2 else hill((3, 2, 1, 2))(point)

    found = tune(MATMUL, machine(MATMUL, speed), seed=3)
    assert found.best is not None
    assert found.best[2] != 2
    failed = [look for look in found.looks if not look.trial.passed]
    assert 0 < len(failed) <= len(found.looks) // 3


def test_a_space_in_which_nothing_works_has_no_best() -> None:
    found = tune(MATMUL, lambda _files, _timed: trial(None))
    assert (found.best, found.speed) == (None, None)
    assert found.evaluations <= MATMUL.size // 4


def test_a_machine_that_cannot_tell_teaches_nothing() -> None:
    found = tune(MATMUL, lambda _files, _timed: Trial("cannot_tell", ("NOISE",), (), None, None, None))
    assert found.best is None


def test_each_cell_of_the_archive_keeps_its_fastest() -> None:
    search = Search(MATMUL, 0)
    for speed in range(1, 41):
        (point,) = search.ask(1)
        search.tell(point, float(speed % 7 + 1))
    speeds = search.speeds()
    for cell, best in search.archive().items():
        alike = [point for point in speeds if MATMUL.behaviour(point) == cell]
        assert speeds[best] == max(speeds[point] for point in alike)


def test_islands_begin_apart_and_show_each_other_their_best() -> None:
    search = Search(MATMUL, 0, islands=2)
    first = search.ask(2)
    assert first[0][0] != first[1][0]
    for point in first:
        search.tell(point, 1.0)
    for _ in range(6):
        (point,) = search.ask(1)
        search.tell(point, hill((3, 2, 2, 2))(point))
    assert search._guests[0] == search.ranked(1)[:1] or search._guests[1] == search.ranked(0)[:1]
