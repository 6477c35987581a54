"""Runs under the environment's own interpreter, inside the sandbox: Triton source to Triton IR, and its facts.

Of AKF it imports `triton_module` only. `compile REQUEST` runs the source and writes `out/kernel.ttir.mlir`; `prepare
REQUEST` takes the mix mode out of the Linalg IR, which the compiler does not want to see, and writes what it said to
`out/kernel.json`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from akf.routes.triton_module import constants_of, signature_of, triton_kernel

OUT = Path("out")


def compile_source(request: dict[str, Any]) -> None:
    """Make the Triton IR of one kernel with one set of constexprs."""
    from triton._C.libtriton import ir  # noqa: PLC0415
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415
    from triton.compiler.compiler import ASTSource, make_backend  # noqa: PLC0415

    kernel = triton_kernel(request)
    constants = constants_of(kernel, request["constexprs"])
    signature = signature_of(kernel, constants, request)
    target = GPUTarget("npu", request["target"], 0)
    backend = make_backend(target)
    options = backend.parse_options(request["options"])
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = ASTSource(kernel, signature, constants)
    made = source.make_ir(options, backend.get_codegen_implementation(), backend.get_module_map(), context)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options)
    made = stages["ttir"](made, {"target": target, **options.__dict__})
    (OUT / "kernel.ttir.mlir").write_text(str(made), encoding="utf-8")


def prepare(request: dict[str, Any]) -> None:
    """Split the Linalg IR into what the compiler takes and what the launch needs to know."""
    text = (OUT / "kernel.linalg.mlir").read_text(encoding="utf-8")
    facts = {"target": request["target"], "constexprs": request["constexprs"]}
    for name, pattern in (
        ("mix_mode", r'mix_mode\s*=\s*"([^"]+)"'),
        ("parallel_mode", r'parallel_mode\s*=\s*"([^"]+)"'),
        ("kernel_name", r"func\.func\s+@(\w+)"),
    ):
        found = re.search(pattern, text)
        facts[name] = found.group(1) if found else None
    (OUT / "kernel.nomix.mlir").write_text(re.sub(r', mix_mode\s*=\s*"[^"]*"', "", text), encoding="utf-8")
    (OUT / "kernel.json").write_text(json.dumps(facts, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    {"compile": compile_source, "prepare": prepare}[sys.argv[1]](json.loads(Path(sys.argv[2]).read_text()))
