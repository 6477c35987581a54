"""The seed's own program, and each defect of its sample with the outcome that is right."""

import asyncio
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from tests.support.kernels import Does, made, nodes, running

from akf.contracts.problems import InvalidError
from akf.runtime import Agent, Context, Memory, QueueFull, TaskQueue

PROGRAM = """
from akf.runtime import Agent, AgentRegistry, Compiler, Event, Kernel, Memory, Scheduler, TaskQueue, WorkerPool

event = Event()
queue = TaskQueue()
compiler = Compiler()
memory = Memory()
registry = AgentRegistry()
registry.register(Agent("analyze"))
registry.register(Agent("generate"))
scheduler = Scheduler(registry)
worker_pool = WorkerPool(2, scheduler, memory)
kernel = Kernel(event, compiler, scheduler, worker_pool, queue)
kernel.submit("analyze AI system")
print(kernel.run_once())
"""


def test_the_program_runs_unchanged_and_prints_both_results() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.stderr, ended.returncode) == (
        "['[analyze] -> analyze :: analyze AI system', '[generate] -> generate :: analyze AI system']\n",
        "",
        0,
    )


def test_without_a_task_there_is_nothing_to_run() -> None:
    kernel = made(Agent("analyze"), Agent("generate"))
    assert kernel.run_once() is None
    kernel.stop()


class TestQueue:
    def test_a_take_is_one_step_and_never_waits(self) -> None:
        queue, taken, start = TaskQueue(), list[int](), threading.Barrier(8)
        for number in range(2000):
            queue.push(number)

        def take() -> None:
            start.wait()
            while (got := queue.pop()) is not None:
                taken.append(got)

        threads = [threading.Thread(target=take, daemon=True) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
        assert sorted(taken) == list(range(2000))
        assert queue.pop() is None

    def test_a_full_queue_refuses(self) -> None:
        queue = TaskQueue(limit=2)
        queue.push("a")
        queue.push("b")
        with pytest.raises(QueueFull) as refused:
            queue.push("c")
        assert refused.value.problems[0].code == "AKF-P701"
        assert queue.pop() == "a"
        queue.push("c")

    def test_who_wants_to_waits_for_a_place(self) -> None:
        queue = TaskQueue(limit=1)
        queue.push("a")
        waiting = threading.Thread(target=lambda: queue.push("b", wait_s=30), daemon=True)
        waiting.start()
        assert queue.pop() == "a"
        waiting.join(timeout=30)
        assert queue.pop() == "b"

    def test_a_tenant_with_many_tasks_is_not_all_that_is_served(self) -> None:
        queue = TaskQueue()
        for number in range(100):
            queue.push(("many", number), tenant="many")
        queue.push(("one", 0), tenant="one")
        assert ("one", 0) in [queue.pop() for _ in range(3)]


def test_as_many_nodes_run_at_once_as_there_are_workers() -> None:
    meet = threading.Barrier(3)

    def run(node: dict[str, Any], context: Context) -> int:
        del node, context
        return meet.wait(timeout=30)  # breaks where fewer than three run

    with running(Does("meet", run), workers=3) as kernel:
        form = nodes(*({"id": f"n{number}", "action": "meet"} for number in range(3)))
        assert sorted(kernel.outcome(kernel.submit(form)).results) == [0, 1, 2]


def test_and_never_more() -> None:
    now, most = 0, 0

    async def run(node: dict[str, Any], context: Context) -> None:
        nonlocal now, most
        del node, context
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.002)
        now -= 1

    with running(Does("count", run), workers=3) as kernel:
        tasks = [kernel.submit(nodes({"id": "n", "action": "count"})) for _ in range(20)]
        assert {kernel.outcome(task).status for task in tasks} == {"finished"}
    assert most == 3


def test_two_tasks_do_not_overwrite_each_other_s_results() -> None:
    async def echo(node: dict[str, Any], context: Context) -> Any:
        del context
        return node["input"]

    memory = Memory()
    with running(Does("echo", echo), memory=memory) as kernel:
        one, other = (kernel.submit(nodes({"id": "same", "action": "echo", "input": word})) for word in ("a", "b"))
        kernel.outcome(one)
        kernel.outcome(other)
    assert (memory.read("same", one), memory.read("same", other)) == ("a", "b")
    with pytest.raises(KeyError):
        memory.read("same", "another")


