"""One program run to its end, at both levels of isolation: what is said, how it ends, and that nothing is left."""

import asyncio
import os
import signal
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import pytest
from tests.support.process import fork
from tests.support.worker_service import eventually, processes_with

from akf.fabric.execution import Isolation, Order, Runner, working_isolation
from akf.fabric.logs import BoundedLog
from akf.fabric.running import Ended

TREE = (
    "import subprocess, sys, time\n"
    "code = 'import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(300) # {0}'\n"
    "subprocess.Popen([sys.executable, '-c', code])\n"
    "subprocess.Popen(['setsid', sys.executable, '-c', code])\n"
    "time.sleep(0.2)\n"
)


@pytest.fixture(params=["namespaces", "group"])
def level(request: pytest.FixtureRequest) -> Isolation:
    if request.param == "namespaces" and asyncio.run(working_isolation())[0] != "namespaces":
        pytest.skip("this kernel gives no namespaces")
    found: Isolation = request.param
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "place" / "work").mkdir(parents=True)
    return tmp_path / "place"


async def ran(runner: Runner, place: Path, script: str, timeout_s: float = 20.0) -> Ended:
    (place / "work" / "x.py").write_text(script)
    return await runner.run(Order([sys.executable, "x.py"], {"A": "b"}, place, "work", timeout_s))


def run(level: Isolation, work: Any) -> Any:
    async def all_of_it() -> Any:
        runner = Runner(level)
        try:
            return await work(runner)
        finally:
            runner.close()

    return asyncio.run(asyncio.wait_for(all_of_it(), 60))


def test_a_program_ends_with_its_status_and_what_it_said(level: Isolation, place: Path) -> None:
    async def work(runner: Runner) -> list[Ended]:
        return [
            await ran(runner, place, "import os, sys\nprint(os.environ['A'])\nsys.exit('err')"),
            await ran(runner, place, "import os\nos.kill(os.getpid(), 9)"),
            await runner.run(Order(["/no/such/program"], {}, place, "work", 5)),
        ]

    said, killed, missing = run(level, work)
    assert (said.how, said.status, said.log) == ("ended", 1, "b\n\nerr\n")
    assert (killed.how, killed.status) == ("ended", 128 + 9)
    assert (missing.status, missing.err) == (127, "cannot start /no/such/program: No such file or directory\n")


@pytest.mark.parametrize("then", ["", "time.sleep(300)"])
def test_a_tree_is_gone_when_its_program_s_result_is_there(level: Isolation, place: Path, then: str) -> None:
    ended = run(level, lambda runner: ran(runner, place, TREE.format(f"ex-{level}") + then, 1.0))
    assert ended.how == ("timeout" if then else "ended")
    assert processes_with(f"# ex-{level}") == []


def test_a_tree_is_gone_before_a_cancelled_caller_goes_on(level: Isolation, place: Path) -> None:
    async def work(runner: Runner) -> None:
        going = asyncio.create_task(ran(runner, place, TREE.format("cut") + "time.sleep(300)"))
        await asyncio.to_thread(eventually, lambda: len(processes_with("# cut")) == 2, "the tree runs")
        for _ in range(3):
            going.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await going
        assert processes_with("# cut") == []

    run(level, work)


def test_a_keeper_that_is_killed_is_a_fault_of_the_machine_and_another_one_is_started(place: Path) -> None:
    async def work(runner: Runner) -> tuple[Ended, Ended]:
        going = asyncio.create_task(ran(runner, place, TREE.format("keeper") + "time.sleep(300)"))
        await asyncio.to_thread(eventually, lambda: len(processes_with("# keeper")) == 2, "the tree runs")
        assert runner._keeper is not None
        runner._keeper.kill()
        first = await going
        assert processes_with("# keeper") == []
        return first, await ran(runner, place, "print('again')")

    if asyncio.run(working_isolation())[0] != "namespaces":
        pytest.skip("this kernel gives no namespaces")
    first, second = run("namespaces", work)
    assert (first.how, first.status) == ("infra_error", None)
    assert (second.how, second.out) == ("ended", "again\n")


def test_a_place_that_is_not_there_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    if asyncio.run(working_isolation())[0] != "namespaces":
        pytest.skip("this kernel gives no namespaces")
    ended = run("namespaces", lambda runner: runner.run(Order(["/bin/true"], {}, tmp_path / "none", ".", 5)))
    assert ended.how == "infra_error"
    assert "No such file or directory" in ended.detail


def test_when_this_process_is_killed_nothing_runs_on(level: Isolation, place: Path) -> None:
    (place / "work" / "x.py").write_text(TREE.format(f"orphan-{level}") + "time.sleep(300)")
    child = fork()
    if child == 0:
        runner = Runner(level)
        asyncio.run(runner.run(Order([sys.executable, "x.py"], {}, place, "work", 60)))
        os._exit(0)
    eventually(lambda: len(processes_with(f"# orphan-{level}")) == 2, "the tree runs")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if level == "group":  # only namespaces end what left its session
        for pid in processes_with(f"# orphan-{level}"):
            os.kill(pid, signal.SIGKILL)
    eventually(lambda: processes_with(f"# orphan-{level}") == [], "nothing runs on", 5)


def test_an_interpreter_that_lies_where_programs_have_their_own_folder_is_there(place: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder) / "env", with_pip=False)
        python = f"{folder}/env/bin/python"
        (place / "work" / "x.py").write_text("import os, sys\nprint(sys.executable, os.listdir())")
        level, _ = asyncio.run(working_isolation())
        ended = run(level, lambda runner: runner.run(Order([python, "x.py"], {}, place, "work", 20)))
    assert ended.log == f"{python} ['x.py']\n\n"


def test_many_at_once_do_not_mix(place: Path) -> None:
    async def work(runner: Runner) -> list[Ended]:
        async def one(number: int) -> Ended:
            folder = place / str(number)
            (folder / "work").mkdir(parents=True)
            return await ran(runner, folder, f"print({number})")

        return list(await asyncio.gather(*map(one, range(12))))

    level, _ = asyncio.run(working_isolation())
    assert [ended.out for ended in run(level, work)] == [f"{number}\n" for number in range(12)]


class TestLog:
    def test_a_short_one_is_whole(self) -> None:
        log = BoundedLog(4, 4)
        for piece in (b"ab", b"cdef", b"gh"):
            log.feed(piece)
        assert log.text() == "abcdefgh"

    def test_a_long_one_keeps_its_ends_and_says_how_much_is_missing(self) -> None:
        log = BoundedLog(4, 4)
        for _ in range(100):
            log.feed(b"0123456789")
        assert log.text() == "0123\n[992 bytes are left out here]\n6789"

    @pytest.mark.parametrize("step", [1, 7, 64, 1000])
    def test_markers_in_what_is_left_out_are_kept_once(self, step: int) -> None:
        data = b"x" * 500 + b"\nREFERENCE_CHECK_SUCCESS\n" + b"y" * 300 + b"\nPROFILE_RESULT: 12.5\n" + b"z" * 500
        log = BoundedLog(10, 10)
        for at in range(0, len(data), step):
            log.feed(data[at : at + step])
        text = log.text()
        assert text.count("REFERENCE_CHECK_SUCCESS") == 1
        assert text.count("PROFILE_RESULT: 12.5\n") == 1
        assert len(text) < 200
