"""One build of one tree: what a step may leave, what code of the source may not, and how each end is told apart."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from akf.build.engine import Made, bench, make
from akf.contracts.problems import BlockedError
from akf.routes import declaration as declarations
from akf.routes.route import Job, Plan, Route, SourceRefused, Step
from akf.routes.sandbox import Limits, levels
from akf.routes.tools import Place
from akf.store.untrusted import TreeFile

TOML = """
title = "Shell scripts for tests"
platform = "host"
language = "sh"
suffixes = [".sh"]
abi = "c"
without_cann = "All of it."
toolkit = { name = "gcc", tool = "sh" }

[soc]
space = "none"
machine = true

[environment]
variables = { PATH = "/usr/bin:/bin", HOME = "{work}/home", TMPDIR = "{work}/tmp", GONE = "{toolkit}/x" }

[[tools]]
name = "sh"
found = "path"
places = ["sh"]
get = "install a shell"

[[tools]]
name = "last"
found = "toolkit"
places = ["bin/last"]
get = "install the last tool"

[[stages]]
name = "frontend_ir"
file = "a.txt"
normal = "a.normal"
needs = ["sh"]

[[stages]]
name = "shared_object"
file = "kernel.so"
needs = ["last"]

[[outputs]]
file = "a.txt"
role = "ir"
trust = "data"

[[outputs]]
file = "kernel.so"
role = "kernel_object"
trust = "host_code"

