"""Runs under an interpreter of its own, inside the sandbox: one call of a simulated kernel, block after block.

It imports nothing of AKF. `in/call.json` says the object, the symbol, how many blocks, how many guard bytes stand
before and behind every tensor, and the arguments in order: `{"kind": "tensor", "name", "bytes"}` or
`{"kind": "scalar", "dtype", "value"}`. A tensor's bytes are read from `in/NAME`; without that file it is filled with
0xFF, which is NaN, as the guards are. Tensors with their guards lie in `out/NAME` afterwards.
"""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any

FILL = 0xFF
TYPES = {"int32": ctypes.c_int32, "int64": ctypes.c_int64, "float32": ctypes.c_float, "float64": ctypes.c_double}


def main() -> None:
    """Run the call."""
    call = json.loads(Path("in/call.json").read_text(encoding="utf-8"))
    library = ctypes.CDLL(str(Path(call["object"]).absolute()))
    kernel = getattr(library, call["symbol"])
    kernel.restype = None
    guard: int = call["guard"]
    buffers: dict[str, Any] = {}
    arguments: list[Any] = []
    for each in call["arguments"]:
        if each["kind"] == "scalar":
            arguments.append(TYPES[each["dtype"]](each["value"]))
            continue
        size = each["bytes"] + 2 * guard
        buffer = (ctypes.c_ubyte * size).from_buffer(bytearray([FILL]) * size)
        source = Path("in", each["name"])
        if source.is_file():
            ctypes.memmove(ctypes.addressof(buffer) + guard, source.read_bytes(), each["bytes"])
        buffers[each["name"]] = buffer
        arguments.append(ctypes.c_void_p(ctypes.addressof(buffer) + guard))
    library.akf_simulator_begin()
    for block in range(call["blocks"]):
        library.akf_simulator_block(block)
        kernel(*arguments)
    for name, buffer in buffers.items():
        Path("out", name).write_bytes(bytes(buffer))


if __name__ == "__main__":
    main()
