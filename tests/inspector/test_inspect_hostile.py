"""Objects that lie: each is refused with what is wrong, and costs no more than its size."""

from __future__ import annotations

import json
import resource
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.cli import inside
from tests.support.compiled import Objects
from tests.support.elf_objects import (
    AICORE,
    EXEC,
    NOTE,
    PROGBITS,
    STRTAB,
    SYMTAB,
    Part,
    Sym,
    aicore,
    cubin,
    elf,
    symbols,
)

from akf.build.inspect import describe_bytes
from akf.build.inspect.elf import MAX_NAME_BYTES, MAX_SECTIONS
from akf.contracts.problems import InvalidError

GIANT = 2**63 + 5
SHOFF, SHENTSIZE, SHNUM, SHSTRNDX, PHOFF, PHENTSIZE, PHNUM = 40, 58, 60, 62, 32, 54, 56
WIDTH = {SHOFF: "<Q", PHOFF: "<Q", SHENTSIZE: "<H", SHNUM: "<H", SHSTRNDX: "<H", PHENTSIZE: "<H", PHNUM: "<H"}


def header(data: bytes, **changes: int) -> bytes:
    """The image with other values in its header."""
    changed = bytearray(data)
    for name, value in changes.items():
        at = globals()[name]
        struct.pack_into(WIDTH[at], changed, at, value)
    return bytes(changed)


def row(data: bytes, number: int, field: int, value: int) -> bytes:
    """The image with another value in a section header; `field` counts name, type, flags, address, offset, size, …"""
    changed = bytearray(data)
    start = struct.unpack_from("<Q", data, SHOFF)[0] + 64 * number
    fields = list(struct.unpack_from("<IIQQQQIIQQ", data, start))
    fields[field] = value
    struct.pack_into("<IIQQQQIIQQ", changed, start, *fields)
    return bytes(changed)


