"""From frozen sources to objects: what is bound, what is refused, and what a broken candidate leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import runs
from tests.support.cli import inside
from tests.support.runs import Ready, overwrite, submission, tree

from akf.build import build
from akf.candidates import submit
from akf.contracts.canonical import digest
from akf.contracts.problems import AkfError
from akf.routes.sandbox import levels

Value = dict[str, Any]
NAME = "rmsnorm-fused"


@pytest.fixture
def submitted(open_run: Path, ready: Ready, tmp_path: Path) -> Path:
    """A run with one candidate that is not built."""
    submit(open_run, submission(tmp_path / "agent"), ready.keys)
    return open_run


def refused(run: Path, keys: Path, name: str = NAME) -> AkfError:
    before = tree(run)
    with pytest.raises(AkfError) as caught:
        build(run, name, keys)
    assert tree(run) == before
    return caught.value


@pytest.mark.usefixtures("compiler")
def test_a_run_is_not_built_with_less_isolation_than_its_campaign_demands(
    submitted: Path, ready: Ready, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine without bubblewrap and name spaces: nothing is written, the reasons are said."""
    monkeypatch.setattr(levels, "why_not", lambda level: None if level == "none" else f"no {level} here")
    error = refused(submitted, ready.keys)
    assert (error.exit_code, error.problems[0].code) == (4, "AKF-P450")
    assert "at least by userns" in error.problems[0].message
    assert "userns: no userns here" in error.problems[0].message


@pytest.mark.usefixtures("compiler")
class TestBuilt:
    def test_every_output_is_there_with_its_digest_and_read_only(self, measured_run: Path) -> None:
        attempt = measured_run / "attempts" / NAME
        value = json.loads((attempt / "build.json").read_bytes())
        assert value["outcome"] == "built"
        assert {each["subject"] for each in value["outputs"]} == {"candidate", "launcher", "perturbed"}
        for output in value["outputs"]:
            path = attempt / "build" / output["path"]
            assert digest(path.read_bytes()) == output["digest"]
            assert path.stat().st_mode & 0o222 == 0
        found = {path.relative_to(attempt / "build").as_posix() for path in (attempt / "build").rglob("*.*")}
        assert found == {each["path"] for each in value["outputs"]}

    def test_compiler_commands_and_environment_are_bound(self, measured_run: Path) -> None:
        value = json.loads((measured_run / "attempts" / NAME / "build.json").read_bytes())
        assert value["tools"][0]["name"] == "g++"
        assert {file["name"] for file in value["tools"][0]["files"]} >= {"g++", "cc1plus", "ld"}
        assert all(command["argv"][0] == "g++" and command["returncode"] == 0 for command in value["commands"])
        assert not [word for command in value["commands"] for word in command["argv"] if "/tmp" in word]  # noqa: S108
        assert {variable["name"] for variable in value["variables"]} >= {"PATH", "SOURCE_DATE_EPOCH"}
        assert value["reproduction"]["reproducible"] is True
        assert value["isolation"] in {"bwrap", "userns"}
        assert value["sandbox"]["network_namespace"] is True
        assert value["inputs_digest"].startswith("sha256:")

    def test_what_the_objects_offer_is_read_from_them(self, measured_run: Path) -> None:
        value = json.loads((measured_run / "attempts" / NAME / "build.json").read_bytes())
        objects = {each["path"]: each for each in value["outputs"] if each["role"] in {"kernel_object", "launcher"}}
        symbols = {path: (each["format"], each["symbols"]) for path, each in objects.items()}
        assert symbols == {
            "candidate/kernel.so": ("shared object", ["rms_norm"]),
            "perturbed/kernel.so": ("shared object", ["rms_norm"]),
            "launcher/launcher.so": ("shared object", ["akf_batch"]),
        }

    def test_it_is_built_once(self, measured_run: Path, ready: Ready) -> None:
        error = refused(measured_run, ready.keys)
        assert error.exit_code == 5

    def test_outputs_that_a_killed_builder_left_are_replaced(self, submitted: Path, ready: Ready) -> None:
        orphan = submitted / "attempts" / NAME / "build"
        orphan.mkdir()
        (orphan / "kernel.so").write_bytes(b"half")
        status = inside("status", submitted).accepted().document
        assert status["leftovers"] == [f"attempts/{NAME}/build"]
        assert inside("audit", submitted).accepted().document["leftovers"] == [f"attempts/{NAME}/build"]
        assert build(submitted, NAME, ready.keys)["outcome"] == "built"
        assert not (orphan / "kernel.so").exists()
        assert inside("audit", submitted).accepted().document["leftovers"] == []


