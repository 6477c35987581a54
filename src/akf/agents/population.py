"""Candidates of a job that evolves: islands, elites, migration, an archive by behaviour.

Invariants:
- Members are ranked by the speed that trials measured; equal ones by their name. Chance and clocks have no say.
- What failed is counted and bred from by nobody.
- The archive keeps the fastest of each behaviour, whatever island it lives on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from akf.agents.space import Point

ELITES = 2
Files = Mapping[str, str]


class Member(NamedTuple):
    """A candidate that passed."""

    name: str
    files: Files
    speed: float
    island: int
    round: int
    strategy: str
    behaviour: str
    point: Point | None = None

    @property
    def source(self) -> str:
        """Its sources, for a prompt."""
        return "\n".join(f"FILE: {path}\n{text}" for path, text in sorted(self.files.items()) if path.endswith(".cpp"))


class Population:
    """All members of a job.

    Args:
        islands: how many populations.
        migrate: rounds between two migrations.
        elites: how many of an island breed.
    """

    def __init__(self, islands: int, migrate: int = 2, elites: int = ELITES) -> None:
        self.islands = max(1, islands)
        self._migrate = max(1, migrate)
        self._elites = max(1, elites)
        self.members: dict[str, Member] = {}
        self._guests: dict[int, Member] = {}
        self.failed = 0

    def add(self, member: Member) -> None:
        """A member; of two with the same sources the first measurement counts."""
        self.members.setdefault(member.name, member)

    def ranked(self, island: int | None = None) -> list[Member]:
        """Members, the fastest first."""
        mine = [each for each in self.members.values() if island in {None, each.island}]
        return sorted(mine, key=lambda each: (-each.speed, each.name))

    def parents(self, island: int) -> list[Member]:
        """Who breeds on an island: its elites, and a guest."""
        own = self.ranked(island)[: self._elites]
        guest = self._guests.get(island)
        return own if guest is None or guest in own else [*own, guest]

    def after_round(self, number: int) -> None:
        """The best of each island visits the next, every few rounds."""
        if self.islands > 1 and number % self._migrate == 0:
            best = {island: self.ranked(island)[:1] for island in range(self.islands)}
            self._guests = {(island + 1) % self.islands: found[0] for island, found in best.items() if found}

    def archive(self) -> dict[str, Member]:
        """The fastest of each behaviour."""
        found: dict[str, Member] = {}
        for member in self.ranked():
            found.setdefault(member.behaviour, member)
        return found

    @property
    def best(self) -> Member | None:
        """The fastest member."""
        return next(iter(self.ranked()), None)


def behaviour_of(files: Files) -> str:
    """The behaviour of sources that no space describes: their size by powers of two, and what they use."""
    text = "".join(text for path, text in sorted(files.items()) if path.endswith((".cpp", ".h", ".hpp")))
    uses = [word for word in ("vector_size", "_mm", "template", "alignas", "memcpy") if word in text]
    return f"size={int(math.log2(len(text) + 1))} {'+'.join(uses) or 'plain'}"


def shown(member: Member | None) -> dict[str, Any] | None:
    """A member, for a result."""
    if member is None:
        return None
    return {name: getattr(member, name) for name in ("name", "speed", "island", "round", "strategy", "behaviour")}
