"""Agents that come, are replaced and go while tasks run."""

import gc
import os
import sys
import threading
import time
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support.kernels import Does, nodes, running

from akf.contracts.problems import ConflictError, InvalidError, UsageError
from akf.runtime import AgentRegistry, Kernel, Limits, Memory

SOURCE = """
class Plugged:
    role = "plugged"

    async def run(self, node, context):
        return "version {version}"

agents = [Plugged()]
"""
FORM = nodes({"id": "n", "action": "plugged"})


def write(path: Path, version: object) -> str:
    path.write_text(SOURCE.replace("{version}", str(version)))
    return str(path)


class Gate:
    """An agent that says that it has begun and goes on when it may."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.begun, self.go = threading.Event(), threading.Event()

    def run(self, *_: Any) -> bool:
        self.begun.set()
        return self.go.wait(timeout=30)


def answer(kernel: Kernel) -> Any:
    return kernel.outcome(kernel.submit(FORM), timeout_s=30).results[0]


class TestOrigins:
    def test_a_file(self, tmp_path: Path) -> None:
        registry = AgentRegistry()
        assert registry.load(write(tmp_path / "mine.py", 1)) == ["plugged"]

    def test_a_file_with_the_name_of_a_function(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.py"
        path.write_text("from akf.runtime import Agent\ndef make():\n    return Agent('one'), Agent('other')\n")
        registry = AgentRegistry()
        assert registry.load(f"{path}:make") == ["one", "other"]

    def test_a_module(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(tmp_path / "akf_test_plugin.py", 1)
        monkeypatch.syspath_prepend(str(tmp_path))
        registry = AgentRegistry()
        assert registry.load("akf_test_plugin") == ["plugged"]
        registry.unload("plugged")
        assert "akf_test_plugin" not in sys.modules

    def test_an_entry_point(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(tmp_path / "akf_test_entry.py", 1)
        installed = tmp_path / "akf_test_entry-1.dist-info"
        installed.mkdir()
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: akf-test-entry\nVersion: 1\n")
        (installed / "entry_points.txt").write_text("[akf.agents]\nmine = akf_test_entry\nbad = akf_test_missing\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        registry = AgentRegistry()
        assert registry.load("entry:mine") == ["plugged"]
        assert "plugged" in AgentRegistry().discover()
        with pytest.raises(InvalidError) as refused:
            registry.load("entry:mime")
        assert refused.value.problems[0].hint == "did you mean mine?"


def test_a_file_that_changes_within_a_second_and_keeps_its_size_is_loaded_as_it_is(tmp_path: Path) -> None:
    with running() as kernel:
        registry, path = kernel.scheduler.registry, tmp_path / "mine.py"
        for version in (1, 2, 3):
            registry.load(write(path, version))
            os.utime(path, (1_000_000_000, 1_000_000_000))
            assert answer(kernel) == f"version {version}"


def test_a_running_node_ends_on_its_version_and_new_ones_take_the_new(tmp_path: Path) -> None:
    begun, go = threading.Event(), threading.Event()

    def old(*_: Any) -> str:
        begun.set()
        go.wait(timeout=30)
        return "the old one"

    with running(Does("plugged", old)) as kernel:
        first = kernel.submit(FORM)
        begun.wait(timeout=30)
        kernel.scheduler.registry.load(write(tmp_path / "mine.py", 2))
        assert answer(kernel) == "version 2"
        go.set()
        assert kernel.outcome(first, timeout_s=30).results == ["the old one"]


def test_unloading_waits_for_the_last_node_and_frees_the_module(tmp_path: Path) -> None:
    path = tmp_path / "slow.py"
    path.write_text(
        "import threading\nbegun, go = threading.Event(), threading.Event()\n"
        "class Slow:\n    role = 'plugged'\n"
        "    def run(self, node, context):\n        begun.set()\n        go.wait(30)\n        return 'drained'\n"
        "agents = [Slow()]\n"
    )
    with running() as kernel:
        registry = kernel.scheduler.registry
        registry.load(str(path))
        module = sys.modules["akf_plugin_slow"]
        freed, begun, go = weakref.ref(module), module.begun, module.go
        del module
        task = kernel.submit(FORM)
        begun.wait(timeout=30)
        with pytest.raises(ConflictError) as busy:
            registry.unload("plugged", wait_s=0)
        assert busy.value.problems[0].code == "AKF-C703"
        go.set()
        assert kernel.outcome(task, timeout_s=30).results == ["drained"]
        with pytest.raises(UsageError):
            registry.unload("plugged")
        end = time.monotonic() + 30
        while freed() is not None and time.monotonic() < end:
            gc.collect()
            time.sleep(0.01)
        assert freed() is None
        assert "akf_plugin_slow" not in sys.modules


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def run(:\n", "in line 1 with SyntaxError"),
        ("import math\n\nmath.sqrt(-1)\n", "in line 3 with ValueError: math domain error"),
        ("raise SystemExit('away')\n", "SystemExit: away"),
        ("import not_there_at_all\n", "ModuleNotFoundError"),
        ("agent = 1\n", 'there is no "agents" in it'),
        ("agents = []\n", "it gives no agents"),
        ("agents = [1]\n", "this is no agent"),
        ("class A:\n    role = 'plugged'\nagents = [A()]\n", "neither run nor execute"),
        ("class A:\n    role = 'plugged'\n    def run(self):\n        pass\nagents = [A()]\n", "takes other arguments"),
        ("class A:\n    role = 'plugged'\n    def run(self, n, c):\n        pass\nagents = A\n", "it is a class"),
        (SOURCE + "agents = [Plugged(), Plugged()]\n", "two agents have the role plugged"),
    ],
)
def test_a_plug_in_that_is_broken_leaves_the_old_one_serving_and_says_why(
    tmp_path: Path, source: str, words: str
) -> None:
    path = tmp_path / "mine.py"
    with running() as kernel:
        registry = kernel.scheduler.registry
        registry.load(write(path, 1))
        before = sys.modules["akf_plugin_mine"]
        path.write_text(source)
        with pytest.raises(InvalidError) as refused:
            registry.load(str(path))
        assert words in refused.value.problems[0].message
        assert answer(kernel) == "version 1"
        assert sys.modules["akf_plugin_mine"] is before
        told = [each for each in kernel.event.subscribe(0).read() if each.kind == "agent_refused"]
        assert len(told) == 1
        registry.load(write(path, 2))
        assert answer(kernel) == "version 2"


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError) as refused:
        AgentRegistry().load(str(tmp_path / "none.py"))
    assert "there is no file none.py" in refused.value.problems[0].message


def test_a_plug_in_that_gives_fewer_roles_lets_the_others_go(tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    registry = AgentRegistry()
    path.write_text("from akf.runtime import Agent\nagents = [Agent('one'), Agent('other')]\n")
    registry.load(str(path))
    path.write_text("from akf.runtime import Agent\nagents = [Agent('one')]\n")
    registry.load(str(path))
    assert list(registry.agents) == ["one"]


def test_a_node_waits_a_while_for_a_role_that_is_away(tmp_path: Path) -> None:
    first = Gate("first")
    with running(first, Does("plugged", lambda *_: "old")) as kernel:
        registry = kernel.scheduler.registry
        task = kernel.submit(
            nodes({"id": "f", "action": "first"}, {"id": "n", "action": "plugged", "needs": ["f"]}),
        )
        first.begun.wait(timeout=30)
        registry.unload("plugged")
        first.go.set()
        while kernel.state(task)["nodes"]["f"]["status"] != "finished":
            time.sleep(0.005)
        registry.load(write(tmp_path / "mine.py", 5))
        assert kernel.outcome(task, timeout_s=30).results[1] == "version 5"


def test_and_fails_when_it_does_not_come_back() -> None:
    first = Gate("known")
    with running(first, Does("plugged", lambda *_: None), limits=Limits(absent_s=0.05)) as kernel:
        task = kernel.submit(nodes({"id": "f", "action": "known"}, {"id": "n", "action": "plugged", "needs": ["f"]}))
        first.begun.wait(timeout=30)
        kernel.scheduler.registry.unload("plugged")
        first.go.set()
        error = kernel.outcome(task, timeout_s=30).errors["n"]
        assert error == {
            "reason": "no_agent",
            "message": 'no agent has the role "plugged" (known are known)',
        }


def swapped(tmp_path: Path, swaps: int) -> None:
    """Load another version again and again while tasks run; none is lost, none fails, versions only rise."""
    path = tmp_path / "mine.py"
    with running(workers=4, memory=Memory(tasks=10**6)) as kernel:
        registry = kernel.scheduler.registry
        registry.load(write(path, 0))
        tasks: list[str] = []
        done = threading.Event()

        def submit() -> None:
            while not done.is_set():
                tasks.append(kernel.submit(FORM, wait_s=None))
                if len(tasks) % 50 == 0:
                    kernel.outcome(tasks[-1])

        feeder = threading.Thread(target=submit)
        feeder.start()
        for version in range(1, swaps + 1):
            registry.load(write(path, version))
        done.set()
        feeder.join()
        outcomes = [kernel.outcome(task, timeout_s=60) for task in tasks]
    assert Counter(outcome.status for outcome in outcomes) == {"finished": len(tasks)}
    versions = [int(outcome.results[0].split()[1]) for outcome in outcomes]
    assert len(set(versions)) > 1
    assert max(versions) <= swaps


def test_swaps_under_load_lose_nothing(tmp_path: Path) -> None:
    swapped(tmp_path, 50)


@pytest.mark.soak
def test_a_thousand_swaps_under_load_lose_nothing(tmp_path: Path) -> None:
    swapped(tmp_path, 1000)
