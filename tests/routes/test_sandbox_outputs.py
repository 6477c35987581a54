"""What a build leaves is taken without following anything, and cleared away whatever it is."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.sandboxes import Place

from akf.routes.sandbox import LEVELS, Level, outputs

KINDS = {
    "symbolic link": ("ln -s /etc/hostname out/k", "is a symbolic link"),
    "link to the source": ("ln -s ../src/k out/k", "is a symbolic link"),
    "dangling link": ("ln -s nowhere out/k", "is a symbolic link"),
    "hard link": ("echo x >out/k; ln out/k out/other", "has a second name (hard link)"),
    "FIFO": ("mkfifo out/k", "is a FIFO"),
    "folder": ("mkdir out/k", "is a folder"),
}


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system that is quick about many folders, where there is one."""
    base = Path("/dev/shm")  # noqa: S108 - any memory will do
    with tempfile.TemporaryDirectory(dir=base if os.access(base, os.W_OK) else tmp_path) as folder:
        yield Path(folder)


@pytest.mark.parametrize("what", KINDS)
@pytest.mark.parametrize("level", LEVELS)
def test_what_is_no_plain_file_is_refused_by_its_kind(what: str, level: Level, tmp_path: Path) -> None:
    place = Place(tmp_path, level)
    script, why = KINDS[what]
    assert place.sh(script).status == 0
    left = outputs.collect(place.out, ["k"])
    assert left.files == {}
    assert left.refused == {"k": why}


def test_a_socket_and_a_device_are_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "s"))
        assert outputs.collect(tmp_path, ["s"]).refused == {"s": "is a socket"}
    if os.geteuid() == 0:
        os.mknod(tmp_path / "d", 0o020600, os.makedev(1, 3))
        assert outputs.collect(tmp_path, ["d"]).refused == {"d": "is a character device"}


def test_a_plain_file_is_taken_whatever_its_mode(tmp_path: Path) -> None:
    place = Place(tmp_path, "none")
    assert place.sh("echo fine >out/k; chmod 000 out/k; chmod 000 out").status == 0
    assert outputs.collect(place.out, ["k"]).files == {"k": b"fine\n"}


def test_a_file_that_runs_still_runs_after_it_was_read(tmp_path: Path) -> None:
    place = Place(tmp_path, "none")
    place.sh("printf '#!/bin/sh\\necho ran\\n' >out/k; chmod 700 out/k")
    outputs.collect(place.out, ["k"])
    assert place.sh("out/k").text == "ran\n"


def test_sizes_are_bounded_one_by_one_and_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "MAX_FILE_BYTES", 10)
    monkeypatch.setattr(outputs, "MAX_TOTAL_BYTES", 15)
    for name, size in (("a", 11), ("b", 9), ("c", 9)):
        (tmp_path / name).write_bytes(b"x" * size)
    left = outputs.collect(tmp_path, ["a", "b", "c", "absent"])
    assert set(left.files) == {"b"}
    assert set(left.refused) == {"a", "c"}


def test_a_sparse_file_is_not_read_into_memory(tmp_path: Path) -> None:
    with (tmp_path / "k").open("wb") as stream:
        stream.truncate(1 << 40)
    assert "1099511627776 bytes" in outputs.collect(tmp_path, ["k"]).refused["k"]


def test_odd_things_beside_the_outputs_are_named(tmp_path: Path) -> None:
    place = Place(tmp_path, "none")
    place.sh("echo x >out/k; ln -s / out/root; mkfifo out/pipe; echo y >out/plain; mkdir out/folder")
    assert outputs.collect(place.out, ["k"]).odd == {"root": "is a symbolic link", "pipe": "is a FIFO"}


def test_any_name_can_be_looked_at_and_cleared_away(tmp_path: Path) -> None:
    """Names that are not UTF-8, as long as they come, with line ends, or like AKF's own."""
    names = [b"\xff\xfe", b"x" * 255, b"a\nb", b"-rf", b" ", b".akf-x", b"\x1b[2J"]
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_bytes(b"x")  # noqa: PTH118
    os.symlink("/", os.fsencode(tmp_path) + b"/\xfe")  # noqa: PTH211
    left = outputs.collect(tmp_path, ["k"])
    assert len(left.odd) == 1
    outputs.clear(tmp_path)
    assert os.listdir(tmp_path) == []  # noqa: PTH208


@pytest.mark.parametrize("level", LEVELS)
def test_no_mode_keeps_a_folder(level: Level, tmp_path: Path) -> None:
    place = Place(tmp_path, level)
    script = (
        "echo kept >out/keep; mkdir -p out/a/b/c; echo x >out/a/b/c/f; chmod 000 out/a/b/c out/a/b out/a; chmod 500 out"
    )
    assert place.sh(script).status == 0
    outputs.clear(place.out, keep={"keep"})
    assert [path.name for path in place.out.iterdir()] == ["keep"]


def test_no_depth_keeps_a_folder(in_memory: Path) -> None:
    """Deeper than a path can be long, and deeper than Python can call itself."""
    handle = os.open(in_memory, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("folder", dir_fd=handle)
        inner = os.open("folder", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)
    outputs.clear(in_memory)
    assert list(in_memory.iterdir()) == []


def test_clearing_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    inside = tmp_path / "inside"
    (inside / "folder").mkdir(parents=True)
    (inside / "link").symlink_to(outside)
    (inside / "folder" / "link").symlink_to(outside)
    outputs.clear(inside)
    assert (outside / "file").read_text() == "mine"
    assert list(inside.iterdir()) == []
