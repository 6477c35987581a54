"""`tuner`: an agent without a model. It walks a declared space and learns from each trial.

Invariants:
- It only proposes: files come from the space's templates, trials and their price are somebody else's.
- It asks for a quarter of the space at most, the second looks at the best included.
- What a busy machine spoiled counts as asked and teaches nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from akf.agents.search import Search
from akf.agents.space import Point, Space
from akf.agents.trial import Trial, Try

SHARE = 4
SECOND_LOOKS = 2


class Look(NamedTuple):
    """One evaluation of the search."""

    point: Point
    again: bool
    trial: Trial


class Found(NamedTuple):
    """What a search found: every look at a point in its order, and the best point, or None."""

    looks: list[Look]
    best: Point | None
    speed: float | None
    size: int

    @property
    def evaluations(self) -> int:
        """How many trials it took."""
        return len(self.looks)


def tune(space: Space, run: Try, *, seed: int = 0, most: int | None = None, islands: int = 2, batch: int = 2) -> Found:
    """Search a space.

    Args:
        space: what is searched.
        run: tries the files of a candidate.
        seed: chooses what chance decides.
        most: evaluations at most; a quarter of the space where it is None or more.
        islands: populations.
        batch: points a round.
    """
    quarter = max(1, space.size // SHARE)
    most = quarter if most is None else min(most, quarter)
    search = Search(space, seed, islands)
    looks: list[Look] = []
    seconds = SECOND_LOOKS if most > 2 * SECOND_LOOKS else 0
    while len(looks) < most - seconds:
        points = search.ask(min(batch, most - seconds - len(looks)))
        if not points:
            break
        looks += [_look(space, search, point, run, again=False) for point in points]
    looks += [_look(space, search, point, run, again=True) for point in search.again(seconds)]
    best = next(iter(search.ranked()), None)
    return Found(looks, best, None if best is None else search.speeds()[best], space.size)


def _look(space: Space, search: Search, point: Point, run: Try, *, again: bool) -> Look:
    trial = run(space.candidate(point), True)
    if trial.outcome == "fail" or trial.speed is not None:
        search.tell(point, trial.speed if trial.passed else None)
    return Look(point, again, trial)
