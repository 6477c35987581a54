"""Runs under the environment's own interpreter, inside the sandbox: a TileLang program to source or to MLIR.

It imports nothing of AKF. `in/request.json` names the function that makes the program, its numbers, the target and the
platform, and the file to write. TileLang-Ascend 0.1.4 compiles an adapter when its JIT is imported; nothing of it is
needed to lower, so an empty module stands in its place.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
import types
from pathlib import Path
from typing import Any


def lower(request: dict[str, Any]) -> str:
    """The program as the back end takes it."""
    adapter = types.ModuleType("tilelang.jit.adapter.cython")
    adapter.CythonKernelAdapter = object  # type: ignore[attr-defined]
    sys.modules["tilelang.jit.adapter.cython"] = adapter
    from tilelang.engine import lower as lowered  # noqa: PLC0415

    spec = importlib.util.spec_from_file_location("akf_kernel", request["source"])
    if spec is None or spec.loader is None:
        sys.exit(f"error: {request['source']} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules["akf_kernel"] = module
    spec.loader.exec_module(module)
    maker = getattr(module, request["kernel"], None)
    if maker is None:
        sys.exit(f"error: {request['source']} holds no function {request['kernel']!r}")
    names = list(inspect.signature(maker).parameters)
    absent = [name for name in names if name not in request["symbols"]]
    if absent:
        sys.exit(f"error: parameter {absent[0]!r} has no value; give it with --option symbol.{absent[0]}=VALUE")
    program = maker(*(_value(request["symbols"][name]) for name in names))
    made = lowered(program, **request["lower"])
    return made if isinstance(made, str) else str(made.kernel_source)


def _value(text: str) -> object:
    try:
        return int(text)
    except ValueError:
        return float(text)


if __name__ == "__main__":
    asked = json.loads(Path("in/request.json").read_text(encoding="utf-8"))
    Path("out", asked["file"]).write_text(lower(asked), encoding="utf-8")
