"""Whole builds by a hostile tool: each ends as a Build with a code, and nothing of it is taken for an output."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from tests.support.process import Child
from tests.support.sandboxes import NAMESPACED, QUICK, need

from akf.build.engine import Bench, Made, make
from akf.contracts.canonical import digest
from akf.contracts.problems import BlockedError, PreconditionError
from akf.routes import outcomes
from akf.routes.host_cpp import ROUTE
from akf.routes.route import Job, Plan, Route, Step
from akf.routes.sandbox import Limits, Sandbox, layout, levels
from akf.routes.tools import Found, Place
from akf.store.untrusted import TreeFile

SOURCE = [TreeFile("kernel.cpp", b"int honest;\n", False), TreeFile("tool.sh", b"#!/bin/sh\necho own\n", True)]


class ByScript(Route):
    """The route `host_cpp` with a shell script in the compiler's place."""

    def __init__(self, *scripts: str, limits: Limits = QUICK) -> None:
        super().__init__("host_cpp")
        self._steps = [
            Step("g++", ("-c", each), ("kernel.so",) if n == 0 else (), (), limits) for n, each in enumerate(scripts)
        ]

    def plan(self, job: Job) -> Plan:
        del job
        return Plan(tuple(self._steps))


def _bench(route: Route, least: str = "none") -> Bench:
    shell = Path("/bin/sh").resolve()
    record = {"name": "g++", "version_text": "a shell", "files": [{"name": "sh", "digest": digest(b"sh")}]}
    found = Found(ROUTE.data.program("g++"), shell, record, str(shell))
    return Bench(route, Place(), (found,), {"name": "gcc", "version": "1", "build": "1"}, least=least)


def _job(**options: str) -> Job:
    return Job(tuple(file.path for file in SOURCE), options, "native", "native")


def _make(folder: Path, *scripts: str, limits: Limits = QUICK) -> Made:
    return make(_bench(ByScript(*scripts, limits=limits)), _job(), SOURCE, folder / "build")


def test_an_honest_tool_builds(tmp_path: Path) -> None:
    """The control of every test below; what runs among the sources still runs."""
    made = _make(tmp_path, "cat src/kernel.cpp >out/kernel.so && src/tool.sh")
    assert made.built
    assert made.files == {"kernel.so": b"int honest;\n"}
    assert made.log.endswith("own\n")


LIMITED = {
    "time": ("sleep 60", "BUILD_TIMED_OUT"),
    "memory": ("x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done", "BUILD_OUT_OF_MEMORY"),
    "disk": ("while :; do head -c 4000000 /dev/zero >out/f$((i = i + 1)); done", "BUILD_OUT_OF_DISK"),
    "processes": ("for i in $(seq 100); do sleep 60 & done; wait", "BUILD_TOO_MANY_PROCESSES"),
}


@pytest.mark.parametrize("what", LIMITED)
def test_a_limit_that_is_reached_is_a_failed_build_with_its_code(what: str, tmp_path: Path) -> None:
    script, code = LIMITED[what]
    if levels.choose()[0] == "none":
        pytest.skip("processes are bounded in namespaces only")
    limits = QUICK._replace(wall_s=1.0) if what == "time" else QUICK
    made = _make(tmp_path, f"cat src/kernel.cpp >out/kernel.so; {script}", limits=limits)
    assert made.outcome is not None
    assert (made.outcome.code, made.built) == (code, False)
    assert made.errors == (made.outcome.message,)
    assert code in outcomes.STOPPED.values()


PLANTED = {
    "symbolic link": "ln -s /etc/ld.so.cache out/kernel.so",
    "hard link": "echo x >out/other; ln out/other out/kernel.so",
    "FIFO": "mkfifo out/kernel.so",
    "folder": "mkdir out/kernel.so",
}


@pytest.mark.parametrize("what", PLANTED)
def test_an_output_that_is_no_plain_file_is_named(what: str, tmp_path: Path) -> None:
    made = _make(tmp_path, PLANTED[what])
    assert made.outcome is not None
    assert made.outcome.code == outcomes.REFUSED
    assert what.lower() in made.outcome.message.lower()
    assert not made.files


def test_what_is_planted_beside_the_outputs_is_named_and_gone(tmp_path: Path) -> None:
    made = _make(tmp_path, "echo x >out/kernel.so; ln -s / out/way; mkfifo out/pipe; mkdir -p out/a/b")
    assert made.built
    assert {note.split(", which ")[1] for note in made.notes} == {
        "is a symbolic link; it was removed",
        "is a FIFO; it was removed",
    }
    assert not list((tmp_path / "build" / "out").iterdir())


def test_a_file_of_an_earlier_step_cannot_be_changed(tmp_path: Path) -> None:
    made = _make(tmp_path, "echo first >out/kernel.so", "echo second >out/kernel.so")
    assert made.outcome is not None
    assert "changed kernel.so of an earlier step" in made.outcome.message


def test_nothing_is_carried_from_step_to_step_but_outputs(tmp_path: Path) -> None:
    plant = "echo x >out/kernel.so; for d in home tmp cache; do mkdir $d/a; echo x >$d/a/b; chmod 0 $d/a; done"
    made = _make(tmp_path, plant, "find home tmp cache -mindepth 1")
    assert made.built
    assert made.log.endswith("find home tmp cache -mindepth 1\n")


