"""Runs under the environment's own interpreter, inside the sandbox: Triton source to PTX for one exact target.

Of AKF it imports `triton_module` only. No device and no driver is asked for anything: the target is named. It writes
`out/kernel.ttir.mlir`, `out/kernel.ptx`, and what a launch needs to know as `out/kernel.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from akf.routes.triton_module import constants_of, signature_of, triton_kernel

OUT = Path("out")
STAGES = ("ttir", "ttgir", "llir", "ptx")
FACTS = (
    "name",
    "shared",
    "num_warps",
    "num_ctas",
    "global_scratch_size",
    "global_scratch_align",
    "profile_scratch_size",
)


def compile_source(request: dict[str, Any]) -> None:
    """Make the PTX of one kernel with one set of constexprs."""
    from triton._C.libtriton import ir  # noqa: PLC0415
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415
    from triton.compiler.compiler import ASTSource, make_backend  # noqa: PLC0415

    kernel = triton_kernel(request)
    constants = constants_of(kernel, request["constexprs"])
    types = signature_of(kernel, constants, request)
    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    target = GPUTarget("cuda", int(request["target"]), 32)
    backend = make_backend(target)
    source = ASTSource(kernel, signature, constants)
    options = backend.parse_options({"ptx_version": request["ptx_version"]})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    made = source.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    facts: dict[str, Any] = {"target": target, **options.__dict__}
    for name in STAGES:
        made = stages[name](made, facts)
        if name == "ttir":
            (OUT / "kernel.ttir.mlir").write_text(str(made), encoding="utf-8")
    if facts["shared"] > request["shared_bytes"]:
        needs, there = 8 * facts["shared"], 8 * request["shared_bytes"]
        sys.exit(f"error: shared memory overflow, requires {needs} bits while {there} bits available")
    (OUT / "kernel.ptx").write_text(made, encoding="utf-8")
    told = {name: facts.get(name) for name in FACTS}
    told |= {"target": request["target"], "constexprs": request["constexprs"]}
    (OUT / "kernel.json").write_text(json.dumps(told, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    compile_source(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
