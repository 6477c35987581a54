"""The symbols of an image.

Invariants:
- Of an object that is loaded, the dynamic symbols are where the loader reads them, and so are their names; else one
  could show symbols here and load others.
- They are read one after another and never held all at once; there may be `MAX_SYMBOLS` of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from akf.build.inspect.elf import Image
from akf.build.inspect.loading import Loading

MAX_SYMBOLS = 1_000_000
STATIC, DYNAMIC = "SHT_SYMTAB", "SHT_DYNSYM"
LOCAL, GLOBAL = 0, 1
FUNCTION, SECTION, FILE = 2, 3, 4
_ROW = {64: "IBBHQQ", 32: "IIIBBH"}
_RESERVED = 0xFF00
_VISIBLE = frozenset({0, 3})
"""Default and protected."""


class Symbol(NamedTuple):
    """One symbol; `other` holds the visibility, and on CUDA whether it is a kernel.

    `section` is 0 for an undefined symbol, -1 for one that stands in no section.
    """

    name: str
    bind: int
    type: int
    other: int
    section: int
    value: int
    size: int

    @property
    def seen(self) -> bool:
        """Whether other objects see it."""
        visible = self.other & 3 in _VISIBLE
        return bool(self.name) and self.bind != LOCAL and self.type not in {SECTION, FILE} and visible


def symbols(image: Image, kind: str) -> Iterator[Symbol] | None:
    """The symbols of the first table of a kind, `STATIC` or `DYNAMIC`; None without such a table."""
    table = next((section for section in image.sections if section.type == kind and section.stored), None)
    if table is None:
        return None
    row = image.table(_ROW)
    what = f"the symbols of {table.name}" if table.name else "the symbols"
    if table.size % row.size:
        image.contradicts(f"{what} have {table.size} bytes, no multiple of {row.size}")
    if table.size // row.size > MAX_SYMBOLS:
        image.contradicts(f"{what} are {table.size // row.size}, more than {MAX_SYMBOLS}")
    names = image.strings(table.link, f"the names of {what}")
    if kind == DYNAMIC:
        loading = Loading(image)
        loading.agrees("DT_SYMTAB", table.offset, what)
        loading.agrees("DT_STRTAB", names[0], f"the names of {what}")
    return (_symbol(image, each, names) for each in row.iter_unpack(image.bytes_of(table)))


def _symbol(image: Image, row: tuple[int, ...], names: tuple[int, int]) -> Symbol:
    if image.bits == 64:  # noqa: PLR2004 - as the class says
        at, info, other, section, value, size = row
    else:
        at, value, size, info, other, section = row
    name = image.text(*names, at, "a symbol") if at else ""
    return Symbol(name, info >> 4, info & 15, other, section if section < _RESERVED else -1, value, size)
