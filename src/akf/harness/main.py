"""Commands of the harness: `check`, `calibrate`, `measure`.

Usage: `harness COMMAND REQUEST.json OUTDIR`. Exit status: 0 the report is written (whatever it says), 2 the request
cannot be used, 3 an artifact is not what its digest says, 6 the machine cannot do it.

Invariants:
- `report.json` is written in every case that got as far as a readable output folder.
- What is not reproducible (load, wall time, logs) goes to `side.json`, never into the report or the samples.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Optional

from . import request as requests
from .bench import Bench
from .outcome import Check, HarnessError
from .sources import digest

_PR_SET_CHILD_SUBREAPER = 36


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    text = "".join(json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")


def _report(
    command: str, checks: dict[str, Check], facts: dict[str, Any], error: Optional[HarnessError]
) -> dict[str, Any]:
    return {
        "kind": "HarnessReport",
        "schema_version": 1,
        "command": command,
        "checks": {name: item.as_json() for name, item in checks.items()},
        "facts": {"harness_digest": digest(), "python": platform.python_version(), **facts},
        "error": None if error is None else {"code": error.code, "message": error.message},
    }


def _run(command: str, path: str, out: Path, side: dict[str, Any]) -> dict[str, Any]:
    request = requests.load(path)
    bench = Bench(request, pin=command != "check")
    try:
        result = _command(command, bench)
    finally:
        bench.close()
    for name, lines in result.get("samples", {}).items():
        _write_lines(out / f"{name}.jsonl", lines)
    side.update(result.get("side", {}))
    return _report(command, result["checks"], {**bench.facts, **result["facts"]}, None)


def _command(command: str, bench: Bench) -> dict[str, Any]:
    if command == "check":
        from .correct import check  # noqa: PLC0415 - the other commands need none of it

        return check(bench)
    from . import timing  # noqa: PLC0415 - as above

    return timing.calibrate(bench) if command == "calibrate" else timing.measure(bench)


def main(arguments: list[str]) -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="harness", description="Measure one kernel against its baseline.")
    parser.add_argument("command", choices=("check", "calibrate", "measure"))
    parser.add_argument("request", help="request.json")
    parser.add_argument("out", help="folder for the report and the samples; it must exist")
    options = parser.parse_args(arguments)
    out = Path(options.out)
    if not out.is_dir():
        sys.stderr.write(f"harness: {out} is not a folder\n")
        return 2
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    side: dict[str, Any] = {"started_unix": int(time.time()), "load_before": list(os.getloadavg())}
    clock = time.perf_counter()
    status = 0
    try:
        report = _run(options.command, options.request, out, side)
    except HarnessError as error:
        report, status = _report(options.command, {}, {}, error), error.exit_code
        sys.stderr.write(f"harness: {error}\n")
    side.update({"wall_s": round(time.perf_counter() - clock, 3), "load_after": list(os.getloadavg())})
    _write(out / "side.json", side)
    _write(out / "report.json", report)
    return status
