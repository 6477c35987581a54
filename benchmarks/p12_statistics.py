"""P12: A/B statistics of 64 rows x 20 pairs as a whole process, against one `import scipy.stats`.

Run it from anywhere: `python benchmarks/p12_statistics.py`. The measured process starts Python, imports `akf.stats`,
makes integer samples of 5,120 ABBA segments, reduces them to 65 intervals and prints the intervals' exact bits.
Before anything is timed, scipy's signed-rank test must reject just outside each end and keep just inside it.

Growth: rows, at 1x, 10x and 100x. The work is linear in rows; it is quadratic in pairs, since a pair meets each other
pair in a Walsh value, but a plan has tens of pairs and may have thousands of rows.
"""

import math
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from benchmarks.side_by_side import (  # noqa: E402
    ROUNDS,
    Run,
    compare,
    median_seconds,
    process,
    report,
    report_growth,
)

from akf.stats import Design, Reduced, Sample, reduce_samples  # noqa: E402 (the checkout comes first)

ROWS = 64
PAIRS = 20
VALUES = 5
SIZES = (1, 10, 100)
NUDGE = 1e-9


def measure(rows: int) -> Reduced:
    """Reduce samples of about 1 ms with 1 % of noise and a row-dependent gain of 0 to 5 %."""
    state = 12345
    samples: list[Sample] = []
    for row in range(rows):
        slower = 1_000_000 + 10_000 * (row % 6)
        for pair in range(PAIRS):
            for segment in range(4):
                side = "ABBA"[segment]
                values: list[int] = []
                for _ in range(VALUES):
                    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                    values.append((slower if side == "A" else 1_000_000) + (state >> 32) % 20_001 - 10_000)
                name = f"{row}/{pair}/{segment}"
                samples.append(Sample(name, f"row{row}", pair, 0, segment, "A" if side == "A" else "B", tuple(values)))
    design = Design(
        kind="abba",
        rows={f"row{row}": 1.0 + row % 3 for row in range(rows)},
        pairs=PAIRS,
        planned=tuple(sample.id for sample in samples),
    )
    result = reduce_samples(design, samples)
    if not isinstance(result, Reduced):
        raise TypeError(f"the samples do not reduce: {result}")
    return result


def text(result: Reduced) -> str:
    """Write every interval with the exact bits of its ends."""
    lines: list[str] = []
    for name, reduction in [*result.rows.items(), ("total", result.total)]:
        if reduction.interval is None:
            raise ValueError(f"{name} has no interval")
        ends = (reduction.interval.low, reduction.interval.estimate, reduction.interval.high)
        lines.append(" ".join([name, *(end.hex() for end in ends)]))
    return "\n".join(lines)


def verify() -> int:
    """Hold every interval to scipy's exact test, and the process to the same bits; return how many there are."""
    from scipy.stats import wilcoxon  # noqa: PLC0415 (only the second opinion needs it)

    def rejected(ratios: tuple[float, ...], theta: float) -> bool:
        return bool(wilcoxon([math.log(ratio / theta) for ratio in ratios], method="exact").pvalue <= 0.05)  # noqa: PLR2004

    result = measure(ROWS)
    for name, reduction in [*result.rows.items(), ("total", result.total)]:
        interval, ratios = reduction.interval, reduction.ratios
        if interval is None:
            raise ValueError(f"{name} has no interval")
        outside = (interval.low * (1 - NUDGE), interval.high * (1 + NUDGE))
        inside = (interval.low * (1 + NUDGE), interval.high * (1 - NUDGE), interval.estimate * (1 + NUDGE))
        if not all(rejected(ratios, theta) for theta in outside) or any(rejected(ratios, theta) for theta in inside):
            raise ValueError(f"scipy disagrees about {name}: {interval}")
    printed = child(ROWS)()
    if not isinstance(printed, bytes) or printed.decode().strip() != text(result):
        raise ValueError("the measured process prints other bits")
    return len(result.rows) + 1


def child(rows: int) -> Run:
    return process(sys.executable, __file__, str(rows))


def main() -> None:
    checked = verify()
    ours, theirs = child(ROWS), process(sys.executable, "-c", "import scipy.stats")
    report(
        "P12",
        f"A/B statistics of {ROWS} rows x {PAIRS} pairs, whole process ({checked} intervals agree with scipy)",
        "<= 0.30x `import scipy.stats`",
        compare(ours, theirs, ROUNDS),
    )
    report_growth(SIZES, [median_seconds(child(ROWS * size)) for size in SIZES])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(text(measure(int(sys.argv[1]))))
    else:
        main()
