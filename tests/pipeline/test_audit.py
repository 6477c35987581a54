"""The audit names what was changed, whatever was changed: any byte, name, mode, line or signature of a run."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import evidence, runs
from tests.support.cli import Answer, inside
from tests.support.runs import clone, overwrite, rechain, resign, tree

from akf.contracts.canonical import canonical_bytes, digest
from akf.store import layout
from akf.store.leftovers import STAGE, TEMPORARY
from akf.store.verify import signature_path
from akf.trust import dsse
from akf.trust.keys import init_keys, load_signer
from akf.trust.roles import OWNERS

Value = dict[str, Any]
ATTEMPT = "attempts/fused"
DEAD = "1-1-0123456789abcdef"  # a process that started before every other one


@pytest.fixture(scope="session")
def judged(shared: runs.Shared, whole: Path) -> Path:
    """A run with one attempt and its Decision."""

    def make(folder: Path) -> None:
        run = clone(whole / "run", folder / "run")
        inside("judge", run, run / ATTEMPT / "gates", "--keys", whole / "keys").accepted()
        (run / ".lock").unlink()

    return shared.make("judged", make) / "run"


@pytest.fixture
def run(judged: Path, tmp_path: Path) -> Path:
    return clone(judged, tmp_path / "runs" / "run")


def broken(run: Path, *more: object) -> Answer:
    """What the audit says of a run that does not hold; it writes nothing."""
    before = tree(run)
    answer = inside("audit", run, *more).refused(3)
    assert tree(run) == before
    return answer


def first(answer: Answer) -> str:
    return str(answer.problems[0]["file"])


def files(run: Path) -> list[str]:
    """Everything that counts."""
    found = sorted(path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file())
    return [relative for relative in found if relative not in {"journal.jsonl", ".lock"}]


def lines(run: Path) -> list[Value]:
    return [json.loads(line) for line in (run / "ledger.jsonl").read_bytes().splitlines()]


def about(relative: str) -> set[str]:
    """How problems may name a file: itself, the artifact that it signs, or the one that names it."""
    artifact = relative.removesuffix(".sig.json") + ".json" if relative.endswith(".sig.json") else relative
    found = {relative, artifact}
    if "/source/" in relative:
        found |= {f"{ATTEMPT}/candidate.json", f"{ATTEMPT}/source"}
    return found


def test_what_holds_is_accepted(run: Path, whole_keys: Path) -> None:
    document = inside("audit", run, "--trust", whole_keys / "trust.json").accepted().document
    assert document["trust"] == "pinned"
    assert document["decisions"][0]["verdict"] == "promotable"
    assert document["decisions"][0]["digest"] == digest((run / ATTEMPT / "decision.json").read_bytes())
    assert document["ledger_head"] == digest((run / "ledger.jsonl").read_bytes().splitlines(keepends=True)[-1])
    assert (document["pending"], document["leftovers"], document["problems"]) == ([], [], [])


def test_it_writes_nothing_and_works_on_a_copy_that_nobody_may_write(run: Path, tmp_path: Path) -> None:
    before = tree(tmp_path)
    inside("audit", run).accepted()
    assert tree(tmp_path) == before


def test_every_byte_of_every_file_counts(run: Path) -> None:
    """One byte changed somewhere in each file, at the start, in the middle and at the end of it in turn."""
    missed = []
    for number, relative in enumerate(files(run)):
        path = run / relative
        good = path.read_bytes()
        at = [0, len(good) // 2, len(good) - 1][number % 3 if relative != "ledger.jsonl" else 1]
        overwrite(path, good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        answer = inside("audit", run)
        named = {problem["file"] for problem in answer.problems}
        if answer.status != 3 or not named & about(relative):
            missed.append((relative, answer.status, named))
        overwrite(path, good, 0o644 if relative == "ledger.jsonl" else 0o444)
    assert missed == []
    inside("audit", run).accepted()


WAYS: dict[str, Callable[[Path, Path], object]] = {
    "deleted": lambda *_: None,
    "emptied": lambda path, _: overwrite(path, b""),
    "a folder": lambda path, _: path.mkdir(),
    "a link to itself elsewhere": lambda path, aside: path.symlink_to(aside),
    "a fifo": lambda path, _: os.mkfifo(path),
}


@pytest.mark.parametrize("stride", [len(WAYS), pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("way", range(len(WAYS)), ids=list(WAYS))
def test_no_file_may_be_replaced(run: Path, tmp_path: Path, way: int, stride: int) -> None:
    """The ways take turns over the files; `soak` takes each way for every file."""
    replace = list(WAYS.values())[way]
    missed = []
    for relative in files(run)[way % stride :: stride]:
        path = run / relative
        aside = tmp_path / "aside"
        shutil.move(path, aside)
        replace(path, aside)
        answer = inside("audit", run)
        named = {problem["file"] for problem in answer.problems}
        if answer.status != 3 or not named & about(relative):
            missed.append((relative, answer.status, named))
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        elif os.path.lexists(path):
            path.unlink()
        shutil.move(aside, path)
    assert missed == []


def test_no_artifact_may_be_renamed(run: Path) -> None:
    missed = []
    for relative in files(run)[::2]:
        path = run / relative
        name, _, ending = path.name.partition(".")
        other = path.with_name(f"{name}2.{ending}")
        path.rename(other)
        answer = inside("audit", run)
        named = {problem["file"] for problem in answer.problems}
        if answer.status != 3 or not named & {other.relative_to(run).as_posix(), *about(relative)}:
            missed.append((relative, answer.status, named))
        other.rename(path)
    assert missed == []


def test_no_canonical_file_may_be_writable(run: Path) -> None:
    missed = []
    for number, relative in enumerate(files(run)):
        if relative == "ledger.jsonl":
            continue
        (run / relative).chmod([0o644, 0o464, 0o446][number % 3])
        answer = inside("audit", run)
        if answer.codes != {"AKF-I222"} or first(answer) != relative:
            missed.append((relative, answer.codes))
        (run / relative).chmod(0o444)
    assert missed == []


STRAYS = [
    "notes.txt", "decision.json", "tasks/notes.txt", "tasks/Another.json", "attempts/notes.txt",
    "attempts/fused/x.json", "attempts/fused/gates/operator2.json", "attempts/fused/gates/notes",
    "attempts/fused/plan/notes.json", "attempts/fused/source/more.cpp", "attempts/fused/build/more.so",
    "attempts/fused/samples/operator/more.jsonl", "attempts/fused/samples/more.jsonl",
    "attempts/fused/samples/another/more.jsonl", "attempts/fused/.lock", ".akf-note", "attempts/.akf-tmp-1",
    "attempts/fused/gates/.akf-stage-x", "attempts/empty/notes", "more/deep/file", "attempts/fused/journal.jsonl",
    "attempts/fused/ledger.jsonl",
]  # fmt: skip


@pytest.mark.parametrize("stray", STRAYS)
def test_no_file_is_unaccounted_for(run: Path, stray: str) -> None:
    path = run / stray
    path.parent.mkdir(parents=True, exist_ok=True)
    overwrite(path, b"{}\n")
    answer = broken(run)
    assert {"AKF-I208", "AKF-I202"} & answer.codes
    assert any(str(problem["file"]).startswith(stray.partition("/notes")[0]) for problem in answer.problems)


def test_what_agents_and_people_write_is_no_evidence(run: Path) -> None:
    (run / "inbox" / "agent" / "src").mkdir(parents=True)
    (run / "inbox" / "agent" / "src" / "anything").write_bytes(b"\xff")
    (run / "inbox" / "link").symlink_to("/etc/passwd")
    (run / "journal.jsonl").write_text("not even JSON\n")
    (run / ".lock").touch()
    inside("audit", run).accepted()


class TestLedger:
    def test_any_line_dropped(self, run: Path) -> None:
        data = (run / "ledger.jsonl").read_bytes().splitlines(keepends=True)
        for number in range(len(data)):
            kept = [line for at, line in enumerate(data) if at != number]
            overwrite(run / "ledger.jsonl", b"".join(kept), 0o644)
            if number == len(data) - 1:  # the Decision's line: pending, and it verifies
                assert inside("audit", run).accepted().document["pending"] == [f"{ATTEMPT}/decision.json"]
            else:
                assert first(broken(run)) == "ledger.jsonl"

    def test_any_line_dropped_and_chained_anew(self, run: Path) -> None:
        good = lines(run)
        for number in range(1, len(good) - 1):
            rechain(run, [line for at, line in enumerate(good) if at != number])
            broken(run)

    def test_two_lines_swapped_and_chained_anew(self, run: Path) -> None:
        good = lines(run)
        for number in range(1, len(good) - 1):
            rechain(run, [*good[:number], good[number + 1], good[number], *good[number + 2 :]])
            broken(run)

    @pytest.mark.parametrize(
        "edit",
        [
            lambda line: line.update(digest="sha256:" + "0" * 64),
            lambda line: line.update(event="resume" if line["event"] != "resume" else "plan"),
            lambda line: line.update(facts={**line["facts"], "more": 1}),
            lambda line: line.update(facts={}) if line["facts"] else line.update(facts={"task": "rmsnorm"}),
            lambda line: line.update(path=re.sub("fused|rmsnorm|triage-decode", "other", line["path"])),
        ],
        ids=["digest", "event", "a fact more", "other facts", "path"],
    )
    def test_any_line_edited_and_chained_anew(self, run: Path, edit: Callable[[Value], object]) -> None:
        good = lines(run)
        accepted = []
        for number in range(1, len(good)):
            changed = json.loads(json.dumps(good))
            edit(changed[number])
            rechain(run, changed)
            if inside("audit", run).status != 3:
                accepted.append(good[number]["path"])
        assert accepted == []

    def test_a_line_twice(self, run: Path) -> None:
        good = lines(run)
        for number in range(1, len(good)):
            rechain(run, [*good, good[number]])
            broken(run)

    def test_a_line_of_another_run(self, run: Path, tmp_path: Path) -> None:
        other = runs.on_disk(evidence.evidence(candidate="other"), tmp_path / "other")
        rechain(run, [*lines(run), lines(other)[2]])
        broken(run)

    @pytest.mark.parametrize("data", [b"", b"\n", b"{}\n", b"\xff\n", b"[]\n" * 3, b"{" * 100_000 + b"\n"])
    def test_no_ledger(self, run: Path, data: bytes) -> None:
        overwrite(run / "ledger.jsonl", data, 0o644)
        assert first(broken(run)) == "ledger.jsonl"


class TestSignatures:
    def artifacts(self, run: Path) -> list[str]:
        return [relative for relative in files(run) if layout.place(relative) is not None]

    def test_any_removed(self, run: Path) -> None:
        for relative in self.artifacts(run):
            path = run / signature_path(relative)
            good = path.read_bytes()
            path.unlink()
            assert relative in {problem["file"] for problem in broken(run).problems}
            overwrite(path, good)

    def test_by_a_key_of_another_role_or_by_a_stranger(self, run: Path, whole_keys: Path, tmp_path: Path) -> None:
        init_keys(tmp_path / "strangers")
        for relative in self.artifacts(run):
            data = (run / relative).read_bytes()
            kind = json.loads(data)["kind"]
            path = run / signature_path(relative)
            good = path.read_bytes()
            other = "judge" if OWNERS[kind] != "judge" else "builder"
            signers = (load_signer(whole_keys, other), load_signer(tmp_path / "strangers", OWNERS[kind]))
            overwrite(path, dsse.sign(relative, data, signers[len(relative) % 2], kind=kind))
            answer = broken(run)
            assert any(code.startswith("AKF-T") for code in answer.codes), (relative, answer.codes)
            overwrite(path, good)

    def test_one_of_another_artifact(self, run: Path) -> None:
        artifacts = self.artifacts(run)
        for mine, other in zip(artifacts, [*artifacts[1:], artifacts[0]], strict=True):
            path = run / signature_path(mine)
            good = path.read_bytes()
            overwrite(path, (run / signature_path(other)).read_bytes())
            broken(run)
            overwrite(path, good)


class TestByKeyHolders:
    """Even who holds a key cannot make evidence say what it does not."""

    def test_a_decision_that_the_evidence_does_not_give(self, run: Path, whole_keys: Path) -> None:
        path = f"{ATTEMPT}/decision.json"
        resign(run, path, lambda value: value.update(verdict="rejected", row=1), whole_keys)
        answer = broken(run)
        assert answer.codes == {"AKF-I220"}
        assert answer.problems[0]["expected"] == "promotable"
        assert answer.problems[0]["found"] == "rejected"

    @pytest.mark.parametrize(
        ("relative", "edit"),
        [
            (f"{ATTEMPT}/candidate.json", lambda v: v["claim"].update(owner="another")),
            (f"{ATTEMPT}/build.json", lambda v: v.update(isolation="none")),
            (f"{ATTEMPT}/plan/operator.json", lambda v: v["estimate"].update(wall_s=1)),
            ("tasks/rmsnorm.json", lambda v: v.update(title="another")),
            ("campaign.json", lambda v: v["budget"].update(attempts=1)),
            ("capture.json", lambda v: v.update(title="another")),
        ],
    )
    def test_a_parent_written_anew(
        self, run: Path, whole_keys: Path, relative: str, edit: Callable[[Value], object]
    ) -> None:
        resign(run, relative, edit, whole_keys)
        assert {"AKF-I205"} <= broken(run).codes

    def test_a_gate_written_anew_after_the_decision(self, run: Path, whole_keys: Path) -> None:
        resign(run, f"{ATTEMPT}/gates/serving.json", lambda value: value.update(isolation="bwrap"), whole_keys)
        assert {"AKF-I220"} <= broken(run).codes


class TestTrust:
    def test_without_a_root_it_asserts_itself(self, run: Path) -> None:
        assert inside("audit", run).accepted().document["trust"] == "self_asserted"

    def test_other_keys(self, run: Path, tmp_path: Path) -> None:
        init_keys(tmp_path / "keys")
        answer = broken(run, "--trust", tmp_path / "keys" / "trust.json")
        assert answer.codes == {"AKF-T020"}
        assert [problem["pointer"] for problem in answer.problems] == [
            f"/trust/keys/{role}" for role in ("builder", "evaluator", "judge", "supervisor")
        ]

    @pytest.mark.parametrize("role", ["supervisor", "builder", "evaluator", "judge"])
    def test_one_other_key(self, run: Path, whole_keys: Path, tmp_path: Path, role: str) -> None:
        init_keys(tmp_path / "keys")
        root = json.loads((whole_keys / "trust.json").read_bytes())
        root["keys"][role] = json.loads((tmp_path / "keys" / "trust.json").read_bytes())["keys"][role]
        (tmp_path / "trust.json").write_bytes(canonical_bytes(root))
        answer = broken(run, "--trust", tmp_path / "trust.json")
        assert [problem["pointer"] for problem in answer.problems] == [f"/trust/keys/{role}"]

    def test_a_whole_forged_run_asserts_itself_and_no_more(self, tmp_path: Path, whole_keys: Path, run: Path) -> None:
        """Somebody makes a run of his own with keys of his own: it is consistent, and it is not pinned."""
        del run
        forged = runs.on_disk(evidence.evidence(), tmp_path / "forged")
        assert inside("audit", forged).accepted().document["trust"] == "self_asserted"
        assert inside("audit", forged, "--trust", whole_keys / "trust.json").document["trust"] == "pinned"
        init_keys(tmp_path / "keys")
        assert inside("audit", forged, "--trust", tmp_path / "keys" / "trust.json").status == 3

    def test_an_unsigned_run(self, tmp_path: Path, whole_keys: Path) -> None:
        unsigned = runs.on_disk(evidence.evidence(signed=False), tmp_path / "unsigned")
        assert inside("audit", unsigned).accepted().document["trust"] == "unsigned"
        assert broken(unsigned, "--trust", whole_keys / "trust.json").codes == {"AKF-T020"}

    def test_a_signature_in_an_unsigned_run(self, tmp_path: Path, whole_run: Path) -> None:
        unsigned = runs.on_disk(evidence.evidence(signed=False), tmp_path / "unsigned")
        shutil.copy(whole_run / "run.sig.json", unsigned / "run.sig.json")
        assert "AKF-I206" in broken(unsigned).codes


class TestLeftovers:
    def plant(self, run: Path) -> list[str]:
        """What killed commands may leave: temporaries at any depth, a staged attempt, orphans, a run's own stage."""
        attempt = run / ATTEMPT
        overwrite(attempt / "gates" / f"{TEMPORARY}{DEAD}", b"half")
        stage = run / "attempts" / f"{STAGE}{DEAD}"
        (stage / "source").mkdir(parents=True)
        (stage / "source" / "kernel.cpp").write_bytes(b"half")
        beside = run.parent / f"{STAGE}{DEAD}"
        beside.mkdir()
        (beside / "run.json").write_bytes(b"half")
        overwrite(run / "tasks" / "another.sig.json", b"half")
        return [
            f"../{STAGE}{DEAD}", f"attempts/{STAGE}{DEAD}", f"{ATTEMPT}/gates/{TEMPORARY}{DEAD}",
            "tasks/another.sig.json",
        ]  # fmt: skip

    def test_they_are_named_and_cleaned_and_nothing_else_is(self, run: Path) -> None:
        whole = tree(run.parent)
        left = self.plant(run)
        before = tree(run.parent)
        for command in ("audit", "status"):
            assert inside(command, run).accepted().document["leftovers"] == left
        assert tree(run.parent) == before
        document = inside("audit", run, "--clean").accepted().document
        assert (document["leftovers"], document["cleaned"]) == (left, True)
        assert tree(run.parent) == whole
        assert inside("audit", run).accepted().document["leftovers"] == []

    def test_a_broken_run_is_not_cleaned(self, run: Path) -> None:
        self.plant(run)
        overwrite(run / ATTEMPT / "build.json", b"{}\n")
        before = tree(run.parent)
        inside("audit", run, "--clean").refused(3)
        assert tree(run.parent) == before

    def test_what_a_live_process_holds_is_left_alone(self, run: Path) -> None:
        from akf.store.leftovers import temporary_name  # noqa: PLC0415

        mine = run / "attempts" / temporary_name(STAGE)
        mine.mkdir()
        document = inside("audit", run, "--clean").accepted().document
        assert document["leftovers"] == []
        assert mine.is_dir()

    def test_a_torn_last_line_and_a_pending_artifact(self, run: Path) -> None:
        data = (run / "ledger.jsonl").read_bytes()
        whole = data.splitlines(keepends=True)
        overwrite(run / "ledger.jsonl", b"".join(whole[:-1]) + whole[-1][:40], 0o644)
        for command in ("audit", "status"):
            assert inside(command, run).accepted().document["pending"] == [f"{ATTEMPT}/decision.json"]
        inside("judge", run, run / ATTEMPT / "gates", "--recheck").accepted()
        inside("audit", run, "--clean").accepted()
        assert (run / "ledger.jsonl").read_bytes() == data
        assert inside("audit", run).accepted().document["pending"] == []

    def test_a_pending_artifact_that_does_not_verify(self, run: Path) -> None:
        whole = (run / "ledger.jsonl").read_bytes().splitlines(keepends=True)
        overwrite(run / "ledger.jsonl", b"".join(whole[:-1]), 0o644)
        (run / ATTEMPT / "decision.sig.json").unlink()
        assert f"{ATTEMPT}/decision.json" in {problem["file"] for problem in broken(run).problems}

    def test_a_gate_without_a_planned_line_never_becomes_pending(self, run: Path) -> None:
        kept = [line for line in lines(run) if "release" not in line["path"] and line["event"] != "decision"]
        rechain(run, kept)
        for name in ("decision.json", "decision.sig.json", "plan/release.json", "plan/release.sig.json"):
            (run / ATTEMPT / name).unlink()
        broken(run)


def test_tasks_without_attempts_are_audited_too(open_run: Path) -> None:
    inside("audit", open_run).accepted()
    overwrite(open_run / "tasks" / "rmsnorm.json", (open_run / "tasks" / "rmsnorm.json").read_bytes() + b" ")
    assert first(broken(open_run)) == "tasks/rmsnorm.json"


def test_a_run_that_was_measured_here_is_audited(measured_run: Path) -> None:
    document = inside("audit", measured_run).accepted().document
    assert document["attempts"] == 4
    for relative in (
        "attempts/rmsnorm-fused/samples/operator/correctness.jsonl",
        "attempts/rmsnorm-fused/build/candidate/kernel.so",
        "attempts/rmsnorm-broken/build/logs/candidate.txt",
        "attempts/rmsnorm-naive/source/kernel.cpp",
    ):
        path = measured_run / relative
        good = path.read_bytes()
        overwrite(path, good + b"\n")
        assert first(broken(measured_run)) == relative
        overwrite(path, good)


def test_an_empty_folder_is_no_break_and_missing_ones_are_made(run: Path) -> None:
    (run / "inbox").rmdir()
    (run / "attempts" / "fused" / "empty").mkdir()
    inside("audit", run).accepted()
    inside("status", run).accepted()
