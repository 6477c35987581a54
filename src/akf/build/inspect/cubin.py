"""CUDA cubins: the architecture, the kernels, what the assembler says of each.

The layout is the one of `llvm/BinaryFormat/ELF.h` (SM in the flags: the low byte up to ABI version 7, the second byte
from version 8 on; a kernel is a symbol with 0x10 in `st_other`) and, for what only the assembler knows, what ptxas 12.4
and 13.0 write: `.nv.info` has the registers by symbol (attribute 0x2f), `.nv.info.KERNEL` the bytes of the parameters
(0x19), the note of type 2000 in `.note.nv.tkinfo` the tool and its options. The flags of version 8 do not tell `sm_90a`
from `sm_90`; the options do.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

from akf.build.inspect.elf import RELOCATABLE, Image
from akf.build.inspect.kernels import Kernel, code, listed
from akf.build.inspect.loading import notes
from akf.build.inspect.names import texts
from akf.build.inspect.symbols import FUNCTION, STATIC, Symbol, symbols

_ENTRY = 0x10
_REGISTERS, _PARAMETERS = 0x2F, 0x19
_SIZED = 4
_TOOL = 2000
_TOOL_HEADER = 24
_NOTE_BYTES = 65_536
_ACCELERATED = 0x800
_ARCH = re.compile(r"-arch[ =](sm_[0-9]{2,3}[a-z]?)(?![0-9a-z])")


def kernels(image: Image) -> list[Kernel]:
    """The entry points of a cubin."""
    return listed(image, _found(image))


def _found(image: Image) -> Iterator[tuple[Symbol, bytes | None, dict[str, Any]]]:
    section = image.section(".nv.info")
    registers = {
        struct.unpack_from("<I", value)[0]: struct.unpack_from("<I", value, 4)[0]
        for attribute, value in _attributes(image.bytes_of(section) if section is not None else b"")
        if attribute == _REGISTERS and len(value) >= 8  # noqa: PLR2004 - symbol and number
    }
    by_name = {each.name: each for each in image.sections}
    for number, symbol in enumerate(symbols(image, STATIC) or ()):
        if symbol.type != FUNCTION or not symbol.other & _ENTRY or not 0 < symbol.section < len(image.sections):
            continue
        shared = by_name.get(f".nv.shared.{symbol.name}")
        own = by_name.get(f".nv.info.{symbol.name}")
        facts = {
            "registers": registers.get(number),
            "parameter_bytes": _parameters(image.bytes_of(own)) if own is not None else None,
            "shared_bytes": shared.size if shared is not None else 0,
        }
        yield symbol, code(image, symbol, image.sections[symbol.section]), facts


def device(image: Image, remarks: list[str]) -> dict[str, Any]:
    """Architecture and assembler."""
    flags = image.header.e_flags
    old = image.abi_version <= 7  # noqa: PLR2004 - as the layout says
    sm = (flags if old else flags >> 8) & 0xFF
    note = image.section(".note.nv.tkinfo")
    said = _tool(image.bytes_of(note)) if note is not None else []
    arch = next((match[1] for text in said if (match := _ARCH.search(text))), None)
    if arch is None and old:
        arch = f"sm_{sm}a" if flags & _ACCELERATED else f"sm_{sm}"
    if arch is None:
        remarks.append(f"no tool says for which variant of sm_{sm} it is")
    elif int(re.sub(r"\D", "", arch)) != sm:
        remarks.append(f"its flags say sm_{sm}, its assembler says {arch}")
    return {"sm": sm, "arch": arch, "relocatable": image.type == RELOCATABLE, "assembler": said}


def _tool(data: bytes) -> list[str]:
    """The tool, its version, its build and its options, as ptxas wrote them."""
    for owner, kind, content in notes(data[:_NOTE_BYTES], "<"):
        if owner == b"NVIDIA Corp" and kind == _TOOL:
            return [text.strip() for text in texts(content[_TOOL_HEADER:], 8)]
    return []


def _parameters(data: bytes) -> int | None:
    for attribute, value in _attributes(data):
        if attribute == _PARAMETERS and len(value) == 2:  # noqa: PLR2004 - the number itself
            return int.from_bytes(value, "little")
    return None


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Attribute and value; ends at the first that does not fit."""
    at = 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form != _SIZED:
            yield attribute, data[at - 2 : at]
            continue
        if at + size > len(data):
            return
        yield attribute, data[at : at + size]
        at += size
