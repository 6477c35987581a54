"""The journal: what was accepted is there after kill -9, and ends once."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support.kernels import Does, made, nodes, running

from akf.contracts.problems import ConflictError, IntegrityError, StorageError, UsageError
from akf.runtime import Context, Journal, Reader, Record
from akf.runtime.journal import replay

PROGRAM = """
import asyncio, json, sys
from akf.runtime import AgentRegistry, Compiler, Event, Journal, Kernel, Memory, Scheduler, TaskQueue, WorkerPool

class Works:
    role = "work"
    async def run(self, node, context):
        await asyncio.sleep(0.003)
        return {"was": node["input"], "inputs": len(node["inputs"])}

registry = AgentRegistry()
registry.register(Works())
scheduler = Scheduler(registry)
pool, journal = WorkerPool(3, scheduler, Memory()), Journal(sys.argv[1])
kernel = Kernel(Event(), Compiler(), scheduler, pool, TaskQueue(), journal=journal)
told = open(sys.argv[2], "a")
with kernel:
    form = json.loads(sys.argv[3])
    for number in range(int(sys.argv[4])):
        task = kernel.submit({"nodes": [{**node, "input": number} for node in form]}, task_id=f"job-{number}")
        told.write(f"accepted {task}\\n"); told.flush()
    for number in range(int(sys.argv[4])):
        kernel.outcome(f"job-{number}")
    print("done", flush=True)
