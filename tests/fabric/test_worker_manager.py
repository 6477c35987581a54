"""Who runs what: selection by load, breakers, faults tried elsewhere; and RemoteWorker against the AIKG wire."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import services
from tests.support.services import Service

from akf.contracts.problems import BlockedError, UsageError
from akf.fabric import answers, manager, package, remote
from akf.fabric.breaker import LONGEST_PAUSE_S, Breaker
from akf.fabric.entries import Assignment, Want
from akf.fabric.interface import WorkerInterface
from akf.fabric.manager import WorkerManager
from akf.fabric.remote import RemoteWorker, WorkerError

WANT = Want("cpu", "x86_64")


class Board:
    """A worker in memory: a pool without limits, and what the test makes of it."""

    def __init__(self, name: str, devices: int = 1) -> None:
        self.url = name
        self.listed = list(range(devices))
        self.away = False
        self.most = 0
        self.taken: list[tuple[str, int]] = []
        self.cancelled: list[str] = []

    async def status(self) -> dict[str, Any]:
        self._there()
        return {"status": "ready", "devices": self.listed}

    async def acquire_device(self, task_id: str) -> int:
        self._there()
        free = [each for each in self.listed if each not in [device for _, device in self.taken]]
        assert free, "more tasks than devices"
        self.taken.append((task_id, free[0]))
        self.most = max(self.most, len(self.taken))
        return free[0]

    async def release_device(self, task_id: str, device_id: int) -> None:
        self._there()
        self.taken.remove((task_id, device_id))

    async def verify(self, package: Any, task_id: str, op_name: str, timeout: int = 300) -> dict[str, Any]:
        raise NotImplementedError

    async def profile(self, package: Any, task_id: str, op_name: str, profile_settings: Any = None) -> dict[str, Any]:
        raise NotImplementedError

    profile_single_task = profile
    generate_reference = verify

    async def cancel(self, task_id: str) -> bool:
        self._there()
        self.cancelled.append(task_id)
        return True

    def _there(self) -> None:
        if self.away:
            raise WorkerError.at(self.url, "it is away", gone=True)


async def _registered(*boards: Board) -> WorkerManager:
    made = WorkerManager()
    for board in boards:
        await made.register(board, "cpu", "x86_64")
    return made


async def _ok(_: Assignment) -> dict[str, Any]:
    await asyncio.sleep(0.005)
    return {"outcome": "ok"}


class TestSelection:
    def test_by_backend_arch_and_tags(self) -> None:
        async def ask() -> list[WorkerInterface | None]:
            made, one, two = WorkerManager(), Board("one"), Board("two")
            await made.register(one, "ascend", "ascend910b4", tags=["lab"])
            await made.register(two, "cuda", "a100")
            return [
                await made.select("ascend", "ascend910b4"),
                await made.select("cuda", "a100", ["lab"]),
                await made.select("ascend", "ascend910b3"),
                await made.select("ascend", "ascend910b4", ["lab"]),
            ]

        found = asyncio.run(ask())
        assert [getattr(each, "url", None) for each in found] == ["one", None, None, None]  # the last: it is full

    def test_most_room_first_and_never_more_than_capacity(self) -> None:
        async def ask() -> tuple[int, int]:
            small, large = Board("small", 1), Board("large", 3)
            made = await _registered(small, large)
            await asyncio.gather(*(made.run(WANT, f"t{number}", _ok) for number in range(40)))
            assert [each["load"] for each in await made.get_status()] == [0, 0]
            return small.most, large.most

        assert asyncio.run(ask()) == (1, 3)

    def test_registering_again_doubles_nothing_and_counts_devices_again(self) -> None:
        async def ask() -> list[dict[str, Any]]:
            board = Board("one", 2)
            made = await _registered(board, board)
            board.listed = [0, 1, 2]
            await made.probe()
            return await made.get_status()

        assert asyncio.run(ask()) == [{"backend": "cpu", "arch": "x86_64", "load": 0, "capacity": 3, "tags": []}]

    def test_a_capacity_that_is_not_known_is_one_until_it_is(self) -> None:
        async def ask() -> list[tuple[int, bool]]:
            board = Board("one", 4)
            board.away = True
            made = await _registered(board)
            before = made.entries[0]
            said = [(before.capacity, before.verified)]
            board.away = False
            await made.probe()
            return [*said, (before.capacity, before.verified)]

        assert asyncio.run(ask()) == [(1, False), (4, True)]

    def test_no_such_worker_is_said_at_once(self) -> None:
        with pytest.raises(BlockedError, match="No available worker found"):
            asyncio.run(WorkerManager().run(WANT, "t", _ok))


class TestFaults:
    def test_a_worker_that_is_away_is_no_black_hole(self) -> None:
        """The dead worker has the most room; nothing fails, and it is asked once, not four times."""

        async def ask() -> tuple[list[str], list[str]]:
            dead, alive = Board("dead", 4), Board("alive", 1)
            made = await _registered(dead, alive)
            dead.away = True
            faults: list[str] = []
            done = await asyncio.gather(
                *(made.run(WANT, f"t{n}", _ok, told=lambda name, _: faults.append(name)) for n in range(4))
            )
            return [each["outcome"] for each in done], faults

        outcomes, faults = asyncio.run(ask())
        assert outcomes == ["ok"] * 4
        assert set(faults) <= {"dead"}

    def test_an_infrastructure_fault_is_tried_elsewhere_and_a_candidate_s_failure_is_not(self) -> None:
        async def ask() -> list[str]:
            made = await _registered(Board("a"), Board("b"))
            ran: list[str] = []

            async def body(assignment: Assignment) -> dict[str, Any]:
                ran.append(assignment.name)
                return {"outcome": "infra_error" if len(ran) == 1 else "candidate_failed", "log": "disk full"}

            assert (await made.run(WANT, "t", body))["outcome"] == "candidate_failed"
            return ran

        assert asyncio.run(ask()) == ["a", "b"]

    def test_what_no_machine_has_ends_with_the_reason_and_blames_no_worker(self) -> None:
        async def ask() -> list[str]:
            made = await _registered(Board("a"))

            async def body(_: Assignment) -> dict[str, Any]:
                return {"outcome": "infra_error", "lacking": "no torch"}

            with pytest.raises(BlockedError, match="no torch"):
                await made.run(WANT, "t", body)
            return [str(each.detailed()["health"]) for each in made.entries]

        assert asyncio.run(ask()) == ["closed"]

    def test_a_cancelled_task_is_ended_before_its_device_comes_back(self) -> None:
        async def ask() -> tuple[list[str], list[tuple[str, int]], int]:
            board = Board("a")
            made = await _registered(board)
            begun = asyncio.Event()

            async def body(_: Assignment) -> dict[str, Any]:
                begun.set()
                await asyncio.sleep(60)
                return {}

            task = asyncio.create_task(made.run(WANT, "t", body))
            await begun.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()
            return board.cancelled, board.taken, made.entries[0].load

        assert asyncio.run(ask()) == (["t"], [], 0)

    def test_a_silent_worker_is_lost_with_what_it_was_doing(self) -> None:
        async def ask() -> str:
            one = Board("a")
            made = await _registered(one)
            begun = asyncio.Event()

            async def body(assignment: Assignment) -> dict[str, Any]:
                begun.set()
                await asyncio.sleep(0 if assignment.name == "b" else 60)
                return {"outcome": "ok", "worker": assignment.name}

            task = asyncio.create_task(made.run(WANT, "t", body))
            await begun.wait()
            one.away = True
            await made.register(Board("b"), "cpu", "x86_64")
            for _ in range(6):
                await made.probe()
            return str((await task)["worker"])

        assert asyncio.run(ask()) == "b"


class TestBreaker:
    @given(st.lists(st.sampled_from(["fault", "gone", "success", "wait"]), max_size=60))
    def test_it_lets_one_trial_through_after_each_pause(self, steps: list[str]) -> None:
        breaker, now = Breaker(), 0.0
        for step in steps:
            if step == "wait":
                now += 0.7
            elif step == "success":
                breaker.success()
                assert breaker.allows(now)
            else:
                breaker.fault(now, "why", gone=step == "gone")
                assert step != "gone" or not breaker.allows(now)
        if breaker.state(now + LONGEST_PAUSE_S) != "closed":
            later = now + LONGEST_PAUSE_S
            assert breaker.allows(later)
            breaker.asked(later)
            assert not breaker.allows(later)
            breaker.success()
            assert breaker.state(later) == "closed"


class TestAnswers:
    @pytest.mark.parametrize(
        ("body", "outcome"),
        [
            ({"success": True, "log": ""}, "ok"),
            ({"success": False, "log": "AssertionError"}, "candidate_failed"),
            ({"success": False, "log": "Verification timed out after 300 seconds."}, "timeout"),
            ({"success": False, "log": "Failed to extract package: bad"}, "infra_error"),
            ({"success": False, "log": "Verification script verify_x.py not found."}, "infra_error"),
            ({"success": False, "log": "AssertionError", "outcome": "cancelled"}, "cancelled"),
            ({"success": True, "log": "", "outcome": "nonsense"}, "ok"),
        ],
    )
    def test_a_service_without_outcomes_gets_them_from_its_words(self, body: dict[str, Any], outcome: str) -> None:
        assert answers.verified(body)["outcome"] == outcome

    @pytest.mark.parametrize(
        "name", ["../x.json", "/etc/x.json", "a/../../x", "a\\b", "", ".", "C:x", "a\nb", "x" * 300]
    )
    def test_no_artifact_leaves_the_folder_that_it_is_joined_to(self, name: str) -> None:
        body = {"success": True, "artifacts": {name: "{}", "good/a.json": "{}"}}
        assert answers.verified(body)["artifacts"] == {"good/a.json": "{}"}

    def test_too_much_is_left_out(self) -> None:
        body = {"success": True, "artifacts": {f"{n}.json": "x" * (8 << 20) for n in range(3)}}
        assert len(answers.verified(body)["artifacts"]) == 2


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with services.aikg_worker("3,5") as started:
        yield started


class TestRemote:
    def test_a_worker_that_knows_nothing_of_us(self, service: Service) -> None:
        files = {"verify_x.py": b"print('hello')", "verify_y.py": b"raise SystemExit(1)"}

        async def ask() -> list[Any]:
            worker = RemoteWorker(service.url)
            device = await worker.acquire_device("t")
            good = await worker.verify(package.archive(files), "t", "x")
            bad = await worker.verify(package.archive(files), "t", "y")
            gone = await worker.verify(b"no tar", "t", "x")
            none = await worker.verify(package.archive(files), "t", "z")
            cancelled = await worker.cancel("t")
            await worker.release_device("t", device)
            found = [good["outcome"], bad["outcome"], gone["outcome"], none["outcome"], cancelled, good["log"].strip()]
            await worker.aclose()
            return found

        assert isinstance(RemoteWorker(service.url), WorkerInterface)
        wanted = ["ok", "candidate_failed", "infra_error", "infra_error", False, "hello"]
        assert asyncio.run(ask()) == wanted

    def test_who_stops_waiting_swallows_no_device(self, service: Service) -> None:
        """There the dead waiter keeps its place in the queue; what comes to it is given back."""

        async def ask() -> list[int]:
            worker = RemoteWorker(service.url)
            held = [await worker.acquire_device(f"h{number}") for number in range(2)]
            waiters = [asyncio.create_task(worker.acquire_device(f"w{number}")) for number in range(3)]
            await asyncio.sleep(0.2)
            for waiter in waiters:
                waiter.cancel()
            await asyncio.gather(*waiters, return_exceptions=True)
            for number, device in enumerate(held):
                await worker.release_device(f"h{number}", device)
            again = [await asyncio.wait_for(worker.acquire_device(f"a{number}"), 10) for number in range(2)]
            for number, device in enumerate(again):
                await worker.release_device(f"a{number}", device)
            await worker.aclose()
            return sorted(again)

        assert asyncio.run(ask()) == [3, 5]

    def test_connections_are_kept(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        opened: list[str] = []
        connect = httpx.AsyncHTTPTransport.__init__

        def noted(self: Any, *words: Any, **named: Any) -> None:
            opened.append("transport")
            connect(self, *words, **named)

        monkeypatch.setattr(httpx.AsyncHTTPTransport, "__init__", noted)

        async def ask() -> None:
            worker = RemoteWorker(service.url)
            for _ in range(5):
                await worker.status()
            await worker.aclose()

        asyncio.run(ask())
        assert opened == ["transport"]

    def test_nobody_there_is_a_fault_and_no_answer(self) -> None:
        with pytest.raises(WorkerError) as caught:
            asyncio.run(RemoteWorker("http://127.0.0.1:9").verify(b"", "t", "x"))
        assert caught.value.gone

    def test_the_password_of_an_address_is_shown_nowhere(self) -> None:
        worker = RemoteWorker("http://akf:hunter2hunter2@127.0.0.1:9/")
        with pytest.raises(WorkerError) as caught:
            asyncio.run(worker.status())
        assert "hunter2" not in f"{worker.url} {caught.value}"

    def test_the_environment_names_the_worker(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def ask() -> list[dict[str, Any]]:
            monkeypatch.setattr(manager, "_manager", None)
            await manager.register_remote_worker("ascend", "ascend910b4")  # no hardware of this machine is looked at
            status = await manager.get_worker_manager().get_status()
            await manager.get_worker_manager().close()
            return status

        monkeypatch.delenv("AKF_WORKER_URL", raising=False)
        monkeypatch.delenv("AIKG_WORKER_URL", raising=False)
        with pytest.raises(UsageError):
            asyncio.run(ask())
        with services.started(["tests.support.aikg_worker", "ascend", "910b4", "0,1", "0"]) as service:
            monkeypatch.setenv("AIKG_WORKER_URL", service.url)
            assert [each["capacity"] for each in asyncio.run(ask())] == [2]
        monkeypatch.setenv("AKF_WORKER_URL", "http://127.0.0.1:9")
        assert [each["capacity"] for each in asyncio.run(ask())] == [1]

    def test_local_devices_that_are_not_here(self) -> None:
        with pytest.raises(BlockedError, match="davinci4097"):
            asyncio.run(manager.register_local_worker([4097], "ascend", "ascend910b4"))

    @pytest.mark.parametrize("url", ["", "localhost:1", "file:///x", "http://h:0", "http://h\n"])
    def test_what_is_no_address(self, url: str) -> None:
        with pytest.raises(UsageError):
            remote.normal(url)
