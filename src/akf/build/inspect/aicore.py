"""Ascend AICore objects, as CANN 9.1's compiler writes them (ELF machine 0x1029).

Nothing public documents the format. What is read here holds for all 175 objects of vllm-ascend 0.23.0: a kernel is a
global function of an executable section; the kernels of a mixed object end in `_mix_aic` (cube) or `_mix_aiv` (vector);
`.ascend.stack.size.record` holds eight bytes per kernel, `__CCE_KernelArgSize` four. The header's flags differ between
objects (0x930000, 0x940000) in a way that neither core type nor operator explains: they are shown and not read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from akf.build.inspect.elf import EXECUTABLE, RELOCATABLE, Image
from akf.build.inspect.kernels import Kernel, code, listed
from akf.build.inspect.symbols import FUNCTION, GLOBAL, STATIC, Symbol, symbols

CORES = {"_mix_aic": "cube", "_mix_aiv": "vector"}
_STACK, _ARGUMENTS = ".ascend.stack.size.record", "__CCE_KernelArgSize"


def kernels(image: Image) -> list[Kernel]:
    """The kernels of an object, one for each core that takes part."""
    return listed(image, _found(image))


def _found(image: Image) -> Iterator[tuple[Symbol, bytes | None, dict[str, Any]]]:
    for symbol in symbols(image, STATIC) or ():
        if symbol.bind != GLOBAL or symbol.type != FUNCTION or not 0 < symbol.section < len(image.sections):
            continue
        section = image.sections[symbol.section]
        if section.flags & EXECUTABLE:
            core = next((core for suffix, core in CORES.items() if symbol.name.endswith(suffix)), None)
            yield symbol, code(image, symbol, section), {"core": core}


def entry(name: str) -> str:
    """The name that a kernel is launched by: a mixed kernel is one for both cores."""
    return next((name.removesuffix(suffix) for suffix in CORES if name.endswith(suffix)), name)


def device(image: Image, remarks: list[str]) -> dict[str, Any]:
    """What the object says of the device's side."""
    remarks.append("the file does not name its SoC; its flags are not documented and are shown as they are")
    return {
        "relocatable": image.type == RELOCATABLE,
        "stack_bytes": _largest(image, _STACK, "Q"),
        "argument_bytes": _largest(image, _ARGUMENTS, "I"),
    }


def _largest(image: Image, name: str, form: str) -> int | None:
    """The largest number of a section that holds one for each kernel; None where it is another section."""
    section = image.section(name)
    unpack = struct.Struct(image.order + form)
    if section is None or not section.stored or section.size % unpack.size:
        return None
    numbers: list[int] = [value for (value,) in unpack.iter_unpack(image.bytes_of(section))]
    return max(numbers)
