"""Runs under an interpreter of its own, inside the sandbox: one call of a simulated kernel, block after block.

It imports nothing of AKF. `in/call.json` says the object, the symbol, how many blocks, and the arguments in order:
`{"kind": "tensor", "name", "bytes", "access"}` or `{"kind": "scalar", "dtype", "value"}`. A tensor's bytes are read from
`in/NAME`; what is written lies in `out/NAME` afterwards. Every tensor stands between guards; `out/done.json` names those
whose guards were written. What is not written is NaN.
"""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any

GUARD = 4096
POISON = 0xFF
TYPES = {"int32": ctypes.c_int32, "int64": ctypes.c_int64, "float32": ctypes.c_float, "float64": ctypes.c_double}


def main() -> None:
    """Run the call."""
    call = json.loads(Path("in/call.json").read_text(encoding="utf-8"))
    library = ctypes.CDLL(str(Path(call["object"]).absolute()))
    kernel = getattr(library, call["symbol"])
    kernel.restype = None
    buffers: dict[str, Any] = {}
    arguments: list[Any] = []
    for each in call["arguments"]:
        if each["kind"] == "scalar":
            arguments.append(TYPES[each["dtype"]](each["value"]))
            continue
        size = each["bytes"] + 2 * GUARD
        buffer = (ctypes.c_ubyte * size).from_buffer(bytearray([POISON]) * size)
        source = Path("in", each["name"])
        if source.is_file():
            ctypes.memmove(ctypes.addressof(buffer) + GUARD, source.read_bytes(), each["bytes"])
        buffers[each["name"]] = buffer
        arguments.append(ctypes.c_void_p(ctypes.addressof(buffer) + GUARD))
    library.akf_simulator_begin()
    for block in range(call["blocks"]):
        library.akf_simulator_block(block)
        kernel(*arguments)
    beyond = []
    for name, buffer in buffers.items():
        data = bytes(buffer)
        if set(data[:GUARD]) | set(data[-GUARD:]) != {POISON}:
            beyond.append(name)
        Path("out", name).write_bytes(data[GUARD:-GUARD])
    Path("out/done.json").write_text(json.dumps({"beyond": beyond}), encoding="utf-8")


if __name__ == "__main__":
    main()
