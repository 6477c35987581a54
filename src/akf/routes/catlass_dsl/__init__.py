"""Route `catlass_dsl`: a CATLASS DSL source to lowered MLIR and, with CANN, to a device object.

Invariants:
- A kernel is specialised: its parameters are the tensors of the launch spec, then symbols and attributes by name, each
  with the value of an option.
- The source's code runs in the lowering process only; the object is made of the MLIR in another one.
- The package lowers only where some `hivmc-a5` answers `--version`. One that answers this and does nothing else stands
  in for it while lowering, and the Build says so; the object is made by the real one or not at all.
- The MLIR's normal form has no locations: it is what a build elsewhere can be compared with.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from akf.routes.expressions import ExpressionError
from akf.routes.launch_spec import resolve_shape
from akf.routes.route import Job, Plan, Route, SourceRefused, StandIn, Step, error_lines, one_source
from akf.routes.sandbox import Limits

NAME = "catlass_dsl"
FRONTEND = Path(__file__).with_name("frontend.py")
TYPES = {
    "float16": "Float16", "bfloat16": "BFloat16", "float32": "Float32", "int8": "Int8", "uint8": "UInt8",
    "int32": "Int32", "int64": "Int64",
}  # fmt: skip
SYMBOL = "symbol."
LOWERED, NORMAL, OBJECT = "lowered.mlir", "lowered.normal.mlir", "kernel.o"
COMPILER = "hivmc-a5"
SAYS = "hivmc-a5: a stand-in of AKF, which answers for its version and compiles nothing"
STAND_IN = f"""#!/bin/sh
if [ "$1" = --version ]; then
    echo '{SAYS}'
    exit 0
fi
echo 'error: this is a stand-in of AKF and compiles nothing' >&2
exit 3
"""
_VALUE = re.compile(r"[0-9]{1,18}|[0-9]{1,9}(?:\.[0-9]{1,18})?(?:e-?[0-9]{1,2})?")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_PYTHON = ("-s", "-P", "-B", "-X", "pycache_prefix={work}/tmp", "in/frontend.py")
_LIMITS = Limits(wall_s=300.0)


class CatlassDsl(Route):
    """CATLASS DSL for 950."""

    def plan(self, job: Job) -> Plan:
        """Lowering with the stand-in, the normal form, and the object with CANN's own tools."""
        request = json.dumps(self._request(job)).encode()
        seed = {"PYTHONHASHSEED": "0"}
        normal = (f"out/{LOWERED}", "--strip-debuginfo", "-o", f"out/{NORMAL}")
        steps = (
            Step("python", (*_PYTHON, "lower", "in/request.json"), (LOWERED,), (), _LIMITS, seed),
            Step("bishengir-opt-a5", normal, (NORMAL,), (), _LIMITS, normalises=True),
            Step(
                "python",
                (*_PYTHON, "finish"),
                (OBJECT,),
                (),
                _LIMITS,
                seed | {"ASCEND_HOME_PATH": "{toolkit}"},
                needs=(COMPILER, "ccec", "llvm-link"),
            ),
        )
        stand_ins = {COMPILER: StandIn(STAND_IN.encode(), SAYS)}
        return Plan(steps, {"frontend.py": FRONTEND.read_bytes(), "request.json": request}, stand_ins)

    def errors(self, text: str) -> list[str]:
        """Errors with the package's own reasons and places."""
        lines = [line.strip() for line in text.splitlines()]
        return error_lines(text) + [line for line in lines if line.startswith(("reason: ", "--> "))]

    def _request(self, job: Job) -> dict[str, object]:
        if job.launch is None:
            raise SourceRefused("a launch.json beside the source says what the kernel's tensors are")
        values = {name.removeprefix(SYMBOL): value for name, value in job.options.items() if name.startswith(SYMBOL)}
        for name, value in values.items():
            if not _IDENTIFIER.fullmatch(name) or not _VALUE.fullmatch(value):
                raise SourceRefused(f"symbol {name}={value!r} is no size and no number")
        kernel = job.options.get("kernel", job.launch.symbol)
        if not _IDENTIFIER.fullmatch(kernel):
            raise SourceRefused(f"kernel {kernel!r} is no Python identifier")
        sizes = {name: int(value) for name, value in values.items() if value.isdecimal()}
        tensors = []
        for arg in job.launch.args:
            if arg.kind != "tensor" or arg.strides is not None:
                raise SourceRefused(f"argument {arg.name!r} is no contiguous tensor; numbers are symbols of the kernel")
            try:
                shape = resolve_shape(arg, sizes)
            except ExpressionError as error:
                raise SourceRefused(f"tensor {arg.name!r}: {error}; give it with --option symbol.NAME=VALUE") from error
            strides = [1]
            for size in reversed(shape[1:]):
                strides.insert(0, strides[0] * size)
            tensors.append({"dtype": TYPES[arg.dtype], "shape": shape, "strides": strides})
        return {
            "source": one_source(job.sources, self.data.suffixes),
            "kernel": kernel,
            "target": job.target,
            "tensors": tensors,
            "symbols": values,
        }


ROUTE = CatlassDsl(NAME)