PLAIN = elf([Part(".text", PROGBITS, b"code", 6), *symbols([Sym("one", 1, 0, 4)], 3)])
OFFSET, SIZE, LINK, NAME = 4, 5, 6, 0
LIES: dict[str, tuple[bytes, str, str]] = {
    "no class": (b"\x7fELF\7\1\1" + PLAIN[7:], "AKF-F482", "no class"),
    "no byte order": (b"\x7fELF\2\7\1" + PLAIN[7:], "AKF-F482", "no byte order"),
    "magic alone": (b"\x7fELF", "AKF-F482", "first 16 bytes"),
    "half a header": (PLAIN[:40], "AKF-F481", "the header lies outside"),
    "cut before the section table": (PLAIN[:-65], "AKF-F481", "the table of 5 sections"),
    "section table far away": (header(PLAIN, SHOFF=GIANT), "AKF-F481", "the table of sections"),
    "section rows of another size": (header(PLAIN, SHENTSIZE=40), "AKF-F482", "section headers of 40 bytes"),
    "section rows of no size": (header(PLAIN, SHENTSIZE=0), "AKF-F482", "section headers of 0 bytes"),
    "more sections than bytes": (header(PLAIN, SHNUM=60_000), "AKF-F481", "60000 sections"),
    "gigantic count in section 0": (
        row(header(PLAIN, SHNUM=0), 0, SIZE, GIANT), "AKF-F482", f"more than {MAX_SECTIONS}",
    ),
    "names in no section": (header(PLAIN, SHSTRNDX=77), "AKF-F482", "section 77, which is no table"),
    "names in code": (header(PLAIN, SHSTRNDX=1), "AKF-F482", "section 1, which is no table"),
    "section outside": (row(PLAIN, 1, OFFSET, GIANT), "AKF-F481", "section 1 of 5"),
    "section too long": (row(PLAIN, 1, SIZE, GIANT), "AKF-F481", "section 1 of 5"),
    "sections overlap": (row(PLAIN, 1, SIZE, 64), "AKF-F482", "sections 1 and 2 claim the same bytes"),
    "section name outside": (row(PLAIN, 1, NAME, 2**31), "AKF-F482", "a name of section 1 lies outside"),
    "symbols of no table of names": (row(PLAIN, 2, LINK, 1), "AKF-F482", "section 1, which is no table"),
    "symbols that name themselves": (row(PLAIN, 2, LINK, 2), "AKF-F482", "section 2, which is no table"),
    "symbols of a section that is not": (row(PLAIN, 2, LINK, 2**31), "AKF-F482", "which is no table"),
    "half a symbol": (row(PLAIN, 2, SIZE, 47), "AKF-F482", "no multiple of 24"),
    "segments far away": (header(PLAIN, PHOFF=GIANT, PHNUM=3, PHENTSIZE=56), "AKF-F481", "3 segments"),
    "segment rows of another size": (header(PLAIN, PHOFF=64, PHNUM=1, PHENTSIZE=1), "AKF-F482", "program headers"),
    "a name without an end": (
        elf([Part(".symtab", SYMTAB, bytes(24) + struct.pack("<IBBHQQ", 1, 18, 0, 1, 0, 0), link=2),
             Part(".strtab", STRTAB, b"\0" + b"x" * 90)]), "AKF-F482", "has no end",
    ),
    "a name without measure": (
        elf([*symbols([Sym("x" * (MAX_NAME_BYTES + 1), 1)], 2)]), "AKF-F482", f"more than {MAX_NAME_BYTES} bytes",
    ),
    "a kernel outside its section": (
        elf([Part(".text", PROGBITS, b"code", EXEC), *symbols([Sym("k", 1, 2, 4)], 3)], AICORE), "AKF-F481",
        "the kernel k lies outside",
    ),
    "kernels on top of each other": (
        elf([Part(".text", PROGBITS, b"c" * 999, EXEC), *symbols([Sym(n, 1, 0, 999) for n in "abcd"], 3)], AICORE),
        "AKF-F482", "more bytes of code than it has",
    ),
    "more kernels than anybody wrote": (
        elf([Part(".text", PROGBITS, b"c", EXEC), *symbols([Sym(f"k{n}", 1) for n in range(4097)], 3)], AICORE),
        "AKF-F482", "more than 4096 kernels",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_named(tmp_path: Path, name: str) -> None:
    data, code, words = LIES[name]
    (tmp_path / "lie.o").write_bytes(data)
    problem = inside("inspect", tmp_path / "lie.o").refused(1).problems[0]
    assert problem["code"] == code, problem
    assert words in problem["message"]
    assert problem["file"] == str(tmp_path / "lie.o")


def test_the_honest_control() -> None:
    assert describe_bytes(PLAIN, "plain.o")["exported"] == ["one"]
    assert describe_bytes(PLAIN, "plain.o")["remarks"] == []
    assert describe_bytes(row(PLAIN, 1, SIZE, 4), "plain.o") == describe_bytes(PLAIN, "plain.o")


@pytest.mark.parametrize("size", [1, 4, 5, 16, 63, 64, 65, 200])
def test_every_cut_of_an_object_is_refused_or_whole(objects: Objects, size: int) -> None:
    data = objects.shared().read_bytes()
    for cut in (data[:size], data[:-size]):
        with pytest.raises(InvalidError) as error:
            describe_bytes(cut, "cut.so")
        assert {problem.code for problem in error.value.problems} <= {"AKF-F480", "AKF-F481", "AKF-F482"}


def sections_of(data: bytes) -> dict[str, tuple[int, int, int]]:
    """Number, offset and size of each section, by name."""
    start, count, names = struct.unpack_from("<Q", data, SHOFF)[0], *struct.unpack_from("<HH", data, SHNUM)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, start + 64 * number) for number in range(count)]
    table = rows[names][4]
    found = {}
    for number, each in enumerate(rows):
        at = table + each[0]
        found[data[at : data.index(b"\0", at)].decode()] = (number, each[4], each[5])
    return found


