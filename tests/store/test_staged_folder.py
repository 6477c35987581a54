"""A staged folder appears whole in one step, or not at all."""

from pathlib import Path

import pytest
from tests.support.folders import names, without_renameat2
from tests.support.process import Child

from akf.contracts.problems import ConflictError
from akf.store.leftovers import STAGE, TEMPORARY, temporary_name
from akf.store.publish import StagedFolder, clean, stale


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture(params=["renameat2", "guarded rename"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "guarded rename":
        without_renameat2(monkeypatch)


@pytest.mark.usefixtures("way")
def test_appears_with_all_that_was_written(tmp_path: Path) -> None:
    with StagedFolder(tmp_path / "run") as stage:
        stage.write("run.json", b"{}\n")
        stage.write("attempts/a/source/x.cpp", b"int x;")
        stage.write("attempts/a/source/y.cpp", b"int y;", mode=0o644)
        stage.folder("inbox")
        stage.folder("inbox")
        (stage.path / "by-hand").mkdir()
        (stage.path / "by-hand" / "out.so").write_bytes(b"\x7fELF")
        stage.write("by-hand/more", b"")
        (stage.path / "link").symlink_to("run.json")
        assert names(tmp_path) == [stage.path.name]
    assert tree(tmp_path) == {
        "run": None,
        "run/attempts": None,
        "run/attempts/a": None,
        "run/attempts/a/source": None,
        "run/attempts/a/source/x.cpp": b"int x;",
        "run/attempts/a/source/y.cpp": b"int y;",
        "run/by-hand": None,
        "run/by-hand/more": b"",
        "run/by-hand/out.so": b"\x7fELF",
        "run/inbox": None,
        "run/link": b"{}\n",
        "run/run.json": b"{}\n",
    }
    assert (tmp_path / "run" / "run.json").stat().st_mode & 0o777 == 0o444


@pytest.mark.parametrize("there", ["an empty folder", "a full folder", "a file", "a link to a folder"])
@pytest.mark.usefixtures("way")
def test_never_replaces_whatever_is_there(tmp_path: Path, there: str) -> None:
    target = tmp_path / "run"
    match there:
        case "an empty folder":
            target.mkdir()
        case "a full folder":
            target.mkdir()
            (target / "old").write_bytes(b"old")
        case "a file":
            target.write_bytes(b"old")
        case _:
            (tmp_path / "elsewhere").mkdir()
            target.symlink_to("elsewhere")
    before, inode = tree(tmp_path), target.lstat().st_ino
    with pytest.raises(ConflictError) as refused, StagedFolder(target) as stage:
        stage.write("new", b"new")
    assert refused.value.problems[0].code == "AKF-C101"
    assert (tree(tmp_path), target.lstat().st_ino) == (before, inode)


def test_an_exception_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with StagedFolder(tmp_path / "run") as stage:
            stage.write("a/b", b"data")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == []


@pytest.mark.parametrize("relative", ["../out", "/etc/out", "a/../../out", "", "."])
def test_nothing_is_written_outside(tmp_path: Path, relative: str) -> None:
    with StagedFolder(tmp_path / "run") as stage:
        with pytest.raises(ValueError, match="not a path inside"):
            stage.write(relative, b"")
        stage.write("inside", b"")
    assert names(tmp_path) == ["run"]


@pytest.mark.usefixtures("way")
def test_an_orphan_folder_is_replaced_and_a_counted_one_is_not(tmp_path: Path) -> None:
    target, artifact = tmp_path / "build", tmp_path / "build.json"
    for data in (b"first", b"second"):
        with StagedFolder(target, orphan_of=artifact) as stage:
            stage.write("out.so", data)
        assert tree(tmp_path) == {"build": None, "build/out.so": data}
    artifact.write_bytes(b"{}\n")
    with pytest.raises(ConflictError) as refused, StagedFolder(target, orphan_of=artifact) as stage:
        stage.write("out.so", b"third")
    assert refused.value.problems[0].code == "AKF-C102"
    assert tree(tmp_path) == {"build": None, "build.json": b"{}\n", "build/out.so": b"second"}


def test_many_files_and_deep_folders(tmp_path: Path) -> None:
    with StagedFolder(tmp_path / "run") as stage:
        for number in range(200):
            stage.write(f"{number % 7}/{'deep/' * (number % 5)}{number}", str(number).encode())
    assert sum(path.is_file() for path in (tmp_path / "run").rglob("*")) == 200


class TestLeftovers:
    @staticmethod
    def dead(prefix: str) -> str:
        """A name as a process that has ended would have chosen it."""
        child = Child(lambda: temporary_name(prefix))
        return str(child.result())

    def test_those_of_the_dead_are_named_and_removed(self, tmp_path: Path) -> None:
        (tmp_path / "attempts" / "a" / "gates").mkdir(parents=True)
        file = tmp_path / "attempts" / "a" / "gates" / self.dead(TEMPORARY)
        file.write_bytes(b"half")
        folder = tmp_path / self.dead(STAGE)
        (folder / "deep").mkdir(parents=True)
        (folder / "deep" / "x").write_bytes(b"")
        (tmp_path / "kept.json").write_bytes(b"{}\n")
        assert stale(tmp_path) == sorted([file, folder])
        assert clean(stale(tmp_path)) == sorted([file, folder])
        assert stale(tmp_path) == []
        assert set(tree(tmp_path)) == {"attempts", "attempts/a", "attempts/a/gates", "kept.json"}

    def test_those_of_the_living_stay(self, tmp_path: Path) -> None:
        with StagedFolder(tmp_path / "run") as stage:
            stage.write("a", b"")
            assert stale(tmp_path) == []
            assert clean([stage.path]) == []
        assert names(tmp_path) == ["run"]

    def test_a_lock_marks_the_living_where_process_ids_mean_nothing(self, tmp_path: Path) -> None:
        """As seen from another container: the id in the name belongs to nobody there."""
        foreign = tmp_path / self.dead(STAGE)
        with StagedFolder(tmp_path / "run") as stage:
            stage.write("a", b"")
            stage.path.rename(foreign)
            assert stale(tmp_path) == []
            foreign.rename(stage.path)
        (tmp_path / "run").rename(foreign)
        assert stale(tmp_path) == [foreign]

    def test_other_names_are_never_touched(self, tmp_path: Path) -> None:
        others = [".akf-tmp-", ".akf-stage-mine", ".akf-tmp-1-1-xyz", "akf-tmp-1-1-0123456789abcdef", ".lock"]
        for name in others:
            (tmp_path / name).write_bytes(b"")
        assert stale(tmp_path) == []
        assert clean(tmp_path / name for name in others) == []
        assert names(tmp_path) == sorted(others)

    def test_links_are_not_followed(self, tmp_path: Path) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / self.dead(TEMPORARY)).write_bytes(b"")
        run = tmp_path / "run"
        run.mkdir()
        (run / "link").symlink_to(elsewhere)
        (run / self.dead(STAGE)).symlink_to(elsewhere)
        assert stale(run) == []
        inside = run / self.dead(STAGE)
        inside.mkdir()
        (inside / "link").symlink_to(elsewhere)
        clean(stale(run))
        assert not inside.exists()
        assert len(names(elsewhere)) == 1

    def test_a_missing_folder_has_none(self, tmp_path: Path) -> None:
        assert stale(tmp_path / "missing") == []