class TestBroken:
    def test_what_does_not_compile_stays_as_evidence(self, measured_run: Path, ready: Ready) -> None:
        value = json.loads((measured_run / "attempts" / "rmsnorm-broken" / "build.json").read_bytes())
        assert value["outcome"] == "failed"
        assert any("error" in reason and "candidate" in reason for reason in value["reasons"])
        assert "perturbed" not in " ".join(value["reasons"])
        answer = inside("evaluate", measured_run, "rmsnorm-broken", "--keys", ready.keys).refused(4)
        assert answer.codes == {"AKF-P117"}
        assert inside("audit", measured_run).status == 0

    def test_the_command_says_so_and_is_done(
        self, open_run: Path, ready: Ready, tmp_path: Path, compiler: None
    ) -> None:
        del compiler
        agent = submission(tmp_path / "agent")
        (agent / "src" / "kernel.cpp").write_text("#error \x1b[2J no\n")
        submit(open_run, agent, ready.keys)
        document = inside("build", open_run, NAME, "--keys", ready.keys).accepted().document
        assert document["outcome"] == "failed"
        assert document["reasons"]

    def test_an_object_that_does_not_offer_the_kernel_is_no_success(
        self, open_run: Path, ready: Ready, tmp_path: Path, compiler: None
    ) -> None:
        """C++ mangles the name; of 400 other symbols none hides that."""
        del compiler
        agent = submission(tmp_path / "agent")
        others = "".join(f'extern "C" void aa{n}() {{}}\n' for n in range(400))
        (agent / "src" / "kernel.cpp").write_text(f"{others}void rms_norm() {{}}\n")
        submit(open_run, agent, ready.keys)
        value = build(open_run, NAME, ready.keys)
        assert value["outcome"] == "failed"
        assert "exports no function 'rms_norm'" in value["reasons"][0]
        assert not [
            each for each in value["outputs"] if each["role"] == "kernel_object" and each["subject"] == "candidate"
        ]

    def test_without_a_c_file_there_is_nothing_to_build(
        self, open_run: Path, ready: Ready, tmp_path: Path, compiler: None
    ) -> None:
        del compiler
        agent = submission(tmp_path / "agent")
        (agent / "src" / "kernel.cpp").rename(agent / "src" / "kernel.txt")
        submit(open_run, agent, ready.keys)
        assert build(open_run, NAME, ready.keys)["outcome"] == "failed"


@pytest.mark.parametrize(
    "tamper",
    [
        lambda source: overwrite(source / "kernel.cpp", b"// another\n"),
        lambda source: (source / "kernel.cpp").unlink(),
        lambda source: (source / "more.cpp").write_text("// more\n"),
        lambda source: (source / "kernel.cpp").rename(source / "kernel.cc"),
        lambda source: (source / "link.cpp").symlink_to("kernel.cpp"),
        lambda source: (
            (source / "kernel.cpp").hardlink_to(source / "launch.json")
            if (source / "kernel.cpp").unlink() is None
            else None
        ),
    ],
    ids=["edited", "deleted", "added", "renamed", "link", "hard link"],
)
def test_sources_that_changed_since_they_were_frozen(
    submitted: Path, ready: Ready, tamper: Callable[[Path], object]
) -> None:
    tamper(submitted / "attempts" / NAME / "source")
    assert refused(submitted, ready.keys).exit_code == 3


@pytest.mark.parametrize("relative", [f"attempts/{NAME}/candidate.json", "tasks/rmsnorm.json", "campaign.json"])
def test_artifacts_that_changed(submitted: Path, ready: Ready, relative: str) -> None:
    data = (submitted / relative).read_bytes()
    overwrite(submitted / relative, data.replace(b"rms", b"rmz", 1))
    assert refused(submitted, ready.keys).exit_code == 3


def test_the_builder_s_key_is_needed(submitted: Path, ready: Ready, tmp_path: Path) -> None:
    keys = runs.clone(ready.keys, tmp_path / "keys")
    (keys / "builder.key").unlink()
    (keys / "supervisor.key").rename(keys / "builder.key")
    assert refused(submitted, keys).exit_code == 4


@pytest.mark.usefixtures("compiler")
def test_an_unsigned_run_needs_no_keys(ready: Ready, tmp_path: Path) -> None:
    mine = runs.Ready(runs.clone(ready.folder, tmp_path / "suite"), tmp_path / "none")
    runs.change(mine.campaign, lambda value: value.update(trust={"mode": "unsigned", "keys": None}))
    run = runs.opened(mine, tmp_path / "runs")
    submit(run, submission(tmp_path / "agent"), mine.keys)
    assert build(run, NAME, mine.keys)["outcome"] == "built"
    assert inside("audit", run).accepted().document["trust"] == "unsigned"
    assert not list(run.rglob("*.sig.json"))


def test_a_decided_attempt_is_closed_and_its_sources_may_be_tried_again(
    submitted: Path, ready: Ready, tmp_path: Path
) -> None:
    """A Decision over nothing is final for that attempt; nothing of the candidate was measured, so it gets another."""
    gates = submitted / "attempts" / NAME / "gates"
    assert inside("judge", submitted, gates, "--keys", ready.keys).accepted().document["verdict"] == "incomplete"
    error = refused(submitted, ready.keys)
    assert (error.exit_code, error.problems[0].code) == (4, "AKF-P114")
    again = submit(submitted, submission(tmp_path / "again"), ready.keys, retry=True)
    assert (again["id"], again["try_number"]) == (f"{NAME}.r2", 2)
    inside("judge", submitted, gates, "--recheck").accepted()
    inside("audit", submitted).accepted()


def test_a_near_miss_is_named(submitted: Path, ready: Ready) -> None:
    answer = inside("build", submitted, "rmsnorm-fuse", "--keys", ready.keys).refused(4)
    assert answer.problems[0]["hint"] == f"did you mean {NAME}?"
