"""A runtime from its first task to its end: waiting, cancelling, stopping."""

import asyncio
import threading
from typing import Any

import pytest
from tests.support.kernels import Does, made, nodes, running

from akf.contracts.problems import PreconditionError, UsageError
from akf.runtime import Context, Kernel


async def echo(node: dict[str, Any], context: Context) -> Any:
    del context
    return node["input"]


async def endless(*_: Any) -> None:
    await asyncio.sleep(600)


FORM = nodes({"id": "n", "action": "echo", "input": 1})
ENDLESS = nodes({"id": "a", "action": "endless"}, {"id": "b", "action": "echo", "needs": ["a"]})


def test_code_on_an_event_loop_waits_without_blocking_it() -> None:
    async def several(kernel: Kernel) -> list[Any]:
        outcomes = await asyncio.gather(*[kernel.wait(kernel.submit(FORM)) for _ in range(5)])
        return [outcome.results for outcome in outcomes]

    with running(Does("echo", echo)) as kernel:
        assert asyncio.run(several(kernel)) == [[1]] * 5


class TestCancel:
    def test_a_running_task_ends_and_its_worker_is_free(self) -> None:
        with running(Does("endless", endless), Does("echo", echo), workers=1) as kernel:
            task = kernel.submit(ENDLESS)
            waiting = kernel.submit(FORM)
            assert kernel.cancel(task)
            outcome = kernel.outcome(task, timeout_s=30)
            assert (outcome.status, outcome.results) == ("cancelled", [None, None])
            assert kernel.outcome(waiting, timeout_s=30).results == [1]

    def test_a_waiting_task_never_begins(self) -> None:
        kernel = made(Does("echo", echo))
        task, other = kernel.submit(FORM), kernel.submit(FORM)
        assert kernel.cancel(task)
        assert len(kernel.queue) == 1
        with kernel:
            assert kernel.outcome(other, timeout_s=30).status == "finished"
            kinds = [record.kind for record in kernel.event.subscribe(0).read() if record.task == task]
        assert kinds == ["accepted", "cancelled"]

    def test_what_is_over_or_unknown_is_not_cancelled(self) -> None:
        with running(Does("echo", echo)) as kernel:
            task = kernel.submit(FORM)
            kernel.outcome(task, timeout_s=30)
            assert not kernel.cancel(task)
            assert not kernel.cancel("t999")


def test_a_task_that_nobody_knows_is_refused() -> None:
    with running(Does("echo", echo)) as kernel:
        for ask in (kernel.outcome, kernel.state):
            with pytest.raises(UsageError) as refused:
                ask("t999")
            assert refused.value.problems[0].code == "AKF-U704"
        for name in ("t5", "", "a b", "../x", "x" * 200):
            with pytest.raises(UsageError) as refused:
                kernel.submit(FORM, task_id=name)
            assert refused.value.problems[0].code == "AKF-U703"


def test_a_task_that_runs_says_where_it_stands() -> None:
    with running(Does("endless", endless), Does("echo", echo)) as kernel:
        task = kernel.submit(ENDLESS)
        while kernel.state(task)["status"] == "accepted":
            pass
        state = kernel.state(task)
        assert state["nodes"]["a"]["status"] == "running"
        assert state["nodes"]["b"]["status"] == "waiting"
        kernel.cancel(task)


def test_one_by_one_tasks_run_in_order() -> None:
    kernel = made(Does("echo", echo))
    for number in range(3):
        kernel.submit(nodes({"id": "n", "action": "echo", "input": number}))
    assert [kernel.run_once() for _ in range(4)] == [[0], [1], [2], None]
    kernel.stop()


class TestStop:
    def test_whoever_waits_is_told(self) -> None:
        kernel = made(Does("endless", endless), Does("echo", echo))
        kernel.start()
        task = kernel.submit(ENDLESS)
        told: list[str] = []

        def wait() -> None:
            with pytest.raises(PreconditionError) as refused:
                kernel.outcome(task)
            told.append(refused.value.problems[0].code)

        waiting = [threading.Thread(target=wait) for _ in range(3)]
        for each in waiting:
            each.start()
        kernel.stop()
        for each in waiting:
            each.join(timeout=30)
        assert told == ["AKF-P702"] * 3

    def test_and_whoever_waits_for_a_place(self) -> None:
        kernel = made(Does("echo", echo), limit=1)
        kernel.submit(FORM)
        told: list[str] = []
        begun = threading.Barrier(3)

        def wait() -> None:
            begun.wait(timeout=30)
            with pytest.raises(PreconditionError) as refused:
                kernel.submit(FORM, wait_s=None)
            told.append(refused.value.problems[0].code)

        waiting = [threading.Thread(target=wait, daemon=True) for _ in range(2)]
        for each in waiting:
            each.start()
        begun.wait(timeout=30)
        kernel.stop()
        for each in waiting:
            each.join(timeout=30)
        assert told == ["AKF-P702"] * 2
        assert len(kernel.queue) == 1

    def test_and_nothing_runs_any_more(self) -> None:
        kernel = made(Does("echo", echo))
        with kernel:
            task = kernel.submit(FORM)
            kernel.outcome(task, timeout_s=30)
        kernel.stop()
        with pytest.raises(PreconditionError):
            kernel.submit(FORM)
        with pytest.raises(PreconditionError):
            kernel.run_once()
        assert len(kernel.queue) == 0
        assert kernel.outcome(task).results == [1]

    def test_one_that_never_ran_is_not_begun_by_stopping(self) -> None:
        kernel = made(Does("echo", echo))
        kernel.stop()
        with pytest.raises(PreconditionError):
            kernel.start()
