"""What is said of an ELF image: what it is, who it says that it is, what it offers and what it needs.

Invariants:
- A fact that the image does not hold is null, never a guess; what cannot be known from it is a remark.
- Lists are sorted and bounded, and their whole length stands beside them.
- Every section has the digest of its bytes; the bytes of no section are shown, but for the compiler's banner.
"""

from __future__ import annotations

from typing import Any

from akf.build.inspect import aicore, carried, cubin
from akf.build.inspect.elf import AICORE, CUDA, DYNAMIC, RELOCATABLE, Image
from akf.build.inspect.kernels import Kernel
from akf.build.inspect.loading import Loading, build_id
from akf.build.inspect.names import Names, texts
from akf.build.inspect.symbols import DYNAMIC as LOADED
from akf.build.inspect.symbols import STATIC, symbols
from akf.contracts.digests import digest
from akf.contracts.text import printable

SECTIONS_LISTED = 512
_BANNERS = 16
_COMMENT_BYTES = 65_536
_EXECUTABLE = 2


def facts(image: Image) -> dict[str, Any]:
    """All that is said of an image."""
    remarks: list[str] = []
    document: dict[str, Any] = {
        "format": "elf",
        "what": what(image),
        "class": f"ELF{image.bits}",
        "endianness": "little" if image.little else "big",
        "machine": _machine(image),
        "machine_number": image.machine,
        "type": _word(image.header.e_type),
        "type_number": image.type,
        "flags": f"{image.header.e_flags:#x}",
        "abi": image.abi,
        "abi_version": image.abi_version,
        "identity": _identity(image),
    }
    listed = kernels(image)
    if listed is not None:
        reader = cubin if image.machine == CUDA else aicore
        document["device"] = reader.device(image, remarks)
        document["kernel_count"] = len(listed)
        document["kernels"] = [kernel.row for kernel in listed]
    else:
        document["carries"] = carried.images(image, remarks)
    document["section_count"] = len(image.sections)
    document["sections"] = _sections(image, remarks)
    document |= _symbols(image, remarks)
    document["remarks"] = remarks
    return document


def kernels(image: Image) -> list[Kernel] | None:
    """The kernels of an image for a device, by name; None for host code, which has no list of them."""
    if image.machine == CUDA:
        return cubin.kernels(image)
    return aicore.kernels(image) if image.machine == AICORE else None


def what(image: Image) -> str:
    """What it is, in words."""
    device = {CUDA: "CUDA cubin", AICORE: "Ascend AICore object"}.get(image.machine)
    if device is not None:
        return f"relocatable {device}" if image.type == RELOCATABLE else device
    if image.type == DYNAMIC:
        loading = Loading(image)
        program = loading.position_independent or loading.interpreter is not None
        return "position-independent executable" if program else "shared object"
    return {RELOCATABLE: "object file", _EXECUTABLE: "executable"}.get(image.type, "another ELF file")


def _machine(image: Image) -> str | None:
    return "ASCEND_AICORE" if image.machine == AICORE else _word(image.header.e_machine)


def _word(value: str | int) -> str | None:
    return value if isinstance(value, str) else None


def _identity(image: Image) -> dict[str, Any]:
    comment = image.section(".comment")
    loading = Loading(image)
    told = {tag: [printable(text) for text in loading.texts(tag)] for tag in _TOLD}
    return {
        "build_id": build_id(image),
        "interpreter": printable(loading.interpreter) if loading.interpreter is not None else None,
        "soname": next(iter(told["DT_SONAME"]), None),
        "needed": told["DT_NEEDED"],
        "rpath": next(iter(told["DT_RPATH"]), None),
        "runpath": next(iter(told["DT_RUNPATH"]), None),
        "compilers": texts(image.bytes_of(comment)[:_COMMENT_BYTES], _BANNERS) if comment is not None else [],
    }


_TOLD = ("DT_SONAME", "DT_NEEDED", "DT_RPATH", "DT_RUNPATH")


def _symbols(image: Image, remarks: list[str]) -> dict[str, Any]:
    """What it offers to others and takes from them; of a loaded object what the loader sees."""
    loaded = Loading(image).loaded
    found = symbols(image, LOADED if loaded else STATIC)
    exported, undefined = Names(), Names()
    for symbol in found or ():
        if symbol.seen:
            (exported if symbol.section else undefined).add(symbol.name)
    if found is None and (loaded or not image.sections):
        remarks.append("its symbols are not known: it has no section table that names them")
    return {
        "stripped": not any(section.type == STATIC and section.stored for section in image.sections),
        "exported_count": exported.count if found is not None else None,
        "exported": exported.listed,
        "undefined_count": undefined.count if found is not None else None,
        "undefined": undefined.listed,
    }


def _sections(image: Image, remarks: list[str]) -> list[dict[str, Any]]:
    if len(image.sections) > SECTIONS_LISTED:
        remarks.append(f"{SECTIONS_LISTED} of {len(image.sections)} sections are listed")
    return [
        {
            "name": printable(section.name),
            "type": section.type,
            "bytes": section.size,
            "digest": digest(image.bytes_of(section)) if section.stored else None,
        }
        for section in image.sections[1 : SECTIONS_LISTED + 1]
    ]
