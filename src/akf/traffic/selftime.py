"""The time that nested operators spend by themselves.

Invariants:
1. At every instant at most one operator of a thread counts: of those that run, the one that was called last.
2. The segments of a thread do not overlap, and together they cover exactly the union of its operators.
3. Each operator has a segment at least, also one that never ran by itself (it is empty then).
4. The order in which operators are given does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Op = tuple[int, int, str, str | None, str | None]
"""Start, end, name, shapes, element types."""


def segments(ops: Iterable[Op]) -> Iterator[tuple[int, int, int, Op]]:
    """Yield start, end, number of the operator and the operator, for the operators of one thread."""
    running: list[_Running] = []
    at = 0
    ordered = sorted(ops, key=lambda op: (op[0], -op[1], op[2], op[3] or "", op[4] or ""))
    for number, op in enumerate(ordered):
        yield from _advance(running, at, op[0])
        at = op[0]
        running.append(_Running(number, op))
    yield from _advance(running, at, max((op[1] for op in ordered), default=0))


class _Running:
    __slots__ = ("number", "op", "seen")

    def __init__(self, number: int, op: Op) -> None:
        self.number = number
        self.op = op
        self.seen = False


def _advance(running: list[_Running], at: int, until: int) -> Iterator[tuple[int, int, int, Op]]:
    """Run the operator that was called last from `at` on, and those below it as each ends, until `until`."""
    while running:
        last = running[-1]
        ends = last.op[1]
        end = max(at, min(ends, until))
        if end > at or (ends <= until and not last.seen):
            yield at, end, last.number, last.op
            last.seen = True
            at = end
        if ends > until:
            return
        running.pop()
