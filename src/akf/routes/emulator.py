"""Runs under an interpreter of its own, inside the sandbox: one launch of an emulated kernel, program after program.

It imports nothing of AKF. `in/call.json` says the object, the symbol, the convention, the grid of three sizes, how many
guard bytes stand before and behind every tensor, and the arguments in order: `{"kind": "tensor", "name", "bytes",
"elements"}`, `{"kind": "scalar", "dtype", "value"}`, `{"kind": "workspace", "bytes"}` or `{"kind": "stream"}`. A
tensor's bytes are read from `in/NAME`; without that file it is filled with 0xFF, which is NaN, as the guards are.
Tensors with their guards lie in `out/NAME` afterwards.

Two conventions: `simulator`, a function of pointers, before which the object is told which block runs; `memref`, what
MLIR makes of a Triton-Ascend kernel: five words a tensor, tensors for lock and workspace first, grid and program last.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FILL = 0xFF
SPARE = 4096
TYPES = {"int32": ctypes.c_int32, "int64": ctypes.c_int64, "float32": ctypes.c_float, "float64": ctypes.c_double}


def main() -> None:
    """Run the launch."""
    call = json.loads(Path("in/call.json").read_text(encoding="utf-8"))
    library = ctypes.CDLL(str(Path(call["object"]).absolute()))
    kernel = getattr(library, call["symbol"])
    kernel.restype = None
    buffers = {each["name"]: _buffer(each, call["guard"]) for each in call["arguments"] if each["kind"] == "tensor"}
    addresses = {name: ctypes.addressof(buffer) + call["guard"] for name, buffer in buffers.items()}
    launch = {"simulator": _simulator, "memref": _memref}[call["convention"]]
    launch(library, kernel, call, addresses)
    for name, buffer in buffers.items():
        Path("out", name).write_bytes(bytes(buffer))


def _simulator(library: Any, kernel: Callable[..., None], call: dict[str, Any], addresses: dict[str, int]) -> None:
    spaces = [(ctypes.c_ubyte * each["bytes"])() for each in call["arguments"] if each["kind"] == "workspace"]
    left = iter(spaces)
    arguments: list[Any] = []
    for each in call["arguments"]:
        if each["kind"] == "scalar":
            arguments.append(TYPES[each["dtype"]](each["value"]))
        elif each["kind"] == "tensor":
            arguments.append(ctypes.c_void_p(addresses[each["name"]]))
        else:
            arguments.append(next(left) if each["kind"] == "workspace" else ctypes.c_void_p())
    library.akf_simulator_begin()
    for block in range(_count(call["grid"])):
        library.akf_simulator_block(block)
        kernel(*arguments)


def _memref(library: Any, kernel: Callable[..., None], call: dict[str, Any], addresses: dict[str, int]) -> None:
    spare = [(ctypes.c_ubyte * SPARE)(*[FILL] * SPARE) for _ in ("lock", "workspace")]
    arguments = [word for each in spare for word in _words(ctypes.addressof(each), SPARE)]
    for each in call["arguments"]:
        if each["kind"] == "tensor":
            arguments += _words(addresses[each["name"]], each["elements"])
        elif each["kind"] == "scalar":
            arguments.append(TYPES[each["dtype"]](each["value"]))
    grid = [ctypes.c_int32(size) for size in call["grid"]]
    for program in programs(call["grid"]):
        kernel(*arguments, *grid, *program)
        library.akf_program_ended()


def _words(address: int, elements: int) -> list[Any]:
    """Allocation, data, offset, size and stride of a memref of one dimension."""
    return [ctypes.c_void_p(address), ctypes.c_void_p(address), *map(ctypes.c_int64, (0, elements, 1))]


def programs(grid: list[int]) -> Iterator[list[ctypes.c_int32]]:
    """Every program's number in each dimension, the first one fastest."""
    x, y, _ = grid
    for program in range(_count(grid)):
        yield [ctypes.c_int32(each) for each in (program % x, program // x % y, program // x // y)]


def _count(grid: list[int]) -> int:
    x, y, z = grid
    return x * y * z


def _buffer(tensor: dict[str, Any], guard: int) -> Any:
    """A tensor between its guards."""
    size = tensor["bytes"] + 2 * guard
    buffer = (ctypes.c_ubyte * size).from_buffer(bytearray([FILL]) * size)
    source = Path("in", tensor["name"])
    if source.is_file():
        ctypes.memmove(ctypes.addressof(buffer) + guard, source.read_bytes(), tensor["bytes"])
    return buffer


if __name__ == "__main__":
    main()
