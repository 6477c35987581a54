"""Archives, texts, and files that are nothing of the kind; `akf inspect` as a command."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.cli import akf, inside
from tests.support.compiled import Objects
from tests.support.elf_objects import aicore

from akf.build.inspect import MAX_OBJECT_BYTES, describe, describe_bytes

pytestmark = pytest.mark.usefixtures("state")
LONG = "a_name_that_is_longer_than_sixteen_characters.o"


def archive(*members: tuple[bytes, bytes]) -> bytes:
    """An archive with headers as they are given."""
    rows = b"".join(
        name.ljust(16) + b"0".ljust(12) + b"0".ljust(6) * 2 + b"644".ljust(8) + str(len(data)).encode().ljust(10)
        + b"`\n" + data + b"\n" * (len(data) % 2)
        for name, data in members
    )  # fmt: skip
    return b"!<arch>\n" + rows


def test_an_archive_of_ar(objects: Objects) -> None:
    folder = objects.folder
    (folder / LONG).write_bytes(objects.object().read_bytes())
    (folder / "odd.txt").write_bytes(b"odd")
    subprocess.run(["ar", "rcs", "all.a", LONG, "odd.txt", "kernel.o"], cwd=folder, check=True)
    found = describe(folder / "all.a")
    assert (found["format"], found["member_count"]) == ("archive", 3)
    assert [row["name"] for row in found["members"]] == [LONG, "odd.txt", "kernel.o"]
    digests = [f"sha256:{hashlib.sha256((folder / name).read_bytes()).hexdigest()}" for name in (LONG, "odd.txt")]
    assert [row["digest"] for row in found["members"][:2]] == digests
    assert [row.get("what") for row in found["members"]] == ["object file", None, "object file"]


def test_an_archive_of_device_code_and_names_of_bsd() -> None:
    data = aicore({"op_0": b"1234"})
    found = describe_bytes(archive((b"#1/8", b"long.o\0\0" + data), (b"short.o/", b"x")), "ops.a")
    assert [(row["name"], row["bytes"], row.get("kernels")) for row in found["members"]] == [
        ("long.o", len(data), ["op_0"]), ("short.o", 1, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [
        archive((b"a/", b"content"))[:-3],
        archive((b"a/", b"content"))[:40],
        archive((b"a/", b"content")).replace(b"`\n", b"``"),
        archive((b"a/", b"content")).replace(b"7 ", b"-7", 1),
        archive((b"/0", b"a name in a table that is not there")),
        b"!<thin>\n",
        archive(*[(b"a/", b"")] * 4097),
    ],
    ids=["cut content", "cut header", "no end of header", "negative size", "no table", "thin", "many"],
)
def test_half_an_archive_is_no_archive(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.a").write_bytes(data)
    assert inside("inspect", tmp_path / "x.a").refused(1).codes == {"AKF-F484"}


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("k.mlir", b"module {}\n", "mlir"),
        ("k.ttadapter", b"module {}\n", "mlir"),
        ("k.ptx", b".version 9.0\n.target sm_90\n", "ptx"),
        ("notes", "Grüße\n".encode(), "text"),
        ("lib.bc", b"BC\xc0\xde\0\0", "llvm_bitcode"),
        ("k.fatbin", b"\x50\xed\x55\xba\0", "cuda_fatbin"),
    ],
)
def test_of_texts_and_closed_containers_format_and_digest_are_given(
    tmp_path: Path, name: str, data: bytes, kind: str
) -> None:
    (tmp_path / name).write_bytes(data)
    found = inside("inspect", tmp_path / name).accepted().document
    assert (found["file"], found["format"], found["bytes"]) == (name, kind, len(data))
    assert found["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert len(found["remarks"]) == 1


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n\0\0", b"text\0with NUL", b"\xff\xfe", b"\x7f", b"PK\3\4\0"])
def test_what_is_not_known_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    assert inside("inspect", tmp_path / "x").refused(1).codes == {"AKF-F480"}


def test_no_file_of_another_kind_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("missing")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name, code in (
        ("pipe", "AKF-F002"), ("loop", "AKF-F003"), ("nowhere", "AKF-F001"), ("device", "AKF-F002"), (".", "AKF-F002"),
        ("absent", "AKF-F001"),
    ):  # fmt: skip
        assert inside("inspect", tmp_path / name).refused(1).codes == {code}, name


def test_of_a_file_that_is_too_large_nothing_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse.so"
    with path.open("wb") as stream:
        stream.write(b"\x7fELF")
        stream.truncate(1 << 40)
    problem = inside("inspect", path).refused(1).problems[0]
    assert (problem["code"], problem["expected"], problem["found"]) == ("AKF-F483", MAX_OBJECT_BYTES, 1 << 40)


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"k\xff\x1b[31m.o")  # noqa: PTH118 - bytes
    Path(os.fsdecode(path)).write_bytes(aicore({"op\x1b[0m": b"1"}))
    done = subprocess.run([sys.executable, "-m", "akf", "inspect", path], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
    assert b"\x1b" not in done.stdout
    assert b"k\\\\udcff\\\\x1b[31m.o" in done.stdout
    assert b"op\\\\x1b[0m" in done.stdout


def test_without_pyelftools_it_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "elftools.py").write_text("raise ImportError('not here')\n", encoding="utf-8")
    (tmp_path / "k.o").write_bytes(aicore({"op": b"1"}))
    (tmp_path / "k.mlir").write_text("module {}\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    problem = akf("inspect", tmp_path / "k.o", env={"PYTHONPATH": path}).refused(6).problems[0]
    assert problem["code"] == "AKF-E480"
    assert problem["hint"] == 'run: python -m pip install "ascend-kernel-forge[build]"'
    assert akf("inspect", tmp_path / "k.mlir", env={"PYTHONPATH": path}).accepted().document["format"] == "mlir"


def test_people_get_the_same(tmp_path: Path) -> None:
    (tmp_path / "k.o").write_bytes(aicore({"op_0": b"1234"}))
    text = inside("inspect", tmp_path / "k.o", "--human").text
    assert "what: Ascend AICore object\n" in text
    assert "  op_0  -     4      sha256:" in text
