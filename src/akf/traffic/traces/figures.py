"""What a stretch of requests says: arrivals, lengths, sessions, prefix reuse. Integers in, exact fractions out.

Invariants:
- Times are integers, so the mean rate, (n - 1) over the span, is exact; a single instant has none.
- The spread of the gaps is their population standard deviation over their mean, from exact sums; one square root is
  taken at the end. A Poisson process has 1.
- A busiest window is half open and starts at an arrival.
- A block is reused when an earlier request had it; one that comes twice in its own prompt is not. The cache has no
  limit and never forgets, so this is the most that any cache can reach.
- Only an unbroken start of such blocks can be used by a prefix cache, which is why it is counted apart.
- Quantiles are nearest rank: the smallest value that at least the share q of the requests do not exceed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import compress
from operator import not_
from typing import Any, NamedTuple

from akf.traffic.traces.layouts import NS_PER_S
from akf.traffic.traces.requests import Requests

WINDOWS_S = (1, 10, 60)


class Gaps(NamedTuple):
    """Arrivals in exact numbers."""

    rate_per_s: Fraction | None
    cv_squared: Fraction | None
    instants: int


class Reuse(NamedTuple):
    """Prompt blocks, and how many of them were there before."""

    blocks: int
    reused: int
    leading: int


def gaps(times: Sequence[int]) -> Gaps:
    """Rate and spread of ordered times."""
    span = times[-1] - times[0]
    number = len(times) - 1
    instants = 1
    squares = 0
    before = times[0]
    for time in times:
        gap = time - before
        instants += gap > 0
        squares += gap * gap
        before = time
    if not span:
        return Gaps(None, None, instants)
    return Gaps(Fraction(number * NS_PER_S, span), Fraction(number * squares - span * span, span * span), instants)


def root(square: Fraction | None) -> float | None:
    """The square root as a number."""
    return None if square is None else math.sqrt(square)


def busiest(times: Sequence[int], window_s: int) -> int:
    """Most arrivals within any window of that length."""
    width = window_s * NS_PER_S
    most = first = 0
    for index, time in enumerate(times):
        while time - times[first] >= width:
            first += 1
        if index - first >= most:
            most = index - first + 1
    return most


def arrivals(times: Sequence[int]) -> dict[str, Any]:
    """`Arrivals` of the Workload; a single instant has a window but no rate."""
    if not times:
        return {"process": "trace"}
    found = gaps(times)
    return {
        "process": "trace",
        "rate_per_s": number(found.rate_per_s),
        "gap_cv_ratio": root(found.cv_squared),
        "instants": found.instants,
        "busiest": [{"window_s": window, "requests": busiest(times, window)} for window in WINDOWS_S],
    }


def number(value: Fraction | None) -> float | None:
    """The nearest double."""
    return None if value is None else value.numerator / value.denominator


def quantile(counts: Counter[int], share: Fraction) -> int:
    """The nearest-rank quantile."""
    rank = max(1, math.ceil(share * counts.total()))
    below = 0
    for value in sorted(counts):
        below += counts[value]
        if below >= rank:
            return value
    raise ValueError("no values")


def spread(counts: Counter[int]) -> dict[str, int]:
    """`TokenSpread` of the Workload."""
    return {
        **{f"p{percent}_tokens": quantile(counts, Fraction(percent, 100)) for percent in (50, 90, 99)},
        "max_tokens": max(counts),
        "total_tokens": sum(value * times for value, times in counts.items()),
    }


def sessions(names: Sequence[Any]) -> dict[str, int] | None:
    """`Sessions` of the Workload; a request without a session is one of its own."""
    if not names:
        return None
    alone = sum(name is None for name in names)
    counts = Counter(name for name in names if name is not None)
    found = len(counts) + alone
    longest = max([*counts.values(), 1])
    return {"sessions": found, "follow_ups": len(names) - found, "longest_turns": longest}


def reuse(requests: Requests, start: int = 0, end: int | None = None) -> Reuse:
    """Prefix reuse of numbered requests from `start` to `end`, as if nothing had come before them."""
    chosen = range(start, len(requests) if end is None else end)
    seen = bytearray(requests.distinct_blocks)
    total = reused = leading = 0
    for index in chosen:
        ids = requests.blocks_of(index)
        flags = bytes(map(seen.__getitem__, ids))
        total += len(ids)
        reused += flags.count(1)
        leading += len(ids) if (unbroken := flags.find(0)) < 0 else unbroken
        for block in compress(ids, map(not_, flags)):
            seen[block] = 1
    return Reuse(total, reused, leading)


def partial_prompts(requests: Requests, block_size: int) -> int:
    """Prompts whose last block is not full."""
    return sum(tokens % block_size > 0 for tokens in requests.inputs)


def reused_in_session(requests: Requests) -> int:
    """Blocks that an earlier request of the same session had, one session after the other."""
    by_session: dict[Any, list[int]] = defaultdict(list)
    for index, name in enumerate(requests.sessions):
        if name is not None:
            by_session[name].append(index)
    found = 0
    for members in by_session.values():
        seen: set[int] = set()
        for index in members:
            ids = requests.blocks_of(index)
            found += sum(map(seen.__contains__, ids))
            seen.update(ids)
    return found
