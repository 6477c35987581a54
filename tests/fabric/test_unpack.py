"""Archives of strangers: what is written out, what is refused, and that nothing is ever written elsewhere."""

import bz2
import gzip
import io
import lzma
import os
import random
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.worker_service import package

from akf.fabric.unpack import ArtifactBounds, Bounds, PackageError, artifacts, read_regular, unpack

OUTSIDE = Path(tempfile.gettempdir())
SMALL = Bounds(total_bytes=1 << 20, files=50, levels=8)
KINDS = {
    "a symbolic link": tarfile.SYMTYPE,
    "a hard link": tarfile.LNKTYPE,
    "a device": tarfile.CHRTYPE,
    "a pipe": tarfile.FIFOTYPE,
}


def archive(members: Iterable[tuple[dict[str, Any], bytes]], form: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as made:
        for fields, content in members:
            info = tarfile.TarInfo("file")
            info.size = len(content)
            for name, value in fields.items():
                setattr(info, name, value)
            made.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def refused(data: bytes, folder: Path, bounds: Bounds = SMALL) -> str:
    target = folder / "target"
    target.mkdir(exist_ok=True)
    with pytest.raises(PackageError) as caught:
        unpack(io.BytesIO(data), target, bounds)
    return str(caught.value)


class TestTaken:
    @pytest.mark.parametrize("compressed", [bytes, gzip.compress, bz2.compress, lzma.compress])
    @pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    def test_what_tarfile_writes(self, tmp_path: Path, form: int, compressed: Callable[[bytes], bytes]) -> None:
        long = "/".join(["folder" * 9] * 2) + "/" + "name" * 20
        files = {"a.py": b"print()", long: os.urandom(100_000), "empty": b"", "./b/c": b"c"}
        data = archive([({"name": name, "mtime": 1}, content) for name, content in files.items()], form)
        assert unpack(io.BytesIO(compressed(data)), tmp_path) == len(files)
        assert {name: (tmp_path / name).read_bytes() for name in files} == files

    def test_names_beyond_ascii_and_times_of_a_fraction(self, tmp_path: Path) -> None:
        unpack(io.BytesIO(archive([({"name": "größe/大.json", "mtime": 1.5}, b"1")])), tmp_path)
        assert (tmp_path / "größe" / "大.json").read_bytes() == b"1"

    def test_only_the_owner_s_right_to_execute_is_kept(self, tmp_path: Path) -> None:
        data = archive([({"name": "tool", "mode": 0o7777}, b""), ({"name": "text", "mode": 0o666}, b"")])
        unpack(io.BytesIO(data), tmp_path)
        assert stat.S_IMODE((tmp_path / "tool").stat().st_mode) & ~os.umask(os.umask(0)) == 0o700
        assert stat.S_IMODE((tmp_path / "text").stat().st_mode) == 0o600

    def test_folders_may_be_named_twice(self, tmp_path: Path) -> None:
        folder: tuple[dict[str, Any], bytes] = ({"name": "a", "type": tarfile.DIRTYPE}, b"")
        assert unpack(io.BytesIO(archive([folder, ({"name": "a/b"}, b"b"), folder])), tmp_path) == 1


class TestRefused:
    @pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil", "a/..", "..", "//evil"])
    def test_g13_names_that_lead_elsewhere(self, tmp_path: Path, name: str) -> None:
        assert "leads out of the package" in refused(archive([({"name": name}, b"evil")]), tmp_path)
        assert not (tmp_path / "evil").exists()

    @pytest.mark.parametrize("kind", KINDS)
    def test_g13_links_devices_and_pipes(self, tmp_path: Path, kind: str) -> None:
        data = archive([({"name": "x", "type": KINDS[kind], "linkname": "/etc/passwd"}, b"")])
        assert kind in refused(data, tmp_path)
        assert not os.path.lexists(tmp_path / "target" / "x")

    def test_g13_a_file_behind_a_link_is_never_reached(self, tmp_path: Path) -> None:
        link = {"name": "out", "type": tarfile.SYMTYPE, "linkname": str(tmp_path)}
        refused(archive([(link, b""), ({"name": "out/evil"}, b"evil")]), tmp_path)
        assert not (tmp_path / "evil").exists()

    @pytest.mark.parametrize(
        ("names", "why"),
        [
            (["a", "a"], "is there twice"),
            (["a", "./a"], "is there twice"),
            (["a", "a/b"], "a file and a folder"),
            (["a/b", "a"], "is there twice"),
            (["x" * 256], "too deep or too long"),
            (["/".join("abcdefghi")], "too deep or too long"),
            ([f"a{number}" for number in range(51)], "more than 50 files"),
            (["a\nb"], "not printable"),
            (["."], "no name"),
        ],
    )
    def test_names_that_clash_or_are_none(self, tmp_path: Path, names: list[str], why: str) -> None:
        assert why in refused(archive([({"name": name}, b"") for name in names]), tmp_path)

    def test_more_than_it_may_unpack_to(self, tmp_path: Path) -> None:
        big = archive([({"name": "a"}, bytes(SMALL.total_bytes + 1))])
        for compressed in (bytes, gzip.compress, bz2.compress, lzma.compress):
            assert "more than" in refused(compressed(big), tmp_path)

    def test_a_bomb_behind_the_last_member_or_in_an_extended_header(self, tmp_path: Path) -> None:
        comment = {"name": "a", "pax_headers": {"comment": "x" * (2 << 20)}}
        assert "too long" in refused(archive([(comment, b"")]), tmp_path)

    def test_numbers_that_lie(self, tmp_path: Path) -> None:
        plain = archive([({"name": "a"}, b"content")], tarfile.GNU_FORMAT)
        for size in (b"\x80" + b"\x7f" * 11, b"\xff" * 12, b"-0000000001\0", b"7" * 11 + b"\0"):
            refused(with_field(plain, 124, size), tmp_path)
        assert "damaged" in refused(plain[:148] + b"0000000\0" + plain[156:], tmp_path)

    def test_what_ends_in_the_middle(self, tmp_path: Path) -> None:
        data = archive([({"name": "a"}, b"x" * 2000)], tarfile.USTAR_FORMAT)
        for end in (100, 600, 2000):
            (tmp_path / str(end)).mkdir()
            assert "ends in the middle" in refused(data[:end], tmp_path / str(end))
        for compressed in (gzip.compress, bz2.compress, lzma.compress):
            whole = compressed(data)
            assert "ends in the middle" in refused(whole[: len(whole) // 2], tmp_path)

    @pytest.mark.parametrize("data", [b"", b"no tar at all", bytes(1024), b"\x1f\x8b garbage", b"BZh9 garbage"])
    def test_what_is_no_archive(self, tmp_path: Path, data: bytes) -> None:
        assert refused(data, tmp_path)


def with_field(data: bytes, at: int, field: bytes) -> bytes:
    """A first header with another field, and the checksum that fits."""
    header = bytearray(data[:512])
    header[at : at + len(field)] = field
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + data[512:]


@given(data=st.binary(max_size=4096))
def test_any_bytes_are_taken_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("any")
    with suppress(PackageError):
        unpack(io.BytesIO(data), folder, SMALL)


def malformed(chance: random.Random) -> bytes:
    """One of the archives that strangers send."""
    names = [
        "a.py",
        "verify_relu.py",
        "../evil",
        f"{OUTSIDE}/evil",
        "a/../../evil",
        "a/b",
        "a",
        "x" * 300,
        "d/" * 40 + "e",
        "",
    ]
    kinds: list[bytes] = [
        *KINDS.values(),
        tarfile.REGTYPE,
        tarfile.REGTYPE,
        tarfile.DIRTYPE,
        tarfile.GNUTYPE_SPARSE,
        b"?",
        b"\0",
    ]
    members = []
    for _ in range(chance.randrange(1, 6)):
        fields: dict[str, Any] = {
            "name": chance.choice(names),
            "type": chance.choice(kinds),
            "linkname": chance.choice(names),
        }
        fields["mode"] = chance.choice([0, 0o644, 0o7777])
        members.append((fields, bytes(chance.randrange(3000))))
    forms = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
    form = chance.choice(forms)
    try:
        data = bytearray(archive(members, form))
    except ValueError:  # a name that this form cannot hold
        data = bytearray(package({"a": "a"}))
    for _ in range(chance.choice([0, 0, 1, 3, 30])):
        data[chance.randrange(len(data))] = chance.randrange(256)
    if chance.random() < 0.3:
        del data[chance.randrange(len(data)) :]
    packs: list[Callable[[bytes], bytes]] = [bytes, bytes, gzip.compress, bz2.compress, lzma.compress]
    pack = chance.choice(packs)
    packed = bytearray(pack(bytes(data)))
    if pack is not bytes and chance.random() < 0.3 and packed:
        packed[chance.randrange(len(packed))] ^= 1 << chance.randrange(8)
    if chance.random() < 0.02:
        packed = bytearray(gzip.compress(bytes(8 << 20)))
    return bytes(packed)


def outside(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} | {path.name for path in OUTSIDE.glob("evil*")}


@pytest.mark.parametrize("number", [200, pytest.param(10_000, marks=pytest.mark.soak)])
def test_malformed_archives_write_nothing_elsewhere(tmp_path: Path, number: int) -> None:
    chance = random.Random(number)
    before = outside(tmp_path) | {"work"}
    taken = 0
    for _ in range(number):
        work = tmp_path / "work"
        work.mkdir()
        with suppress(PackageError):
            taken += bool(unpack(io.BytesIO(malformed(chance)), work, SMALL))
        for path in work.rglob("*"):
            assert stat.S_IFMT(path.lstat().st_mode) in {stat.S_IFREG, stat.S_IFDIR}
            assert path.lstat().st_nlink == 1 or path.is_dir()
        assert outside(tmp_path) <= before
        for path in sorted(work.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        work.rmdir()
    assert 0 < taken < number


class TestArtifacts:
    def test_only_texts_of_regular_files_within_bounds(self, tmp_path: Path) -> None:
        (tmp_path / "deep" / "er").mkdir(parents=True)
        for name, content in {"a.json": b"{", "deep/er/b.jsonl": b"1\n2", "c.txt": b"c", "bad.json": b"\xff"}.items():
            (tmp_path / name).write_bytes(content)
        (tmp_path / "link.json").symlink_to("/etc/passwd")
        (tmp_path / "deep" / "out").symlink_to("/etc")
        os.mkfifo(tmp_path / "pipe.json")
        (tmp_path / "big.json").write_bytes(bytes(101))
        found, left_out = artifacts(tmp_path, ArtifactBounds(file_bytes=100, total_bytes=1000))
        assert found == {"a.json": "{", "deep/er/b.jsonl": "1\n2"}
        assert left_out == ["big.json"]

    def test_many_and_large_ones_are_cut(self, tmp_path: Path) -> None:
        for number in range(20):
            (tmp_path / f"{number:02}.json").write_bytes(b"x" * 10)
        found, left_out = artifacts(tmp_path, ArtifactBounds(total_bytes=100, files=50))
        assert (len(found), len(left_out)) == (10, 10)
        found, left_out = artifacts(tmp_path, ArtifactBounds(files=5))
        assert (len(found), len(left_out)) == (5, 15)

    def test_a_named_file_is_read_without_following_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("/etc/passwd")
        (tmp_path / "file").write_bytes(b"12345")
        assert read_regular(tmp_path, "file", 5) == b"12345"
        assert [read_regular(tmp_path, name, 4) for name in ("file", "link", "missing", ".")] == [None] * 4
