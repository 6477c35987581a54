"""Eight processes that want the same name at the same moment: one gets it, seven exit with status 5, nothing breaks.

Losers are told that the name is taken or that the run is in use; both are a conflict.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support import evidence, runs
from tests.support.cli import Answer
from tests.support.process import together

from akf.audit import audit
from akf.candidates import submit
from akf.cli.commands.judge import judge
from akf.contracts.problems import AkfError
from akf.store import ledger
from akf.store.overview import overview
from akf.store.run import Run
from akf.store.snapshot import init_run

RACERS = 8
CONFLICT = 5
TURNS = 3


def race(*words: object) -> list[Answer]:
    """The same command, eight times at once, each in a process of its own."""
    command = [sys.executable, "-m", "akf", *map(str, words)]
    racers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        for _ in range(RACERS)
    ]
    answers = []
    for racer in racers:
        out, err = racer.communicate(timeout=120)
        answers.append(Answer(racer.returncode, out, err.decode("utf-8", "backslashreplace")))
    return answers


def one_won(answers: Sequence[Answer], codes: set[str]) -> Answer:
    """The winner; the others say why they lost."""
    assert sorted(answer.status for answer in answers) == [0, *[CONFLICT] * (RACERS - 1)]
    for answer in answers:
        if answer.status:
            answer.refused(CONFLICT)
            assert answer.codes <= codes
    return next(answer.accepted() for answer in answers if answer.status == 0)


def sound(run: Path, keys: Path, pinned: str = "pinned") -> dict[str, object]:
    """What the audit says of a run in which nothing is left of the losers."""
    told = audit(run, keys / "trust.json")
    assert (told["pending"], told["leftovers"], told["trust"]) == ([], [], pinned)
    assert not list(run.parent.rglob(".akf-*"))
    assert overview(run)["pending"] == []
    return told


def status(step: Callable[[], object]) -> int:
    try:
        step()
    except AkfError as error:
        return error.exit_code
    return 0


def one_of_eight(step: Callable[[], object]) -> None:
    """As `race`, but in forks that start within microseconds of one another."""
    assert sorted(together([partial(status, step)] * RACERS)) == [0, *[CONFLICT] * (RACERS - 1)]


def different(folder: Path, name: str) -> Path:
    """A submission with sources of its own."""
    runs.submission(folder, edit=lambda manifest: manifest.update(id=name))
    (folder / "src" / "more.hpp").write_text(f"// {folder.name}\n", encoding="utf-8")
    return folder


class TestInitRun:
    def test_processes(self, ready: runs.Ready, tmp_path: Path) -> None:
        root = tmp_path / "runs"
        answers = race("init-run", ready.campaign, "--runs-root", root, "--run-id", "same", "--keys", ready.keys)
        won = one_won(answers, {"AKF-C101"})
        assert won.document["run"] == "same"
        assert sound(root / "same", ready.keys)["ledger_lines"] == 1
        assert [path.name for path in root.iterdir()] == ["same"]

    def test_forks(self, ready: runs.Ready, tmp_path: Path) -> None:
        for turn in range(TURNS):
            root = tmp_path / str(turn)
            one_of_eight(lambda root=root: init_run(ready.campaign, root, ready.keys, "same"))  # type: ignore[misc]
            assert sound(root / "same", ready.keys)["ledger_lines"] == 1
            assert [path.name for path in root.iterdir()] == ["same"]


class TestSubmit:
    def test_processes(self, ready: runs.Ready, open_run: Path, tmp_path: Path) -> None:
        folder = runs.submission(tmp_path / "folder")
        won = one_won(
            race("submit", open_run, folder, "--keys", ready.keys), {"AKF-C101", "AKF-C103", "AKF-C107", "AKF-C108"}
        )
        assert sound(open_run, ready.keys)["attempts"] == 1
        assert Run.open(open_run).lines()[-1].facts["source_digest"] == won.document["source_digest"]

    def test_forks(self, ready: runs.Ready, open_run: Path, tmp_path: Path) -> None:
        folder = runs.submission(tmp_path / "folder")
        for turn in range(TURNS):
            run = runs.clone(open_run, tmp_path / str(turn) / "run")
            one_of_eight(lambda run=run: submit(run, folder, ready.keys))  # type: ignore[misc]
            told = sound(run, ready.keys)
            assert (told["attempts"], told["ledger_lines"]) == (1, 3)

    def test_other_folders_of_one_name(self, ready: runs.Ready, open_run: Path, tmp_path: Path) -> None:
        """The name decides too, not the sources alone."""
        folders = [different(tmp_path / str(number), "same") for number in range(RACERS)]
        steps = [partial(status, partial(submit, open_run, folder, ready.keys)) for folder in folders]
        assert sorted(together(steps)) == [0, *[CONFLICT] * (RACERS - 1)]
        assert sound(open_run, ready.keys)["attempts"] == 1

    def test_other_names(
        self, ready: runs.Ready, open_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Who found the run in use comes again; nobody's line breaks another's, however long it takes to write it."""
        real = ledger.render

        def slow(*args: Any, **fields: Any) -> bytes:
            time.sleep(0.02)
            return real(*args, **fields)

        monkeypatch.setattr(ledger, "render", slow)
        folders = [different(tmp_path / str(number), f"racer-{number}") for number in range(RACERS)]

        def patient(folder: Path) -> int:
            """How often the run was in use."""
            lost = 0
            while (code := status(lambda: submit(open_run, folder, ready.keys))) == CONFLICT:
                lost += 1
                time.sleep(0.01)
            assert code == 0
            return lost

        assert sum(together([partial(patient, folder) for folder in folders])) > 0
        told = sound(open_run, ready.keys)
        assert (told["attempts"], told["ledger_lines"]) == (RACERS, 2 + RACERS)


