"""`demo`: the whole line on this machine, from source files to Decisions.

Invariants:
- Every step is the real command's own code; nothing is recorded, stubbed or skipped.
- It works in a new folder and leaves a run that `akf audit` accepts.
- A candidate whose gate this machine was too noisy to measure is tried again, as anyone may, and all tries stay.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from akf.cli.result import Result
from akf.contracts.problems import ConflictError, DefectError
from akf.contracts.shipped import shipped

FOLDER = "akf-demo"
CANDIDATES = ("rmsnorm-fused", "rmsnorm-naive", "rmsnorm-wrong", "rmsnorm-replay", "rmsnorm-later")
SUITE = "qwen3-8b-a3-bf16"
TRIES = 3
WAIT_S = 600.0
NOTE = "These Decisions are about this machine alone. Without model and serving gates nothing is promotable."


class _Progress:
    """Lines for people, with the seconds since the start."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return round(time.monotonic() - self._start, 1)

    def __call__(self, text: str) -> None:
        print(f"[{self.seconds:5.1f} s] {text}", file=sys.stderr, flush=True)


def demo(folder: Path | None) -> Result:
    """Run it all and answer with one document."""
    from akf.audit import audit  # noqa: PLC0415
    from akf.cli.commands.fill import fill  # noqa: PLC0415
    from akf.contracts.rules.check import check_suite  # noqa: PLC0415
    from akf.evaluate.program import require_numpy  # noqa: PLC0415
    from akf.frameworks.host_reference import compiler  # noqa: PLC0415
    from akf.opportunity.tasks import open_task  # noqa: PLC0415
    from akf.store.snapshot import init_run  # noqa: PLC0415

    require_numpy()
    compiler()
    work = _empty(folder or Path(FOLDER))
    say = _Progress()
    os.environ["AKF_STATE"] = str(work.absolute() / "state")  # secrets stay in the demo's folder, outside the run
    keys = work / "keys"
    suite = check_suite(shipped("suites") / SUITE / "suite.json")
    say(f"suite {SUITE}: valid {suite.valid}, ready {suite.ready}, {len(suite.blockers)} facts wait for a board")
    say("filling in this machine's facts, measuring the baseline and its noise")
    filled = fill(
        shipped("suites") / "host-demo" / "arms" / "host_reference.json", True, work / "suite", keys, []
    ).document
    say(f"noise limit {filled['noise_limit_ratio']:.1%}; A/A over {filled['aa']['pairs']} pairs of processes")
    run = init_run(Path(filled["campaign"]), work / "runs", keys)
    open_task(run, shipped("examples") / "tasks" / "rmsnorm" / "task.json", keys)
    say(f"run {run.name}: Suite, Campaign, Workload and Capture are frozen; the Task is open")
    rows = [_candidate(run, name, keys, say) for name in CANDIDATES]
    audited = audit(run, keys / "trust.json")
    say(f"audit: {audited['ledger_lines']} ledger lines, {len(audited['decisions'])} decisions recomputed, all hold")
    _table(rows)
    return Result(
        {
            "folder": str(work),
            "run": str(run),
            "suite": {"id": SUITE, "valid": suite.valid, "ready": suite.ready, "blockers": len(suite.blockers)},
            "noise_limit_ratio": filled["noise_limit_ratio"],
            "candidates": rows,
            "audit": {
                "trust": audited["trust"],
                "ledger_lines": audited["ledger_lines"],
                "ledger_head": audited["ledger_head"],
            },
            "wall_s": say.seconds,
            "note": NOTE,
        }
    )


def _empty(folder: Path) -> Path:
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        message = f"{folder} is not an empty folder"
        raise ConflictError.of(
            "AKF-C110", message, file=str(folder), hint="name a new folder: akf demo --folder FOLDER"
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")  # keys and secrets are in it
    return folder


def _candidate(run: Path, name: str, keys: Path, say: _Progress) -> dict[str, Any]:
    """Take one candidate from the inbox to a Decision."""
    from akf.build import build  # noqa: PLC0415
    from akf.candidates import intake, submit  # noqa: PLC0415
    from akf.cli.commands.judge import judge  # noqa: PLC0415
    from akf.evaluate import evaluate  # noqa: PLC0415

    source = run / "inbox" / name
    shutil.copytree(shipped("examples") / "candidates" / name, source)
    entry = intake(run, keys)[0]
    if entry["candidate"] is None:
        raise DefectError.of("AKF-X003", f"the shipped candidate {name} was refused", found=entry["problems"])
    candidate = entry["candidate"]
    for attempt in range(1, TRIES + 1):
        say(f"{candidate}: building, twice, and its wrong twin")
        build(run, candidate, keys)
        say(f"{candidate}: correctness, hit proof, timing against the baseline")
        gate = evaluate(run, candidate, "operator", keys, wait_s=WAIT_S)
        if gate["status"] != "incomparable" or attempt == TRIES:
            break
        say(f"{candidate}: this machine was too noisy to tell; trying the same sources again")
        candidate = submit(run, source, keys, retry=True)["id"]
    shutil.rmtree(source)
    decided = judge(run, run / "attempts" / candidate / "gates", False, False, None, keys).document
    say(f"{candidate}: {decided['verdict']} ({decided['decision']['reasons'][0]['code']})")
    return _row(candidate, decided, gate)


def _row(candidate: str, decided: dict[str, Any], gate: dict[str, Any]) -> dict[str, Any]:
    interval = next(
        (check["interval"] for check in gate["checks"] if check["name"].startswith("gain:") and "interval" in check),
        None,
    )
    return {
        "candidate": candidate,
        "verdict": decided["verdict"],
        "reasons": list(dict.fromkeys(reason["code"] for reason in decided["decision"]["reasons"])),
        "operator_gate": gate["status"],
        "isolation": gate["isolation"],
        "gain": interval
        and {"low": interval["low"] - 1, "estimate": interval["estimate"] - 1, "high": interval["high"] - 1},
        "decision": decided["path"],
    }


def _table(rows: list[dict[str, Any]]) -> None:
    print(
        f"\n  {'candidate':<18}{'verdict':<15}{'operator':<14}{'gain against the baseline':<32}first reason",
        file=sys.stderr,
    )
    for row in rows:
        gain = row["gain"]
        shown = f"{gain['estimate']:+.1%} [{gain['low']:+.1%}, {gain['high']:+.1%}]" if gain else "-"
        print(
            f"  {row['candidate']:<18}{row['verdict']:<15}{row['operator_gate']:<14}{shown:<32}{row['reasons'][0]}",
            file=sys.stderr,
        )
    print(file=sys.stderr)
