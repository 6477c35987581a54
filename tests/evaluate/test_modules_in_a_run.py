"""Candidates of the python ABI in a run: submitted, frozen, measured in full, judged; and no cheat among them leads on.

The corpus is the one that `akf try` is tested with. What only clocks say depends on the machine and is no matter here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.evaluate.cheats import CHEATS, CONTROLS
from tests.support import runs
from tests.support.cli import inside
from tests.support.runs import Ready

from akf.contracts.canonical import digest
from akf.contracts.shipped import shipped

Value = dict[str, Any]
CORPUS = {**CHEATS, **CONTROLS}
TASKS = shipped("examples") / "tasks"
SPEED = frozenset({"NO_LOCAL_GAIN", "LOSS_SHOWN", "ROW_REGRESSED"})
"""Why an honest candidate may be rejected."""
QUICK = ("falls_back_in_a_helper",)
EVIDENCE = ("sensitivity", "correctness", "isfinite", "hit_proof")
PARTS = 8
"""Pieces of the corpus, so that the slices of the long suites are of one size."""

pytestmark = pytest.mark.usefixtures("compiler", "state")


@pytest.fixture(scope="module")
def torch_here() -> None:
    pytest.importorskip("numpy", reason="the harness needs numpy")
    pytest.importorskip("torch", reason="a candidate in Python needs torch")


def opened(ready: Ready, folder: Path, task: str, edit: Any = None) -> tuple[Path, Ready]:
    """A run for modules with its Task open."""
    mine = runs.for_modules(ready, folder / "suite", task, edit)
    run = runs.new_run(mine, folder)
    inside("open-task", run, TASKS / task / "task.json", "--keys", mine.keys).accepted()
    return run, mine


def built(run: Path, keys: Path, folder: Path, task: str, name: str, text: str) -> Value:
    """Submit and build one module; its Build."""
    inside("submit", run, runs.module(folder, task, name, text), "--keys", keys).accepted()
    inside("build", run, name, "--keys", keys).accepted()
    found: Value = json.loads((run / "attempts" / name / "build.json").read_bytes())
    return found


def evaluated(run: Path, keys: Path, name: str) -> Value:
    """Its operator gate."""
    runs.patiently(lambda: inside("evaluate", run, name, "--gate", "operator", "--keys", keys).accepted().document)
    found: Value = json.loads((run / "attempts" / name / "gates" / "operator.json").read_bytes())
    return found


def judged(run: Path, keys: Path, name: str) -> Value:
    inside("judge", run, run / "attempts" / name / "gates", "--keys", keys).accepted()
    found: Value = json.loads((run / "attempts" / name / "decision.json").read_bytes())
    return found


def test_a_module_is_frozen_as_it_is(ready: Ready, tmp_path: Path) -> None:
    run, mine = opened(ready, tmp_path, "small")
    source = CONTROLS["plain"].source
    build = built(run, mine.keys, tmp_path / "agent", "small", "honest", source)
    assert (build["route"], build["stage"], build["tools"], build["commands"]) == ("python", "source", [], [])
    assert [(each["path"], each["role"], each["trust"]) for each in build["outputs"]] == [
        ("candidate/kernel.py", "module", "host_code"),
        ("perturbed/kernel.py", "module", "host_code"),
    ]
    assert build["outputs"][0]["digest"] == digest(source.encode())
    wrong = (TASKS / "small" / "perturbed" / "python" / "kernel.py").read_bytes()
    assert (run / "attempts" / "honest" / "build" / "perturbed" / "kernel.py").read_bytes() == wrong


def of_another_route(folder: Path) -> None:
    runs.change(folder / "candidate.json", lambda value: value.update(route="host_cpp"))


def without_a_module(folder: Path) -> None:
    (folder / "src" / "kernel.py").rename(folder / "src" / "kernel.txt")


def with_a_launch_spec(folder: Path) -> None:
    runs.change(folder / "candidate.json", lambda value: value.update(launch="kernel.py"))


@pytest.mark.parametrize("edit", [of_another_route, without_a_module, with_a_launch_spec])
def test_a_module_that_nobody_could_call_is_refused(edit: Any, ready: Ready, tmp_path: Path) -> None:
    run, mine = opened(ready, tmp_path, "small")
    folder = runs.module(tmp_path / "agent", "small", "honest", CONTROLS["plain"].source)
    edit(folder)
    assert inside("submit", run, folder, "--keys", mine.keys).refused(1).codes == {"AKF-M047"}


def test_a_task_for_modules_needs_a_capability_tuple(ready: Ready, tmp_path: Path) -> None:
    run = runs.new_run(ready, tmp_path)
    answer = inside("open-task", run, TASKS / "small" / "task.json", "--keys", ready.keys).refused(4)
    assert answer.codes == {"AKF-P103", "AKF-P104"}


def test_an_incumbent_that_is_not_the_task_s_is_compared_with_nothing(ready: Ready, tmp_path: Path) -> None:
    run, mine = opened(
        ready, tmp_path, "small", lambda campaign: campaign["baseline"].update(incumbent_digest=digest(b"another"))
    )
    built(run, mine.keys, tmp_path / "agent", "small", "honest", CONTROLS["plain"].source)
    answer = inside("evaluate", run, "honest", "--gate", "operator", "--keys", mine.keys).refused(4)
    assert answer.codes == {"AKF-P119"}


@pytest.mark.soak
@pytest.mark.usefixtures("torch_here")
def test_a_module_is_measured_in_full_and_may_not_be_promoted(ready: Ready, tmp_path: Path) -> None:
    run, mine = opened(ready, tmp_path, "small")
    built(run, mine.keys, tmp_path / "agent", "small", "honest", CONTROLS["plain"].source)
    gate = evaluated(run, mine.keys, "honest")
    outcomes = {check["name"]: check["outcome"] for check in gate["checks"]}
    assert {outcomes[name] for name in EVIDENCE} == {"pass"}
    assert gate["identity"]["route"] == "python"
    assert {Path(each["path"]).name for each in gate["samples"]} == {"aa.jsonl", "ab.jsonl", "correctness.jsonl"}
    assert {each["row"] for each in reasons(judged(run, mine.keys, "honest")) if each["code"] not in SPEED} <= {2, 5}
    inside("audit", run, "--trust", mine.keys / "trust.json").accepted()


@pytest.mark.usefixtures("torch_here")
def test_cheats_are_rejected_for_true_reasons(ready: Ready, tmp_path: Path) -> None:
    run, mine = opened(ready, tmp_path, "small")
    for name in QUICK:
        rejected(run, mine.keys, tmp_path / name, name)


@pytest.mark.soak
@pytest.mark.usefixtures("torch_here")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("task", sorted({each.task for each in CORPUS.values()}))
def test_the_corpus_in_runs_of_its_tasks(task: str, part: int, ready: Ready, tmp_path: Path) -> None:
    """Every cheat is rejected for a true reason, and no honest one for any but its speed."""
    names = [name for name in sorted(CORPUS) if CORPUS[name].task == task][part::PARTS]
    if not names:
        return
    run, mine = opened(ready, tmp_path, task, lambda campaign: campaign["budget"].update(attempts=1000))
    for name in names:
        if name in CHEATS:
            rejected(run, mine.keys, tmp_path / name, name)
        else:
            honoured(run, mine.keys, tmp_path / name, name)


def rejected(run: Path, keys: Path, folder: Path, name: str) -> None:
    """Carry one cheat through the run."""
    cheat, known = CHEATS[name], named(name)
    built(run, keys, folder, cheat.task, known, cheat.source)
    gate = evaluated(run, keys, known)
    found = {code for check in gate["checks"] for code in check.get("reasons", ())}
    decision = judged(run, keys, known)
    assert decision["verdict"] == "rejected", (name, gate["checks"])
    assert found & cheat.reasons, (name, found)
    assert {each["code"] for each in reasons(decision) if each["row"] == 1} & found, name


def honoured(run: Path, keys: Path, folder: Path, name: str) -> None:
    """Carry one control through the run."""
    control, known = CONTROLS[name], named(name)
    built(run, keys, folder, control.task, known, control.source)
    gate = evaluated(run, keys, known)
    outcomes = {check["name"]: check["outcome"] for check in gate["checks"]}
    assert {outcomes[each] for each in ("sensitivity", "correctness", "isfinite", "hit_proof")} == {"pass"}, (
        name,
        gate,
    )
    against = {each["code"] for each in reasons(judged(run, keys, known)) if each["row"] == 1}
    assert against <= SPEED, (name, against)


def named(name: str) -> str:
    return name.replace("_", "-")[:48]


def reasons(decision: Value) -> list[Value]:
    found: list[Value] = decision["reasons"]
    return found
