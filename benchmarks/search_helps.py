"""Does the search without a model help: is what it finds as fast as the best of all points, for a quarter of the tries?

For each kernel: the search; its winner through the operator gate of a run on this machine, against the arm's baseline;
every point of the space, timed; then the winner against the best of all of them, by pairs of fresh processes. It is
shown to be more than 5 % slower when the whole interval lies below -5 %.

    python benchmarks/search_helps.py [--kernel softmax] [--no-sweep] [--seed 0]

A sweep takes an evaluation for each point, about a quarter of an hour. Cost grows with the number of points, linearly.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from akf.agents.control import akf
from akf.agents.files import Files
from akf.agents.gate import Supervisor
from akf.agents.limits import Limits, Meter
from akf.agents.space import Point, Space, load_space
from akf.agents.trial import Trial, try_files
from akf.agents.tuner import tune

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ("rmsnorm", "softmax", "matmul")
MARGIN = 0.05
SET_UP_S = 600.0


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def trier(task: Path) -> Any:
    meter = Meter(Limits(0, 1e6, 10_000))

    def run(files: Files, timed: bool) -> Trial:
        found = try_files(task, files, meter, timed=timed)
        say(f"  {found.outcome} {'' if found.speed is None else f'{found.speed:.2f}x'} {' '.join(found.reasons)}")
        return found

    return run


def supervised(work: Path) -> Supervisor:
    """A run on this machine, with all three operators' baselines."""
    os.environ["AKF_STATE"] = str(work / "state")
    draft, keys = ROOT / "suites" / "host-kernels" / "arms" / "host_reference.json", work / "keys"
    akf("fill", draft, "--host", "--out", work / "ready", "--keys", keys, limit_s=SET_UP_S).need()
    campaign = work / "ready" / "arms" / "host_reference.json"
    made = akf("init-run", campaign, "--runs-root", work / "runs", "--keys", keys, limit_s=SET_UP_S).need()
    return Supervisor(work / "runs" / made["run"], keys)


def against(best: Point, winner: Point, space: Space, task: Path, work: Path) -> Trial:
    """The winner against the best of the sweep, in the place of the Task's plain kernel."""
    copy = work / f"{task.name}-best"
    shutil.copytree(task, copy)
    for path, text in space.render(best).items():
        (copy / "plain" / "host_cpp" / path).write_text(text, encoding="utf-8")
    return try_files(copy, space.candidate(winner), Meter(Limits(0, 1e6, 10)), timed=True)


def searched(name: str, supervisor: Supervisor, work: Path, seed: int, *, sweep: bool) -> dict[str, Any]:
    task, space = ROOT / "examples" / "tasks" / name, load_space(ROOT / "examples" / "spaces" / name)
    run = trier(task)
    start = time.monotonic()
    say(f"{name}: searching {space.size} points")
    found = tune(space, run, seed=seed)
    if found.best is None:
        raise SystemExit(f"{name}: no point of the space works here")
    answer: dict[str, Any] = {
        "kernel": name, "points": space.size, "evaluations": found.evaluations, "winner": space.values(found.best),
        "speed": found.speed, "search_s": round(time.monotonic() - start, 1),
    }  # fmt: skip
    supervisor.open(task)
    note = f"Found in {found.evaluations} tries of a space of {space.size}."
    folder = space.name(found.best)
    answer["decision"] = supervisor.decide(supervisor.take(folder, space.candidate(found.best, note)), folder)
    say(f"{name}: {answer['decision']}")
    if sweep:
        trials = {point: run(space.candidate(point), True) for point in space.points()}
        speeds = {point: each.speed for point, each in trials.items() if each.passed and each.speed is not None}
        best = max(speeds, key=lambda point: speeds[point])
        duel = against(best, found.best, space, task, work)
        answer["sweep"] = {
            "best": space.values(best), "speed": speeds[best], "failed": len(trials) - len(speeds),
            "winner_to_best": [duel.low, duel.speed, duel.high],
            "shown_slower": duel.high is not None and duel.high < 1 / (1 + MARGIN),
        }  # fmt: skip
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--kernel", action="append", choices=KERNELS)
    parser.add_argument("--no-sweep", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="akf-search-") as scratch:
        supervisor = supervised(Path(scratch))
        for name in options.kernel or KERNELS:
            found = searched(name, supervisor, Path(scratch), options.seed, sweep=not options.no_sweep)
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
