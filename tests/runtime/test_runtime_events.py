"""The stream of events: numbered, replayed, and never held up by a reader."""

import asyncio
import threading
from typing import Any

from tests.support.kernels import Does, nodes, running

from akf.runtime import Context, Event, Record
from akf.runtime.graph import Graph
from akf.runtime.state import TaskState


async def echo(node: dict[str, Any], context: Context) -> Any:
    del context
    return node["input"]


def kinds(records: list[Record]) -> list[str]:
    return [record.kind for record in records]


def record(seq: int) -> Record:
    return Record(seq, "started", "t", None, 0, {})


def test_a_task_s_way_is_told_in_order_and_without_a_gap() -> None:
    with running(Does("echo", echo)) as kernel, kernel.event.subscribe() as reader:
        kernel.outcome(kernel.submit(nodes({"id": "n", "action": "echo", "input": 1})))
        records = reader.read()
    assert kinds(records) == ["accepted", "started", "node_started", "node_finished", "finished"]
    assert [each.seq for each in records] == list(range(1, 6))
    assert records[3].data == {"attempt": 1, "round": 1, "result": 1}


def test_a_late_reader_begins_where_it_says() -> None:
    with running(Does("echo", echo)) as kernel:
        kernel.outcome(kernel.submit(nodes({"id": "n", "action": "echo", "input": 1})))
        assert kinds(kernel.event.subscribe(since=3).read()) == ["node_finished", "finished"]
        assert kernel.event.subscribe().read() == []


def test_a_large_result_is_not_in_the_stream() -> None:
    with running(Does("echo", echo)) as kernel:
        task = kernel.submit(nodes({"id": "n", "action": "echo", "input": "x" * 100_000}))
        assert kernel.outcome(task).results == ["x" * 100_000]
        (told,) = [each for each in kernel.event.subscribe(0).read() if each.kind == "node_finished"]
    assert told.data == {"attempt": 1, "round": 1, "large": True}


def test_a_reader_that_never_reads_costs_nothing_and_learns_what_it_lost() -> None:
    event = Event(kept=10)
    asleep = event.subscribe(0)
    for seq in range(1, 101):
        event.publish([record(seq)])
    lost, *rest = asleep.read() + asleep.read()
    assert (lost.kind, lost.data) == ("lost", {"from": 1, "to": 90})
    assert [each.seq for each in rest] == list(range(91, 101))


def test_readers_in_threads_and_on_loops_see_everything() -> None:
    event, seen, both = Event(), list[int](), threading.Barrier(3)

    def in_a_thread() -> None:
        reader = event.subscribe(0)
        both.wait(timeout=30)
        for each in reader:
            seen.append(each.seq)
            if each.seq == 50:
                reader.close()

    async def on_a_loop() -> None:
        reader = event.subscribe(0)
        both.wait(timeout=30)
        async for each in reader:
            seen.append(each.seq)
            if each.seq == 50:
                reader.close()

    threads = [threading.Thread(target=in_a_thread), threading.Thread(target=lambda: asyncio.run(on_a_loop()))]
    for thread in threads:
        thread.start()
    both.wait(timeout=30)
    for seq in range(1, 51):
        event.publish([record(seq)])
    for thread in threads:
        thread.join(timeout=30)
    assert sorted(seen) == sorted([*range(1, 51), *range(1, 51)])


def test_the_events_replayed_give_the_same_state() -> None:
    form = nodes(
        {"id": "a", "action": "echo", "input": {"n": 3}},
        {"id": "b", "action": "echo", "input": {"$result": "a", "path": "/n"}},
        {"id": "c", "action": "echo", "when": {"node": "b", "equals": 4}},
        {"id": "bad", "action": "raises", "attempts": 2, "backoff_ms": 1},
    )

    def raises(*_: Any) -> None:
        raise ValueError("no")

    with running(Does("echo", echo), Does("raises", raises)) as kernel:
        task = kernel.submit(form)
        outcome = kernel.outcome(task)
        graph: Graph = kernel.compiler.compile(form)
        records = [each for each in kernel.event.subscribe(0).read() if each.task == task]
    state = TaskState(task, graph)
    for each in records:
        state.apply(each.kind, each.node, each.data)
    assert state.status == outcome.status == "failed"
    assert state.results() == outcome.results == [{"n": 3}, 3, None, None]
    assert {name: node.status for name, node in state.nodes.items()} == outcome.statuses
