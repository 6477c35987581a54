"""`try`: the operator gate's checks on a file or a folder, without a campaign. For people and agents; no evidence.

Invariants:
- The checks are the harness's own, under its names and codes and in its order, and end at the first that does not pass.
- Inputs and held back shapes come from a fresh secret, as in a gate. What is compared with is the Task's plain kernel.
- What is timed holds the machine's lease, so that it disturbs no other measurement and none disturbs it.
- Speed is no reason to fail: figures are shown and judged by nobody. Nothing is written outside a temporary folder.
- A machine, a Task or a plain kernel at fault gives `cannot_tell`, never `fail`. A busy machine disturbs clocks at
  random: what only clocks say is a failure when every one of `TRIES` measurements says it.
"""

from __future__ import annotations

import math
import secrets
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from akf.contracts.canonical import jcs
from akf.contracts.documents import load
from akf.contracts.gates import PYTHON
from akf.contracts.measured import Measured
from akf.contracts.measured import measure as reduce_samples
from akf.contracts.problems import InvalidError, PreconditionError
from akf.contracts.rules.task import require_kernel, task_problems
from akf.evaluate.checks import evidence, timing
from akf.evaluate.program import Program, pack
from akf.evaluate.program import run as run_harness
from akf.evaluate.request import BATCHES, harness_plan, harness_request, seeds_for
from akf.evaluate.trial_objects import NotBuilt, objects_of
from akf.harness.plan import planned_ids
from akf.lease import HOST, FileLeases, default_folder, held
from akf.opportunity.tasks import with_texts

GATE = "operator"
CPU = "cpu"
CHECKS = ("sensitivity", "correctness", "isfinite", "hit_proof")
PAIRS, BLOCKS, CONFIDENCE = 6, 1, 0.95
ERROR_FACTOR = 2.0
TRIES = 3
WAIT_S = 600.0
_CLOCKS = frozenset({"TIMING_MISMATCH", "CORES_EXCEEDED"})
_POLICY = {"acceptance": {"error_factor": ERROR_FACTOR}}
_FIGURES = ("max_abs", "max_rel", "bound_share")


class _Trial(NamedTuple):
    """What is asked, and where."""

    task: dict[str, Any]
    request: dict[str, Any]
    program: Program
    work: Path

    def ask(self, command: str, attempt: str = "") -> tuple[dict[str, Any], dict[str, bytes]]:
        """One command of the harness: its report and its files."""
        folder = self.work / (attempt or command)
        folder.mkdir(exist_ok=True)
        limit = float(self.task["budget"]["evaluation_s"])
        answer = run_harness(self.program, command, self.request, folder, limit)
        return answer.report, answer.files


def try_candidate(task_path: Path, candidate: Path, device: str, *, quick: bool) -> dict[str, Any]:
    """Try a candidate of a Task.

    Args:
        task_path: a Task's folder, or its `task.json`.
        candidate: a folder of `candidate.json` and `src/`, or one Python file with `run(...)`.
        device: where the tensors of a Python candidate live: `cpu`, `cuda` or `npu`.
        quick: leave the timing out.

    Returns:
        `{diagnostic: true, task, abi, outcome: pass|fail|cannot_tell, reasons, checks, figures, isolation}`.

    Raises:
        InvalidError: the Task, or the candidate's folder, is invalid.
        PreconditionError: the Task asks for no kernel, or for one of another ABI.
        BlockedError: the machine lacks what it takes.
        ConflictError: another process measures here, for longer than `WAIT_S`.
    """
    task = _task(task_path)
    if device != CPU and task["abi"]["kind"] != PYTHON:
        message = f"the Task {task['id']!r} takes shared objects, which run on the processor and not on {device}"
        hint = "leave --device out, or try a module on a Task of the python ABI"
        raise PreconditionError.of("AKF-P413", message, expected=CPU, found=device, hint=hint)
    with tempfile.TemporaryDirectory(prefix="akf-try-") as scratch:
        work = Path(scratch)
        answer = {"diagnostic": True, "task": task["id"], "abi": task["abi"]["kind"], "device": device}
        try:
            objects = objects_of(task, candidate, work)
        except NotBuilt as failed:
            check = failed.check
            return {**answer, "outcome": "fail", "reasons": check["reasons"], "checks": [check], "figures": []}
        seeds = seeds_for(task, secrets.token_bytes(32), "", "", GATE, "")
        request = harness_request(task, _POLICY, objects, "auto", seeds, device=device)
        trial = _Trial(task, request, pack(work), work)
        report, files = trial.ask("check")
        checks = _until_stopped([evidence(name, report["checks"][name]) for name in CHECKS])
        figures = _errors(files["correctness.jsonl"])
        if not quick and _outcome(checks) == "pass":
            with held(FileLeases(default_folder()), [HOST], "akf try", WAIT_S):
                found, measured = _timed(trial)
            checks.append(found)
            figures += measured
        reasons = [code for check in checks if check["outcome"] != "pass" for code in check.get("reasons", ())]
        return {
            **answer,
            "isolation": report["facts"]["isolation"],
            "outcome": _outcome(checks),
            "reasons": list(dict.fromkeys(reasons)),
            "checks": checks,
            "figures": figures,
        }


