"""Runs under the environment's own interpreter, inside the sandbox: Triton source to PTX for one exact target.

Of AKF it imports `source_module` only. No device and no driver is asked for anything: the target is named. It writes
`out/kernel.ttir.mlir`, `out/kernel.ptx`, and what a launch needs to know as `out/kernel.json`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from akf.routes.source_module import kernel_of

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

    kernel = kernel_of(request["source"], request["kernel"], "@triton.jit function")
    if not hasattr(kernel, "arg_names"):
        sys.exit(f"error: {request['kernel']} of {request['source']} is no @triton.jit function")
    constants = {name: _value(text) for name, text in request["constexprs"].items()}
    signature = _signature(kernel.arg_names, constants, request)
    target = GPUTarget("cuda", int(request["target"]), 32)
    backend = make_backend(target)
    source = ASTSource(kernel, signature, constants)
    options = backend.parse_options({})
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


def _signature(names: list[str], constants: dict[str, object], request: dict[str, Any]) -> dict[str, str]:
    """The type of every parameter; all of them are known, in the launch spec's order."""
    kernel = request["kernel"]
    unknown = sorted(set(constants) - set(names))
    if unknown:
        sys.exit(f"error: {kernel} has no parameter {unknown[0]!r}")
    told = [name for name in names if name not in constants]
    absent = [name for name in told if name not in request["types"]]
    if absent:
        message = f"parameter {absent[0]!r} of {kernel} is neither an argument of the launch spec nor a constexpr"
        sys.exit(f"error: {message}; give it with --option constexpr.{absent[0]}=VALUE")
    if told != request["arguments"]:
        message = f"the parameters of {kernel} are {', '.join(told)}, and the arguments of the launch spec"
        sys.exit(f"error: {message} {', '.join(request['arguments'])}: they must be the same in the same order")
    return {name: "constexpr" if name in constants else request["types"][name] for name in names}


def _value(text: str) -> object:
    """A constexpr from its text."""
    if text in {"true", "false"}:
        return text == "true"
    if re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    import triton.language as tl  # noqa: PLC0415

    names = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "i8": "int8", "i32": "int32", "i64": "int64"}
    return getattr(tl, names[text])


if __name__ == "__main__":
    compile_source(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
