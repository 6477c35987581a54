"""What an agent hands in: plain files, one manifest, one hypothesis, inside what the Task allows; nothing else."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import runs
from tests.support.cli import inside
from tests.support.process import NOBODY, in_child
from tests.support.runs import Ready, change, overwrite, submission, tree

from akf.candidates import submit
from akf.contracts.problems import AkfError
from akf.evaluate import evaluate
from akf.frameworks import host_reference
from akf.opportunity.tasks import open_task
from akf.store.untrusted import MAX_FILES, MAX_LEVELS, MAX_TOTAL_BYTES
from akf.trust.keys import init_keys

Value = dict[str, Any]
Edit = Callable[[Value], object]


class Desk:
    """A run that takes submissions, and a folder to hand in."""

    def __init__(self, run: Path, keys: Path, folder: Path) -> None:
        self.run, self.keys = run, keys
        self.folder = submission(folder)

    @property
    def manifest(self) -> Path:
        return self.folder / "candidate.json"

    def take(self, *, retry: bool = False) -> Value:
        """Submit the folder."""
        return submit(self.run, self.folder, self.keys, retry=retry)

    def refused(self, edit: Edit | None = None, *, retry: bool = False) -> AkfError:
        """How the folder is refused; the run stays as it was."""
        if edit is not None:
            change(self.manifest, edit)
        before = tree(self.run)
        with pytest.raises(AkfError) as refused:
            self.take(retry=retry)
        assert tree(self.run) == before
        return refused.value


@pytest.fixture
def desk(open_run: Path, ready: Ready, tmp_path: Path) -> Desk:
    return Desk(open_run, ready.keys, tmp_path / "agent")


def codes(error: AkfError) -> set[str]:
    return {problem.code for problem in error.problems}


def places(error: AkfError) -> set[tuple[str, str | None]]:
    return {(problem.code, problem.pointer) for problem in error.problems}


class TestAccepted:
    def test_the_attempt_holds_what_was_handed_in(self, desk: Desk) -> None:
        candidate = desk.take()
        attempt = desk.run / "attempts" / "rmsnorm-fused"
        for path in (desk.folder / "src").iterdir():
            frozen = attempt / "source" / path.name
            assert frozen.read_bytes() == path.read_bytes()
            assert frozen.stat().st_mode & 0o777 == 0o444
        assert json.loads((attempt / "candidate.json").read_bytes()) == candidate
        assert candidate["try_number"] == 1
        assert inside("audit", desk.run).accepted().document["attempts"] == 1

    def test_the_folder_stays_as_it_is(self, desk: Desk) -> None:
        before = tree(desk.folder)
        desk.take()
        assert tree(desk.folder) == before

    def test_folders_below_src_and_programs_keep_their_mode(self, desk: Desk) -> None:
        (desk.folder / "src" / "deep" / "er").mkdir(parents=True)
        (desk.folder / "src" / "deep" / "er" / "tool.sh").write_text("#!/bin/sh\n")
        (desk.folder / "src" / "deep" / "er" / "tool.sh").chmod(0o755)
        desk.take()
        frozen = desk.run / "attempts" / "rmsnorm-fused" / "source" / "deep" / "er" / "tool.sh"
        assert frozen.stat().st_mode & 0o777 == 0o555

    def test_what_is_written_into_the_folder_later_is_no_part_of_it(self, desk: Desk) -> None:
        desk.take()
        (desk.folder / "src" / "kernel.cpp").write_text("// another one\n")
        assert inside("audit", desk.run).status == 0


def _escape(folder: Path, run: Path) -> None:
    (folder / "src" / "campaign.json").symlink_to(run / "campaign.json")


def _hard(folder: Path, _: Path) -> None:
    os.link(folder / "src" / "kernel.cpp", folder.parent / "second-name")


def _socket(folder: Path, _: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        here = Path.cwd()
        os.chdir(folder / "src")
        try:
            bound.bind("s")
        finally:
            os.chdir(here)


def _linked_folder(folder: Path, run: Path) -> None:
    (folder / "src" / "nested").symlink_to(run)


def _linked_src(folder: Path, _: Path) -> None:
    (folder / "src").rename(folder.parent / "elsewhere")
    (folder / "src").symlink_to(folder.parent / "elsewhere")


def _linked_manifest(folder: Path, _: Path) -> None:
    (folder / "candidate.json").rename(folder.parent / "elsewhere.json")
    (folder / "candidate.json").symlink_to(folder.parent / "elsewhere.json")


def _deep(folder: Path, _: Path) -> None:
    path = folder / "src" / Path(*["d"] * (MAX_LEVELS + 1))
    path.mkdir(parents=True)
    (path / "x").touch()


def _many(folder: Path, _: Path) -> None:
    for number in range(MAX_FILES):
        (folder / "src" / f"f{number}").touch()


def _large(folder: Path, _: Path) -> None:
    with (folder / "src" / "large").open("wb") as file:
        file.truncate(MAX_TOTAL_BYTES)


def _endless(folder: Path, _: Path) -> None:
    (folder / "src" / "zero").symlink_to("/dev/zero")


def _gates(folder: Path, _: Path) -> None:
    (folder / "gates").mkdir()
    (folder / "gates" / "operator.json").touch()


def _no_sources(folder: Path, _: Path) -> None:
    for path in (folder / "src").iterdir():
        path.unlink()


FILES: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "a link out of the folder": (_escape, "AKF-S103"),
    "a link inside the folder": (lambda f, _: (f / "src" / "l").symlink_to("kernel.cpp"), "AKF-S103"),
    "a dangling link": (lambda f, _: (f / "src" / "l").symlink_to("nowhere"), "AKF-S103"),
    "a link to a folder": (_linked_folder, "AKF-S103"),
    "src is a link": (_linked_src, "AKF-S103"),
    "the manifest is a link": (_linked_manifest, "AKF-S103"),
    "an endless device": (_endless, "AKF-S103"),
    "a hard link": (_hard, "AKF-S103"),
    "a fifo": (lambda f, _: os.mkfifo(f / "src" / "pipe"), "AKF-S103"),
    "a socket": (_socket, "AKF-S103"),
    "a name with a backslash": (lambda f, _: (f / "src" / "a\\b").touch(), "AKF-S034"),
    "a name with a colon": (lambda f, _: (f / "src" / "c:x").touch(), "AKF-S034"),
    "a name with a newline": (lambda f, _: (f / "src" / "a\nb").touch(), "AKF-S034"),
    "a name with an escape": (lambda f, _: (f / "src" / "\x1b[2J").touch(), "AKF-S034"),
    "a name that is no text": (lambda f, _: (f / "src" / os.fsdecode(b"\xff")).touch(), "AKF-S034"),
    "an invisible name": (lambda f, _: (f / "src" / "a\u200bb").touch(), "AKF-S034"),
    "a name of ours": (lambda f, _: (f / "src" / ".akf-tmp-1-1-0123456789abcdef").touch(), "AKF-S103"),
    "a folder of ours": (lambda f, _: (f / "src" / ".akf-stage-1-1-0123456789abcdef").mkdir(), "AKF-S103"),
    "too deep": (_deep, "AKF-S107"),
    "too many files": (_many, "AKF-S107"),
    "too much": (_large, "AKF-S107"),
    "a file beside src": (lambda f, _: (f / "notes.txt").touch(), "AKF-S105"),
    "a second manifest": (lambda f, _: (f / "candidate2.json").touch(), "AKF-S105"),
    "gates of its own": (_gates, "AKF-S105"),
    "no manifest": (lambda f, _: (f / "candidate.json").unlink(), "AKF-S106"),
    "no sources": (_no_sources, "AKF-S106"),
}


class TestFiles:
    @pytest.mark.parametrize("kind", FILES)
    def test_what_is_no_plain_submission_is_refused(self, desk: Desk, kind: str) -> None:
        plant, code = FILES[kind]
        plant(desk.folder, desk.run)
        error = desk.refused()
        assert error.exit_code == 1
        assert code in codes(error)

    def test_everything_that_is_wrong_is_named(self, desk: Desk) -> None:
        for kind in ("a link inside the folder", "a fifo", "a name with a colon", "a name of ours"):
            FILES[kind][0](desk.folder, desk.run)
        assert len(desk.refused().problems) == 4

    @pytest.mark.parametrize("kind", ["missing", "a file", "a link", "a loop", "a fifo"])
    def test_the_folder_itself(self, desk: Desk, tmp_path: Path, kind: str) -> None:
        place = tmp_path / "place"
        makers: dict[str, Callable[[], object]] = {
            "missing": lambda: None,
            "a file": place.touch,
            "a link": lambda: place.symlink_to(desk.folder),
            "a loop": lambda: place.symlink_to("place"),
            "a fifo": lambda: os.mkfifo(place),
        }
        makers[kind]()
        desk.folder = place
        assert desk.refused().exit_code == 1

    @pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
    @pytest.mark.parametrize("what", ["src", "src/kernel.cpp", "candidate.json", "."])
    def test_what_may_not_be_read(self, desk: Desk, what: str) -> None:
        from akf.candidates.submit import read_submission  # noqa: PLC0415

        for path in [desk.folder, *desk.folder.parents]:
            if path.owner() == "root" and len(path.parts) > 2:
                path.chmod(0o755)
        (desk.folder / what).chmod(0)

        def read() -> list[Any]:
            try:
                read_submission(desk.folder)
            except AkfError as error:
                return [error.exit_code, sorted(codes(error))]
            return [0, []]

        assert in_child(read, uid=NOBODY) == [7, ["AKF-F110"]]


CLAIMS: list[tuple[str, str, str | None, Edit]] = [
    ("two hypotheses", "AKF-S022", "/hypothesis", lambda v: v.update(hypothesis=[v["hypothesis"], v["hypothesis"]])),
    ("two bounds in one", "AKF-S024", "/hypothesis/active_bound", lambda v: _bound(v, ["compute", "transfer"])),
    ("no hypothesis", "AKF-S022", None, lambda v: v.pop("hypothesis")),
    ("a second one beside it", "AKF-S023", "/hypothesis2", lambda v: v.update(hypothesis2=v["hypothesis"])),
    ("an unknown bound", "AKF-S025", "/hypothesis/active_bound", lambda v: _bound(v, "magic")),
    ("nothing that would falsify it", "AKF-S", None, lambda v: v["hypothesis"].pop("falsified_by")),
    ("a metric of another bound", "AKF-M040", "/hypothesis/metric", lambda v: v["hypothesis"].update(metric="traffic")),
    ("upside down", "AKF-M044", "/hypothesis/size_low_ratio", lambda v: v["hypothesis"].update(size_low_ratio=1)),
    ("no launch spec", "AKF-M041", "", lambda v: v.pop("launch")),
    ("a launch spec that is not there", "AKF-M041", "/launch", lambda v: v.update(launch="other.json")),
    ("a domain upside down", "AKF-M042", "/domain/T", lambda v: v.update(domain={"T": [16, 1]})),
    ("an id that ends like a retry", "AKF-S032", "/id", lambda v: v.update(id="fused.r2")),
    ("a long id", "AKF-S032", "/id", lambda v: v.update(id="a" * 49)),
    ("a look-alike id", "AKF-S033", "/id", lambda v: v.update(id="rmsn\u043erm")),
    ("a path as id", "AKF-S032", "/id", lambda v: v.update(id="../../x")),
    ("a path as task", "AKF-S032", "/task", lambda v: v.update(task="../campaign")),
    ("a launch spec outside", "AKF-S034", "/launch", lambda v: v.update(launch="../candidate.json")),
    ("a Candidate instead of a manifest", "AKF-S020", "/kind", lambda v: v.update(kind="Candidate")),
]  # fmt: skip


def _bound(value: Value, bound: Any) -> None:
    value["hypothesis"]["active_bound"] = bound


class TestManifest:
    @pytest.mark.parametrize(("name", "code", "place", "edit"), CLAIMS, ids=[claim[0] for claim in CLAIMS])
    def test_it_states_one_hypothesis(self, desk: Desk, name: str, code: str, place: str | None, edit: Edit) -> None:
        del name
        error = desk.refused(edit)
        assert error.exit_code == 1
        assert any(place is None or problem.pointer == place for problem in error.problems), error
        assert any(problem.code.startswith(code[:5]) for problem in error.problems), error

    def test_keys_twice_are_refused(self, desk: Desk) -> None:
        text = desk.manifest.read_text()
        desk.manifest.write_text(text.replace('"abi"', '"id": "another", "abi"', 1))
        assert codes(desk.refused()) == {"AKF-S006"}


def _launch(change: Callable[[Value], object]) -> Callable[[Path], object]:
    def apply(path: Path) -> None:
        value = json.loads(path.read_bytes())
        change(value)
        path.write_text(json.dumps(value))

    return apply


LAUNCH: dict[str, Callable[[Path], object]] = {
    "no JSON": lambda path: path.write_text("{"),
    "a list": lambda path: path.write_text("[]"),
    "keys twice": lambda path: path.write_text(path.read_text().replace("{", '{"abi": "x",', 1)),
    "another ABI": _launch(lambda v: v.update(abi="cubin")),
    "no symbol": _launch(lambda v: v.pop("symbol")),
    "a symbol that is a path": _launch(lambda v: v.update(symbol="../x")),
    "another symbol": _launch(lambda v: v.update(symbol="rms_norm_v2")),
    "an argument less": _launch(lambda v: v["args"].pop()),
    "an argument more": _launch(lambda v: v["args"].append(dict(v["args"][0], name="y"))),
    "another order": _launch(lambda v: v["args"].reverse()),
    "another dtype": _launch(lambda v: v["args"][0].update(dtype="float64")),
    "an output as input": _launch(
        lambda v: [arg.update(access="in") for arg in v["args"] if arg.get("access") == "out"]
    ),
    "an unknown field": _launch(lambda v: v.update(stream=1)),
    "a command": _launch(lambda v: v["args"][0].update(shape=["__import__('os').system('id')", 4096])),
    "no text": lambda path: path.write_bytes(b"\xff\xfe"),
}


class TestLaunchSpec:
    @pytest.mark.parametrize("kind", LAUNCH)
    def test_it_is_the_task_s(self, desk: Desk, kind: str) -> None:
        LAUNCH[kind](desk.folder / "src" / "launch.json")
        error = desk.refused()
        assert error.exit_code == 1
        assert {problem.file for problem in error.problems} <= {str(desk.folder / "src" / "launch.json"), None}


class TestAllowed:
    @pytest.mark.parametrize(
        ("edit", "code", "place"),
        [
            (lambda v: v.update(task="another"), "AKF-P105", "/task"),
            (lambda v: v.update(route="ascendc_direct"), "AKF-P106", "/route"),
            (lambda v: v.update(domain={"T": [1, 17]}), "AKF-P106", "/domain/T"),
            (lambda v: v.update(domain={"T": [1, 8], "H": [1, 1]}), "AKF-P106", "/domain/H"),
        ],
    )
    def test_by_the_task(self, desk: Desk, edit: Edit, code: str, place: str) -> None:
        error = desk.refused(edit)
        assert error.exit_code == 4
        assert (code, place) in places(error)

    def test_a_module_is_no_answer_to_a_task_of_shared_objects(self, desk: Desk) -> None:
        shutil.rmtree(desk.folder / "src")
        (desk.folder / "src").mkdir()
        (desk.folder / "src" / "kernel.py").write_text("def run(*inputs):\n    return inputs\n")
        error = desk.refused(lambda v: [v.update(abi="python", route="python"), v.pop("launch")])
        assert error.exit_code == 4
        assert ("AKF-P106", "/abi") in places(error)

    def test_a_smaller_domain_is_fine(self, desk: Desk) -> None:
        change(desk.manifest, lambda value: value.update(domain={"T": [2, 8]}))
        assert desk.take()["claim"]["domain"] == {"T": [2, 8]}

    @pytest.mark.parametrize("where", ["task", "campaign"])
    def test_the_budget_is_spent_once(self, ready: Ready, tmp_path: Path, where: str) -> None:
        mine = runs.Ready(runs.clone(ready.folder, tmp_path / "suite"), ready.keys)
        if where == "campaign":
            change(mine.campaign, lambda value: value["budget"].update(attempts=2))
        run = runs.new_run(mine, tmp_path / "runs")
        task = runs.task(tmp_path / "task", lambda v: v["budget"].update(attempts=2 if where == "task" else 50))
        open_task(run, task, mine.keys)
        for number in range(3):
            desk = Desk(run, mine.keys, tmp_path / f"agent-{number}")
            change(desk.manifest, lambda value, number=number: value.update(id=f"try-{number}"))  # type: ignore[misc]
            (desk.folder / "src" / "kernel.cpp").write_text(f"// {number}\n")
            if number < 2:
                desk.take()
            else:
                error = desk.refused()
                assert error.exit_code == 4
                assert codes(error) == {"AKF-P107"}


class TestAgain:
    def other(self, desk: Desk, tmp_path: Path) -> Desk:
        return Desk(desk.run, desk.keys, tmp_path / "second")

    def test_the_same_name(self, desk: Desk, tmp_path: Path) -> None:
        desk.take()
        second = self.other(desk, tmp_path)
        (second.folder / "src" / "kernel.cpp").write_text("// another\n")
        assert second.refused().exit_code == 5

    def test_the_same_sources_under_another_name(self, desk: Desk, tmp_path: Path) -> None:
        desk.take()
        error = self.other(desk, tmp_path).refused(lambda value: value.update(id="another"))
        assert error.exit_code == 5
        assert "rmsnorm-fused" in error.problems[0].message

    def test_the_same_sources_with_another_story(self, desk: Desk, tmp_path: Path) -> None:
        desk.take()

        def retold(value: Value) -> None:
            value |= {"id": "another", "data_flow_change": "Quite another idea."}

        assert self.other(desk, tmp_path).refused(retold).exit_code == 5

    def test_a_mode_makes_other_sources(self, desk: Desk, tmp_path: Path) -> None:
        desk.take()
        second = self.other(desk, tmp_path)
        (second.folder / "src" / "kernel.cpp").chmod(0o755)
        change(second.manifest, lambda value: value.update(id="another"))
        assert second.take()["try_number"] == 1

    def test_a_retry_needs_a_first_try(self, desk: Desk) -> None:
        error = desk.refused(retry=True)
        assert error.exit_code == 4
        assert codes(error) == {"AKF-P108"}

    def test_a_retry_needs_a_gate_that_was_not_the_candidate_s(self, desk: Desk) -> None:
        desk.take()
        error = desk.refused(retry=True)
        assert codes(error) == {"AKF-P108"}


class TestRetry:
    """Of sources that were evaluated on this machine."""

    def desk(self, run: Path, keys: Path, folder: Path, name: str) -> Desk:
        desk = Desk(run, keys, folder)
        desk.folder = runs.clone(run / "inbox" / name, folder.with_name(f"{folder.name}-again"))
        return desk

    def incomparable(self, run: Path, keys: Path, name: str = "rmsnorm-naive") -> None:
        """An environment gate on a machine that is not the Campaign's."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(host_reference, "ranks", lambda: {"tp": 2, "pp": 1, "dp": 1, "ep": 1, "devices": []})
            assert evaluate(run, name, "environment", keys)["status"] == "incomparable"

    def test_after_a_gate_that_could_not_tell(self, measured_run: Path, ready: Ready, tmp_path: Path) -> None:
        self.incomparable(measured_run, ready.keys)
        desk = self.desk(measured_run, ready.keys, tmp_path / "agent", "rmsnorm-naive")
        candidate = desk.take(retry=True)
        assert (candidate["id"], candidate["try_number"]) == ("rmsnorm-naive.r2", 2)
        assert (measured_run / "attempts" / "rmsnorm-naive" / "gates" / "environment.json").exists(), "all tries stay"
        assert codes(desk.refused(retry=True)) == {"AKF-P108"}, "the second try has no such gate yet"
        inside("audit", measured_run).accepted()

    def test_under_the_first_name_only(self, measured_run: Path, ready: Ready, tmp_path: Path) -> None:
        self.incomparable(measured_run, ready.keys)
        desk = self.desk(measured_run, ready.keys, tmp_path / "agent", "rmsnorm-naive")
        error = desk.refused(lambda value: value.update(id="another"), retry=True)
        assert places(error) == {("AKF-P108", "/id")}

    def test_not_after_a_gate_that_could_tell(self, measured_run: Path, ready: Ready, tmp_path: Path) -> None:
        error = self.desk(measured_run, ready.keys, tmp_path / "agent", "rmsnorm-wrong").refused(retry=True)
        assert (error.exit_code, codes(error)) == (4, {"AKF-P108"})

    @pytest.mark.parametrize("data", [b"{}\n", b'{"status":"blocked"}\n', b"", b"\xff"])
    def test_not_by_a_gate_that_somebody_wrote(
        self, measured_run: Path, ready: Ready, tmp_path: Path, data: bytes
    ) -> None:
        overwrite(measured_run / "attempts" / "rmsnorm-wrong" / "gates" / "operator.json", data)
        error = self.desk(measured_run, ready.keys, tmp_path / "agent", "rmsnorm-wrong").refused(retry=True)
        assert error.exit_code == 3