def test_identities_cover_every_input(tmp_path: Path) -> None:
    """Sources, modes, options, commands and limits: change one, and it is another build."""
    tools = _bench(ByScript("echo x >out/kernel.so"))
    changed = [
        (tools, _job(), SOURCE),
        (tools, _job(flag="-O2"), SOURCE),
        (tools, _job()._replace(target="other"), SOURCE),
        (tools, _job(), [SOURCE[0]._replace(data=b"int other;\n"), SOURCE[1]]),
        (tools, _job(), [SOURCE[0]._replace(executable=True), SOURCE[1]]),
        (tools, _job(), [SOURCE[0]._replace(path="kernel2.cpp"), SOURCE[1]]),
        (_bench(ByScript("echo y >out/kernel.so")), _job(), SOURCE),
        (_bench(ByScript("echo x >out/kernel.so", limits=QUICK._replace(files=5))), _job(), SOURCE),
        (tools._replace(found=(tools.found[0]._replace(record={"name": "g++", "version_text": "2"}),)), _job(), SOURCE),
    ]
    seen = {make(*each, tmp_path / str(n)).inputs for n, each in enumerate(changed)}
    assert len(seen) == len(changed)
    assert make(tools, _job(), list(reversed(SOURCE)), tmp_path / "again").inputs in seen


def test_ten_builds_at_once_keep_their_identities_apart(tmp_path: Path) -> None:
    made: dict[int, Made] = {}

    def work(n: int) -> None:
        source = [TreeFile("kernel.cpp", f"int number_{n};\n".encode(), False), SOURCE[1]]
        script = "cat src/kernel.cpp >tmp/half; sleep 0.05; cat tmp/half >out/kernel.so"
        made[n] = make(_bench(ByScript(script)), _job(), source, tmp_path / str(n))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {n: each.files["kernel.so"] for n, each in made.items()} == {
        n: f"int number_{n};\n".encode() for n in range(10)
    }
    assert len({each.inputs for each in made.values()}) == 10


def test_a_build_is_never_less_shut_in_than_demanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the level is not to be had nothing runs, and each level that was tried is named with its reason."""
    monkeypatch.setattr(levels, "why_not", lambda level: None if level == "none" else f"no {level} here")
    monkeypatch.setattr(Sandbox, "run", lambda *_: pytest.fail("a command was run"))
    with pytest.raises(PreconditionError) as caught:
        make(_bench(ByScript("true"), "userns"), _job(), SOURCE, tmp_path / "build")
    problem = caught.value.problems[0]
    assert problem.code == "AKF-P450"
    assert "bwrap: no bwrap here; userns: no userns here" in problem.message
    assert Sandbox(tmp_path / "build", {}).record["tried"] == [
        {"level": "bwrap", "why": "no bwrap here"},
        {"level": "userns", "why": "no userns here"},
    ]


def test_a_build_says_how_it_was_shut_in(tmp_path: Path) -> None:
    for level in NAMESPACED:
        need(level)
    made = _make(tmp_path, "echo x >out/kernel.so")
    assert made.isolation == "bwrap"
    assert made.sandbox["network_namespace"]
    assert made.sandbox["system_calls_filtered"]
    assert made.sandbox["tried"] == []
    (file,) = made.sandbox["program"]["files"]
    assert file["digest"] == digest(Path("/usr/bin/bwrap").read_bytes())


def test_a_sandbox_that_breaks_gives_no_verdict(tmp_path: Path) -> None:
    """A mount that is not there any more is the machine's matter, not the source's."""
    need("bwrap")
    for level in NAMESPACED:
        work = tmp_path / level
        layout(work)
        sandbox = Sandbox(work, {"tools": tmp_path / "gone"}, allowed=[level])
        with pytest.raises(BlockedError) as caught:
            sandbox.run(["/bin/true"], {}, QUICK)
        assert caught.value.problems[0].code == "AKF-E451"


def test_a_tools_folder_never_shows_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AKF_KEYS", str(tmp_path / "role" / "keys"))
    layout(tmp_path / "work")
    for shown in (home, tmp_path, tmp_path / "role", Path("/")):
        with pytest.raises(BlockedError) as caught:
            Sandbox(tmp_path / "work", {}, [shown])
        assert caught.value.problems[0].code == "AKF-E452"
    Sandbox(tmp_path / "work", {"env": home / "bin"})


@pytest.mark.soak
def test_builders_that_are_killed_at_any_moment_leave_nothing_running(tmp_path: Path) -> None:
    """Two hundred kills of a building process, from its first microseconds on; no command of a build goes on."""
    import random  # noqa: PLC0415
    import time  # noqa: PLC0415

    chance = random.Random(20261130)
    marker = f"6{os.getpid():09d}"  # how long things sleep: every process of a build can be told by it
    script = f"setsid sleep {marker} & while :; do sleep {marker}; done"
    for n in range(200):
        child = Child(lambda n=n: _make(tmp_path / str(n), script).stage)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.12))
        child.kill()
    until = time.monotonic() + 20
    while (left := _running(marker)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left


def _running(marker: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if marker.encode() in words and int(path.parent.name) != os.getpid():
            found.append(words.decode(errors="replace"))
    return found


def test_sources_are_written_as_they_were_digested(tmp_path: Path) -> None:
    """Bytes and the execute permission; nobody may write them afterwards."""
    _make(tmp_path, "echo x >out/kernel.so")
    for file in SOURCE:
        path = tmp_path / "build" / "src" / file.path
        assert path.read_bytes() == file.data
        assert path.stat().st_mode & 0o777 == (0o555 if file.executable else 0o444)
