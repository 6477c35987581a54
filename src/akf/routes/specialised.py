"""What a Python front end is asked for one specialisation: the kernel, its tensors, its sizes and attributes by name.

Invariants:
- Sizes come from options `symbol.NAME=VALUE`; shapes follow from the launch spec's expressions, never from the source.
- A kernel's parameters are the tensors of the launch spec in their order, then symbols and attributes by name.
- What is no number, no identifier or no contiguous tensor is refused before anything runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from akf.routes.expressions import ExpressionError
from akf.routes.launch_spec import LaunchSpec, resolve_shape
from akf.routes.route import Job, SourceRefused, one_source

SYMBOL = "symbol."
_VALUE = re.compile(r"[0-9]{1,18}|[0-9]{1,9}(?:\.[0-9]{1,18})?(?:e-?[0-9]{1,2})?")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def kernel_name(job: Job, launch: LaunchSpec) -> str:
    """The kernel's function: the option's, or the launch spec's symbol.

    Raises:
        SourceRefused: it cannot be the name of one.
    """
    kernel = job.options.get("kernel", launch.symbol)
    if not _IDENTIFIER.fullmatch(kernel):
        raise SourceRefused(f"kernel {kernel!r} is no Python identifier")
    return kernel


def values_named(prefix: str, job: Job, allowed: re.Pattern[str], what: str) -> dict[str, str]:
    """The options that begin with a prefix, by the rest of their names.

    Args:
        prefix: such as `symbol.`.
        job: what is built.
        allowed: what a value must look like.
        what: what a value that does not is not, in words.

    Raises:
        SourceRefused: one does not, or its name is no identifier.
    """
    values = {name.removeprefix(prefix): value for name, value in job.options.items() if name.startswith(prefix)}
    for name, value in values.items():
        if not _IDENTIFIER.fullmatch(name) or not allowed.fullmatch(value):
            raise SourceRefused(f"{prefix.removesuffix('.')} {name}={value!r} is no {what}")
    return values


def specialised(job: Job, suffixes: tuple[str, ...], types: Mapping[str, str]) -> dict[str, Any]:
    """The request.

    Args:
        job: what is built.
        suffixes: file names that the route takes.
        types: the front end's names of element types.

    Raises:
        SourceRefused: with what is missing, and the option that gives it.
    """
    if job.launch is None:
        raise SourceRefused("a launch.json beside the source says what the kernel's tensors are")
    values = values_named(SYMBOL, job, _VALUE, "size and no number")
    kernel = kernel_name(job, job.launch)
    sizes = {name: int(value) for name, value in values.items() if value.isdecimal()}
    tensors = []
    for arg in job.launch.args:
        if arg.kind != "tensor" or arg.strides is not None:
            raise SourceRefused(f"argument {arg.name!r} is no contiguous tensor; numbers are symbols of the kernel")
        if arg.dtype not in types:
            raise SourceRefused(f"tensor {arg.name!r}: this front end has no type {arg.dtype}")
        try:
            shape = resolve_shape(arg, sizes)
        except ExpressionError as error:
            raise SourceRefused(f"tensor {arg.name!r}: {error}; give it with --option symbol.NAME=VALUE") from error
        strides = [1]
        for size in reversed(shape[1:]):
            strides.insert(0, strides[0] * size)
        tensors.append({"dtype": types[arg.dtype], "shape": shape, "strides": strides})
    return {
        "source": one_source(job.sources, suffixes),
        "kernel": kernel,
        "target": job.target,
        "tensors": tensors,
        "symbols": values,
    }