def _task(path: Path) -> dict[str, Any]:
    document = load(path / "task.json" if path.is_dir() else path, "Task")
    problems = task_problems(document)
    if problems:
        raise InvalidError(problems)
    require_kernel(document.value)
    return with_texts(document)


def _until_stopped(checks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The checks up to the first that did not pass."""
    stop = next((place for place, check in enumerate(checks) if check["outcome"] != "pass"), len(checks))
    return checks[: stop + 1]


def _outcome(checks: list[dict[str, Any]]) -> str:
    """The fold; a machine that is too busy for its clocks withholds the figures and nothing else."""
    outcomes = {check["outcome"] for check in checks if (check["name"], check["outcome"]) != ("timing", "incomparable")}
    return "fail" if "fail" in outcomes else "pass" if outcomes == {"pass"} else "cannot_tell"


def _timed(trial: _Trial) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Timed batches, whose every output is checked, and what they say against the plain kernel."""
    report, _ = trial.ask("calibrate")
    calibration = report["checks"]["calibration"]
    if calibration["outcome"] != "pass":
        return evidence("timing", calibration), []
    launches, trip = report["facts"]["launches"], report["facts"]["round_trip_ns"]
    trial.request["plan"] = harness_plan(launches, trip, PAIRS, BLOCKS, BATCHES, ["aa", "ab"])
    for attempt in range(TRIES):
        report, files = trial.ask("measure", f"measure-{attempt}")
        check = timing(report["checks"], ["aa", "ab"])
        if not set(check.get("reasons", ())) & _CLOCKS:
            break
    if check["outcome"] != "pass":
        return check, []
    rows = [{"id": row["id"], "weight": row["weight"], "launches": launches[row["id"]]} for row in trial.task["rows"]]
    measurement = {
        "design": "abba", "statistic": "median", "better": "lower", "rows": rows, "pairs": PAIRS, "blocks": BLOCKS,
        "batches": BATCHES, "samples": planned_ids([row["id"] for row in rows], PAIRS, BLOCKS),
    }  # fmt: skip
    figures = []
    for name in ("aa", "ab"):
        lines = b"".join(jcs(orjson.loads(line)) + b"\n" for line in files[f"{name}.jsonl"].splitlines())
        figures += _intervals("noise" if name == "aa" else "gain", reduce_samples(measurement, lines, CONFIDENCE))
    return check, figures


def _intervals(name: str, found: Measured) -> list[dict[str, Any]]:
    if found.reduced is None:
        return []
    reductions = {name: found.reduced.total}
    if name == "gain":
        reductions |= {f"row:{row}": each for row, each in found.reduced.rows.items()}
    return [
        {
            "name": title, "estimate_ratio": each.interval.estimate - 1, "low_ratio": each.interval.low - 1,
            "high_ratio": each.interval.high - 1, "pairs": each.interval.n, "confidence": each.interval.confidence,
        }
        for title, each in reductions.items()
        if each.interval is not None
    ]  # fmt: skip


def _errors(lines: bytes) -> list[dict[str, Any]]:
    """The largest error of each side and output over all cases, against the reference in double precision.

    A figure without bound, say a relative error beside a true zero, is null: JSON has no number for it.
    """
    worst: dict[tuple[str, str], dict[str, Any]] = {}
    for text in lines.splitlines():
        line = orjson.loads(text)
        held = worst.setdefault(
            (line["side"], line["output"]), {"name": "error", "side": line["side"], "output": line["output"]}
        )
        for figure in _FIGURES:
            held[figure] = max(held.get(figure, 0.0), float.fromhex(line[figure]))
        held["max_ulp"] = max(held.get("max_ulp", 0), line["max_ulp"])
    for held in worst.values():
        held.update({figure: None for figure in _FIGURES if not math.isfinite(held[figure])})
    return list(worst.values())
