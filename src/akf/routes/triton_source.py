"""What a Triton front end is asked: one kernel of one source, with the type or the value of every parameter."""

from __future__ import annotations

import re
from collections.abc import Sequence

from akf.routes.route import Job, SourceRefused, one_source
from akf.routes.specialised import kernel_name, values_named

TYPES = {
    "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64",
    "int8": "i8", "uint8": "u8", "int32": "i32", "int64": "i64",
}  # fmt: skip
CONSTEXPR = "constexpr."
_VALUE = re.compile(r"-?[0-9]{1,18}|true|false|fp16|bf16|fp32|i8|i32|i64")


def triton_request(job: Job, suffixes: Sequence[str]) -> dict[str, object]:
    """The request as JSON holds it.

    Raises:
        SourceRefused: there is no launch spec, no single source, or a constexpr that is none.
    """
    if job.launch is None:
        raise SourceRefused("a launch.json beside the source says what the kernel's arguments are")
    types = {
        arg.name: ("*" if arg.kind == "tensor" else "") + TYPES[arg.dtype]
        for arg in job.launch.args
        if arg.kind in {"tensor", "scalar"}
    }
    return {
        "source": one_source(job.sources, suffixes),
        "kernel": kernel_name(job, job.launch),
        "arguments": list(types),
        "types": types,
        "constexprs": constexprs(job),
        "target": job.target,
    }


def constexprs(job: Job) -> dict[str, str]:
    """The constexprs that the options name, as text.

    Raises:
        SourceRefused: a value is none.
    """
    return values_named(CONSTEXPR, job, _VALUE, "integer, true, false or dtype such as fp32")