def test_symbols_that_the_loader_does_not_read_are_not_shown(objects: Objects) -> None:
    data = objects.shared().read_bytes()
    number, offset, size = sections_of(data)[".dynsym"]
    honest = describe_bytes(data, "kernel.so")
    assert "rms_norm" in honest["exported"]
    elsewhere = data + b"\0" * (-len(data) % 8)
    moved = row(elsewhere + data[offset : offset + size].replace(b"\x12\0", b"\x12\2"), number, OFFSET, len(elsewhere))
    with pytest.raises(InvalidError, match="not what the loader reads"):
        describe_bytes(moved, "kernel.so")
    names = sections_of(data)[".dynstr"]
    copied = elsewhere + data[names[1] : names[1] + names[2]].replace(b"rms_norm", b"softmax_")
    with pytest.raises(InvalidError, match="not what the loader reads"):
        describe_bytes(row(copied, names[0], OFFSET, len(elsewhere)), "kernel.so")


def test_notes_that_are_none_end_where_they_do_not_fit() -> None:
    for content in (
        b"\xff" * 40,
        b"\4\0\0\0\xff\xff\xff\xff\3\0\0\0GNU\0",
        bytes(12),
        bytes(7),
        b"\xff" * 4 + bytes(8),
    ):
        image = elf([Part(".note.gnu.build-id", NOTE, content)])
        assert describe_bytes(image, "x.o")["identity"]["build_id"] is None


def many_symbols() -> bytes:
    """A million symbols, each with a name of 16 KiB: 16 GB of names in 24 MB."""
    names = b"\0" + b"x" * 16_000 + b"\0"
    rows = bytes(24) + b"".join(struct.pack("<IBBHQQ", 1 + n % 9, 18, 0, 1, 0, 0) for n in range(999_999))
    return elf([Part(".symtab", SYMTAB, rows, link=2), Part(".strtab", STRTAB, names)])


def many_sections() -> bytes:
    """65,000 sections, each with a name of 16 KiB: 1 GB of names in 4 MB."""
    data = bytearray(elf([Part("", PROGBITS)] * 65_000 + [Part("n" * 16_000, PROGBITS)]))
    start = struct.unpack_from("<Q", data, SHOFF)[0]
    for number in range(1, 65_001):
        struct.pack_into("<I", data, start + 64 * number, 65_001)
    return bytes(data)


def honest() -> bytes:
    """As many sections and symbols as the file has room for, with names of their own."""
    names = [Sym(f"symbol_{number}", 1, 0, 1) for number in range(200_000)]
    parts = [Part(".text", PROGBITS, b"c", 6), *symbols(names, 3)]
    return elf([*parts, *[Part(f".part.{number}", PROGBITS, b"x") for number in range(20_000)]])


def many_images() -> bytes:
    """A library that carries a thousand images, the later ones inside the earlier."""
    return elf([Part(".ascend.kernel.soc.lib", PROGBITS, PLAIN[:64] * 20_000)], kind=3)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("make", "status"),
    [(many_symbols, 1), (many_sections, 1), (many_images, 0), (honest, 0)],
    ids=["symbols", "sections", "images", "honest"],
)
def test_work_and_memory_are_bounded(tmp_path: Path, make: Callable[[], bytes], status: int) -> None:
    path = tmp_path / "large.o"
    path.write_bytes(make())
    limits = {resource.RLIMIT_AS: 1 << 30, resource.RLIMIT_CPU: 60}

    def limit() -> None:
        for which, most in limits.items():
            resource.setrlimit(which, (most, most))

    done = subprocess.run(
        [sys.executable, "-m", "akf", "inspect", str(path)], capture_output=True, check=False, preexec_fn=limit
    )
    answer = json.loads(done.stdout)
    assert done.returncode == status, answer
    assert len(done.stdout) < 64 * 1024**2


def test_device_objects_stay_honest_controls() -> None:
    assert describe_bytes(aicore({"k": b"1"}), "k.o")["kernel_count"] == 1
    assert describe_bytes(cubin({"k": b"1"}), "k.cubin")["kernel_count"] == 1
