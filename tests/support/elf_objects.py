"""ELF objects made by hand: what a compiler that is not here would write, and what no compiler would.

`aicore` and `cubin` follow the facts of real objects (vllm-ascend 0.23.0; ptxas 12.4 and 13.0) with names and code of
our own; the code is no program.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

AICORE, CUDA, X86_64 = 0x1029, 190, 62
PROGBITS, SYMTAB, STRTAB, NOTE, NOBITS, NV_INFO = 1, 2, 3, 7, 8, 0x70000000
EXEC, WRITE, ALLOC = 4, 1, 2
REL, EXECUTABLE, DYN = 1, 2, 3
BANNER = b"clang version 15.0.5 (clang-0123456789ab flang-0123456789ab)\0Linker: LLD 15.0.5\0"


class Part(NamedTuple):
    """One section."""

    name: str
    type: int
    data: bytes = b""
    flags: int = 0
    link: int = 0
    info: int = 0
    size: int | None = None
    """Size that its header claims, where it is not that of the data."""


class Sym(NamedTuple):
    """One symbol; `place` is the number of its section."""

    name: str
    place: int
    value: int = 0
    size: int = 0
    kind: int = 2
    bind: int = 1
    other: int = 0


def elf(
    parts: Sequence[Part],
    machine: int = X86_64,
    kind: int = REL,
    flags: int = 0,
    abi: tuple[int, int] = (0, 0),
    bits: int = 64,
    little: bool = True,
) -> bytes:
    """An image of these sections; the table of their names is added, the section table stands at the end."""
    order = "<" if little else ">"
    names = bytearray(1)
    starts = []
    for part in (*parts, Part(".shstrtab", STRTAB)):
        starts.append(len(names))
        names += part.name.encode() + b"\0"
    every = [*parts, Part(".shstrtab", STRTAB, bytes(names))]
    header_bytes, row = (64, "IIQQQQIIQQ") if bits == 64 else (52, "IIIIIIIIII")
    body, rows = bytearray(), [struct.pack(order + row, *[0] * 10)]
    for part, name in zip(every, starts, strict=True):
        body += b"\0" * (-(header_bytes + len(body)) % 8)
        size = len(part.data) if part.size is None else part.size
        rows.append(
            struct.pack(
                order + row, name, part.type, part.flags, 0, header_bytes + len(body), size, part.link, part.info, 1, 0
            )
        )
        body += part.data
    body += b"\0" * (-(header_bytes + len(body)) % 8)
    ident = b"\x7fELF" + bytes([1 if bits == 32 else 2, 1 if little else 2, 1, abi[0], abi[1]]) + bytes(7)
    word = "Q" if bits == 64 else "I"
    header = ident + struct.pack(
        f"{order}HHI{word}{word}{word}IHHHHHH",
        kind, machine, 1, 0, 0, header_bytes + len(body), flags, header_bytes, 0, 0, struct.calcsize(order + row),
        len(rows), len(rows) - 1,
    )  # fmt: skip
    return header + bytes(body) + b"".join(rows)


def symbols(found: Sequence[Sym], strings: int, bits: int = 64, little: bool = True) -> tuple[Part, Part]:
    """The symbol table and its names, which stand in section `strings`."""
    order = "<" if little else ">"
    names, rows = bytearray(1), [bytes(24 if bits == 64 else 16)]
    for each in found:
        at, info = len(names), each.bind << 4 | each.kind
        names += each.name.encode() + b"\0"
        rows.append(
            struct.pack(f"{order}IBBHQQ", at, info, each.other, each.place, each.value, each.size)
            if bits == 64
            else struct.pack(f"{order}IIIBBH", at, each.value, each.size, info, each.other, each.place)
        )
    return Part(".symtab", SYMTAB, b"".join(rows), link=strings, info=1), Part(".strtab", STRTAB, bytes(names))


def aicore(kernels: Mapping[str, bytes], relocatable: bool = False, flags: int = 0x930000, stack: int = 32768) -> bytes:
    """An AICore object of these kernels, with their code one after another in `.text`."""
    text = b"".join(kernels.values())
    found, at = [], 0
    for name, code in kernels.items():
        found += [Sym(name, 1, at, len(code)), Sym(f"{name}__", 3, 0, 0, kind=1, bind=2)]
        at += len(code)
    head = [
        Part(".text", PROGBITS, text, ALLOC | EXEC),
        Part(".ascend.stack.size.record", NOTE, struct.pack("<Q", stack) * len(kernels)),
        Part("__CCE_KernelArgSize", NOTE, struct.pack("<I", 48) * len(kernels)),
        *(Part(f".ascend.meta.{name}", NOTE, b"\1\0\4\0\4\0\0\0") for name in kernels),
        Part(".bl_uninit", NOBITS, size=16),
        Part(".comment", PROGBITS, BANNER),
    ]
    parts = [*head, *symbols(found, len(head) + 2)]
    return elf(parts, AICORE, REL if relocatable else EXECUTABLE, flags)


def described(data: bytes, name: str, entries: Sequence[str], **changes: Any) -> dict[str, Any]:
    """What CANN writes beside `name.o`."""
    return {
        "binFileName": name,
        "binFileSuffix": ".o",
        "blockDim": -1,
        "coreType": "VectorCore",
        "kernelList": [{"kernelName": entry} for entry in entries],
        "kernelName": name,
        "magic": "RT_DEV_BINARY_MAGIC_ELF_AIVEC",
        "sha256": hashlib.sha256(data).hexdigest(),
        **changes,
    }


def cubin(kernels: Mapping[str, bytes], sm: int = 90, version: int = 8, options: str | None = None) -> bytes:
    """A cubin with one section of code for each kernel; 10 registers, 12 bytes of parameters, 1 KiB shared."""
    count = len(kernels)
    first = 1 + count
    info = b"".join(struct.pack("<BBHII", 4, 0x2F, 8, 1 + number, 10) for number in range(count))
    own = struct.pack("<BBHI", 4, 0x37, 4, 130) + struct.pack("<BBH", 3, 0x19, 12)
    said = b"\0ptxas\0Cuda compilation tools, release 13.0, V13.0.88\0Build 1\0" + (options or "").encode() + b"\0"
    content = struct.pack("<6I", 2, 0, 1, 7, 54, 96) + said
    note = struct.pack("<3I", 12, len(content), 2000) + b"NVIDIA Corp\0" + content
    head = [
        Part(".nv.info", NV_INFO, info),
        *(Part(f".text.{name}", PROGBITS, code, ALLOC | EXEC) for name, code in kernels.items()),
        *(Part(f".nv.info.{name}", NV_INFO, own) for name in kernels),
        *(Part(f".nv.shared.{name}", NOBITS, size=1024, flags=ALLOC | WRITE) for name in kernels),
        *([Part(".note.nv.tkinfo", NOTE, note)] if options is not None else []),
    ]
    found = [Sym(name, 2 + number, 0, len(code), other=0x10) for number, (name, code) in enumerate(kernels.items())]
    found.append(Sym("helper", first, 0, 8))  # a function of the device that is no kernel
    flags = sm << 8 | 4 if version == 8 else sm << 16 | 0x500 | sm
    parts = [*head, *symbols(found, len(head) + 2)]
    return elf(parts, CUDA, EXECUTABLE, flags, (0x41 if version == 8 else 0x33, version))
