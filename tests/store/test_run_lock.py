"""One process at a time changes a run; the kernel, not a file, says who."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.mounts import mounted
from tests.support.process import NOBODY, in_child, together

from akf.contracts.problems import ConflictError, StorageError
from akf.store.lock import RunLock

HOLDER = """
import sys, time
from pathlib import Path
from akf.store.lock import RunLock
with RunLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(run: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(run), "--by-this-command"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_the_second_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        with pytest.raises(ConflictError) as refused, RunLock(tmp_path):
            pass
    finally:
        end(process)
    problem = refused.value.problems[0]
    assert (refused.value.exit_code, problem.code) == (5, "AKF-C103")
    assert str(process.pid) in problem.message
    assert "--by-this-command" in problem.message


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    process = holder(tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    with RunLock(tmp_path) as lock:
        assert lock.held
    assert not lock.held


def test_waits_for_a_holder_that_ends(tmp_path: Path) -> None:
    def hold_shortly() -> None:
        with RunLock(tmp_path, wait_s=5):
            time.sleep(0.05)

    together([hold_shortly] * 4)


def test_waits_no_longer_than_asked(tmp_path: Path) -> None:
    with RunLock(tmp_path):
        began = time.monotonic()
        with pytest.raises(ConflictError), RunLock(tmp_path, wait_s=0.1):
            pass
        assert 0.1 <= time.monotonic() - began < 5


def test_two_locks_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    with RunLock(tmp_path), pytest.raises(ConflictError, match=str(os.getpid())), RunLock(tmp_path):
        pass
    with RunLock(tmp_path):
        pass


def test_a_program_that_the_holder_starts_does_not_keep_the_lock(tmp_path: Path) -> None:
    with RunLock(tmp_path):
        sleeper = subprocess.Popen(["sleep", "60"])
    try:
        with RunLock(tmp_path):
            pass
    finally:
        sleeper.kill()
        sleeper.wait()


@pytest.mark.parametrize("written", [b"", b"not json", b"[]", b'{"pid":"x"}', b'{"pid":1,"start":1,"command":"init"}'])
def test_whatever_the_file_says_the_refusal_stands(tmp_path: Path, written: bytes) -> None:
    with RunLock(tmp_path):
        (tmp_path / ".lock").write_bytes(written)
        with pytest.raises(ConflictError, match="in use by another process"), RunLock(tmp_path):
            pass


def test_a_command_cannot_paint_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["akf", "\x1b[2Jgone", "\udcff"])
    with RunLock(tmp_path), pytest.raises(ConflictError) as refused, RunLock(tmp_path):
        pass
    assert "\x1b" not in str(refused.value)


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"data")
    (tmp_path / ".lock").symlink_to("precious")
    with pytest.raises(StorageError), RunLock(tmp_path):
        pass
    assert (tmp_path / "precious").read_bytes() == b"data"


def test_a_missing_run_and_a_closed_one_are_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as refused, RunLock(tmp_path / "missing"):
        pass
    assert refused.value.problems[0].code == "AKF-F106"

    def code() -> str:
        try:
            with RunLock(Path("/")):
                return "locked"
        except StorageError as error:
            return error.problems[0].code

    assert in_child(code, uid=NOBODY) == "AKF-F104"


def test_a_full_disk_does_not_keep_from_locking(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "tmpfs", "size=4k") as small:
        (small / "fill").write_bytes(b"x" * 4096)
        with RunLock(small), pytest.raises(ConflictError), RunLock(small):
            pass