def test_an_agent_reads_another_task_s_result_by_its_id() -> None:
    async def echo(node: dict[str, Any], context: Context) -> Any:
        return context.read("n", task=node["input"]["of"]) if "of" in node["input"] else node["input"]

    with running(Does("echo", echo)) as kernel:
        first = kernel.submit(nodes({"id": "n", "action": "echo", "input": {"is": 1}}))
        kernel.outcome(first)
        second = kernel.submit(nodes({"id": "n", "action": "echo", "input": {"of": first}}))
        assert kernel.outcome(second).results == [{"is": 1}]


class TestRoles:
    def test_an_unknown_one_is_refused_with_the_nearest_and_the_known(self) -> None:
        kernel = made(Agent("analyze"), Agent("generate"))
        with pytest.raises(InvalidError) as refused:
            kernel.submit(nodes({"id": "n1", "action": "analyse"}, {"id": "n2", "action": "paint"}))
        problems = {each.message: each.hint for each in refused.value.problems}
        assert problems == {
            'node n1: no agent has the role "analyse"': "did you mean analyze? known are analyze, generate",
            'node n2: no agent has the role "paint"': "known are analyze, generate",
        }

    def test_a_task_may_name_a_default_role(self) -> None:
        kernel = made(Agent("analyze"))
        kernel.submit(nodes({"id": "n1", "action": "paint", "input": "it"}, default_role="analyze"))
        assert kernel.run_once() == ["[analyze] -> paint :: it"]
        kernel.stop()


class TestFailures:
    def test_a_node_that_raises_fails_with_its_traceback_and_siblings_go_on(self) -> None:
        def run(node: dict[str, Any], context: Context) -> str:
            del context
            if node["id"] == "bad":
                raise ValueError("no such kernel")
            return "done"

        with running(Does("work", run)) as kernel:
            form = nodes(
                {"id": "bad", "action": "work"},
                {"id": "behind", "action": "work", "needs": ["bad"]},
                {"id": "further", "action": "work", "needs": ["behind"]},
                {"id": "sibling", "action": "work"},
            )
            outcome = kernel.outcome(kernel.submit(form))
            assert outcome.status == "failed"
            assert outcome.results == [None, None, None, "done"]
            assert outcome.statuses == {
                "bad": "failed", "behind": "skipped", "further": "skipped", "sibling": "finished",
            }  # fmt: skip
            error = outcome.errors["bad"]
            assert (error["reason"], error["message"]) == ("raised", "ValueError: no such kernel")
            assert 'raise ValueError("no such kernel")' in error["traceback"]
            # The runtime goes on.
            assert kernel.outcome(kernel.submit(nodes({"id": "n", "action": "work"}))).status == "finished"

    def test_a_node_is_tried_again_as_its_policy_says_and_later_each_time(self) -> None:
        tries: list[float] = []

        async def run(node: dict[str, Any], context: Context) -> int:
            del node
            tries.append(time.monotonic())
            if context.attempt < 3:
                raise OSError("not yet")
            return context.attempt

        with running(Does("work", run)) as kernel:
            form = nodes({"id": "n", "action": "work", "attempts": 3, "backoff_ms": 20})
            reader = kernel.event.subscribe(0)
            assert kernel.outcome(kernel.submit(form)).results == [3]
            waits = [record.data["wait_ms"] for record in reader.read() if record.kind == "retried"]
        assert waits == [20, 40]
        assert tries[1] - tries[0] >= 0.02
        assert tries[2] - tries[1] >= 0.04

    def test_tries_end(self) -> None:
        async def run(node: dict[str, Any], context: Context) -> None:
            raise OSError(f"try {context.attempt} of {node['id']}")

        with running(Does("work", run)) as kernel:
            form = nodes({"id": "n", "action": "work", "attempts": 2, "backoff_ms": 1})
            assert kernel.outcome(kernel.submit(form)).errors["n"]["message"] == "OSError: try 2 of n"
