"""A search without a model: islands, elites, an archive by behaviour, and a model of main effects from early results.

Invariants:
- The same seed and the same answers give the same questions, in the same order; nothing else is looked at.
- No point is asked for twice by `ask`; `again` names the best ones for a second look.
- What failed teaches as well: it counts as the slowest that was seen.
- Every second round looks round the best point of all, so that no neighbour of it is left out for what others promise.
- Each island starts at its own value of the islands' parameter and breeds from its own elites; every `MIGRATE` rounds
  the best of one is shown to the next.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple

from akf.agents.space import Point, Space

ELITES = 3
MIGRATE = 2
EXPLORE = 0.15
SHRINK = 1.0


class Tried(NamedTuple):
    """One answer: the speed against the plain kernel (2.0 is twice as fast), or None where it failed."""

    point: Point
    island: int
    speed: float | None


class Search:
    """Proposes points and learns from what became of them.

    Args:
        space: what is searched.
        seed: chooses the order of what chance decides.
        islands: how many populations; at most as many as the islands' parameter has values.
    """

    def __init__(self, space: Space, seed: int = 0, islands: int = 2) -> None:
        self._space = space
        self._chance = random.Random(seed)  # noqa: S311 - no secret: a search that can be repeated
        self._axis = [each.name for each in space.declared.parameters].index(space.declared.islands)
        choices = len(space.declared.parameters[self._axis].values)
        self.islands = max(1, min(islands, choices))
        self._asked: dict[Point, int] = {}
        self.tried: list[Tried] = []
        self._guests: list[list[Point]] = [[] for _ in range(self.islands)]
        self._rounds = 0
        self._first = self._spread()

    def ask(self, count: int) -> list[Point]:
        """The next points, at most `count`; none when the space is used up."""
        self._rounds += 1
        if self._rounds % (MIGRATE + 1) == 0:
            self._migrate()
        found: list[Point] = []
        for _ in range(count):
            island = len(self._asked) % self.islands
            point = self._next(island)
            if point is None:
                break
            self._asked[point] = island
            found.append(point)
        return found

    def tell(self, point: Point, speed: float | None) -> None:
        """What became of a point."""
        self.tried.append(Tried(point, self._asked.get(point, 0), speed))

    def island(self, point: Point) -> int:
        """The island of a point that was asked for."""
        return self._asked.get(point, 0)

    def cell(self, point: Point) -> tuple[str, ...]:
        """The cell of the archive that a point belongs to."""
        return self._space.behaviour(point)

    def speeds(self) -> dict[Point, float]:
        """Mean speed of every point that ever worked and never failed."""
        held: dict[Point, list[float | None]] = {}
        for each in self.tried:
            held.setdefault(each.point, []).append(each.speed)
        return {
            point: sum(speed for speed in speeds if speed is not None) / len(speeds)
            for point, speeds in held.items()
            if None not in speeds
        }

    def ranked(self, island: int | None = None) -> list[Point]:
        """Points that work, the fastest first."""
        speeds = self.speeds()
        mine = [point for point in speeds if island is None or self._asked.get(point) == island]
        return sorted(mine, key=lambda point: (-speeds[point], point))

    def again(self, count: int) -> list[Point]:
        """The fastest points, for a second look."""
        return self.ranked()[:count]

    def archive(self) -> dict[tuple[str, ...], Point]:
        """The fastest point of every behaviour that was seen."""
        best: dict[tuple[str, ...], Point] = {}
        for point in self.ranked():
            best.setdefault(self._space.behaviour(point), point)
        return best

    def _spread(self) -> list[Point]:
        """First points: every value of every parameter about equally often, islands apart."""
        parameters = self._space.declared.parameters
        longest = max(len(each.values) for each in parameters)
        columns = []
        for place, each in enumerate(parameters):
            order = [at % len(each.values) for at in range(longest)]
            if place != self._axis:
                self._chance.shuffle(order)
            columns.append(order)
        points = [tuple(column[row] for column in columns) for row in range(longest)]
        half = (len(points) + self.islands - 1) // self.islands
        dealt = [points[start : start + half] for start in range(0, len(points), half)]
        turns = [part[turn] for turn in range(half) for part in dealt if turn < len(part)]
        return list(dict.fromkeys(turns))

    def _next(self, island: int) -> Point | None:
        while self._first:
            point = self._first.pop(0)
            if point not in self._asked:
                return point
        if len(self._asked) // self.islands % 2:
            near = self._fresh(each for best in self.ranked()[:1] for each in self._space.neighbours(best))
            if near:
                return self._promising(near)
        elites = [*self.ranked(island)[:ELITES], *self._guests[island]] or self.ranked()[:ELITES]
        if self._chance.random() < EXPLORE:
            elites = list(self.archive().values()) or elites
        near = self._fresh(each for elite in elites for each in self._space.neighbours(elite))
        if not near:
            near = self._fresh(
                each
                for elite in elites
                for one in self._space.neighbours(elite)
                for each in self._space.neighbours(one)
            )
        return self._promising(near) if near else self._any()

    def _fresh(self, points: Iterable[Point]) -> list[Point]:
        return sorted({point for point in points if point not in self._asked})

    def _any(self) -> Point | None:
        """Some point that nobody asked for; the whole space is walked only when chance meets none."""
        sizes = [len(each.values) for each in self._space.declared.parameters]
        for _ in range(64):
            point = tuple(self._chance.randrange(size) for size in sizes)
            if point not in self._asked:
                return point
        return next((point for point in self._space.points() if point not in self._asked), None)

    def _promising(self, points: list[Point]) -> Point:
        """The point that main effects promise most of."""
        effects = self._effects()
        promise = {point: sum(effects.get((place, at), 0.0) for place, at in enumerate(point)) for point in points}
        most = max(promise.values())
        return self._chance.choice([point for point in points if promise[point] == most])

    def _effects(self) -> dict[tuple[int, int], float]:
        """What each value of each parameter adds to the mean speed, drawn towards nothing where little was seen."""
        speeds = self.speeds()
        slowest = min(speeds.values(), default=0.0)
        seen = {each.point: speeds.get(each.point, slowest) for each in self.tried}
        if not seen:
            return {}
        mean = sum(seen.values()) / len(seen)
        sums: dict[tuple[int, int], list[float]] = {}
        for point, speed in seen.items():
            for place, at in enumerate(point):
                sums.setdefault((place, at), []).append(speed - mean)
        return {key: sum(found) / (len(found) + SHRINK) for key, found in sums.items()}

    def _migrate(self) -> None:
        best = [self.ranked(island)[:1] for island in range(self.islands)]
        for island in range(self.islands):
            self._guests[island] = best[island - 1] if self.islands > 1 else []
