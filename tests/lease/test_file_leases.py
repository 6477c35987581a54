"""One holder at a time, a token that only rises, and nothing that a killed holder leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.process import NOBODY, Child, in_child, together

from akf.contracts.problems import ConflictError, IntegrityError, StorageError, UsageError
from akf.lease import FileLeases, Lease, devices_of, held

HOLDER = """
import sys, time
from pathlib import Path
from akf.lease import FileLeases
lease = FileLeases(Path(sys.argv[1])).acquire(sys.argv[3:], sys.argv[2])
print(lease.token, flush=True)
time.sleep(600)
"""


def holder(folder: Path, *devices: str, owner: str = "evaluate some-run") -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), owner, *devices], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_the_second_is_refused_and_told_who_holds_the_device(tmp_path: Path) -> None:
    process, _ = holder(tmp_path, "host")
    try:
        with pytest.raises(ConflictError) as refused:
            FileLeases(tmp_path).acquire(["host"], "me")
    finally:
        end(process)
    problem = refused.value.problems[0]
    assert (refused.value.exit_code, problem.code) == (5, "AKF-C120")
    assert f"host is leased by process {process.pid} (evaluate some-run)" in problem.message


def test_a_stopped_holder_keeps_the_device_and_is_said_to_be_stopped(tmp_path: Path) -> None:
    process, _ = holder(tmp_path, "host")
    try:
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        with pytest.raises(ConflictError, match="which is stopped"):
            FileLeases(tmp_path).acquire(["host"], "me")
    finally:
        end(process)


def test_a_killed_holder_frees_its_devices_and_its_token_is_not_given_again(tmp_path: Path) -> None:
    tokens = []
    for _ in range(3):
        process, token = holder(tmp_path, "host", "other")
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        with held(FileLeases(tmp_path), ["host"], "me") as (_, lease):
            tokens += [token, lease.token]
    assert tokens == sorted(set(tokens))


def test_eight_racers_hold_it_one_at_a_time_and_no_token_twice(tmp_path: Path) -> None:
    inside = tmp_path / "inside"

    def race() -> list[int]:
        tokens = []
        leases = FileLeases(tmp_path / "leases")
        for _ in range(125):
            with held(leases, ["host"], "racer", wait_s=120) as (_, lease):
                inside.mkdir()
                leases.check(lease)
                tokens.append(lease.token)
                inside.rmdir()  # fails, as mkdir does, where another is inside
        return tokens

    found = together([race] * 8)
    assert all(own == sorted(own) for own in found)
    tokens = sorted(token for own in found for token in own)
    assert tokens == list(range(tokens[0], tokens[0] + 1000))


def test_two_dies_asked_for_in_opposite_orders_never_wait_for_each_other(tmp_path: Path) -> None:
    def both(*dies: str) -> Callable[[], list[int]]:
        def take() -> list[int]:
            leases = FileLeases(tmp_path)
            return [hold(leases, dies) for _ in range(100)]

        return take

    def hold(leases: FileLeases, dies: tuple[str, ...]) -> int:
        with held(leases, dies, "two dies", wait_s=120) as (_, lease):
            assert lease.devices == ("npu-0-die-0", "npu-0-die-1")
            return lease.token

    one, two = together([both("npu-0-die-0", "npu-0-die-1"), both("npu-0-die-1", "npu-0-die-0")])
    assert len({*one, *two}) == 200


def test_all_or_nothing(tmp_path: Path) -> None:
    process, _ = holder(tmp_path, "die-1")
    leases = FileLeases(tmp_path)
    try:
        with pytest.raises(ConflictError, match="die-1"):
            leases.acquire(["die-0", "die-1"], "me")
        other = Child(lambda: FileLeases(tmp_path).acquire(["die-0"], "other").token)
        assert other.result() > 0
    finally:
        end(process)


def test_a_lease_of_two_has_a_token_above_both(tmp_path: Path) -> None:
    leases = FileLeases(tmp_path)
    last = {}
    for name, times in (("a", 5), ("b", 2)):
        for _ in range(times):
            with held(leases, [name], "me") as (_, lease):
                last[name] = lease.token
    with held(leases, ["b", "a"], "me") as (_, lease):
        assert lease.token > max(last.values())
        both = lease.token
    with held(leases, ["b"], "me") as (_, lease):
        assert lease.token == both + 1


def test_a_wait_ends_with_the_holder(tmp_path: Path) -> None:
    process, token = holder(tmp_path, "host")
    waiting = Child(lambda: FileLeases(tmp_path).acquire(["host"], "waits", wait_s=120).token)
    end(process)
    assert waiting.result() == token + 1


def test_a_wait_has_an_end(tmp_path: Path) -> None:
    with held(FileLeases(tmp_path), ["host"], "first"):
        began = time.monotonic()
        with pytest.raises(ConflictError, match="first"):
            FileLeases(tmp_path).acquire(["host"], "second", wait_s=0.2)
        assert time.monotonic() - began >= 0.2


def test_release_is_idempotent_and_takes_the_very_lease(tmp_path: Path) -> None:
    leases = FileLeases(tmp_path)
    old = leases.acquire(["host"], "me")
    assert leases.release(old)
    assert not leases.release(old)
    lease = leases.acquire(["host"], "me")
    for other in (old, lease._replace(owner="you"), Lease(("host",), "me", lease.token + 1)):
        assert not leases.release(other)
    assert not FileLeases(tmp_path).release(lease)
    with pytest.raises(ConflictError):
        FileLeases(tmp_path).acquire(["host"], "you")
    leases.check(lease)


def test_a_stale_token_is_refused_at_use(tmp_path: Path) -> None:
    leases = FileLeases(tmp_path)
    old = leases.acquire(["host"], "me")
    leases.release(old)
    new = leases.acquire(["host"], "me")
    with pytest.raises(ConflictError) as refused:
        leases.check(old)
    assert refused.value.problems[0].code == "AKF-C121"
    leases.check(new)


def test_a_holder_whose_file_was_taken_away_finds_out(tmp_path: Path) -> None:
    leases = FileLeases(tmp_path)
    lease = leases.acquire(["a", "host"], "me")
    (tmp_path / "host.lease").unlink()
    with pytest.raises(ConflictError, match="is gone"):
        leases.check(lease)
    other = in_child(lambda: FileLeases(tmp_path).acquire(["host"], "other").token)
    assert other > lease.token
    with pytest.raises(ConflictError, match="is another file now"):
        leases.check(lease)


def test_a_lease_is_its_processs_own(tmp_path: Path) -> None:
    leases = FileLeases(tmp_path)
    lease = leases.acquire(["host"], "me")

    def check() -> str:
        with pytest.raises(ConflictError):
            leases.check(lease)
        return "refused"

    assert in_child(check) == "refused"
    leases.check(lease)
    helper = Child(lambda: time.sleep(600))
    try:
        leases.release(lease)
        with held(FileLeases(tmp_path), ["host"], "next"):
            pass
    finally:
        helper.kill()


def test_a_program_that_the_holder_starts_does_not_keep_the_device(tmp_path: Path) -> None:
    leases = FileLeases(tmp_path)
    lease = leases.acquire(["host"], "me")
    sleeper = subprocess.Popen(["sleep", "600"])
    try:
        leases.release(lease)
        with held(leases, ["host"], "next"):
            pass
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_folder_that_cannot_be_written_is_named() -> None:
    def refusal() -> str:
        with pytest.raises(StorageError) as refused:
            FileLeases(Path("/akf-leases")).acquire(["host"], "me")
        problem = refused.value.problems[0]
        return f"{refused.value.exit_code} {problem.code} {problem.file}"

    assert in_child(refusal, uid=NOBODY) == "7 AKF-F104 /akf-leases"


@pytest.mark.parametrize("record", [b"x", b"7" * 511, b"x" * 512])
def test_a_record_that_cannot_be_read_is_refused_and_nothing_is_guessed(tmp_path: Path, record: bytes) -> None:
    (tmp_path / "host.lease").write_bytes(record)
    with pytest.raises(IntegrityError) as refused:
        FileLeases(tmp_path).acquire(["host"], "me")
    assert refused.value.problems[0].code == "AKF-I410"
    (tmp_path / "host.lease").unlink()
    with held(FileLeases(tmp_path), ["host"], "me"):
        pass


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"data")
    (tmp_path / "host.lease").symlink_to("precious")
    (tmp_path / "linked").symlink_to(tmp_path)
    for folder in (tmp_path, tmp_path / "linked"):
        with pytest.raises(StorageError):
            FileLeases(folder).acquire(["host"], "me")
    assert (tmp_path / "precious").read_bytes() == b"data"


@pytest.mark.parametrize("owner", ["\x1b[2Jgone", '"' * 999, "\U0001f600" * 999, "\udcff"])
def test_an_owner_cannot_paint_the_terminal_or_outgrow_the_record(tmp_path: Path, owner: str) -> None:
    with held(FileLeases(tmp_path), ["host"], owner), pytest.raises(ConflictError) as refused:
        FileLeases(tmp_path).acquire(["host"], "me")
    assert str(os.getpid()) in str(refused.value)
    assert "\x1b" not in str(refused.value)
    assert (tmp_path / "host.lease").stat().st_size == 512


@pytest.mark.parametrize("names", [[], [""], ["../host"], ["a/b"], ["Host"], ["."]])
def test_what_is_no_device_is_refused(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(UsageError):
        FileLeases(tmp_path).acquire(names, "me")
    assert list(tmp_path.iterdir()) == []


def campaign(platform: str, family: str, *devices: tuple[int, int]) -> dict[str, Any]:
    ranks = [{"rank": rank, "npu": npu, "die": die} for rank, (npu, die) in enumerate(devices)]
    return {"platform": platform, "environment": {"soc": {"family": family}}, "ranks": {"devices": ranks}}


def test_both_dies_of_a_package_are_leased() -> None:
    assert devices_of(campaign("host", "host", (0, 0))) == ("host",)
    assert devices_of(campaign("ascend", "ascend910_93", (0, 1))) == ("npu-0-die-0", "npu-0-die-1")
    assert devices_of(campaign("ascend", "ascend910b", (3, 0), (2, 0))) == ("npu-2-die-0", "npu-3-die-0")
    assert devices_of(campaign("cuda", "hopper", (0, 0))) == ("gpu-0-die-0",)
