"""P11: `akf ingest profile` of an op_summary.csv as a whole process, against `wc -l` of the same file.

Run it from anywhere: `python benchmarks/p11_ingest_op_summary.py [ROWS]`; 3,300,000 rows are 1 GB and the size that the
goal speaks of, the default is a tenth of it. The file is that of a decoding service: three dozen layers of kernels with
their operands and pipes, collectives on a stream of their own that overlap the next kernel, and a gap now and then.

What is compared does more than count lines: SHA-256 of the file, the width of every row, exact nanoseconds of fourteen
columns, the operands, and the sweep over all intervals. Before anything is timed, the Capture must count every row, sum
every duration, and have the same digest with one thread and with two; a file with one short row must be refused with
its line. The peak of memory is the child's own, as the system counts it.

Beside it, the least that any way of this kind must do is timed against the same `wc -l`: SHA-256 of the file, and
polars splitting it into the columns that are needed, as text, without looking at one.

Growth: rows, at a hundredth, a tenth and the whole.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from benchmarks.side_by_side import compare, median_seconds, process, report, report_growth  # noqa: E402
from tests.support.profiles import EAGER, OP_SUMMARY, Ran, kernel_table  # noqa: E402

ROWS = 330_000
FULL = 3_300_000
LAYERS = 36
EVERY = 12
"""Of so many kernels, one is a collective."""
SHORT = 700
KERNELS = (
    ("aclnnAddRmsNorm_AddRmsNorm_AddRmsNorm", "AddRmsNorm", "AI_VECTOR_CORE", 6_120,
     "{t},4096;{t},4096;4096", "{t},4096;{t},1;{t},4096"),
    ("aclnnMatmul_MatMulV3Common_MatMulV3", "MatMulV3", "AI_CORE", 30_480, "{t},4096;4096,6144", "{t},6144"),
    ("aclnnFusedInferAttentionScoreV3_FusedInferAttentionScore_FusedInferAttentionScore", "FusedInferAttentionScore",
     "MIX_AIC", 22_750, "{t},4096;{t},1024;{t},1024;;64", "{t},4096"),
    ("aclnnMatmul_MatMulV3Common_MatMulV3", "MatMulV3", "AI_CORE", 20_310, "{t},4096;4096,4096", "{t},4096"),
    ("aclnnMatmul_MatMulV3Common_MatMulV3", "MatMulV3", "AI_CORE", 121_070, "{t},4096;4096,24576", "{t},24576"),
    ("aclnnSwiGlu_SwiGlu_SwiGlu", "SwiGlu", "AI_VECTOR_CORE", 5_060, "{t},24576", "{t},12288"),
)  # fmt: skip
PIPES = {
    "AI_CORE": ("aic", "aic_mac", "aic_mte1", "aic_mte2"),
    "AI_VECTOR_CORE": ("aiv", "aiv_vec", "aiv_mte2", "aiv_mte3"),
    "MIX_AIC": ("aic", "aic_mac", "aic_mte2", "aiv", "aiv_vec"),
}

LEAST = {
    "SHA-256": "import hashlib, sys; hashlib.file_digest(open(sys.argv[1], 'rb'), 'sha256')",
    "polars, 25 of 46 columns as text": "import polars, sys;"
    " places = [0, 1, 4, 5, 7, 8, 9, 11, *range(14, 20), 21, 23, 25, 27, 29, 31, 34, 36, 38, 40, 42];"
    " frame = polars.scan_csv(sys.argv[1], infer_schema_length=0); names = frame.collect_schema().names();"
    " frame.select(names[at] for at in places).collect(engine='streaming')",
}


def kernels(count: int) -> list[Ran]:
    """Kernels of a decoding service, in the order of time."""
    found: list[Ran] = []
    at = 1_787_504_124_173_015_366
    for number in range(count):
        name, op_type, core, duration, inputs, outputs = KERNELS[number % len(KERNELS)]
        tokens = 1 << (number // (len(KERNELS) * LAYERS) % 8)
        duration += number * 7919 % 2_000
        if number % EVERY == 0 and number:
            found.append(Ran(f"hcom_allReduce__586_{number}_1", "hcom_allReduce_", "HCCL", at - 3_000, 9_870))
            at += 7_000
            continue
        shapes = (inputs.format(t=tokens), outputs.format(t=tokens))
        dtypes = tuple(";".join(["DT_BF16"] * (shape.count(";") + 1)) for shape in shapes)
        pipes = tuple((pipe, duration // place) for place, pipe in enumerate(PIPES[core], 1))
        both, task = (dtypes[0], dtypes[1]), number % 65_536
        found.append(Ran(name, op_type, core, at, duration, None, shapes, both, 20, pipes, EAGER, 0, 2, task))
        at += duration + number * 104_729 % 900
    return found


def write(path: Path, rows: int, period: int = 24 * len(KERNELS) * LAYERS) -> int:
    """A file of that many rows; returns the sum of all durations. The text repeats, the times do not."""
    layout = OP_SUMMARY["cann9"]
    period = min(period, rows)
    made = kernels(period)
    lines = kernel_table(made, layout).split("\n")
    span = made[-1].start + made[-1].duration + 1_000 - made[0].start
    total = 0
    with path.open("w") as stream:
        stream.write(lines[0] + "\n")
        cells = [line.partition("\t") for line in lines[1 : period + 1]]
        for number in range(rows):
            ran, (before, tab, after) = made[number % period], cells[number % period]
            start = ran.start + number // period * span
            stream.write(f"{before.rpartition(',')[0]},{start // 1000}.{start % 1000:03d}{tab}{after}\n")
            total += ran.duration
    return total


def ingest(path: Path, **environment: str) -> tuple[dict[str, Any], int]:
    """The answer of the command, and the peak of its memory in bytes: the largest of all children so far."""
    done = subprocess.run(command(path), check=True, capture_output=True, env={**os.environ, **environment})
    return json.loads(done.stdout), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def command(path: Path, *more: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "akf", "ingest", "profile", str(path), *more)


def check(work: Path, path: Path, rows: int, total: int) -> None:
    """Right before it is timed."""
    out = work / "capture.json"
    answer = json.loads(subprocess.run(command(path, "--out", str(out)), check=True, capture_output=True).stdout)
    entries = json.loads(out.read_bytes())["entries"]
    if (sum(entry["calls"] for entry in entries), sum(entry["time_ns"] for entry in entries)) != (rows, total):
        raise ValueError("the Capture lost rows or time")
    digests = {ingest(path, POLARS_MAX_THREADS=threads)[0]["digest"] for threads in ("1", "2")}
    if digests != {answer["digest"]}:
        raise ValueError("the digest depends on the number of threads")
    short = work / "short.csv"
    lines = path.read_bytes().split(b"\n")[: 2 * SHORT]
    lines[SHORT] = lines[SHORT].replace(b",dynamic,", b",", 1)
    short.write_bytes(b"\n".join(lines) + b"\n")
    refused = subprocess.run(command(short), capture_output=True, check=False)
    if json.loads(refused.stdout)["problems"][0]["line"] != SHORT + 1:
        raise ValueError("a short row is not refused with its line")


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        sizes = [max(rows // factor, 1_000) for factor in (100, 10, 1)]
        paths = [work / f"op_summary_{size}.csv" for size in sizes]
        totals = [write(path, size) for path, size in zip(paths, sizes, strict=True)]
        check(work, paths[-2], sizes[-2], totals[-2])
        largest = paths[-1]
        size = largest.stat().st_size
        comparison = compare(process(*command(largest, "--quiet")), process("wc", "-l", str(largest)), 5)
        what = f"ingest of {rows:,} rows, {size / 1e6:,.0f} MB"
        what += "" if rows >= FULL else f" (the goal is for {FULL:,} rows)"
        report("P11", what, "<= 10x wc -l within 600 MB, or <= 15x within 300 MB", comparison)
        _, peak = ingest(largest)
        print(f"    peak of memory {peak / 1e6:.0f} MB; {size / 1e6 / comparison.a_seconds:.0f} MB a second")
        for part, code in LEAST.items():
            least = compare(process(sys.executable, "-c", code, str(largest)), process("wc", "-l", str(largest)), 5)
            report("P11", f"{part} alone", "none: what the goal leaves out", least)
        report_growth((1, 10, 100), [median_seconds(process(*command(path, "--quiet"))) for path in paths])


if __name__ == "__main__":
    main()
