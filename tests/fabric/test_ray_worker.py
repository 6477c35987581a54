"""A Ray cluster as a worker: whole devices of the right SoC, and what happens when machines and drivers die."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import ray_cluster
from tests.support.ray_cluster import SOC
from tests.support.worker_service import eventually, processes_with, verify_package

from akf.contracts.problems import AkfError, BlockedError, ConflictError
from akf.fabric.entries import Assignment, Want
from akf.fabric.interface import Shown, WorkerInterface
from akf.fabric.leases import LeaseBook
from akf.fabric.manager import WorkerManager
from akf.fabric.ray import RayWorker, sweep
from akf.fabric.remote import WorkerError

RAY = "python -m pip install 'ray>=2.40,<3'"


def code(error: AkfError) -> str:
    return error.problems[0].code


def test_a_machine_without_ray_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BlockedError) as caught:
        RayWorker("ascend", SOC)
    assert code(caught.value) == "AKF-E504"
    assert "ascend-kernel-forge[ray]" in str(caught.value.problems[0].hint)


def test_ray_has_no_device_of_another_backend() -> None:
    with pytest.raises(AkfError) as caught:
        RayWorker("tpu", "v5")
    assert code(caught.value) == "AKF-U505"


def test_what_a_node_left_that_is_no_more_is_removed_unless_it_is_in_use(tmp_path: Path) -> None:
    for name in ("gone-0", "here-0", "other"):
        LeaseBook(tmp_path / name).close()
    used = LeaseBook(tmp_path / "used-1")
    asyncio.run(sweep(tmp_path, {"here"}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here-0", "other", "used-1"]
    used.close()
    asyncio.run(sweep(tmp_path, {"here"}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here-0", "other"]


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore")
class TestCluster:
    @pytest.fixture
    def two(self) -> Iterator[Any]:
        """Two nodes with one NPU each."""
        pytest.importorskip("ray", reason=RAY)
        with ray_cluster.cluster(*ray_cluster.marked(2)) as found:
            yield found

    def test_devices_are_whole_and_each_has_one_holder(self, two: Any) -> None:
        two.add_node(num_cpus=1, resources={"akf_soc_without": 1})

        async def play() -> None:
            worker = RayWorker("ascend", SOC, two.address)
            assert isinstance(worker, WorkerInterface)
            assert (await worker.status())["devices"] == [0, 1]
            assert [worker._has({"NPU": npus, f"akf_soc_{SOC}": 1}) for npus in (0.5, 1, 1.5)] == [False, True, False]
            for soc in ("ascend910b1", "without"):
                with pytest.raises(BlockedError) as refused:
                    async with asyncio.timeout(20):
                        await RayWorker("ascend", soc, two.address).acquire_device("task")
                assert code(refused.value) == "AKF-E505"
            await worker.acquire_device("a")
            second = await worker.acquire_device("b")
            third = asyncio.create_task(worker.acquire_device("c"))
            await asyncio.sleep(2.0)
            assert not third.done()
            third.cancel()
            await asyncio.gather(third, return_exceptions=True)
            await worker.release_device("a", second + 7)
            await worker.release_device("b", second)
            async with asyncio.timeout(60):
                assert isinstance(await worker.acquire_device("d"), int)
            await worker.aclose()

        asyncio.run(play())

    def test_a_package_sees_the_machines_ids_and_its_outcome_is_typed(self, two: Any) -> None:
        script = "import os; print(sorted(k for k in os.environ if k.endswith('VISIBLE_DEVICES') and 'NOSET' not in k))"

        async def play() -> None:
            worker = RayWorker("ascend", SOC, two.address)
            body = await worker.verify(verify_package(script), "task", "relu", 60)
            assert (body["outcome"], body["success"], body["log"].strip()) == ("ok", True, "[]")
            await worker.acquire_device("mine")
            failed = await worker.verify(verify_package("raise SystemExit(3)"), "mine", "relu", 60)
            assert (failed["outcome"], failed["success"]) == ("candidate_failed", False)
            slow = await worker.verify(verify_package("import time; time.sleep(60)"), "mine", "relu", 1)
            assert slow["outcome"] == "timeout"
            running = asyncio.create_task(
                worker.verify(verify_package("import time; time.sleep(60)"), "mine", "relu", 90)
            )
            await asyncio.sleep(1.0)
            assert await worker.cancel("mine")
            assert (await running)["outcome"] == "cancelled"
            await worker.aclose()

        asyncio.run(play())

    def test_a_manager_gives_a_cluster_as_many_tasks_as_it_has_devices(self, two: Any) -> None:
        running: list[int] = []

        async def body(assignment: Assignment) -> dict[str, Any]:
            running.append(1)
            assert len(running) <= 2
            answer = await assignment.worker.verify(verify_package(""), assignment.task_id, "relu", 60)
            running.pop()
            return answer

        async def play() -> None:
            manager = WorkerManager()
            name = await manager.register(RayWorker("ascend", SOC, two.address), "ascend", SOC)
            assert (name, manager.entries[0].capacity) == (f"ray:ascend:{SOC}@{two.address}", 2)
            want = Want("ascend", SOC)
            found = await asyncio.gather(*(manager.run(want, f"task-{number}", body) for number in range(4)))
            assert [each["outcome"] for each in found] == ["ok"] * 4
            await manager.close()

        asyncio.run(play())

    def test_a_lease_is_checked_at_execution(self, two: Any) -> None:
        async def play() -> None:
            worker = RayWorker("ascend", SOC, two.address)
            first = await worker.lease("task", 60, 60)
            assert (await worker.verify(verify_package(""), "task", "relu", 60, lease=first.shown))["outcome"] == "ok"
            with pytest.raises(ConflictError):
                await worker.verify(verify_package(""), "task", "relu", 60, lease=Shown(first.id, first.token + 1))
            assert await worker.give_back(first)
            assert not await worker.give_back(first)
            second = await worker.lease("task", 60, 60)
            assert second.token > first.token
            with pytest.raises(ConflictError):
                await worker.verify(verify_package(""), "task", "relu", 60, lease=first.shown)
            await worker.aclose()

        asyncio.run(play())

    def test_a_node_killed_mid_run_is_no_failure_of_the_candidate(self, two: Any) -> None:
        async def play() -> None:
            worker = RayWorker("ascend", SOC, two.address)
            await worker.open()
            marker = f"once_{os.getpid()}"
            running = asyncio.create_task(
                worker.verify(
                    verify_package(f"import subprocess; subprocess.run(['sh', '-c', 'sleep 5; : {marker}'])"),
                    "task",
                    "relu",
                    120,
                )
            )
            await asyncio.to_thread(eventually, lambda: bool(processes_with(marker)), "the package runs")
            node = await asyncio.to_thread(ray_cluster.node_in_use, two)
            assert node is not None
            await asyncio.to_thread(two.remove_node, node, allow_graceful=False)
            assert (await running)["outcome"] == "ok"
            lease = await worker.lease("mine", 60, 60)
            held = asyncio.create_task(
                worker.verify(verify_package("import time; time.sleep(60)"), "mine", "relu", 120, lease=lease.shown)
            )
            await asyncio.sleep(2.0)
            node = await asyncio.to_thread(ray_cluster.node_in_use, two)
            await asyncio.to_thread(two.remove_node, node, allow_graceful=False)
            with pytest.raises(WorkerError):
                await held
            with pytest.raises(BlockedError) as nowhere:
                await worker.acquire_device("after")
            assert code(nowhere.value) == "AKF-E505"

        asyncio.run(play())

    def test_what_a_killed_driver_held_is_free_again_and_nothing_of_it_runs(self, two: Any) -> None:
        marker = f"driver-{os.getpid()}"
        script = f"import subprocess; subprocess.run(['sh', '-c', 'sleep 600; : {marker}'])"
        with ray_cluster.driver(two.address, 2, script) as process:
            eventually(lambda: bool(processes_with(f": {marker}")), "the package runs")
            process.send_signal(signal.SIGKILL)
            process.wait()

            async def play() -> None:
                worker = RayWorker("ascend", SOC, two.address)
                async with asyncio.timeout(90):
                    for task in "ab":
                        await worker.acquire_device(task)
                assert not processes_with(f": {marker}")
                await worker.aclose()

            asyncio.run(play())
