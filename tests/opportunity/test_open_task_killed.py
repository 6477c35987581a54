"""`open-task` with a triage answer, stopped anywhere: what stands is whole, and the same command ends it.

Three artifacts appear: a further Capture that the Triage looked at, the Triage, the Task.
The default run takes a slice of all points, `soak` takes the whole.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.support import captures, runs, soak
from tests.support.cli import inside
from tests.support.kill import Report, kill_points
from tests.support.process import together

from akf.audit import audit
from akf.contracts.problems import AkfError, ConflictError
from akf.opportunity.tasks import open_task
from akf.store import layout
from akf.store.run import Run

PARTS = 20  # of which the default run takes one
RACERS = 8


class Stock:
    """A run, its answer and a Task folder, and what the run is when all is done."""

    def __init__(self, folder: Path, traced: runs.Ready, traced_run: Path) -> None:
        self.run, self.keys = traced_run, traced.keys
        self.answer = folder / "triage.json"
        self.other = folder / "other.json"
        self.other.write_text(json.dumps(captures.capture(captures.kernel(0.1, None, graph=None), platform="host")))
        inside("triage", traced_run, "--capture", self.other, "--target", "1.3", "--out", self.answer).accepted()
        triage = json.loads(self.answer.read_bytes())
        self.made = (
            layout.other_capture(triage["others"][0]["digest"]), f"triage/{triage['id']}.json", "tasks/rmsnorm.json",
        )  # fmt: skip
        self.task = runs.TASK / "task.json"
        done = runs.clone(traced_run, folder / "done")
        self.open(done)
        self.done = canonical(done)
        shutil.rmtree(done)

    def open(self, run: Path) -> None:
        open_task(run, self.answer, self.keys, template=self.task, captures=[self.other])


def canonical(run: Path) -> dict[str, str]:
    return {name: what for name, what in runs.tree(run).items() if name != layout.JOURNAL}


@pytest.fixture
def stock(tmp_path: Path, traced: runs.Ready, traced_run: Path) -> Stock:
    return Stock(tmp_path, traced, traced_run)


def check(stock: Stock, root: Path, cut: soak.Slice) -> Report:
    numbers = itertools.count()

    def folder() -> Path:
        return runs.clone(stock.run, root / str(next(numbers)))

    def killed(run: Path) -> None:
        opened = Run.open(run)
        there = [name for name in stock.made if (run / name).is_file()]
        assert there == list(stock.made[: len(there)]), "Capture, Triage, Task"
        for name in there:
            opened.load(name)
        audit(run, stock.keys / "trust.json")
        if int(run.name) % 2:  # cleaning first hinders nothing
            audit(run, stock.keys / "trust.json", clean=True)
        try:
            stock.open(run)
        except ConflictError:
            assert there == list(stock.made)
        told = audit(run, stock.keys / "trust.json", clean=True)
        assert (told["pending"], told["triages"], told["tasks"]) == ([], 1, 1)
        assert canonical(run) == stock.done

    return kill_points(stock.open, folder, killed, stride=cut.stride, offset=cut.offset)


def test_somewhere(stock: Stock, tmp_path: Path) -> None:
    report = check(stock, tmp_path / "killed", soak.part(PARTS))
    assert report.stopped == report.points > 0


@pytest.mark.soak
def test_everywhere(stock: Stock, tmp_path: Path) -> None:
    report = check(stock, tmp_path / "killed", soak.whole())
    assert report.stopped == report.points
    assert {"open", "write", "fsync"} <= set(report.calls)


def status(step: Callable[[], object]) -> int:
    try:
        step()
    except AkfError as error:
        return error.exit_code
    return 0


def test_one_of_eight_opens_it(stock: Stock) -> None:
    """The others are told that the Task is there or that the run is in use."""
    assert sorted(together([partial(status, partial(stock.open, stock.run))] * RACERS)) == [0, *[5] * (RACERS - 1)]
    assert canonical(stock.run) == stock.done
