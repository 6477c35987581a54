"""Killed at any system call: the old state or the new one, never part of either, and the next command succeeds.

The default run takes every point of every operation, in memory; `soak` adds the disk, a larger folder and more errors.
"""

import errno
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support import soak
from tests.support.folders import names, without_renameat2, without_unnamed_files
from tests.support.kill import Report, Work, calls_of, fail_points, kill_points
from tests.support.process import in_child

from akf.contracts.canonical import canonical_bytes, digest
from akf.store import ledger
from akf.store.leftovers import clean, stale
from akf.store.lock import RunLock
from akf.store.publish import StagedFolder, make_folder, publish_file, replace_sidecar
from akf.trust.keys import init_keys, load_signer, trust_root
from akf.trust.roles import ROLES

MEMORY = Path("/dev/shm")  # noqa: S108 - a second file system, not a place for secrets
DATA = bytes(range(256)) * 40
RUN = digest(b"run")
ARTIFACT = digest(b"artifact")


class Folders:
    """Fresh folders with the state that a work starts from."""

    def __init__(self, root: Path, prepare: Callable[[Path], object]) -> None:
        self._root = root
        self._prepare = prepare
        self._numbers = itertools.count()

    def __call__(self) -> Path:
        folder = self._root / str(next(self._numbers))
        folder.mkdir()
        self._prepare(folder)
        return folder


@pytest.fixture(params=["memory", pytest.param("disk", marks=pytest.mark.soak)])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    if request.param == "disk" or not MEMORY.is_dir():
        yield tmp_path
    else:
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            yield Path(folder)


def tidy(folder: Path) -> None:
    """What the next command does with leftovers; afterwards only final names stand there."""
    clean(stale(folder))
    assert not list(folder.rglob(".akf-*"))


def nothing(folder: Path) -> None:
    """Start from an empty folder."""


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def kills(work: Work, folders: Folders, check: Callable[[Path], object]) -> Report:
    """Kill at every point, or at those of the slice that is asked for."""
    cut = soak.whole()
    return kill_points(work, folders, check, stride=cut.stride, offset=cut.offset)


def failures(work: Work, folders: Folders, check: Callable[[Path, int | None], object], number: int) -> Report:
    """Refuse every call, or those of the slice that is asked for."""
    cut = soak.whole()
    return fail_points(work, folders, check, number=number, stride=cut.stride, offset=cut.offset)


def everything(report: Report, *needed: str) -> None:
    assert report.stopped == report.points
    assert set(needed) <= set(report.calls)


