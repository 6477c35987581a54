"""Runs under the environment's own interpreter, inside the sandbox: a TileLang program to source or to MLIR.

Of AKF it imports `source_module` only. `in/request.json` names the function that makes the program, its numbers, the
target and the platform, and the file to write. TileLang-Ascend 0.1.4 compiles an adapter when its JIT is imported;
nothing of it is needed to lower, so an empty module stands in its place.
"""

from __future__ import annotations

import inspect
import json
import sys
import types
from pathlib import Path
from typing import Any

from akf.routes.source_module import kernel_of, values_of


def lower(request: dict[str, Any]) -> str:
    """The program as the back end takes it."""
    adapter = types.ModuleType("tilelang.jit.adapter.cython")
    adapter.CythonKernelAdapter = object  # type: ignore[attr-defined]
    sys.modules["tilelang.jit.adapter.cython"] = adapter
    from tilelang.engine import lower as lowered  # noqa: PLC0415

    maker = kernel_of(request["source"], request["kernel"], "function")
    program = maker(*values_of(inspect.signature(maker).parameters, request["symbols"]))
    made = lowered(program, **request["lower"])
    return made if isinstance(made, str) else str(made.kernel_source)


if __name__ == "__main__":
    asked = json.loads(Path("in/request.json").read_text(encoding="utf-8"))
    Path("out", asked["file"]).write_text(lower(asked), encoding="utf-8")
