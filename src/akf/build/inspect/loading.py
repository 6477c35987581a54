"""What the loader of a system reads of an image: not its sections, but its segments and the dynamic table.

Invariants:
- Names that count when an object is loaded (SONAME, NEEDED, RPATH) are taken from where the loader takes them.
- An address that no segment loads from the file, or a table that does not fit, is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from elftools.elf.enums import ENUM_D_TAG

from akf.build.inspect.elf import Image, Segment

MAX_ENTRIES = 65_536
LISTED = 256
"""Texts of one tag."""
_WORDS = {64: "QQ", 32: "II"}
_PIE = 0x08000000
_BUILD_ID_SECTION = ".note.gnu.build-id"
_BUILD_ID = 3
_NOTE_PLACES = 64
_NOTE_BYTES = 65_536


class Loading:
    """The loader's view of an image; `loaded` says whether there is one."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._tags = _entries(image, _segment(image, "PT_DYNAMIC"))

    @property
    def loaded(self) -> bool:
        """Whether it has a dynamic table."""
        return bool(self._tags)

    @property
    def position_independent(self) -> bool:
        """Whether it is an executable that is linked like a shared object."""
        return bool((self._first("DT_FLAGS_1") or 0) & _PIE)

    @property
    def interpreter(self) -> str | None:
        """The loader that an executable asks for."""
        segment = _segment(self._image, "PT_INTERP")
        return self._image.text(segment.offset, segment.size, 0, "the interpreter") if segment is not None else None

    def texts(self, tag: str) -> list[str]:
        """The texts of a tag, the first `LISTED` of them."""
        values = self._tags.get(ENUM_D_TAG[tag], [])
        if not values:
            return []
        start, size = self._first("DT_STRTAB"), self._first("DT_STRSZ") or 0
        if start is None:
            self._image.contradicts(f"{tag} names a text, and there is no DT_STRTAB")
        offset = self._offset(start, "DT_STRTAB")
        self._image.inside("the loader's table of names", offset, size)
        return [self._image.text(offset, size, value, tag) for value in values[:LISTED]]

    def agrees(self, tag: str, offset: int, what: str) -> None:
        """See that the section table and the loader mean the same bytes."""
        if self.loaded:
            address = self._first(tag)
            if address is None or self._offset(address, tag) != offset:
                self._image.contradicts(f"{what} of the section table are not what the loader reads")

    def _first(self, tag: str) -> int | None:
        values = self._tags.get(ENUM_D_TAG[tag])
        return values[0] if values else None

    def _offset(self, address: int, tag: str) -> int:
        """Where an address of the loader is in the file."""
        for segment in self._image.segments:
            if segment.type == "PT_LOAD" and segment.address <= address < segment.address + segment.size:
                return segment.offset + address - segment.address
        return self._image.contradicts(f"{tag} is address {address:#x}, which no segment loads from the file")


def build_id(image: Image) -> str | None:
    """What the linker names these bytes by."""
    places = [(each.offset, each.size) for each in image.segments if each.type == "PT_NOTE"]
    places += [(each.offset, each.size) for each in image.sections if each.name == _BUILD_ID_SECTION and each.stored]
    for offset, size in places[:_NOTE_PLACES]:
        for owner, kind, content in notes(image.data[offset : offset + min(size, _NOTE_BYTES)], image.order):
            if owner == b"GNU" and kind == _BUILD_ID and content:
                return content[:64].hex()
    return None


def notes(data: bytes, order: str) -> Iterator[tuple[bytes, int, bytes]]:
    """Owner, type and content of each note; ends at the first that does not fit."""
    at = 0
    while at + 12 <= len(data):
        owner_size, size, kind = struct.unpack_from(f"{order}III", data, at)
        start = at + 12 + (owner_size + 3 & ~3)
        if start + size > len(data):
            return
        yield data[at + 12 : at + 12 + owner_size].rstrip(b"\0"), kind, data[start : start + size]
        at = start + (size + 3 & ~3)


def _segment(image: Image, kind: str) -> Segment | None:
    return next((segment for segment in image.segments if segment.type == kind), None)


def _entries(image: Image, segment: Segment | None) -> dict[int, list[int]]:
    """Values by tag, up to the entry that ends the table."""
    found: dict[int, list[int]] = {}
    if segment is None:
        return found
    entry = image.table(_WORDS)
    count = segment.size // entry.size
    if count > MAX_ENTRIES:
        image.contradicts(f"the loader's table has {count} entries, more than {MAX_ENTRIES}")
    for tag, value in entry.iter_unpack(image.data[segment.offset : segment.offset + count * entry.size]):
        if tag == 0:
            break
        found.setdefault(tag, []).append(value)
    return found