[claims]
families = []
dtypes = ["float32"]
graph = ["eager"]
toolkit = "gcc"
"""


class Scripted(Route):
    """Steps as the test gives them."""

    steps: tuple[Step, ...] = ()

    def plan(self, job: Job) -> Plan:
        if not job.sources:
            raise SourceRefused("no source")
        return Plan(self.steps, {"given.txt": b"of the route\n"})


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    (tmp_path / "routes" / "mine").mkdir(parents=True)
    (tmp_path / "routes" / "mine" / "route.toml").write_text(TOML)
    monkeypatch.setattr(declarations, "FOLDER", tmp_path / "routes")
    declarations.declaration.cache_clear()
    yield Scripted("mine")
    declarations.declaration.cache_clear()


def shell(script: str, *makes: str, wall_s: float = 20.0, **more: Any) -> Step:
    return Step("sh", ("-c", script), makes, limits=Limits(wall_s=wall_s), **more)


def run(route: Scripted, folder: Path, *steps: Step, files: tuple[str, ...] = ("k.sh",)) -> Made:
    route.steps = steps
    job = Job(files, {}, "native", "native")
    tools = bench(route, job, Place())
    return make(tools, job, [TreeFile(name, b"source\n", False) for name in files], folder)


def test_what_was_made_is_kept_by_its_declared_role(scripted: Scripted, tmp_path: Path) -> None:
    made = run(scripted, tmp_path / "w", shell("cat src/k.sh in/given.txt > out/a.txt", "a.txt"))
    assert (made.stage, made.outcome, made.built) == ("frontend_ir", None, True)
    assert made.files == {"a.txt": b"source\nof the route\n"}
    assert made.commands[0]["argv"][0] == "sh"


def test_the_environment_is_what_is_declared_and_what_has_no_place_is_left_out(
    scripted: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AKF_TEST_SECRET", "7f3a")
    made = run(scripted, tmp_path / "w", shell("env > out/a.txt", "a.txt"))
    names = {line.split("=")[0] for line in made.files["a.txt"].decode().splitlines()} - {"PWD", "_", "SHLVL"}
    assert names == {"PATH", "HOME", "TMPDIR"} == set(made.variables)
    assert made.variables["HOME"] == "{work}/home"


def test_sources_and_the_routes_own_files_cannot_be_written(scripted: Scripted, tmp_path: Path) -> None:
    if levels.choose()[0] == "none":
        pytest.skip("user namespaces are not permitted here")
    made = run(
        scripted,
        tmp_path / "w",
        shell("(echo x > src/k.sh; echo x > in/given.txt; echo x > new) ; cat src/k.sh > out/a.txt", "a.txt"),
    )
    assert made.files["a.txt"] == b"source\n"
    assert not (tmp_path / "w" / "new").exists()


def test_no_path_of_the_machine_is_seen_or_said(scripted: Scripted, tmp_path: Path) -> None:
    if levels.choose()[0] == "none":
        pytest.skip("user namespaces are not permitted here")
    made = run(scripted, tmp_path / "w", shell(f"pwd > out/a.txt; ls {tmp_path}; echo $HOME", "a.txt"))
    assert str(tmp_path) not in made.files["a.txt"].decode()
    assert "k.sh" not in made.log.split("\n", 1)[1]
    assert "{work}/home" in made.log


class TestPlanted:
    """Code of the source runs in a front end; it must not forge what a later tool makes."""

    def test_a_file_for_a_later_stage_is_removed(self, scripted: Scripted, tmp_path: Path) -> None:
        made = run(scripted, tmp_path / "w", shell("echo forged > out/kernel.so; echo a > out/a.txt", "a.txt"))
        assert made.stage == "frontend_ir"
        assert "kernel.so" not in made.files

    @pytest.mark.parametrize(
        "script",
        ["ln -s /etc/passwd out/a.txt", "mkfifo out/a.txt", "mkdir out/a.txt", "echo x > out/b; ln out/b out/a.txt"],
    )
    def test_what_is_no_plain_file_is_no_output(self, script: str, scripted: Scripted, tmp_path: Path) -> None:
        made = run(scripted, tmp_path / "w", shell(script, "a.txt"))
        assert made.stage == "source"
        assert made.outcome is not None
        assert made.outcome.code == "BUILD_OUTPUT_REFUSED"

    @pytest.mark.parametrize("script", ["echo other > out/a.txt", "rm out/a.txt", "rm out/a.txt; ln -s b out/a.txt"])
    def test_a_file_of_an_earlier_step_that_changes_ends_the_build(
        self, script: str, scripted: Scripted, tmp_path: Path
    ) -> None:
        made = run(scripted, tmp_path / "w", shell("echo a > out/a.txt", "a.txt"), shell(script))
        assert made.outcome is not None
        assert (made.outcome.code, made.built) == ("SOURCE_REJECTED", False)
        assert "changed a.txt" in made.outcome.message

    def test_home_temporary_and_cache_are_empty_before_every_step(self, scripted: Scripted, tmp_path: Path) -> None:
        first = shell("for d in home tmp cache; do echo x > $d/left; done")
        made = run(scripted, tmp_path / "w", first, shell("ls home tmp cache > out/a.txt", "a.txt"))
        assert b"left" not in made.files["a.txt"]

    def test_nothing_that_a_step_started_outlives_it(self, scripted: Scripted, tmp_path: Path) -> None:
        if levels.choose()[0] == "none":
            pytest.skip("user namespaces are not permitted here")
        late = "(setsid sh -c 'sleep 1; echo late > out/a.txt' >/dev/null 2>&1 &) ; echo a > out/a.txt"
        made = run(scripted, tmp_path / "w", shell(late, "a.txt"), shell("sleep 2"))
        assert made.outcome is None
        assert made.files["a.txt"] == b"a\n"


class TestEnds:
    @pytest.mark.parametrize(
        ("step", "code", "said"),
        [
            (shell("echo 'k.sh:3: error: no such thing'; exit 1", "a.txt"), "SOURCE_REJECTED", "no such thing"),
            (shell("true", "a.txt"), "NO_BUILD_OUTPUT", "a.txt"),
            (shell("kill -SEGV $$", "a.txt"), "COMPILER_CRASHED", "signal"),
            (shell("sleep 30", "a.txt", wall_s=0.5), "BUILD_TIMED_OUT", "0.5 s"),
        ],
        ids=["refused", "nothing", "crashed", "endless"],
    )
    def test_each_has_its_code(self, step: Step, code: str, said: str, scripted: Scripted, tmp_path: Path) -> None:
        made = run(scripted, tmp_path / "w", step)
        assert made.outcome is not None
        assert (made.outcome.code, made.built, made.stage) == (code, False, "source")
        assert said in made.outcome.message
        assert made.errors

    def test_a_missing_tool_keeps_what_was_reached_and_is_named(self, scripted: Scripted, tmp_path: Path) -> None:
        made = run(scripted, tmp_path / "w", shell("echo a > out/a.txt", "a.txt"), Step("last", (), ("kernel.so",)))
        assert made.outcome is not None
        assert (made.outcome.code, made.outcome.tool) == ("TOOLCHAIN_MISSING", "last")
        assert "install the last tool" in made.outcome.message
        assert (made.stage, made.built, made.errors) == ("frontend_ir", True, ())

    def test_without_a_tool_for_the_first_stage_there_is_no_build(
        self, scripted: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(BlockedError, match="install a shell"):
            run(scripted, tmp_path / "w")

    def test_a_source_that_the_route_does_not_take(self, scripted: Scripted, tmp_path: Path) -> None:
        made = run(scripted, tmp_path / "w", files=())
        assert made.outcome is not None
        assert (made.outcome.code, made.commands) == ("SOURCE_REJECTED", ())


def test_the_normal_form_is_made_although_a_tool_is_missing_and_holds_no_place(
    scripted: Scripted, tmp_path: Path
) -> None:
    steps = (
        shell("echo $PWD/a > out/a.txt", "a.txt"),
        Step("last", (), ("kernel.so",)),
        shell("cp out/a.txt out/a.normal", "a.normal", normalises=True),
    )
    made = run(scripted, tmp_path / "w", *steps)
    assert made.normal == {"frontend_ir": b"{work}/a\n"}
    assert set(made.files) == {"a.txt"}


def test_silent_changes_are_notes(scripted: Scripted, tmp_path: Path) -> None:
    made = run(
        scripted,
        tmp_path / "w",
        shell("echo '[NOTE] motion off'; echo '[NOTE] motion off'; echo a > out/a.txt", "a.txt"),
    )
    assert made.notes == ("[NOTE] motion off",)


@pytest.mark.skipif(shutil.which("setarch") is None, reason="needs setarch: apt-get install util-linux")
def test_address_randomisation_is_off_or_said_to_be_on(scripted: Scripted, tmp_path: Path) -> None:
    made = run(scripted, tmp_path / "w", shell("ulimit -s > out/a.txt", "a.txt"))
    from akf.routes.sandbox import can_fix_layout  # noqa: PLC0415

    assert made.randomised is not can_fix_layout()
