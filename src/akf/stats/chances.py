"""How often the interval's end clears a limit, were the pairs normal: the arithmetic behind planning.

Invariants:
- Sums, products and quotients in a fixed order, no call of the C library's exp: the same plan on every
  machine.
- This is for planning only. No interval and no verdict depends on a normal distribution.

Method: write the pairs as a limit plus effect + z, in units of their spread. The interval's lower end lies
above the limit exactly if the ranks of the pairs below it sum to at most r. Going through the distances from
the limit in rising order, the i-th pair has rank i; it is on the far side with density phi(u - effect), on
the near side with phi(u + effect). So the chance is a sum over rank sums of n-fold iterated integrals,
computed here over a grid in u with a rule of fourth order (error below 0.002 up to 24 pairs; exact for effect
0 within 0.0001).
"""

from collections.abc import Sequence

_REACH = 6.0  # grid beyond the effect, in spreads: a pair lies outside with probability 1e-9
_GRID_PER_PAIR = 5
_GRID_BASE = 16
_TAYLOR_TERMS = 12


def low_end_power(effect: float, pairs: int, rank: int) -> float:
    """Return the chance that the Walsh value number rank + 1 of normal pairs lies above the limit.

    Args:
        effect: distance of the pairs' mean above the limit, in units of their spread; at least 0.
        pairs: number of pairs.
        rank: critical rank r of the signed-rank test, at least 0.
    """
    cells = _GRID_PER_PAIR * pairs + _GRID_BASE
    step = (effect + _REACH) / cells
    far = [_bell(cell * step - effect) for cell in range(cells + 1)]
    near = [_bell(cell * step + effect) for cell in range(cells + 1)]
    either = [above + below for above, below in zip(far, near, strict=True)]
    total = [1.0] * (cells + 1)
    by_sum = [total]
    for place in range(1, pairs + 1):
        total = _integral([so_far * density for so_far, density in zip(total, either, strict=True)])
        # Dividing by the integral over all sums keeps numbers near 1 and cancels most of the grid's error.
        norm = 1 / total[-1]
        total = [value * norm for value in total]
        reached: list[list[float]] = []
        for rank_sum in range(min(rank, place * (place + 1) // 2) + 1):
            grown = [0.0] * (cells + 1)
            if rank_sum < len(by_sum):
                grown = [value * density for value, density in zip(by_sum[rank_sum], far, strict=True)]
            if 0 <= rank_sum - place < len(by_sum):
                before = by_sum[rank_sum - place]
                grown = [sum_ + value * density for sum_, value, density in zip(grown, before, near, strict=True)]
            reached.append([value * norm for value in _integral(grown)])
        by_sum = reached
    chance = 0.0
    for values in by_sum:
        chance += values[-1]
    return min(1.0, max(0.0, chance / total[-1]))


def _integral(values: Sequence[float]) -> list[float]:
    """Return the running integral of a cubic through each four neighbours, in units of a 24th of the step."""
    ahead = 4 * values[0] - 6 * values[1] + 4 * values[2] - values[3]
    after = 4 * values[-1] - 6 * values[-2] + 4 * values[-3] - values[-4]
    padded = [ahead, *values, after]
    running, area = [0.0], 0.0
    for left, low, high, right in zip(padded, padded[1:], padded[2:], padded[3:], strict=False):
        area += 13 * (low + high) - (left + right)
        running.append(area)
    return running


def _bell(z: float) -> float:
    """Return exp(-z^2 / 2): the series at the argument halved until it is below 1/2, squared back."""
    argument, halvings = z * z / 2, 0
    while argument >= 0.5:  # noqa: PLR2004 (one half)
        argument, halvings = argument / 2, halvings + 1
    series = 1.0
    for term in range(_TAYLOR_TERMS, 0, -1):
        series = 1 + series * argument / term
    value = 1 / series
    for _ in range(halvings):
        value *= value
    return value