class TestJudge:
    def test_processes(self, whole_run: Path, whole_keys: Path) -> None:
        answers = race("judge", whole_run, whole_run / "attempts" / "fused" / "gates", "--keys", whole_keys)
        won = one_won(answers, {"AKF-C101", "AKF-C103"})
        assert won.document["verdict"] == "promotable"
        told = sound(whole_run, whole_keys)
        assert told["decisions"] == [
            {"candidate": "fused", "verdict": "promotable", "digest": Run.open(whole_run).lines()[-1].digest}
        ]

    def test_forks(self, whole_keys: Path, tmp_path: Path) -> None:
        made = runs.on_disk(evidence.evidence(gates=("environment", "operator")), tmp_path / "made")
        for turn in range(TURNS):
            run = runs.clone(made, tmp_path / str(turn) / "run")
            gates = run / "attempts" / "fused" / "gates"
            one_of_eight(lambda run=run, gates=gates: judge(run, gates, False, False, None, whole_keys))  # type: ignore[misc]
            sound(run, whole_keys)
            assert [line.event for line in Run.open(run).lines()].count("decision") == 1


def beside(change: Callable[[], object], run: Path, keys: Path) -> None:
    """Two readers while a command works: what they see is the old state or the new one."""

    def read() -> list[int]:
        steps = (lambda: audit(run, keys / "trust.json"), lambda: overview(run))
        return [status(step) for _ in range(4) for step in steps]

    assert together([partial(status, change), read, read]) == [0, [0] * 8, [0] * 8]
    sound(run, keys)


class TestReaders:
    def test_submit(self, ready: runs.Ready, open_run: Path, tmp_path: Path) -> None:
        folder = runs.submission(tmp_path / "folder")
        for turn in range(TURNS):
            run = runs.clone(open_run, tmp_path / str(turn) / "run")
            beside(partial(submit, run, folder, ready.keys), run, ready.keys)

    def test_judge(self, whole_keys: Path, tmp_path: Path) -> None:
        made = runs.on_disk(evidence.evidence(gates=()), tmp_path / "made")
        for turn in range(TURNS):
            run = runs.clone(made, tmp_path / str(turn) / "run")
            gates = run / "attempts" / "fused" / "gates"
            beside(partial(judge, run, gates, False, False, None, whole_keys), run, whole_keys)
