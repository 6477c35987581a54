"""An ELF image from its bytes: header, sections, segments, and the texts that they name.

Invariants:
- Nothing is read outside the image. What a header says is checked against the image's size before it is used.
- Work grows with the size of the image, whatever its headers say: there are limits to sections, segments and the length
  of a name, and no two sections may claim the same bytes.
- Names are bytes of a stranger: what is no UTF-8 is escaped.

pyelftools knows the header's layout and the names of types, tags and machines. Its readers of whole files are not used:
they trust the headers. Tables are unpacked here, in bulk: a hostile one has millions of rows.
"""

from __future__ import annotations

import struct
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

from elftools.elf.enums import ENUM_P_TYPE_BASE, ENUM_SH_TYPE_BASE
from elftools.elf.structs import ELFStructs

from akf.contracts.problems import InvalidError

MAGIC = b"\x7fELF"
CUDA = 190
AICORE = 0x1029
"""What CANN's compiler writes; it has no name among the registered machines."""
MAX_SECTIONS = 65_536
MAX_SEGMENTS = 65_535
MAX_NAME_BYTES = 16_384
NAMES_TO_BYTES = 16
"""All names that are read, to the size of the image: linkers let names share their ends, but not like this."""

RELOCATABLE, DYNAMIC = 1, 3
EXECUTABLE = 0x4
_ESCAPE = 0xFFFF
_BITS = {1: 32, 2: 64}
_SECTION = {64: "IIQQQQIIQQ", 32: "IIIIIIIIII"}
_SEGMENT = {64: "IIQQQQQQ", 32: "IIIIIIII"}
_NULL, _NOBITS, _STRTAB = 0, 8, 3
_CUDA_SHARED = 0x7000000A
"""Shared memory that a relocatable cubin reserves; it has no bytes in the file."""
_SECTION_TYPES = {number: name for name, number in ENUM_SH_TYPE_BASE.items() if isinstance(number, int)}
_SEGMENT_TYPES = {number: name for name, number in ENUM_P_TYPE_BASE.items() if isinstance(number, int)}


