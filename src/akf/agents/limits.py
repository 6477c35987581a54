"""What a Task may cost: tokens, seconds on the board, attempts and wall time, and what was spent of it.

Invariants:
- Limits come from the Task and the Campaign, the smaller of two counts; they are frozen, and no agent holds them.
- What is spent is charged before it is used where it can be known, and by whoever pays for it, not by who asks for it.
- A charge that does not fit is refused with every limit that it would break; nothing is charged then.
- What was spent never falls.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from akf.contracts.problems import PreconditionError, Problem

WALL_S = 86_400.0
UNITS = {"tokens": "tokens", "board_s": "seconds on the board", "attempts": "attempts", "wall_s": "seconds"}


class Limits(NamedTuple):
    """What a Task may cost."""

    tokens: int
    board_s: float
    attempts: int
    wall_s: float = WALL_S

    @classmethod
    def of(cls, task: Mapping[str, Any], campaign: Mapping[str, Any] | None = None) -> Limits:
        """The limits of a Task, and of its Campaign where there is one.

        A Task says `evaluation_s` for one evaluation; its attempts together may take as many of them.
        """
        own = task["budget"]
        board = float(own["evaluation_s"]) * int(own["attempts"])
        limits = cls(int(own["tokens"]), board, int(own["attempts"]))
        if campaign is None:
            return limits
        other = campaign["budget"]
        return cls(
            min(limits.tokens, int(other["tokens"])),
            min(limits.board_s, float(other["board_s"])),
            min(limits.attempts, int(other["attempts"])),
            float(other["wall_s"]),
        )

    def within(self, **asked: float | None) -> Limits:
        """These limits, lowered where somebody asks for less; asking for more changes nothing."""
        values = self._asdict()
        lower = {name: min(values[name], most) for name, most in asked.items() if most is not None}
        return self._replace(**lower)


class Meter:
    """What was spent of some limits. One stands behind a whole job.

    Args:
        limits: what may be spent.
        clock: seconds, for the wall time.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.__limits = limits
        self.__spent = {"tokens": 0.0, "board_s": 0.0, "attempts": 0.0}
        self.__held = dict.fromkeys(self.__spent, 0.0)
        self.__clock = clock
        self.__start = clock()
        self.__lock = threading.Lock()

    @property
    def limits(self) -> Limits:
        """What may be spent."""
        return self.__limits

    def spent(self) -> dict[str, float]:
        """What was spent so far."""
        with self.__lock:
            return {**self.__spent, "wall_s": self.__clock() - self.__start}

    def left(self, name: str) -> float:
        """How much is left of one limit; never below nothing."""
        return max(0.0, float(self.__limits._asdict()[name]) - self.spent()[name])

    def charge(self, **amounts: float) -> None:
        """Spend, before it is used.

        Raises:
            PreconditionError: it does not fit; nothing was charged.
        """
        with self.__lock:
            self.__refuse(amounts)
            for name, amount in amounts.items():
                self.__spent[name] += amount

    @contextmanager
    def reserve(self, name: str, most: float) -> Iterator[Callable[[float], None]]:
        """Set aside the most that something may cost; what is called with the real cost pays it.

        Raises:
            PreconditionError: the most does not fit beside what was spent and set aside.
        """
        with self.__lock:
            self.__refuse({name: most})
            self.__held[name] += most
        try:
            yield lambda amount: self.used(**{name: amount})
        finally:
            with self.__lock:
                self.__held[name] -= most

    def used(self, **amounts: float) -> None:
        """Note what was used and could not be known before; it may go over, and then nothing more is allowed."""
        if min(amounts.values(), default=0.0) < 0:
            raise ValueError("what was spent never falls")
        with self.__lock:
            for name, amount in amounts.items():
                self.__spent[name] += amount

    def __refuse(self, amounts: Mapping[str, float]) -> None:
        if min(amounts.values(), default=0.0) < 0:
            raise ValueError("what was spent never falls")
        limits = self.__limits._asdict()
        spent = {name: self.__spent[name] + self.__held[name] for name in self.__spent}
        spent["wall_s"] = self.__clock() - self.__start
        broken = [
            Problem(
                "AKF-P720",
                f"the Task's limit of {limits[name]:,.0f} {UNITS[name]} is spent",
                expected=limits[name],
                found=round(spent[name] + amounts.get(name, 0.0), 3),
                hint="limits are the Task's and the Campaign's; a new Task has its own",
            )
            for name in UNITS
            if spent[name] + amounts.get(name, 0.0) > limits[name]
        ]
        if broken:
            raise PreconditionError(broken)
