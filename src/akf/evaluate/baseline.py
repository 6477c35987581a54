"""The baseline alone, before any Campaign is ready: time by row, and A/A.

Invariants:
- The same harness, plan and statistics as in the operator gate; only the candidate is missing.
- Rows come from the Workload's shapes; inputs have the operands' declared form.
"""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path
from typing import Any

import orjson

from akf.contracts.canonical import jcs
from akf.contracts.measured import measure as reduce_samples
from akf.contracts.problems import BlockedError
from akf.evaluate.operator import GATE
from akf.evaluate.program import pack
from akf.evaluate.program import run as run_harness
from akf.evaluate.request import BATCHES, Objects, harness_plan, harness_request, seeds_for
from akf.frameworks.fill import Measured, source_digest
from akf.frameworks.host_reference import Baseline
from akf.harness.plan import planned_ids

_TIMEOUT_S = 300.0
_TRIES = 3  # a machine that is busy for a moment is not a machine that cannot measure


def measure_baseline(task: dict[str, Any], campaign: dict[str, Any], baseline: Baseline) -> Measured:
    """Calibrate the baseline and measure A/A.

    Args:
        task: a Task as written by hand, with its reference text.
        campaign: the Campaign; its pairs and blocks are used.
        baseline: the compiled baseline.

    Raises:
        BlockedError: this machine cannot time it.
    """
    seeds = seeds_for(task, secrets.token_bytes(32), "", "", GATE, "")
    request = harness_request(task, campaign, Objects(baseline, None, None), "auto", seeds)
    pairs, blocks = campaign["acceptance"]["pairs"][GATE], campaign["acceptance"]["pairs"]["blocks"]
    with tempfile.TemporaryDirectory(prefix="akf-baseline-") as scratch:
        work = Path(scratch)
        program = pack(work)
        answer = run_harness(program, "calibrate", request, work, _TIMEOUT_S)
        _passed(answer.report["checks"])
        launches, trip = answer.report["facts"]["launches"], answer.report["facts"]["round_trip_ns"]
        request["plan"] = harness_plan(launches, trip, pairs, blocks, BATCHES, ["aa"])
        for attempt in range(1, _TRIES + 1):
            folder = work / f"try-{attempt}"
            folder.mkdir()
            answer = run_harness(program, "measure", request, folder, _TIMEOUT_S)
            if answer.report["checks"]["aa"]["outcome"] != "incomparable":
                break
        _passed(answer.report["checks"])
    lines = [orjson.loads(line) for line in answer.files["aa.jsonl"].splitlines()]
    rows = [{"id": row["id"], "weight": row["weight"], "launches": launches[row["id"]]} for row in task["rows"]]
    measurement = {
        "design": "abba", "statistic": "median", "better": "lower", "rows": rows, "pairs": pairs, "blocks": blocks,
        "batches": BATCHES, "samples": planned_ids([row["id"] for row in rows], pairs, blocks),
    }  # fmt: skip
    data = b"".join(jcs(line) + b"\n" for line in lines)
    found = reduce_samples(measurement, data, campaign["acceptance"]["confidence"])
    if found.reduced is None or found.reduced.total.interval is None:
        raise BlockedError.of("AKF-E105", f"A/A could not be computed: {found.note or found.code}")
    interval = found.reduced.total.interval
    return Measured(
        tool="akf.harness",
        entries=[_entry(task, row, lines, launches[row["id"]]) for row in task["rows"]],
        low_ratio=interval.low,
        high_ratio=interval.high,
        pairs=interval.n,
        source_digest=source_digest({"samples": lines, "launches": launches}),
    )


def _entry(task: dict[str, Any], row: dict[str, Any], lines: list[dict[str, Any]], launches: int) -> dict[str, Any]:
    batches = [value for line in lines if line["row"] == row["id"] for value in line["values"]]
    return {
        "callsite": task["callsite"],
        "symbols": row["symbols"],
        "core_type": "cpu",
        "calls": launches * len(batches),
        "time_ns": sum(batches),
    }


def _passed(checks: dict[str, Any]) -> None:
    for name, check in checks.items():
        if check["outcome"] != "pass":
            message = f"the baseline could not be measured on this machine ({name})"
            raise BlockedError.of(
                "AKF-E105", message, found=check["reasons"], hint="is the machine idle, and is its memory free?"
            )