class _Row(NamedTuple):
    """A section header as it is in the file."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class Section(NamedTuple):
    """One section; it has no bytes in the file where `stored` is false."""

    number: int
    name: str
    type: str
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    stored: bool


class Segment(NamedTuple):
    """One segment, as the loader sees it."""

    type: str
    address: int
    offset: int
    size: int


class Image:
    """An ELF image.

    Args:
        data: all its bytes.
        file: name of the file that holds it, for problems.
    """

    def __init__(self, data: bytes, file: str) -> None:
        self.data = data
        self.file = file
        self._named = 0
        if len(data) < 16 or data[4] not in _BITS or data[5] not in {1, 2}:  # noqa: PLR2004 - e_ident
            self.contradicts("its first 16 bytes name no class or no byte order of ELF")
        self.bits = _BITS[data[4]]
        self.little = data[5] == 1
        self.order = "<" if self.little else ">"
        structs = ELFStructs(little_endian=self.little, elfclass=self.bits)
        structs.create_basic_structs()
        self._header_bytes = structs.Elf_Ehdr.sizeof()
        self.inside("the header", 0, self._header_bytes)
        self.header: Any = structs.Elf_Ehdr.parse(data[: self._header_bytes])
        self.type, self.machine = struct.unpack_from(f"{self.order}HH", data, 16)
        self.abi, self.abi_version = data[7], data[8]
        self._rows = self._section_rows()
        self.sections = self._sections()
        self.segments = self._segments()
        self._disjoint()

    def bytes_of(self, section: Section) -> bytes:
        """What a section holds in the file."""
        return self.data[section.offset : section.offset + section.size] if section.stored else b""

    def section(self, name: str) -> Section | None:
        """The first section of this name."""
        return next((section for section in self.sections if section.name == name), None)

    @cached_property
    def extent(self) -> int:
        """Where the image ends, by its own headers."""
        tables = (
            (self.header.e_shoff, len(self.sections), _SECTION),
            (self.header.e_phoff, len(self.segments), _SEGMENT),
        )
        ends: list[int] = [
            self._header_bytes,
            *(at + count * self.table(form).size for at, count, form in tables if count),
            *(section.offset + section.size for section in self.sections if section.stored),
            *(segment.offset + segment.size for segment in self.segments),
        ]
        return max(ends)

    def _section_rows(self) -> list[_Row]:
        start, unpack = self.header.e_shoff, self.table(_SECTION)
        if not start:
            return []
        if self.header.e_shentsize != unpack.size:
            self.contradicts(f"section headers of {self.header.e_shentsize} bytes, not {unpack.size}")
        self.inside("the table of sections", start, unpack.size)
        count = self.header.e_shnum or _Row(*unpack.unpack_from(self.data, start)).size
        if count > MAX_SECTIONS:
            self.contradicts(f"it names {count} sections, more than {MAX_SECTIONS}")
        size = count * unpack.size
        self.inside(f"the table of {count} sections", start, size)
        return [_Row(*row) for row in unpack.iter_unpack(self.data[start : start + size])]

    def _sections(self) -> tuple[Section, ...]:
        rows = self._rows
        index = self.header.e_shstrndx
        if index == _ESCAPE and rows:
            index = rows[0].link
        for number, row in enumerate(rows):
            if self._stored(row):
                self.inside(f"section {number} of {len(rows)}", row.offset, row.size)
        names = self.strings(index, "the names of the sections") if rows and index else None
        return tuple(self._section(number, row, names) for number, row in enumerate(rows))

    def _section(self, number: int, row: _Row, names: tuple[int, int] | None) -> Section:
        name = self.text(*names, row.name, f"section {number}") if names is not None else ""
        kind = _SECTION_TYPES.get(row.type, f"{row.type:#x}")
        return Section(
            number, name, kind, row.flags, row.address, row.offset, row.size, row.link, row.info, self._stored(row)
        )

    def _stored(self, row: _Row) -> bool:
        reserved = self.machine == CUDA and row.type == _CUDA_SHARED
        return bool(row.size) and row.type not in {_NULL, _NOBITS} and not reserved

    def _segments(self) -> tuple[Segment, ...]:
        start, unpack = self.header.e_phoff, self.table(_SEGMENT)
        count = self._rows[0].info if self.header.e_phnum == _ESCAPE and self._rows else self.header.e_phnum
        if not count or not start:
            return ()
        if self.header.e_phentsize != unpack.size:
            self.contradicts(f"program headers of {self.header.e_phentsize} bytes, not {unpack.size}")
        if count > MAX_SEGMENTS:
            self.contradicts(f"it names {count} segments, more than {MAX_SEGMENTS}")
        self.inside(f"the table of {count} segments", start, count * unpack.size)
        found = []
        for number, row in enumerate(unpack.iter_unpack(self.data[start : start + count * unpack.size])):
            if self.bits == 64:  # noqa: PLR2004 - as the class says
                kind, _, offset, address, _, size, _, _ = row
            else:
                kind, offset, address, _, size, _, _, _ = row
            self.inside(f"segment {number} of {count}", offset, size)
            found.append(Segment(_SEGMENT_TYPES.get(kind, f"{kind:#x}"), address, offset, size))
        return tuple(found)

    def _disjoint(self) -> None:
        """No two sections claim the same bytes."""
        stored = sorted((s.offset, s.offset + s.size, s.number) for s in self.sections if s.stored)
        for (_, end, one), (start, _, other) in pairwise(stored):
            if start < end:
                self.contradicts(f"sections {one} and {other} claim the same bytes")

    def strings(self, index: int, what: str) -> tuple[int, int]:
        """Place and size of a table of texts."""
        row = self._rows[index] if index < len(self._rows) else None
        if row is None or row.type != _STRTAB:
            self.contradicts(f"{what} should be in section {index}, which is no table of texts")
        return row.offset, row.size

    def text(self, start: int, size: int, at: int, what: str) -> str:
        """One text of a table of texts."""
        if at >= size:
            self.contradicts(f"a name of {what} lies outside its table")
        begin = start + at
        end = self.data.find(b"\0", begin, min(start + size, begin + MAX_NAME_BYTES + 1))
        if end < 0:
            self.contradicts(f"a name of {what} has no end, or more than {MAX_NAME_BYTES} bytes")
        self._named += end - begin
        if self._named > NAMES_TO_BYTES * len(self.data):
            self.contradicts(f"its names together are more than {NAMES_TO_BYTES} times as long as itself")
        return self.data[begin:end].decode("utf-8", "backslashreplace")

    def table(self, form: dict[int, str]) -> struct.Struct:
        """The rows of a table, by this image's class and byte order."""
        return struct.Struct(self.order + form[self.bits])

    def inside(self, what: str, offset: int, size: int) -> None:
        """See that some bytes are inside the image."""
        if offset + size > len(self.data):
            raise InvalidError.of(
                "AKF-F481",
                f"{what} lies outside the file: bytes {offset} to {offset + size} of {len(self.data)}",
                file=self.file,
                hint="it was cut short, or its headers lie",
            )

    def contradicts(self, message: str) -> NoReturn:
        """Refuse what cannot be true of an ELF file."""
        raise InvalidError.of("AKF-F482", f"the ELF file contradicts itself: {message}", file=self.file)
