"""Limits of a Task: nobody goes beyond them, edits them or gets something back."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akf.agents.limits import Limits, Meter
from akf.contracts.problems import PreconditionError

LIMITS = Limits(tokens=100, board_s=10.0, attempts=3, wall_s=60.0)
TASK = {"budget": {"tokens": 500, "attempts": 4, "evaluation_s": 30}}
CAMPAIGN = {"budget": {"tokens": 200, "attempts": 9, "board_s": 100, "wall_s": 3600}}


def test_limits_are_the_smaller_of_task_and_campaign() -> None:
    assert Limits.of(TASK) == Limits(500, 120.0, 4)
    assert Limits.of(TASK, CAMPAIGN) == Limits(200, 100.0, 4, 3600.0)


def test_a_job_may_ask_for_less_and_never_for_more() -> None:
    assert LIMITS.within(tokens=50, attempts=99, wall_s=None) == LIMITS._replace(tokens=50)


def test_what_does_not_fit_is_refused_whole() -> None:
    meter = Meter(LIMITS)
    meter.charge(tokens=90, attempts=3)
    with pytest.raises(PreconditionError) as caught:
        meter.charge(tokens=11, attempts=1)
    assert [problem.code for problem in caught.value.problems] == ["AKF-P720", "AKF-P720"]
    assert {"tokens": 90, "attempts": 3}.items() <= meter.spent().items()
    meter.charge(tokens=10)


def test_time_is_a_limit_of_everything() -> None:
    now = [0.0]
    meter = Meter(LIMITS, lambda: now[0])
    meter.charge(attempts=1)
    now[0] = 61.0
    with pytest.raises(PreconditionError, match="60 seconds"):
        meter.charge(attempts=1)


def test_what_was_used_beyond_a_limit_ends_it() -> None:
    meter = Meter(LIMITS)
    meter.used(board_s=12.5)
    assert meter.left("board_s") == 0
    with pytest.raises(PreconditionError, match="on the board"):
        meter.charge(attempts=1)


def test_a_meter_cannot_be_edited_or_paid_back() -> None:
    meter = Meter(LIMITS)
    for change in (meter.charge, meter.used):
        with pytest.raises(ValueError, match="never falls"):
            change(tokens=-1)
    with pytest.raises(AttributeError):
        meter.limits = Limits(10**9, 1e9, 10**9)  # type: ignore[misc]
    meter.spent()["tokens"] = -1e9
    assert meter.spent()["tokens"] == 0


@given(amounts=st.lists(st.integers(0, 60), max_size=12))
def test_a_limit_holds_whatever_is_asked(amounts: list[int]) -> None:
    meter = Meter(LIMITS)
    for amount in amounts:
        try:
            meter.charge(tokens=amount)
        except PreconditionError:
            assert meter.spent()["tokens"] + amount > LIMITS.tokens
    assert meter.spent()["tokens"] <= LIMITS.tokens


def test_threads_together_stay_within_a_limit() -> None:
    meter = Meter(LIMITS)

    def spend() -> None:
        for _ in range(50):
            try:
                meter.charge(tokens=1)
            except PreconditionError:
                return

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert meter.spent()["tokens"] == LIMITS.tokens
