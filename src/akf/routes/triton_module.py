"""Inside the sandbox: what the front ends of Triton share. It lies beside `source_module`, see `akf.routes.frontends`.

A source, a parameter or a value that cannot be used ends the process with a line that says why.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

from akf.routes.source_module import kernel_of

DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "i8": "int8", "i32": "int32", "i64": "int64"}


def triton_kernel(request: Mapping[str, Any]) -> Any:
    """The `@triton.jit` function that a request names."""
    kernel = kernel_of(request["source"], request["kernel"], "@triton.jit function")
    if not hasattr(kernel, "arg_names"):
        sys.exit(f"error: {request['kernel']} of {request['source']} is no @triton.jit function")
    return kernel


def constants_of(kernel: Any, texts: Mapping[str, str]) -> dict[str, object]:
    """The constexprs by name; each is a parameter of the kernel."""
    unknown = sorted(set(texts) - set(kernel.arg_names))
    if unknown:
        sys.exit(f"error: {kernel.__name__} has no parameter {unknown[0]!r}")
    return {name: _value(text) for name, text in texts.items()}


def signature_of(kernel: Any, constants: Mapping[str, object], request: Mapping[str, Any]) -> dict[str, str]:
    """The type of every parameter that is no constexpr: the launch spec's arguments, in its order."""
    told = [name for name in kernel.arg_names if name not in constants]
    absent = [name for name in told if name not in request["types"]]
    if absent:
        message = f"parameter {absent[0]!r} of {request['kernel']} is neither an argument of the launch spec nor a"
        sys.exit(f"error: {message} constexpr; give it with --option constexpr.{absent[0]}=VALUE")
    if told != request["arguments"]:
        message = f"the parameters of {request['kernel']} are {', '.join(told)}, and the arguments of the launch spec"
        sys.exit(f"error: {message} {', '.join(request['arguments'])}: they must be the same in the same order")
    return {name: request["types"][name] for name in told}


def _value(text: str) -> object:
    if text in {"true", "false"}:
        return text == "true"
    if re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    import triton.language as tl  # noqa: PLC0415

    return getattr(tl, DTYPES[text])
