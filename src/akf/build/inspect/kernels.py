"""The kernels of an object for a device: name, code, and what the object says of each.

Invariants:
- A kernel's digest is over the bytes of its code as they are in the file, before anything is relocated.
- Kernels are listed by name. Together they claim no more bytes than the file has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from akf.build.inspect.elf import Image, Section
from akf.build.inspect.symbols import Symbol
from akf.contracts.digests import digest
from akf.contracts.problems import InvalidError
from akf.contracts.text import printable

MAX_KERNELS = 4_096


class Kernel(NamedTuple):
    """One kernel; `facts` are what its kind of object knows besides."""

    name: str
    bytes: int
    digest: str | None
    facts: dict[str, Any]

    @property
    def row(self) -> dict[str, Any]:
        """The kernel as a row of the answer."""
        return {"name": printable(self.name), **self.facts, "bytes": self.bytes, "digest": self.digest}


def code(image: Image, symbol: Symbol, section: Section) -> bytes | None:
    """The bytes of a kernel; None where the symbol does not say how many."""
    start = symbol.value - section.address
    if not symbol.size or not section.stored:
        return None
    if start < 0 or start + symbol.size > section.size:
        raise InvalidError.of(
            "AKF-F481", f"the kernel {printable(symbol.name)} lies outside its section", file=image.file
        )
    return image.bytes_of(section)[start : start + symbol.size]


def listed(image: Image, found: Iterable[tuple[Symbol, bytes | None, dict[str, Any]]]) -> list[Kernel]:
    """The kernels in order."""
    kernels: list[Kernel] = []
    claimed = 0
    for symbol, data, facts in found:
        claimed += len(data or b"")
        if len(kernels) == MAX_KERNELS or claimed > len(image.data):
            raise InvalidError.of(
                "AKF-F482",
                f"the ELF file contradicts itself: more than {MAX_KERNELS} kernels, or more bytes of code than it has",
                file=image.file,
            )
        kernels.append(Kernel(symbol.name, symbol.size, digest(data) if data is not None else None, facts))
    return sorted(kernels)
