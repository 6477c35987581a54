"""An agent that raises, hangs, blocks, dies or answers garbage harms its own node and nothing else."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from tests.support.kernels import Does, nodes, running

from akf.runtime import Context, Kernel, Limits, ProcessAgent

FUNCTIONS = """
import os, subprocess, sys, time

def double(node):
    print("this is no answer")
    return {"twice": node["input"] * 2, "key": node["context"]["key"]}

def fails(node):
    raise ValueError("not like this")

def dies(node):
    os.abort()

def leaves(node):
    os._exit(3)

def grows(node):
    data = []
    while True:
        data.append(bytearray(10_000_000))

def floods(node):
    return "x" * 20_000_000

def limit(node):
    import resource
    return resource.getrlimit(resource.RLIMIT_AS)[1]

def alone(node):
    os.kill(os.getppid(), 9)
    time.sleep(600)

def family(node):
    folder = node["input"]
    script = "import os, time; open(os.path.join(%r, str(os.getpid())), 'w').close(); time.sleep(600)" % folder
    subprocess.Popen([sys.executable, "-c", script])
    subprocess.Popen([sys.executable, "-c", script], start_new_session=True, env={})
    open(os.path.join(folder, str(os.getpid())), "w").close()
    time.sleep(600)
"""


RUNTIME = """
import os, sys, time
from akf.runtime import AgentRegistry, Compiler, Event, Kernel, Memory, ProcessAgent, Scheduler, TaskQueue, WorkerPool
target, alive, held = sys.argv[1:]
registry = AgentRegistry()
registry.register(ProcessAgent("family", target))
scheduler = Scheduler(registry)
with Kernel(Event(), Compiler(), scheduler, WorkerPool(1, scheduler, Memory()), TaskQueue()) as kernel:
    kernel.submit({"nodes": [{"id": "n", "action": "family", "input": alive}]})
    while len(os.listdir(alive)) < 3:
        time.sleep(0.01)
    holder = os.fork()
    if holder:
        open(held, "w").write(str(holder))
    time.sleep(600)
