"""Route `catlass_dsl`: a CATLASS DSL source to lowered MLIR and, with CANN, to a device object.

Invariants:
- A kernel is specialised (`akf.routes.specialised`): its sizes and attributes are values of options.
- The source's code runs in the lowering process only; the object is made of the MLIR in another one.
- The package lowers only where some `hivmc-a5` answers `--version`. One that answers this and does nothing else stands
  in for it while lowering, and the Build says so; the object is made by the real one or not at all.
- The MLIR's normal form has no locations: it is what a build elsewhere can be compared with.
"""

from __future__ import annotations

from pathlib import Path

from akf.routes.frontends import front_end, front_end_files
from akf.routes.route import Job, Plan, Route, StandIn, Step, error_lines
from akf.routes.sandbox import Limits
from akf.routes.specialised import specialised

NAME = "catlass_dsl"
FRONTEND = Path(__file__).with_name("frontend.py")
TYPES = {
    "float16": "Float16", "bfloat16": "BFloat16", "float32": "Float32", "int8": "Int8", "uint8": "UInt8",
    "int32": "Int32", "int64": "Int64",
}  # fmt: skip
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
_LIMITS = Limits(wall_s=300.0)


class CatlassDsl(Route):
    """CATLASS DSL for 950."""

    def plan(self, job: Job) -> Plan:
        """Lowering with the stand-in, the normal form, and the object with CANN's own tools."""
        finish = front_end(("finish",), (OBJECT,), _LIMITS)
        normal = (f"out/{LOWERED}", "--strip-debuginfo", "-o", f"out/{NORMAL}")
        steps = (
            front_end(("lower", "in/request.json"), (LOWERED,), _LIMITS),
            Step("bishengir-opt-a5", normal, (NORMAL,), (), _LIMITS, normalises=True),
            finish._replace(
                variables={**finish.variables, "ASCEND_HOME_PATH": "{toolkit}"}, needs=(COMPILER, "ccec", "llvm-link")
            ),
        )
        stand_ins = {COMPILER: StandIn(STAND_IN.encode(), SAYS)}
        return Plan(steps, front_end_files(FRONTEND, specialised(job, self.data.suffixes, TYPES)), stand_ins)

    def errors(self, text: str) -> list[str]:
        """Errors with the package's own reasons and places."""
        lines = [line.strip() for line in text.splitlines()]
        return error_lines(text) + [line for line in lines if line.startswith(("reason: ", "--> "))]


ROUTE = CatlassDsl(NAME)
