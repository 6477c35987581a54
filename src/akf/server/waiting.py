"""Jobs that wait, in the order in which they may start.

Invariants:
- Users take turns by weight (`akf.fair`); a user asks for turns exactly while one of its jobs may start.
- Of one user's jobs that may start, the one with the smallest priority value comes first, then the oldest.
- A job without room on any worker holds up nothing but jobs that want the same.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from akf.fabric.entries import Want
from akf.fair import FairShare, Turn
from akf.server.store import Job


class Place(NamedTuple):
    """One waiting job, as little of it as the order needs; what it wants is None when it needs no device."""

    priority: int
    number: int
    id: str
    user: str
    want: Want | None


class Waiting:
    """The jobs that wait.

    Args:
        nice: a user's nice value; 0 for who is not in it.
    """

    def __init__(self, nice: Mapping[str, int]) -> None:
        self.share = FairShare()
        self._nice = dict(nice)
        self._lanes: dict[str, dict[Want | None, list[Place]]] = {}
        self._asking: set[str] = set()

    def __len__(self) -> int:
        return sum(len(places) for lanes in self._lanes.values() for places in lanes.values())

    def add(self, job: Job) -> None:
        """A job waits."""
        place = Place(job.priority, job.number, job.id, job.user, want_of(job) if needs_device(job) else None)
        insort(self._lanes.setdefault(job.user, {}).setdefault(place.want, []), place)

    def become(self, ids: Sequence[str], fetched: Callable[[str], Job | None]) -> None:
        """Be these jobs: what is not among them is removed, what is new is fetched."""
        known = {place.id: place for lanes in self._lanes.values() for places in lanes.values() for place in places}
        wanted = set(ids)
        for place in [place for identity, place in known.items() if identity not in wanted]:
            self._drop(place)
        for identity in ids:
            job = None if identity in known else fetched(identity)
            if job is not None:
                self.add(job)

    def remove(self, job: Job) -> bool:
        """A job waits no more; tells whether it did."""
        for places in self._lanes.get(job.user, {}).values():
            for place in places:
                if place.id == job.id:
                    self._drop(place)
                    return True
        return False

    def take(self, may: Callable[[str], bool], room: Callable[[Want], bool]) -> tuple[Turn, Place] | None:
        """The job whose turn it is, of users that may start one and wants that have room."""
        rooms: dict[Want | None, bool] = {None: True}
        first: dict[str, Place] = {}
        for user, lanes in self._lanes.items():
            if not may(user):
                continue
            for want in lanes:
                if want is not None and want not in rooms:
                    rooms[want] = room(want)
            ready = [places[0] for want, places in lanes.items() if rooms[want]]
            if ready:
                first[user] = min(ready)
        for user in self._asking - first.keys():
            self.share.sleep(user)
        for user in first:
            self.share.wake(user, self._nice.get(user, 0))
        self._asking = set(first)
        turn = self.share.take()
        if turn is None:
            return None
        place = first[turn.tenant]
        self._drop(place)
        return turn, place

    def _drop(self, place: Place) -> None:
        lanes = self._lanes[place.user]
        lanes[place.want].remove(place)
        if not lanes[place.want]:
            del lanes[place.want]
        if not lanes:
            del self._lanes[place.user]


def want_of(job: Job) -> Want:
    """What a job asks of a worker."""
    return Want(job.request["backend"], job.request["arch"], frozenset(job.request.get("tags") or ()))


def needs_device(job: Job) -> bool:
    """Whether a job cannot do without one; without a candidate `single` ends before it asks."""
    return job.request["job_type"] != "single" or job.request.get("init_code") is not None
