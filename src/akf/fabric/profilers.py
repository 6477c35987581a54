"""Times that the backend's own profiler takes: msprof for Ascend, nsys for CUDA.

Invariants:
- A profiler that this machine lacks is a fault of the worker, never of the candidate.
- Of msprof's kernels those count that ran once in each warm-up and run; of nsys's rows the same. The time of one run is
  the sum over them of the mean of the runs after the warm-up.
- A profiler without a table that is known is the worker's fault as well; one whose table counts no kernel is not.
- What a profiler wrote is read without following links, within bounds.
"""

from __future__ import annotations

import csv
import io
import shutil
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from akf.fabric.running import Ended

RUN_TIMES, WARMUP_TIMES = 50, 5
_MOST_TIMES = 1_000_000
_TABLE_BYTES = 256 * 1024**2
_PROGRAMS = {"ascend": "msprof", "cuda": "nsys"}
_REPORT = "akf_profile"
_REMEDIES = {
    "msprof": "source CANN's set_env.sh before the worker is started",
    "nsys": "install Nsight Systems, or put its bin folder on the PATH, before the worker is started",
}

Run = Callable[[list[str]], Awaitable[Ended]]


async def timed(
    work: Path, run: Run, argv: list[str], backend: str, settings: Mapping[str, Any]
) -> tuple[float | None, Ended]:
    """Run a script under the backend's profiler; its time in microseconds, and how the run went."""
    program = _PROGRAMS.get(backend)
    if program is None:
        return None, Ended("ended", 1, "", "", f"no profiler is known for the backend {backend!r}")
    if shutil.which(program) is None:
        return None, Ended(
            "infra_error", None, "", "", f"{program} is not on the PATH of this worker: {_REMEDIES[program]}"
        )
    warm_up, runs = _count(settings, "warmup_times", WARMUP_TIMES), _count(settings, "run_times", RUN_TIMES)
    before = _folders(work)
    if program == "msprof":
        ended = await run([program, f"--application={' '.join(argv)}", "--output=."])
        rows = _op_summary(work, before) if ended.succeeded else None
    else:
        ended = await run([program, "profile", "--force-overwrite=true", "--output", _REPORT, *argv])
        if ended.succeeded:
            ended = await run([program, "stats", "--report", "gputrace", "--format", "csv", f"{_REPORT}.nsys-rep"])
        rows = _gpu_trace(ended.out) if ended.succeeded else None
    if not ended.succeeded:
        return None, ended
    if rows is None:
        text = f"{program} ended well, and no table of kernels was found in what it wrote"
        return None, Ended("infra_error", None, ended.out, ended.err, f"{text}: is it a version with another layout?")
    time_us = _time_of_a_run(rows, warm_up, runs)
    if time_us is None:
        text = f"no kernel ran once in each of {warm_up} warm-ups and {runs} runs, of {len(rows)} kernels that ran"
        return None, ended._replace(detail=f"{text}: set warmup_times and run_times as the script has them")
    return time_us, ended


def _count(settings: Mapping[str, Any], name: str, default: int) -> int:
    value = settings.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_TIMES:
        return default
    return value


def _folders(work: Path) -> set[Path]:
    return set(work.glob("PROF_*"))


def _op_summary(work: Path, before: set[Path]) -> list[tuple[str, float]] | None:
    """Name and microseconds of every kernel in what msprof newly wrote; none when it wrote no such table."""
    rows: list[tuple[str, float]] | None = None
    for folder in sorted(_folders(work) - before):
        for path in sorted(folder.glob("mindstudio_profiler_output/op_summary_*.csv")):
            if path.is_symlink() or path.stat().st_size > _TABLE_BYTES:
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            found = _rows(text, "Op Name", "Task Duration(us)", 1.0)
            rows = rows if found is None else [*(rows or []), *found]
    return rows


def _gpu_trace(text: str) -> list[tuple[str, float]] | None:
    """Name and microseconds of every kernel in what nsys printed; what stands before the table is passed over."""
    start = text.find("Start")
    return _rows(text[start:] if start >= 0 else "", "Name", "Duration (ns)", 1e-3)


def _rows(text: str, name: str, duration: str, scale: float) -> list[tuple[str, float]] | None:
    table = csv.DictReader(io.StringIO(text))
    if not {name, duration} <= set(table.fieldnames or ()):
        return None
    found = []
    for row in table:
        with suppress(KeyError, TypeError, ValueError):
            found.append((row[name], float(row[duration]) * scale))
    return found


def _time_of_a_run(rows: Iterable[tuple[str, float]], warm_up: int, runs: int) -> float | None:
    by_name: dict[str, list[float]] = defaultdict(list)
    for name, duration in rows:
        by_name[name].append(duration)
    counted = [times[warm_up:] for times in by_name.values() if len(times) == warm_up + runs]
    total = sum(sum(times) / len(times) for times in counted if times)
    return total if total > 0 else None
