"""Tenants share the workers by weight; device time counts; a full queue holds back; much waits in little memory."""

import subprocess
import sys
import threading
from typing import Any

import pytest
from tests.support.kernels import Does, made, nodes, running

from akf.contracts.problems import UsageError
from akf.fair import weight
from akf.runtime import Context, Kernel, QueueFull


class Charges:
    """An agent that charges device time as its input says: beside it the time of an empty call is nothing."""

    role = "work"

    async def run(self, node: dict[str, Any], context: Context) -> None:
        context.charge_device(node["input"])


SECOND = 1_000_000_000


def served(nodes_each: int, tenants: dict[str, tuple[int, int]], first: int) -> dict[str, int]:
    """How many of the first nodes belong to each tenant: by nice value and seconds of a device a node."""
    kernel = made(Charges(), workers=1, kept=200_000)
    for name, (nice, seconds) in tenants.items():
        forms = ({"id": f"n{number}", "action": "work", "input": seconds * SECOND} for number in range(nodes_each))
        kernel.submit(nodes(*forms), task_id=name, tenant=name, nice=nice)
    reader = kernel.event.subscribe(0)
    with kernel:
        for name in tenants:
            kernel.outcome(name, timeout_s=120)
        counts = dict.fromkeys(tenants, 0)
        while records := reader.read():
            for record in records:
                if record.kind == "node_started" and record.task is not None and sum(counts.values()) < first:
                    counts[record.task] += 1
    return counts


def test_shares_follow_the_weights() -> None:
    counts = served(400, {"heavy": (0, 10), "light": (3, 10)}, first=450)
    assert counts["heavy"] / counts["light"] == pytest.approx(weight(0) / weight(3), rel=0.05)


@pytest.mark.soak
def test_shares_follow_the_weights_within_two_percent_over_10_000_nodes() -> None:
    counts = served(9_000, {"heavy": (0, 10), "light": (3, 10)}, first=10_000)
    assert counts["heavy"] / counts["light"] == pytest.approx(weight(0) / weight(3), rel=0.02)


def test_device_time_is_run_time() -> None:
    counts = served(400, {"long": (0, 30), "short": (0, 10)}, first=400)
    assert counts["short"] / counts["long"] == pytest.approx(3, rel=0.05)


def test_a_tenant_with_many_tasks_does_not_keep_another_waiting() -> None:
    kernel = made(Charges(), workers=1, limit=2000)
    for number in range(500):
        kernel.submit(nodes({"id": "n", "action": "work", "input": SECOND}), tenant="many", task_id=f"many-{number}")
    kernel.submit(nodes({"id": "n", "action": "work", "input": SECOND}), tenant="one", task_id="one")
    reader = kernel.event.subscribe(0)
    with kernel:
        kernel.outcome("one", timeout_s=60)
        began = [record.task for record in reader.read(10_000) if record.kind == "node_started"]
    assert began.index("one") <= 3


def test_no_nice_value_is_refused_before_a_place_is_taken() -> None:
    kernel = made(Charges())
    with pytest.raises(UsageError):
        kernel.submit(nodes({"id": "n", "action": "work"}), nice=20)
    assert len(kernel.queue) == 0


def held_back(kernel: Kernel, go: threading.Event) -> None:
    """The worker is busy, one task waits in the queue and one is begun: the next is refused, or waits."""
    form = nodes({"id": "n", "action": "wait"})
    tasks = [kernel.submit(form), kernel.submit(form)]
    with pytest.raises(QueueFull):
        tasks += [kernel.submit(form) for _ in range(10)]
    waiting = threading.Thread(target=lambda: tasks.append(kernel.submit(form, wait_s=60)))
    waiting.start()
    go.set()
    waiting.join(timeout=60)
    assert [kernel.outcome(task, timeout_s=60).status for task in tasks] == ["finished"] * 3


def test_submit_is_held_back_by_a_full_queue() -> None:
    go = threading.Event()
    with running(Does("wait", lambda *_: go.wait(60)), workers=1, limit=2) as kernel:
        held_back(kernel, go)


MANY = """
from akf.runtime import Agent, AgentRegistry, Compiler, Event, Kernel, Memory, Scheduler, TaskQueue, WorkerPool
registry = AgentRegistry()
for role in ("analyze", "generate"):
    registry.register(Agent(role))
scheduler = Scheduler(registry)
kernel = Kernel(Event(), Compiler(), scheduler, WorkerPool(2, scheduler, Memory()), TaskQueue())
for number in range(100_000):
    kernel.submit(f"task number {number}")
kernel.state("t100000")
(most,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(len(kernel.queue), int(most.split()[1]) // 1024)
"""


@pytest.mark.soak
def test_a_hundred_thousand_tasks_wait_in_200_mb() -> None:
    ended = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, timeout=300, check=True)
    waiting, megabytes = map(int, ended.stdout.split())
    assert waiting == 100_000
    assert megabytes < 200
