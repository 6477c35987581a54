"""Two things timed side by side: the ratio of a to b, and how it spreads.

Absolute times mean nothing on a shared machine. So each round runs both, one right after the other, in alternating
order, and what is reported is the median over the rounds of the ratio within a round, with its quartiles.
"""

import math
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

ROUNDS = 15
ROUNDS_OVER_A_SECOND = 5

Run = Callable[[], object]


@dataclass(frozen=True)
class Comparison:
    """What the rounds showed: ratios of a to b (below 1: a is faster), times in seconds."""

    ratio: float
    low: float
    high: float
    a_seconds: float
    b_seconds: float
    rounds: int

    def __str__(self) -> str:
        return (
            f"{self.ratio:.3f}x (quartiles {self.low:.3f} to {self.high:.3f}, {self.rounds} rounds; "
            f"medians {self.a_seconds * 1e3:.1f} ms against {self.b_seconds * 1e3:.1f} ms)"
        )


def compare(a: Run, b: Run, rounds: int = ROUNDS, warm_up: int = 1) -> Comparison:
    """Run a and b interleaved, `rounds` times each after the warm-up, and return the ratio of their times."""
    for _ in range(warm_up):
        a()
        b()
    a_times: list[float] = []
    b_times: list[float] = []
    for number in range(rounds):
        if number % 2:
            b_times.append(seconds(b))
            a_times.append(seconds(a))
        else:
            a_times.append(seconds(a))
            b_times.append(seconds(b))
    ratios = [a_time / b_time for a_time, b_time in zip(a_times, b_times, strict=True)]
    return Comparison(
        _at(ratios, 0.5), _at(ratios, 0.25), _at(ratios, 0.75), _at(a_times, 0.5), _at(b_times, 0.5), rounds
    )


def median_seconds(run: Run, rounds: int = ROUNDS) -> float:
    """Return the median time of a run; five rounds are enough where one takes over a second."""
    times = [seconds(run)]
    wanted = ROUNDS_OVER_A_SECOND if times[0] > 1 else rounds
    times += [seconds(run) for _ in range(wanted - 1)]
    return _at(times, 0.5)


def seconds(run: Run) -> float:
    """Return the wall time of one run."""
    start = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - start) / 1e9


def process(*arguments: str) -> Run:
    """Return a run of a whole process, which must succeed."""

    def run() -> bytes:
        return subprocess.run(arguments, check=True, capture_output=True).stdout

    return run


def report(row: str, operation: str, goal: str, comparison: Comparison) -> None:
    """Print one row."""
    print(f"{row}  {operation}\n    goal {goal}; measured {comparison}")


def report_growth(sizes: Sequence[float], times: Sequence[float]) -> None:
    """Print the time at each size, and the exponent from each size to the next (1 is linear)."""
    print(f"    growth: {sizes[0]:g}x {times[0] * 1e3:.1f} ms", end="")
    for at in range(1, len(sizes)):
        exponent = math.log(times[at] / times[at - 1]) / math.log(sizes[at] / sizes[at - 1])
        print(f", {sizes[at]:g}x {times[at] * 1e3:.1f} ms (exponent {exponent:.2f})", end="")
    print()


def _at(values: Sequence[float], share: float) -> float:
    """Return the value of nearest rank."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
