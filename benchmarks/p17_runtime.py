"""P17: nodes that do nothing: the runtime beside bare asyncio, concurrent.futures, and Ray on this machine.

Run it from anywhere: `python benchmarks/p17_runtime.py`. One task is a graph of independent nodes on 64 workers. Its
sides: asyncio tasks that are created and gathered; a thread pool, against agents that are plain functions; and Ray's
tasks, against the runtime with its journal, where Ray is installed (the row says `peer missing` where it is not).
Before anything is timed, every side must have called its function once a node.

What the runtime does beside calling the function: it applies, numbers and publishes two events a node, gives turns by
weight, counts time, watches limits, and runs agents on another thread than the state, so that no agent can hold it up.

Growth: nodes, at 1x, 10x and 100x of 100, in graphs of 100. Then 100,000 tasks that wait, in a process of its own.
"""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from benchmarks.side_by_side import ROUNDS, compare, median_seconds, report, report_growth  # noqa: E402

from akf.runtime import (  # noqa: E402 (the checkout comes first)
    AgentRegistry,
    Compiler,
    Event,
    Journal,
    Kernel,
    Memory,
    Scheduler,
    TaskQueue,
    WorkerPool,
)

WORKERS = 64
NODES = 2000
GRAPH = 100
SIZES = (1, 10, 100)
WAITING = """
import sys
sys.path.insert(0, sys.argv[1])
from akf.runtime import Agent, AgentRegistry, Compiler, Event, Kernel, Memory, Scheduler, TaskQueue, WorkerPool
registry = AgentRegistry()
registry.register(Agent("analyze"))
registry.register(Agent("generate"))
scheduler = Scheduler(registry)
kernel = Kernel(Event(), Compiler(), scheduler, WorkerPool(2, scheduler, Memory()), TaskQueue())
def most():
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) // 1024
before = most()
for number in range(100_000):
    kernel.submit(f"task number {number}")
kernel.state("t100000")
print(f"{len(kernel.queue)} tasks wait in {most()} MB, {before} MB of them before the first")
"""


class Nothing:
    """An agent that is a coroutine and does nothing."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.calls = 0

    async def run(self, *_: Any) -> None:  # noqa: D102
        self.calls += 1


class Plain:
    """An agent that is a plain function."""

    role = "plain"

    def run(self, *_: Any) -> None:  # noqa: D102
        return None


@contextmanager
def kernel(agent: Any, journal: Path | None = None) -> Iterator[Kernel]:
    registry = AgentRegistry()
    registry.register(agent)
    scheduler = Scheduler(registry)
    book = None if journal is None else Journal(journal)
    pool = WorkerPool(WORKERS, scheduler, Memory())
    with Kernel(Event(), Compiler(), scheduler, pool, TaskQueue(), journal=book) as made:
        yield made
    if book is not None:
        book.close()


def graph(role: str, nodes: int) -> dict[str, Any]:
    return {"nodes": [{"id": f"n{number}", "action": role} for number in range(nodes)]}


def ours(made: Kernel, role: str, nodes: int) -> None:
    tasks = [made.submit(graph(role, min(nodes, GRAPH))) for _ in range(max(1, nodes // GRAPH))]
    for task in tasks:
        made.outcome(task)


def bare(nodes: int) -> None:
    async def nothing() -> None:
        return None

    async def gathered() -> None:
        await asyncio.gather(*[asyncio.create_task(nothing()) for _ in range(nodes)])

    asyncio.run(gathered())


def threads(pool: ThreadPoolExecutor, nodes: int) -> None:
    for future in [pool.submit(Plain().run) for _ in range(nodes)]:
        future.result()


def beside_ray(folder: Path) -> None:
    operation = f"{NODES} nodes with the journal, beside Ray's tasks"
    try:
        import ray  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - a peer that may be missing
    except ImportError:
        print(f"P17 {operation}: peer missing")
        return
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    nothing = ray.remote(lambda: None)
    with kernel(Nothing("nothing"), folder / "journal") as made:
        comparison = compare(
            partial(ours, made, "nothing", NODES), lambda: ray.get([nothing.remote() for _ in range(NODES)]), ROUNDS
        )
    report("P17", operation, "<= 0.1x Ray", comparison)
    ray.shutdown()


def main() -> None:
    agent = Nothing("nothing")
    with kernel(agent) as made:
        ours(made, "nothing", NODES)
        if agent.calls != NODES:
            raise ValueError("a node was not called once")
        comparison = compare(partial(ours, made, "nothing", NODES), partial(bare, NODES), ROUNDS)
        report("P17", f"{NODES} nodes, beside asyncio tasks", "<= 2x asyncio", comparison)
        report_growth(SIZES, [median_seconds(partial(ours, made, "nothing", GRAPH * size)) for size in SIZES])
    with kernel(Plain()) as made, ThreadPoolExecutor(WORKERS) as pool:
        comparison = compare(partial(ours, made, "plain", NODES), partial(threads, pool, NODES), ROUNDS)
        report("P17", f"{NODES} nodes in threads, beside concurrent.futures", "no goal", comparison)
    with tempfile.TemporaryDirectory() as folder:
        beside_ray(Path(folder))
    source = str(Path(__file__).parents[1] / "src")
    print(
        subprocess.run([sys.executable, "-c", WAITING, source], check=True, capture_output=True, text=True).stdout,
        end="",
    )


if __name__ == "__main__":
    main()