kernel.journal.close()
"""
FORM = [
    {"id": "a", "action": "work"},
    {"id": "b", "action": "work", "needs": ["a"]},
    {"id": "c", "action": "work", "needs": ["a"]},
    {"id": "d", "action": "work", "needs": ["b", "c"]},
]


async def echo(node: dict[str, Any], context: Context) -> Any:
    del context
    return node["input"]


def started(tmp_path: Path, tasks: int) -> subprocess.Popen[str]:
    arguments = [str(tmp_path / "journal"), str(tmp_path / "told"), json.dumps(FORM), str(tasks)]
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, text=True)


def killed_at(tmp_path: Path, tasks: int, moments: list[float]) -> None:
    """Run the program until it has done all, killing it at these moments; look at everything it left."""
    for moment in moments:
        process = started(tmp_path, tasks)
        time.sleep(moment)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    process = started(tmp_path, tasks)
    assert process.communicate(timeout=120)[0] == "done\n"
    accepted = {
        line.split()[1] for line in (tmp_path / "told").read_text().splitlines() if line.endswith(tuple("0123456789"))
    }
    with sqlite3.connect(tmp_path / "journal") as book:
        rows = book.execute("SELECT seq, kind, task, node FROM events ORDER BY seq").fetchall()
    book.close()
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    ends = Counter(task for _, kind, task, _ in rows if kind == "finished")
    assert set(ends) == {f"job-{number}" for number in range(tasks)} >= accepted
    assert set(ends.values()) == {1}
    completions = Counter((task, node) for _, kind, task, node in rows if kind == "node_finished")
    assert len(completions) == 4 * tasks
    assert set(completions.values()) == {1}
    assert not {kind for _, kind, _, _ in rows} & {"failed", "node_failed", "node_skipped"}


def test_after_kill_9_every_accepted_task_is_there_and_none_completes_twice(tmp_path: Path) -> None:
    killed_at(tmp_path, 30, [0.25, 0.35])


@pytest.mark.soak
def test_after_kill_9_at_many_moments(tmp_path: Path) -> None:
    for number in range(10):
        folder = tmp_path / str(number)
        folder.mkdir()
        killed_at(folder, 60, [0.15 + 0.02 * number, 0.2, 0.25 + 0.03 * number, 0.3])


def test_what_was_not_begun_begins_in_the_next_runtime(tmp_path: Path) -> None:
    first = made(Does("echo", echo), journal=tmp_path / "journal")
    task = first.submit(nodes({"id": "n", "action": "echo", "input": "kept"}))
    first.stop()
    assert first.journal is not None
    first.journal.close()
    with running(Does("echo", echo), journal=tmp_path / "journal") as second:
        assert second.outcome(task, timeout_s=30).results == ["kept"]
        assert second.submit(nodes({"id": "n", "action": "echo"})) != task


def test_an_outcome_of_an_earlier_runtime_is_kept(tmp_path: Path) -> None:
    for _ in range(2):
        with running(Does("echo", echo), journal=tmp_path / "journal") as kernel:
            form = nodes({"id": "n", "action": "echo", "input": {"a": [1, 2.5, None, "ü"]}})
            kernel.outcome(kernel.submit(form, task_id="mine"), timeout_s=30)
    with running(Does("echo", echo), journal=tmp_path / "journal") as kernel:
        assert kernel.outcome("mine").results == [{"a": [1, 2.5, None, "ü"]}]
        assert kernel.state("mine")["status"] == "finished"
        assert [each.kind for each in kernel.event.subscribe(0).read()].count("accepted") == 1


def test_the_same_task_is_accepted_once_and_another_one_under_its_id_is_refused(tmp_path: Path) -> None:
    with running(Does("echo", echo), journal=tmp_path / "journal") as kernel:
        form = nodes({"id": "n", "action": "echo", "input": 1})
        assert kernel.submit(form, task_id="mine") == kernel.submit(form, task_id="mine") == "mine"
        with pytest.raises(ConflictError) as refused:
            kernel.submit(nodes({"id": "n", "action": "echo", "input": 2}), task_id="mine")
        assert refused.value.problems[0].code == "AKF-C701"
        assert kernel.outcome("mine", timeout_s=30).results == [1]
        assert len(kernel.queue) == 0


def test_a_journal_has_one_writer(tmp_path: Path) -> None:
    first = Journal(tmp_path / "journal")
    with pytest.raises(ConflictError) as refused:
        Journal(tmp_path / "journal")
    assert refused.value.problems[0].code == "AKF-C702"
    first.close()
    Journal(tmp_path / "journal").close()


@pytest.mark.parametrize("content", [b"just text\n" * 100, b"SQLite format 3\0" + b"\0" * 2000])
def test_a_file_that_is_no_journal_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(IntegrityError) as refused:
        Journal(tmp_path / "other")
    assert refused.value.problems[0].code == "AKF-I701"
    assert (tmp_path / "other").read_bytes() == content


def test_another_database_is_no_journal(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    with pytest.raises(IntegrityError):
        Journal(tmp_path / "other")


def test_the_database_refuses_a_second_end(tmp_path: Path) -> None:
    with running(Does("echo", echo), journal=tmp_path / "journal") as kernel:
        kernel.outcome(kernel.submit(nodes({"id": "n", "action": "echo"}), task_id="mine"), timeout_s=30)
    with sqlite3.connect(tmp_path / "journal") as book, pytest.raises(sqlite3.IntegrityError):
        book.execute("INSERT INTO events VALUES (99, 'failed', 'mine', NULL, 0, '{}')")
    book.close()


def test_the_log_replayed_up_to_any_event_leads_to_the_same_end(tmp_path: Path) -> None:
    form = nodes(
        {"id": "code", "action": "count"},
        {"id": "check", "action": "echo", "input": {"$result": "code"}},
        {"id": "use", "action": "echo", "input": {"$result": "check"}},
        {"id": "never", "action": "echo", "when": {"node": "check", "less": 2}},
        loops=[{"id": "l", "nodes": ["code", "check"], "until": {"node": "check", "at_least": 3}, "max_rounds": 5}],
    )

    async def count(node: dict[str, Any], context: Context) -> int:
        del node
        return context.round

    agents = (Does("count", count), Does("echo", echo))
    with running(*agents, journal=tmp_path / "journal") as kernel:
        outcome = kernel.outcome(kernel.submit(form, task_id="mine"), timeout_s=30)
        assert kernel.journal is not None
        records = kernel.journal.events("mine")
        whole = replay(records, kernel.compiler.checked)[1].to_json()
    assert outcome.results == [3, 3, 3, None]
    for cut in range(1, len(records)):
        path = tmp_path / f"cut-{cut}"
        book = Journal(path)
        book.write(records[:cut], lambda _: None)
        book.settle()
        book.close()
        with running(*agents, journal=path) as kernel:
            assert kernel.outcome("mine", timeout_s=30) == outcome
            assert kernel.journal is not None
            again = kernel.journal.events("mine")
        ends = Counter((each.kind, each.node, str(each.data.get("round"))) for each in again)
        assert (
            max(ends[each] for each in ends if each[0] in ("node_finished", "finished", "round", "node_skipped")) == 1
        )
        assert replay(again, kernel.compiler.checked)[1].to_json() == whole


def test_old_tasks_go_and_neither_their_ids_nor_what_has_not_ended(tmp_path: Path) -> None:
    go = threading.Event()

    def form(number: int) -> dict[str, Any]:
        return nodes({"id": "n", "action": "echo", "input": number})

    agents = (Does("echo", echo), Does("waits", lambda *_: go.wait(60)))
    waits = nodes({"id": "a", "action": "echo", "input": "first"}, {"id": "b", "action": "waits", "needs": ["a"]})
    with running(*agents, journal=tmp_path / "journal", keep_tasks=8) as kernel:
        kernel.submit(waits, task_id="waits")
        own = kernel.submit(form(-1))
        for number in range(40):
            kernel.outcome(kernel.submit(form(number), task_id=f"job-{number}"), timeout_s=30)
        kernel.outcome(own, timeout_s=30)
    go.set()
    with running(*agents, journal=tmp_path / "journal", keep_tasks=8) as kernel:
        assert kernel.outcome("waits", timeout_s=30).results == ["first", True]
        assert kernel.outcome("job-39").results == [39]
        with pytest.raises(UsageError):
            kernel.state("job-0")
        assert kernel.submit(form(0), task_id="job-0") == "job-0"
        with pytest.raises(UsageError):
            kernel.outcome("job-0")
        with pytest.raises(ConflictError):
            kernel.submit(form(1), task_id="job-0")
        assert kernel.submit(form(0)) not in (own, "job-0")
        records = Reader(kernel.event, 0).read(10_000)
        assert kernel.journal is not None
        ends = [each for each in kernel.journal.between(0, 10_000) if each.kind == "finished"]
    assert len(ends) <= 8 + 1
    lost = [each for each in records if each.kind == "lost"]
    places = [number for each in records for number in _covered(each)]
    assert lost
    assert places == list(range(1, records[-1].seq + 1))


def _covered(record: Record) -> range:
    first = record.data["from"] if record.kind == "lost" else record.seq
    return range(first, record.seq + 1)


def test_what_nodes_answered_before_a_crash_can_be_read_after_it(tmp_path: Path) -> None:
    async def reads(_: dict[str, Any], context: Context) -> Any:
        return context.read("a")

    form = nodes({"id": "a", "action": "echo", "input": 7}, {"id": "b", "action": "reads", "needs": ["a"]})
    with running(Does("echo", echo), Does("reads", reads), journal=tmp_path / "whole") as kernel:
        assert kernel.outcome(kernel.submit(form, task_id="mine"), timeout_s=30).results == [7, 7]
        assert kernel.journal is not None
        records = kernel.journal.events("mine")
    cut = next(place for place, each in enumerate(records, 1) if each.kind == "node_finished")
    book = Journal(tmp_path / "cut")
    book.write(records[:cut], lambda _: None)
    book.settle()
    book.close()
    with running(Does("echo", echo), Does("reads", reads), journal=tmp_path / "cut") as kernel:
        assert kernel.outcome("mine", timeout_s=30).results == [7, 7]


def test_a_full_disk_refuses_what_it_cannot_keep_and_loses_nothing_that_was_accepted(tmp_path: Path) -> None:
    with running(Does("echo", echo), journal=tmp_path / "journal") as kernel:
        assert kernel.journal is not None
        kernel.outcome(kernel.submit(nodes({"id": "n", "action": "echo", "input": 1}), task_id="first"), timeout_s=30)
        pages = kernel.journal._db.execute("PRAGMA page_count").fetchone()[0]
        kernel.journal._db.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(StorageError) as refused:
            kernel.submit(nodes({"id": "n", "action": "echo", "input": "x" * 100_000}), task_id="second")
        assert refused.value.problems[0].code == "AKF-F708"
        with pytest.raises(StorageError):
            kernel.submit(nodes({"id": "n", "action": "echo"}), task_id="third")
    with running(Does("echo", echo), journal=tmp_path / "journal") as kernel:
        assert kernel.outcome("first").results == [1]
        with pytest.raises(UsageError):
            kernel.outcome("second")
        assert kernel.outcome(
            kernel.submit(nodes({"id": "n", "action": "echo", "input": 3})), timeout_s=30
        ).results == [3]