class TestPublishFile:
    @staticmethod
    def work(folder: Path) -> None:
        publish_file(folder / "a.json", DATA)

    @classmethod
    def check(cls, folder: Path) -> None:
        tidy(folder)
        if (folder / "a.json").exists():
            assert (folder / "a.json").stat().st_mode & 0o777 == 0o444
        else:
            cls.work(folder)
        assert tree(folder) == {"a.json": DATA}

    def test_unnamed(self, root: Path) -> None:
        report = kills(self.work, Folders(root, nothing), self.check)
        everything(report, "open", "write", "fsync", "link")

    def test_named(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        without_unnamed_files(monkeypatch)
        everything(kills(self.work, Folders(root, nothing), self.check), "open", "write", "fsync", "renameat2")

    def test_linked(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        without_unnamed_files(monkeypatch)
        without_renameat2(monkeypatch)
        report = kills(self.work, Folders(root, nothing), self.check)
        everything(report, "open", "write", "fsync", "link", "unlink")


def test_replace_sidecar(root: Path) -> None:
    def prepare(folder: Path) -> None:
        replace_sidecar(folder / "a.sig.json", b"orphan", folder / "a.json")

    def work(folder: Path) -> None:
        replace_sidecar(folder / "a.sig.json", DATA, folder / "a.json")

    def check(folder: Path) -> None:
        tidy(folder)
        assert tree(folder) in ({"a.sig.json": b"orphan"}, {"a.sig.json": DATA})
        work(folder)
        publish_file(folder / "a.json", b"{}\n")
        assert tree(folder) == {"a.json": b"{}\n", "a.sig.json": DATA}

    everything(kills(work, Folders(root, prepare), check), "rename")


class TestStagedFolder:
    files = 5

    def content(self) -> dict[str, bytes]:
        return {f"{n % 3}/{n}.json": str(n).encode() + DATA for n in range(self.files)}

    def work(self, folder: Path) -> None:
        with StagedFolder(folder / "run") as stage:
            for name, data in self.content().items():
                stage.write(name, data)

    def check(self, folder: Path) -> None:
        tidy(folder)
        if not (folder / "run").exists():
            self.work(folder)
        assert tree(folder / "run") == self.content()
        assert names(folder) == ["run"]

    def test_new(self, root: Path) -> None:
        everything(kills(self.work, Folders(root, nothing), self.check), "mkdir", "write", "fsync", "renameat2")

    def test_guarded(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        without_renameat2(monkeypatch)
        everything(kills(self.work, Folders(root, nothing), self.check), "rename")

    def test_over_an_orphan(self, root: Path) -> None:
        def work(folder: Path) -> None:
            with StagedFolder(folder / "build", orphan_of=folder / "build.json") as stage:
                stage.write("out.so", DATA)

        def prepare(folder: Path) -> None:
            with StagedFolder(folder / "build") as stage:
                stage.write("old.so", b"orphan")

        def check(folder: Path) -> None:
            tidy(folder)
            assert tree(folder) in ({"build/old.so": b"orphan"}, {}, {"build/out.so": DATA})
            work(folder)
            assert tree(folder) == {"build/out.so": DATA}

        everything(kills(work, Folders(root, prepare), check), "rename", "renameat2", "unlink", "rmdir")

    @pytest.mark.soak
    def test_many_files(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(self, "files", 40, raising=False)
        everything(kills(self.work, Folders(root, nothing), self.check), "renameat2")


class TestLedger:
    @staticmethod
    def prepare(folder: Path) -> None:
        ledger.append(folder, "run", "run.json", RUN)
        ledger.append(folder, "task", "tasks/t1.json", ARTIFACT, {"n": 1})

    @classmethod
    def prepare_torn(cls, folder: Path) -> None:
        cls.prepare(folder)
        path = folder / "ledger.jsonl"
        path.write_bytes(path.read_bytes() + b'{"digest":"sha256:00')

    @staticmethod
    def work(folder: Path) -> None:
        with RunLock(folder):
            ledger.repair(folder)
            ledger.append(folder, "candidate", "attempts/c/candidate.json", ARTIFACT, {"task": "t1"})

    @classmethod
    def check(cls, folder: Path) -> None:
        with RunLock(folder):
            ledger.repair(folder)
            lines = ledger.read((folder / "ledger.jsonl").read_bytes(), RUN)
        assert [line.event for line in lines] in (["run", "task"], ["run", "task", "candidate"])
        cls.work(folder)
        again = ledger.read((folder / "ledger.jsonl").read_bytes(), RUN)
        assert again[: len(lines)] == lines
        assert len(again) == len(lines) + 1

    def test_append(self, root: Path) -> None:
        everything(kills(self.work, Folders(root, self.prepare), self.check), "write", "fsync")

    def test_append_after_a_torn_line(self, root: Path) -> None:
        everything(kills(self.work, Folders(root, self.prepare_torn), self.check), "ftruncate", "write")

    def test_open(self, root: Path) -> None:
        def work(folder: Path) -> None:
            ledger.append(folder, "run", "run.json", RUN)

        def check(folder: Path) -> None:
            path = folder / "ledger.jsonl"
            if not path.exists() or not ledger.complete(path.read_bytes()):
                work(folder)
            assert len(ledger.read(path.read_bytes(), RUN)) == 1

        everything(kills(work, Folders(root, nothing), check), "open", "write", "fsync")


def test_make_folder(root: Path) -> None:
    def work(folder: Path) -> None:
        make_folder(folder / "a" / "b" / "c")

    def check(folder: Path) -> None:
        work(folder)
        assert (folder / "a" / "b" / "c").is_dir()

    everything(kills(work, Folders(root, nothing), check), "mkdir", "fsync")


def test_clean(root: Path) -> None:
    def abandoned(folder: Path) -> None:
        def begin() -> None:
            StagedFolder(folder / "run").__enter__().write("a/b.json", DATA)

        in_child(begin)

    def work(folder: Path) -> None:
        assert clean(stale(folder))

    def check(folder: Path) -> None:
        tidy(folder)
        assert names(folder) == []

    everything(kills(work, Folders(root, abandoned), check), "unlink", "rmdir")


class TestKeys:
    @staticmethod
    def whole(folder: Path) -> None:
        pins = {role: load_signer(folder, role).public for role in ROLES}
        assert (folder / "trust.json").read_bytes() == canonical_bytes(trust_root(pins))
        for path in folder.glob("*.key"):
            assert path.stat().st_mode & 0o777 == 0o600

    def test_a_new_folder_appears_whole(self, root: Path) -> None:
        def work(folder: Path) -> None:
            init_keys(folder / "akf" / "keys")

        def check(folder: Path) -> None:
            tidy(folder)
            keys = folder / "akf" / "keys"
            if not keys.exists():
                work(folder)
            self.whole(keys)

        everything(kills(work, Folders(root, nothing), check), "renameat2")

    def test_in_a_folder_that_exists_the_trust_root_comes_last(self, root: Path) -> None:
        def check(folder: Path) -> None:
            tidy(folder)
            if (folder / "trust.json").exists():
                self.whole(folder)
                return
            for path in folder.iterdir():  # what the refusal asks for
                path.unlink()
            init_keys(folder)

        everything(kills(init_keys, Folders(root, nothing), check), "link")


@pytest.mark.parametrize(
    "number",
    [
        errno.ENOSPC,
        errno.EACCES,
        pytest.param(errno.EIO, marks=pytest.mark.soak),
        pytest.param(errno.EDQUOT, marks=pytest.mark.soak),
    ],
)
class TestRefusedCalls:
    """Refused at any system call: exit 7, the old state with nothing left behind, and the next command succeeds."""

    def test_publish_file(self, root: Path, number: int) -> None:
        def check(folder: Path, code: int | None) -> None:
            assert code in (7, None)
            assert tree(folder) in ({}, {"a.json": DATA})
            if code is None:  # a refusal that has a way round
                assert tree(folder)
            assert not stale(folder)
            TestPublishFile.check(folder)

        report = failures(TestPublishFile.work, Folders(root, nothing), check, number)
        assert report.stopped >= report.points - 1

    def test_staged_folder(self, root: Path, number: int) -> None:
        case = TestStagedFolder()

        def check(folder: Path, code: int | None) -> None:
            assert code == 7
            assert names(folder) in ([], ["run"])
            case.check(folder)

        report = failures(case.work, Folders(root, nothing), check, number)
        assert report.stopped == report.points

    def test_ledger(self, root: Path, number: int) -> None:
        def check(folder: Path, code: int | None) -> None:
            assert code in (7, None)  # the line about the lock's holder may be missing
            lines = ledger.read((folder / "ledger.jsonl").read_bytes(), RUN)
            assert len(lines) == (2 if code else 3)
            TestLedger.check(folder)

        report = failures(TestLedger.work, Folders(root, TestLedger.prepare), check, number)
        assert report.stopped >= report.points - 3  # what is said about the lock's holder may be missing


class TestTheHarness:
    def test_sees_the_calls_in_their_order(self, tmp_path: Path) -> None:
        calls = calls_of(TestPublishFile.work, Folders(tmp_path, nothing))
        assert calls == ("open", "write", "fchmod", "fsync", "link", "fsync")

    def test_finds_a_publication_that_is_not_atomic(self, tmp_path: Path) -> None:
        def work(folder: Path) -> None:
            descriptor = os.open(folder / "a.json", os.O_CREAT | os.O_WRONLY)
            os.write(descriptor, DATA)
            os.fsync(descriptor)

        with pytest.raises(AssertionError) as found:
            kill_points(work, Folders(tmp_path, nothing), TestPublishFile.check)
        assert "call 1 (open)" in found.value.__notes__[0]

    def test_finds_writes_that_no_hook_sees(self, tmp_path: Path) -> None:
        def work(folder: Path) -> None:
            (folder / "a.json").write_bytes(DATA)

        with pytest.raises(AssertionError, match="writes where no hook sees it"):
            kill_points(work, Folders(tmp_path, nothing), TestPublishFile.check)

    def test_finds_a_work_that_changes_its_mind(self, tmp_path: Path) -> None:
        seen = tmp_path / "seen"
        seen.mkdir()

        def work(folder: Path) -> None:
            if len(list(tmp_path.iterdir())) > 2:
                return
            shutil.rmtree(seen)
            TestPublishFile.work(folder)

        with pytest.raises(AssertionError):
            kill_points(work, Folders(tmp_path, nothing), nothing)

    def test_slices_make_up_the_whole(self, tmp_path: Path) -> None:
        folders = Folders(tmp_path, nothing)
        whole = kill_points(TestPublishFile.work, folders, TestPublishFile.check)
        parts = [
            kill_points(TestPublishFile.work, folders, TestPublishFile.check, stride=3, offset=n) for n in range(3)
        ]
        assert sum(part.points for part in parts) == whole.points
