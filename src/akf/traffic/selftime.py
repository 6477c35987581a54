"""The time that nested operators spend by themselves.

Invariants:
1. At every instant at most one operator of a thread counts: of those that run, the one that was called last.
2. The segments of a thread do not overlap, and together they cover exactly the union of its operators.
3. Exactly one segment of each operator is its first, also of one that never ran by itself (it is empty then).
4. The order in which operators are given does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator

Op = tuple[int, int, str, str | None, str | None]
"""Start, end, name, shapes, element types."""


def segments(ops: list[Op]) -> Iterator[tuple[int, int, Op, bool]]:
    """Yield start, end, operator, and whether this is the operator's first segment, for one thread."""
    running: list[tuple[Op, bool]] = []
    at = 0
    for op in sorted(ops, key=lambda op: (op[0], -op[1], op[2], op[3] or "", op[4] or "")):
        yield from _advance(running, at, op[0])
        at = op[0]
        running.append((op, True))
    yield from _advance(running, at, None)


def _advance(running: list[tuple[Op, bool]], at: int, until: int | None) -> Iterator[tuple[int, int, Op, bool]]:
    """Run the operator that was called last from `at` on, and those below it as each ends, until `until`."""
    while running:
        op, first = running[-1]
        end = op[1] if until is None else min(op[1], until)
        if end > at or (first and op[1] <= (end if until is None else until)):
            yield at, max(at, end), op, first
            running[-1] = (op, False)
            at = max(at, end)
        if until is not None and op[1] > until:
            return
        running.pop()
