"""A toolkit's files: any change shows, links are no way around, and nothing is opened that is no file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.process import NOBODY, in_child

from akf.contracts.problems import BlockedError
from akf.frameworks import host_toolkit, toolkit_tree
from akf.frameworks.toolkit_tree import Tree, differing, keep, kept, read_toolkit


@pytest.fixture
def toolkit(tmp_path: Path) -> Path:
    folder = tmp_path / "toolkit"
    (folder / "lib").mkdir(parents=True)
    (folder / "compiler").write_bytes(b"program")
    (folder / "compiler").chmod(0o755)
    (folder / "lib" / "a.h").write_bytes(b"header")
    (tmp_path / "outside").write_bytes(b"outside")
    return folder


def read(folder: Path) -> Tree:
    return read_toolkit({"t": folder})


def test_the_same_files_elsewhere_have_the_same_digest(toolkit: Path, tmp_path: Path) -> None:
    before = read(toolkit)
    toolkit.rename(tmp_path / "moved")
    assert read(tmp_path / "moved") == before
    assert [path for path, _, _ in before.entries] == ["t/compiler", "t/lib/a.h"]


def same_size_and_time(folder: Path) -> None:
    path = folder / "lib" / "a.h"
    status = path.stat()
    path.write_bytes(b"hEader")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replaced_by_a_link(folder: Path) -> None:
    (folder / "lib" / "a.h").unlink()
    (folder / "lib" / "a.h").symlink_to(folder / "lib" / "b.h")
    (folder / "lib" / "b.h").write_bytes(b"header")


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (same_size_and_time, ["~ t/lib/a.h"]),
        (lambda folder: (folder / "lib" / "a.h").unlink(), ["- t/lib/a.h"]),
        (lambda folder: (folder / "lib" / "new.h").touch(), ["+ t/lib/new.h"]),
        (lambda folder: (folder / "compiler").chmod(0o644), ["~ t/compiler"]),
        (replaced_by_a_link, ["~ t/lib/a.h", "+ t/lib/b.h"]),
    ],
)
def test_any_change_shows_and_is_named(toolkit: Path, change: Callable[[Path], object], shown: list[str]) -> None:
    before = read(toolkit)
    change(toolkit)
    now = read(toolkit)
    assert now.digest != before.digest
    assert differing(before, now) == shown


def test_what_a_link_leads_to_outside_counts(toolkit: Path, tmp_path: Path) -> None:
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "b.h").write_bytes(b"b")
    (toolkit / "file").symlink_to(tmp_path / "outside")
    (toolkit / "folder").symlink_to("../headers")
    before = read(toolkit)
    (tmp_path / "outside").write_bytes(b"OUTSIDE")
    (tmp_path / "headers" / "b.h").write_bytes(b"B")
    assert differing(before, read(toolkit)) == ["~ t/file", "~ t/folder/b.h"]


def test_links_that_go_round_or_nowhere_end(toolkit: Path, tmp_path: Path) -> None:
    (toolkit / "lib" / "up").symlink_to("..")
    (toolkit / "itself").symlink_to("itself")
    (toolkit / "nowhere").symlink_to("nothing")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "back").symlink_to(tmp_path)
    (toolkit / "round").symlink_to(tmp_path / "other")
    entries = {path: what for path, _, what in read(toolkit).entries}
    assert entries["t/lib/up"] == "link .."
    assert entries["t/itself"] == "link itself to nothing"
    assert entries["t/nowhere"] == "link nothing to nothing"


def test_a_pipe_is_not_opened(toolkit: Path) -> None:
    os.mkfifo(toolkit / "pipe")
    assert ("t/pipe", False, "special") in read(toolkit).entries


def test_what_cannot_be_read_blocks_and_is_named() -> None:
    def refusal() -> str:
        with pytest.raises(BlockedError) as refused:
            read_toolkit({"t": Path("/proc/1/map_files")})
        return refused.value.problems[0].code

    assert in_child(refusal, uid=NOBODY) == "AKF-E110"
    with pytest.raises(BlockedError, match="no such file"):
        read_toolkit({"t": Path("/nowhere/at/all")})


@pytest.mark.parametrize("bound", ["MAX_FILES", "MAX_BYTES"])
def test_too_much_is_refused(toolkit: Path, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(toolkit_tree, bound, 1)
    with pytest.raises(BlockedError) as refused:
        read(toolkit)
    assert refused.value.problems[0].code == "AKF-E111"


def test_a_list_is_believed_only_under_its_own_digest(toolkit: Path, tmp_path: Path) -> None:
    tree = read(toolkit)
    assert kept(tree.digest, tmp_path) is None
    keep(tree, tmp_path)
    keep(tree, tmp_path)
    assert kept(tree.digest, tmp_path) == tree
    path = next((tmp_path / "trees").iterdir())
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"a.h", b"b.h"))
    assert kept(tree.digest, tmp_path) is None
    path.write_bytes(b"[1]")
    assert kept(tree.digest, tmp_path) is None


@pytest.mark.usefixtures("compiler")
def test_the_real_compilers_folders_are_read() -> None:
    tree = host_toolkit.tree()
    assert tree == host_toolkit.tree()
    assert {path.partition("/")[0] for path, _, _ in tree.entries} >= {"private", "headers-0"}
    assert any(path.endswith("/cmath") for path, _, _ in tree.entries)
