"""What a Build says of an object among its outputs: its kernels, and the symbols that it offers.

Invariants:
- Lists are bounded, and their whole length stands beside them; whether one symbol is offered is asked of all of them.
- A device object offers its kernels, a host object the symbols that its loader sees. Of anything else nothing is said.
"""

from __future__ import annotations

from typing import Any

from akf.build.inspect import elf, elf_facts
from akf.build.inspect.loading import Loading
from akf.build.inspect.symbols import DYNAMIC, STATIC, symbols
from akf.contracts.text import printable

LISTED = 64


def offered(image: elf.Image, symbol: str | None = None) -> tuple[dict[str, Any], bool]:
    """The facts of an output, and whether it offers a symbol under exactly this name (None: nothing was asked)."""
    kernels = elf_facts.kernels(image)
    if kernels is not None:
        rows = [_kernel(each.name, each.bytes, each.digest) for each in kernels]
        value: dict[str, Any] = {"format": elf_facts.what(image), "kernel_count": len(rows), "kernels": rows[:LISTED]}
        names = [each.name for each in kernels]
    else:
        table = symbols(image, DYNAMIC if Loading(image).loaded else STATIC) or ()
        names = sorted(each.name for each in table if each.seen and each.section)
        shown = [printable(name)[:256] for name in names[:LISTED]]
        value = {"format": elf_facts.what(image), "symbol_count": len(names), "symbols": shown}
    return value, symbol is None or symbol in names


def _kernel(name: str, size: int, code: str | None) -> dict[str, Any]:
    value: dict[str, Any] = {"name": printable(name)[:256], "bytes": size}
    return value if code is None else {**value, "digest": code}