"""


async def well(node: dict[str, Any], context: Context) -> str:
    del context
    return f"{node['id']} is well"


def healthy(kernel: Kernel) -> None:
    outcome = kernel.outcome(kernel.submit(nodes({"id": "n", "action": "well"})), timeout_s=30)
    assert outcome.results == ["n is well"]


def one(kernel: Kernel, role: str, *, value: Any = None, **more: Any) -> dict[str, Any]:
    """The error of a node of a role, while a sibling does well."""
    form = nodes({"id": "bad", "action": role, "input": value, **more}, {"id": "good", "action": "well"})
    outcome = kernel.outcome(kernel.submit(form), timeout_s=60)
    assert outcome.statuses == {"bad": "failed", "good": "finished"}
    healthy(kernel)
    return outcome.errors["bad"]


class Unshowable(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize("kind", ["async", "thread"])
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), MemoryError(), Unshowable(), StopIteration()])
def test_whatever_is_raised_is_the_node_s_error(error: BaseException, kind: str) -> None:
    def raises(*_: Any) -> None:
        raise error

    async def raises_async(*_: Any) -> None:
        raise error

    agent = Does("bad", raises if kind == "thread" else raises_async)
    with running(agent, Does("well", well)) as kernel:
        assert one(kernel, "bad")["reason"] == "raised"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (object(), "builtins.object"),
        ({1: 2}, "no text"),
        (float("nan"), "no JSON number"),
        ("\ud800", "lone surrogate"),
        ("x" * 9_000_000, "larger than 8388608 bytes"),
        ([0] * 2_000_000, "larger than"),
        (b"bytes", "builtins.bytes"),
    ],
)
def test_garbage_is_the_node_s_error(answer: Any, words: str) -> None:
    async def answers(node: dict[str, Any], context: Context) -> Any:
        del node, context
        return answer

    with running(Does("bad", answers), Does("well", well)) as kernel:
        error = one(kernel, "bad")
    assert error["reason"] == "garbage"
    assert words in error["message"]


def test_an_answer_without_an_end_is_garbage() -> None:
    endless: list[Any] = []
    endless.append(endless)

    def answers(node: dict[str, Any], context: Context) -> Any:
        del node, context
        return endless

    with running(Does("bad", answers), Does("well", well)) as kernel:
        assert "nested deeper" in one(kernel, "bad")["message"]


def test_what_an_agent_keeps_changes_nothing_afterwards() -> None:
    kept: list[Any] = []

    async def first(node: dict[str, Any], context: Context) -> Any:
        del context
        kept.append(node["input"])
        return kept[-1]

    async def second(node: dict[str, Any], context: Context) -> Any:
        del context
        kept[0].append("changed later")
        node["inputs"]["a"].append("and here")
        return None

    async def third(node: dict[str, Any], context: Context) -> Any:
        del context
        return node["inputs"]["a"]

    agents = [Does("first", first), Does("second", second), Does("third", third)]
    with running(*agents) as kernel:
        form = nodes(
            {"id": "a", "action": "first", "input": ["as it was"]},
            {"id": "b", "action": "second", "needs": ["a"]},
            {"id": "c", "action": "third", "needs": ["a", "b"]},
        )
        assert kernel.outcome(kernel.submit(form)).results == [["as it was"], None, ["as it was"]]


@pytest.mark.parametrize("kind", ["async", "thread"])
def test_a_node_that_hangs_ends_with_its_time_and_is_told(kind: str) -> None:
    told: list[str] = []

    def hangs(node: dict[str, Any], context: Context) -> None:
        while not context.cancelled:
            time.sleep(0.005)
        told.append(node["id"])

    async def hangs_async(node: dict[str, Any], _: Context) -> None:
        try:
            await asyncio.sleep(600)
        finally:
            told.append(node["id"])

    agent = Does("bad", hangs if kind == "thread" else hangs_async)
    with running(agent, Does("well", well), workers=2) as kernel:
        error = one(kernel, "bad", timeout_ms=50)
        assert (error["reason"], error["message"]) == ("timeout", "it took longer than 0.050 s")
        wait_until(lambda: told == ["bad"])


def test_an_agent_that_blocks_the_loop_fails_and_the_others_there_run_again() -> None:
    begun: list[int] = []

    async def blocks(node: dict[str, Any], context: Context) -> None:
        del node, context
        await asyncio.sleep(0.05)
        time.sleep(1.5)  # noqa: ASYNC251 - that is what it does wrong

    async def waits(node: dict[str, Any], context: Context) -> str:
        del node
        begun.append(context.attempt)
        await asyncio.sleep(0.3)
        return "done"

    agents = [Does("bad", blocks), Does("waits", waits), Does("well", well)]
    with running(*agents, limits=Limits(block_s=0.2)) as kernel:
        form = nodes({"id": "bad", "action": "bad"}, {"id": "other", "action": "waits"})
        outcome = kernel.outcome(kernel.submit(form), timeout_s=30)
        assert outcome.statuses == {"bad": "failed", "other": "finished"}
        assert outcome.errors["bad"]["reason"] == "blocked"
        assert begun == [1, 1]
        healthy(kernel)


def test_agents_that_begin_together_share_nothing() -> None:
    word: ContextVar[str] = ContextVar("word", default="unset")

    async def sets(node: dict[str, Any], context: Context) -> str:
        del node, context
        word.set("set")
        return word.get()

    async def cancels(node: dict[str, Any], context: Context) -> str:
        del node, context
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "done"

    async def looks(node: dict[str, Any], context: Context) -> str:
        del node, context
        before = word.get()
        await asyncio.sleep(0)
        return f"{before} {word.get()}"

    async def times(node: dict[str, Any], context: Context) -> str:
        del node, context
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(600)
        except TimeoutError:
            return "in time"
        return "never"

    agents = [Does("sets", sets), Does("cancels", cancels), Does("looks", looks), Does("times", times)]
    wanted = {"sets": "set", "cancels": "done", "looks": "unset unset", "times": "in time"}
    with running(*agents, workers=64) as kernel:
        form = nodes(*({"id": f"{role}{number}", "action": role} for number in range(8) for role in wanted))
        assert kernel.outcome(kernel.submit(form), timeout_s=30).results == [*wanted.values()] * 8


class TestProcesses:
    @pytest.fixture
    def functions(self, tmp_path: Path) -> Path:
        path = tmp_path / "functions.py"
        path.write_text(FUNCTIONS)
        return path

    def test_it_answers_and_what_it_prints_is_no_answer(self, functions: Path) -> None:
        with running(ProcessAgent("double", f"{functions}:double")) as kernel:
            task = kernel.submit(nodes({"id": "n", "action": "double", "input": 21}))
            assert kernel.outcome(task, timeout_s=60).results == [{"twice": 42, "key": f"{task}/n/1"}]

    @pytest.mark.parametrize(
        ("name", "reason", "words"),
        [
            ("fails", "raised", "ValueError: not like this"),
            ("dies", "died", "by signal 6"),
            ("leaves", "died", "by exit status 3"),
            ("grows", "raised", "MemoryError"),
            ("floods", "garbage", "more than"),
            ("missing", "raised", "AttributeError"),
        ],
    )
    def test_its_end_is_its_node_s_error(self, functions: Path, name: str, reason: str, words: str) -> None:
        agent = ProcessAgent("bad", f"{functions}:{name}", memory_bytes=400_000_000)
        with running(agent, Does("well", well)) as kernel:
            error = one(kernel, "bad")
        assert error["reason"] == reason
        assert words in error["message"]

    @pytest.mark.parametrize("how", ["timeout", "cancel", "stop"])
    def test_it_ends_with_everything_that_it_started(self, functions: Path, tmp_path: Path, how: str) -> None:
        folder = tmp_path / "alive"
        folder.mkdir()
        with running(ProcessAgent("family", f"{functions}:family")) as kernel:
            limit = 1500 if how == "timeout" else 600_000
            form = nodes({"id": "n", "action": "family", "input": str(folder), "timeout_ms": limit})
            task = kernel.submit(form)
            wait_until(lambda: len(list(folder.iterdir())) == 3)
            if how == "cancel":
                assert kernel.cancel(task)
                assert kernel.outcome(task).status == "cancelled"
            elif how == "timeout":
                assert kernel.outcome(task, timeout_s=30).errors["n"]["reason"] == "timeout"
        wait_until(lambda: not any(Path(f"/proc/{each.name}").exists() for each in folder.iterdir()))

    def test_it_ends_with_everything_when_the_runtime_is_killed(self, functions: Path, tmp_path: Path) -> None:
        alive, held = tmp_path / "alive", tmp_path / "held"
        alive.mkdir()
        arguments = [f"{functions}:family", str(alive), str(held)]
        with subprocess.Popen([sys.executable, "-c", RUNTIME, *arguments]) as runtime:
            wait_until(lambda: len(list(alive.iterdir())) == 3 and held.exists() and held.read_text())
            os.kill(runtime.pid, signal.SIGKILL)
        holder = int(held.read_text())
        try:
            assert Path(f"/proc/{holder}").exists()  # it holds what the runtime held
            wait_until(lambda: not any(Path(f"/proc/{each.name}").exists() for each in alive.iterdir()))
        finally:
            os.kill(holder, signal.SIGKILL)

    def test_it_ends_with_its_keeper(self, functions: Path) -> None:
        with running(ProcessAgent("bad", f"{functions}:alone"), Does("well", well)) as kernel:
            error = one(kernel, "bad", timeout_ms=30_000)
        assert error["reason"] == "died"

    def test_memory_is_limited_where_nobody_says_how_much(self, functions: Path) -> None:
        with running(ProcessAgent("limit", f"{functions}:limit")) as kernel:
            task = kernel.submit(nodes({"id": "n", "action": "limit"}))
            assert kernel.outcome(task, timeout_s=60).results == [4 * 1024**3]


def wait_until(holds: Any, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
