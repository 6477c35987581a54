"""Runs under the environment's own interpreter, inside the sandbox: Triton source to Triton IR, and its facts.

Of AKF it imports `source_module` only. `compile REQUEST` runs the source and writes `out/kernel.ttir.mlir`; `prepare
REQUEST` takes the mix mode out of the Linalg IR, which the compiler does not want to see, and writes what it said to
`out/kernel.json`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from akf.routes.source_module import kernel_of

OUT = Path("out")


def compile_source(request: dict[str, Any]) -> None:
    """Make the Triton IR of one kernel with one set of constexprs."""
    from triton._C.libtriton import ir  # noqa: PLC0415
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415
    from triton.compiler.compiler import ASTSource, make_backend  # noqa: PLC0415

    kernel = kernel_of(request["source"], request["kernel"], "@triton.jit function")
    if not hasattr(kernel, "arg_names"):
        sys.exit(f"error: {request['kernel']} of {request['source']} is no @triton.jit function")
    constants = {name: _value(text) for name, text in request["constexprs"].items()}
    signature = {}
    for name in kernel.arg_names:
        if name in constants:
            continue
        if name not in request["types"]:
            message = (
                f"parameter {name!r} of {request['kernel']} is neither an argument of the launch spec nor a constexpr"
            )
            sys.exit(f"error: {message}; give it with --option constexpr.{name}=VALUE")
        signature[name] = request["types"][name]
    unknown = sorted(set(constants) - set(kernel.arg_names))
    if unknown:
        sys.exit(f"error: {request['kernel']} has no parameter {unknown[0]!r}")
    if list(signature) != request["arguments"]:
        message = (
            f"the parameters of {request['kernel']} are {', '.join(signature)}, and the arguments of the launch spec"
        )
        sys.exit(f"error: {message} {', '.join(request['arguments'])}: they must be the same in the same order")
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
    {"compile": compile_source, "prepare": prepare}[sys.argv[1]](json.loads(Path(sys.argv[2]).read_text()))