class TestIntake:
    def test_one_that_is_refused_hinders_no_other(self, open_run: Path, ready: Ready) -> None:
        inbox = open_run / "inbox"
        submission(inbox / "b-good")
        submission(inbox / "a-bad", edit=lambda value: value.update(route="magic"))
        (inbox / "c-file").touch()
        (inbox / "d-link").symlink_to("b-good")
        submission(inbox / "e-naive", "rmsnorm-naive")
        os.mkfifo(inbox / "f-fifo")
        answer = inside("intake", open_run, "--keys", ready.keys).refused(1)
        found = {each["name"]: (each["candidate"], each["status"]) for each in answer.document["submissions"]}
        assert found == {
            "a-bad": (None, 1),
            "b-good": ("rmsnorm-fused", 0),
            "c-file": (None, 1),
            "d-link": (None, 1),
            "e-naive": ("rmsnorm-naive", 0),
            "f-fifo": (None, 1),
        }
        assert inside("audit", open_run).accepted().document["attempts"] == 2

    def test_an_empty_inbox(self, open_run: Path, ready: Ready) -> None:
        assert inside("intake", open_run, "--keys", ready.keys).accepted().document["submissions"] == []

    def test_taking_it_in_again_changes_nothing(self, open_run: Path, ready: Ready) -> None:
        submission(open_run / "inbox" / "good")
        inside("intake", open_run, "--keys", ready.keys).accepted()
        before = tree(open_run)
        again = inside("intake", open_run, "--keys", ready.keys).accepted().document
        assert [(each["candidate"], each["new"]) for each in again["submissions"]] == [("rmsnorm-fused", False)]
        assert tree(open_run) == before


@pytest.mark.parametrize("keys", ["none", "another"])
def test_the_supervisor_s_key_is_needed(desk: Desk, tmp_path: Path, keys: str) -> None:
    desk.keys = tmp_path / "keys"
    if keys == "another":
        init_keys(desk.keys)
    error = desk.refused()
    assert error.exit_code == 4


def test_a_key_that_others_can_read(desk: Desk, tmp_path: Path) -> None:
    desk.keys = runs.clone(desk.keys, tmp_path / "keys")
    (desk.keys / "supervisor.key").chmod(0o644)
    assert codes(desk.refused()) == {"AKF-T011"}
