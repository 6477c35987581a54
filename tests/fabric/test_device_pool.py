"""The device pool by itself: who gets which device when, and what the disk knows of it."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from akf.contracts.problems import BlockedError, ConflictError, IntegrityError, StorageError, UsageError
from akf.fabric.leases import DATABASE, Lease, LeaseBook
from akf.fabric.pool import DevicePool


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 30))


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def nothing() -> None:
    """What runs needs no end."""


def test_waiters_of_a_tenant_are_served_in_their_order(tmp_path: Path) -> None:
    async def check() -> None:
        pool = DevicePool([0], tmp_path)
        served: list[int] = []

        async def one(number: int) -> None:
            lease = await pool.acquire(f"task{number}")
            served.append(number)
            await asyncio.sleep(0)
            pool.release(lease.task, lease.device)

        await asyncio.gather(*map(one, range(20)))
        assert served == list(range(20))
        await pool.close()

    run(check())


def test_a_tenant_with_many_waiters_does_not_starve_one_with_few(tmp_path: Path) -> None:
    async def check() -> None:
        pool = DevicePool([0], tmp_path)
        order: list[str] = []

        async def one(tenant: str) -> None:
            lease = await pool.acquire("task", tenant)
            order.append(tenant)
            await asyncio.sleep(0.002)
            pool.release("task", lease.device, tenant)

        many = [asyncio.create_task(one("many")) for _ in range(40)]
        await settled()
        few = [asyncio.create_task(one("few")) for _ in range(5)]
        await asyncio.gather(*many, *few)
        assert order.index("few") <= 4
        assert Counter(order[:16])["few"] == 5
        await pool.close()

    run(check())


def test_a_heavier_tenant_has_a_larger_share(tmp_path: Path) -> None:
    async def check() -> None:
        pool = DevicePool([0], tmp_path)
        order: list[str] = []

        async def one(tenant: str, nice: int) -> None:
            lease = await pool.acquire("task", tenant, nice=nice)
            order.append(tenant)
            await asyncio.sleep(0.002)
            pool.release("task", lease.device, tenant)

        await asyncio.gather(*(one(tenant, nice) for _ in range(60) for tenant, nice in (("heavy", -5), ("light", 0))))
        assert Counter(order[:60])["heavy"] > 2 * Counter(order[:60])["light"]
        await pool.close()

    run(check())


def test_one_who_wants_a_certain_device_waits_for_it_and_holds_up_nobody(tmp_path: Path) -> None:
    async def check() -> None:
        pool = DevicePool([0, 1], tmp_path)
        zero = await pool.acquire("holder")
        wants = asyncio.create_task(pool.acquire("wants", device=0))
        await settled()
        other = await asyncio.wait_for(pool.acquire("other"), 5)
        assert (zero.device, other.device, wants.done()) == (0, 1, False)
        assert pool.waiting == 1
        pool.release("holder", 0)
        assert (await wants).device == 0
        await pool.close()

    run(check())


def test_a_waiter_that_is_cancelled_as_it_is_served_gives_its_device_on(tmp_path: Path) -> None:
    async def check() -> None:
        pool = DevicePool([0], tmp_path)
        await pool.acquire("holder")
        first, second = (asyncio.create_task(pool.acquire(name)) for name in ("first", "second"))
        await settled()
        pool.release("holder", 0)  # first is served now, and does not know it yet
        first.cancel()
        assert (await second).task == "second"
        with pytest.raises(asyncio.CancelledError):
            await first
        assert [lease.task for lease in pool.leases()] == ["second"]
        await pool.close()

    run(check())


def test_a_device_comes_back_only_when_nothing_runs_on_it(tmp_path: Path) -> None:
    async def check() -> None:
        pool = DevicePool([0], tmp_path)
        lease = await pool.acquire("task")
        async with pool.for_task("task", "anonymous", nothing, default=None) as slot:
            assert slot.device == lease.device
            assert pool.release("task", 0) is True
            waits = asyncio.create_task(pool.acquire("next"))
            await settled()
            assert not waits.done()
            assert pool.busy() == {"returning": 1}
        assert (await waits).device == 0
        await pool.close()

    run(check())


def test_several_leases_of_one_task_run_one_program_each(tmp_path: Path) -> None:
    async def check() -> None:
        pool = DevicePool([0, 1], tmp_path)
        for _ in range(2):
            await pool.acquire("baseline_profile")
        running = Counter[int]()

        async def one() -> None:
            async with pool.for_task("baseline_profile", "anonymous", nothing, default=0) as slot:
                running[slot.device] += 1
                assert running[slot.device] == 1
                await asyncio.sleep(0.002)
                running[slot.device] -= 1

        await asyncio.gather(*(one() for _ in range(10)))
        await pool.close()

    run(check())


def test_releasing_one_of_a_task_s_leases_leaves_what_runs_under_another_alone(tmp_path: Path) -> None:
    async def check() -> None:
        pool = DevicePool([0, 1], tmp_path)
        for _ in range(2):
            await pool.acquire("baseline_profile")
        async with pool.for_task("baseline_profile", "anonymous", nothing, default=0):
            assert pool.release("baseline_profile", 0) is True
            assert (await asyncio.wait_for(pool.acquire("next"), 5)).device == 0
            assert pool.busy() == {"running": 1, "lent": 1}
        await pool.close()

    run(check())


def test_a_task_s_check_runs_under_its_lease_only_on_the_device_that_a_check_uses(tmp_path: Path) -> None:
    async def check() -> None:
        pool = DevicePool([0, 1], tmp_path)
        zero, one = await pool.acquire("a"), await pool.acquire("b")
        async with pool.for_task("a_check", "anonymous", nothing, default=0) as slot:
            assert slot.lease.id == zero.id
        entered = asyncio.create_task(_enter(pool, "b_check"))
        await settled()
        assert not entered.done()  # b has device 1, and its check uses device 0, which a has
        pool.release("a", 0)
        assert await entered == 0
        assert one.device == 1
        await pool.close()

    run(check())


async def _enter(pool: DevicePool, task: str) -> int:
    async with pool.for_task(task, "anonymous", nothing, default=0) as slot:
        return slot.device


def test_a_lease_that_is_not_renewed_ends_and_so_does_what_runs_under_it(tmp_path: Path) -> None:
    async def check() -> None:
        pool = DevicePool([0], tmp_path)
        lease = await pool.acquire("task", ttl_s=0.05)
        killed: list[str] = []
        async with pool.under(lease.id, lease.token, lambda: killed.append("killed")):
            await asyncio.sleep(0.1)
            pool.reclaim()
            assert killed == ["killed"]
            assert pool.leases() == []
            with pytest.raises(ConflictError, match="does not hold"):
                pool.renew(lease.id, lease.token)
            assert pool.busy() == {"returning": 1}
        assert pool.busy() == {}
        await pool.close()

    run(check())


def test_tokens_rise_over_restarts_and_over_a_lost_file(tmp_path: Path) -> None:
    async def check() -> None:
        tokens: list[int] = []
        for number in range(4):
            if number == 3:
                for path in (tmp_path / "state").glob(f"{DATABASE}*"):
                    path.unlink()
            pool = DevicePool([number], tmp_path / "state")
            tokens += [(await pool.acquire("task")).token, (await _again(pool, number)).token]
            await pool.close()
        assert tokens == sorted(set(tokens))

    run(check())


async def _again(pool: DevicePool, device: int) -> Lease:
    pool.release("task", device)
    return await pool.acquire("task")


def test_what_was_lent_before_a_boot_is_not_lent_after_it(tmp_path: Path) -> None:
    async def check() -> None:
        pool = DevicePool([0], tmp_path)
        await pool.acquire("task")
        await pool.close()
        with sqlite3.connect(tmp_path / DATABASE) as database:
            database.execute("update state set value = 'another' where name = 'boot'")
        database.close()
        pool = DevicePool([0], tmp_path)
        assert pool.leases() == []
        await pool.close()
        book = LeaseBook(tmp_path)
        last = book.audit()[-1]
        assert (last.event, last.task, last.why) == ("reclaimed", "task", "the machine was started again")
        book.close()

    run(check())


def test_every_grant_release_and_refusal_is_written_down(tmp_path: Path) -> None:
    async def check() -> None:
        pool = DevicePool([0, 1], tmp_path, idle_s=0.01)
        await pool.acquire("a")
        pool.release("b", 0)
        pool.release("a", 0)
        await pool.acquire("idle")
        await asyncio.sleep(0.05)
        pool.reclaim()
        await pool.close()
        book = LeaseBook(tmp_path)
        assert [(line.event, line.task, line.device) for line in book.audit()] == [
            ("granted", "a", 0), ("refused", "b", 0), ("released", "a", 0), ("granted", "idle", 1),
            ("reclaimed", "idle", 1),
        ]  # fmt: skip
        book.close()

    run(check())


def test_whoever_waits_is_refused_when_the_worker_ends(tmp_path: Path) -> None:
    async def check() -> None:
        pool = DevicePool([0, 1], tmp_path)
        await pool.acquire("a")
        await pool.acquire("b")
        waiting = [asyncio.create_task(pool.acquire("c", device=device)) for device in (None, 0)]
        await settled()
        pool.drain()
        for each in waiting:
            with pytest.raises(BlockedError, match="gives out no device"):
                await each
        with pytest.raises(BlockedError):
            await pool.acquire("d")
        pool.release("a", 0)
        assert pool.busy() == {"lent": 1}
        await pool.close()

    run(check())


def test_a_disk_that_takes_no_more_lends_nothing_and_loses_nothing(tmp_path: Path) -> None:
    async def check() -> None:
        pool = DevicePool([0, 1], tmp_path)
        held = await pool.acquire("held")
        pool._book._database.execute("pragma query_only = on")
        with pytest.raises(StorageError, match="cannot be written"):
            await pool.acquire("refused")
        assert pool.release("held", held.device) is True
        assert pool.busy() == {}
        pool._book._database.execute("pragma query_only = off")
        assert {(await pool.acquire("t")).device for _ in range(2)} == {0, 1}
        await pool.close()

    run(check())


def test_a_disk_that_takes_no_more_refuses_all_who_would_be_served_at_one_moment(tmp_path: Path) -> None:
    async def check() -> None:
        pool = DevicePool([0, 1], tmp_path)
        for name in ("a", "b"):
            await pool.acquire(name)
        waiting = [asyncio.create_task(pool.acquire(f"waits{number}")) for number in range(5)]
        await settled()
        pool._book._database.execute("pragma query_only = on")
        assert [pool.release("a", 0), pool.release("b", 1)] == [True, True]
        for each in waiting:
            with pytest.raises(StorageError, match="cannot be written"):
                await each
        assert (pool.waiting, pool.busy()) == (0, {})
        pool._book._database.execute("pragma query_only = off")
        assert {(await pool.acquire("t")).device for _ in range(2)} == {0, 1}
        await pool.close()
        assert [lease.task for lease in DevicePool([0, 1], tmp_path).leases()] == ["t", "t"]

    run(check())


def test_what_is_told_is_on_the_disk_and_many_are_told_by_one_write(tmp_path: Path) -> None:
    async def check() -> None:
        pool = DevicePool([0, 1, 2, 3], tmp_path)
        reader = sqlite3.connect(f"file:{tmp_path / DATABASE}?mode=ro", uri=True)
        writes: list[str] = []
        pool._book._database.set_trace_callback(lambda text: writes.append(text) if text == "commit" else None)

        def on_disk() -> set[str]:
            return {name for (name,) in reader.execute("select id from lease")}

        async def one(number: int) -> None:
            for _ in range(5):
                lease = await pool.acquire(f"task{number}")
                assert lease.id in on_disk()
                await asyncio.sleep(0)
                pool.release(lease.task, lease.device)
                await pool.stored()
                assert lease.id not in on_disk()

        await asyncio.gather(*map(one, range(32)))
        assert len(writes) <= 32 * 5
        reader.close()
        await pool.close()

    run(check())


def test_a_folder_is_one_worker_s_and_its_file_is_a_database(tmp_path: Path) -> None:
    book = LeaseBook(tmp_path)
    with pytest.raises(ConflictError, match="another worker has the folder"):
        LeaseBook(tmp_path)
    book.close()
    for path in tmp_path.glob(f"{DATABASE}*"):
        path.unlink()
    (tmp_path / DATABASE).write_bytes(b"this is no database, whatever its name says" * 100)
    for _ in range(2):
        with pytest.raises(IntegrityError, match="cannot be read"):
            LeaseBook(tmp_path)
    with pytest.raises(UsageError, match="at least one device"):
        DevicePool([], tmp_path / "other")


@pytest.mark.parametrize("rounds", [5, pytest.param(300, marks=pytest.mark.soak)])
def test_64_holders_on_4_devices_lose_no_device_and_share_none(tmp_path: Path, rounds: int) -> None:
    async def check() -> None:
        pool = DevicePool([0, 1, 2, 3], tmp_path)
        holders = Counter[int]()
        done = 0

        async def one(number: int) -> None:
            nonlocal done
            for _ in range(rounds):
                work = asyncio.create_task(pool.acquire(f"task{number}", f"tenant{number % 5}"))
                if number % 4 == 0:
                    await asyncio.sleep(0.0005)
                    if work.cancel():
                        await asyncio.gather(work, return_exceptions=True)
                        continue
                lease = await work
                holders[lease.device] += 1
                assert holders[lease.device] == 1
                await asyncio.sleep(0.0005)
                holders[lease.device] -= 1
                assert pool.release(lease.task, lease.device, lease.tenant)
                done += 1

        await asyncio.gather(*map(one, range(64)))
        assert done >= 48 * rounds
        assert (pool.waiting, pool.busy(), pool.leases()) == (0, {}, [])
        await pool.close()

    asyncio.run(check())
