"""Amdahl's law against figures worked out by hand."""

import pytest

from akf.opportunity.amdahl import bound, ceiling, needed_speedup, reaches


def test_the_share_of_the_issue() -> None:
    most = ceiling(0.05543)
    assert most is not None
    assert round(most, 4) == 1.0587
    assert bound(0.05543, 1e12) == pytest.approx(most)
    assert not reaches(0.05543, 1.10)
    assert needed_speedup(0.05543, 1.10) is None


@pytest.mark.parametrize(
    ("share", "most"), [(0.12, 1.136363636), (0.5, 2.0), (0.75, 4.0), (0.2, 1.25), (0.0, 1.0), (0.9, 10.0)]
)
def test_ceilings(share: float, most: float) -> None:
    assert ceiling(share) == pytest.approx(most)


def test_the_whole_has_no_ceiling() -> None:
    assert ceiling(1.0) is None
    assert reaches(1.0, 1e9)


@pytest.mark.parametrize(
    ("share", "speedup", "whole"), [(0.5, 2, 4 / 3), (0.12, 1.25, 1 / 0.976), (0.12, 1, 1), (0.4, 4, 1 / 0.7)]
)
def test_bounds(share: float, speedup: float, whole: float) -> None:
    assert bound(share, speedup) == pytest.approx(whole)


@pytest.mark.parametrize(
    ("share", "target", "needed"),
    [(0.12, 1.10, 4.125), (0.12, 1.02, 1.195313), (0.5, 4 / 3, 2), (0.12, 1.14, None), (0.0, 1.01, None), (0.5, 1, 1)],
)
def test_needed_speedups(share: float, target: float, needed: float | None) -> None:
    found = needed_speedup(share, target)
    assert found == (None if needed is None else pytest.approx(needed, rel=1e-5))
    if found is not None:
        assert bound(share, found) == pytest.approx(target)
