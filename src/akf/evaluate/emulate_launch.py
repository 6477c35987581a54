"""One launch of an emulated kernel, in a sandbox and a process of its own.

Invariants:
- The process gets the object, the call and the tensors' bytes; neither the Task nor the oracle nor a path of AKF.
- Every tensor stands between guards, and what is not an input is NaN before the launch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from akf import routes
from akf.evaluate.emulate_object import Object
from akf.routes.expressions import evaluate
from akf.routes.launch_spec import LaunchSpec, resolve_call
from akf.routes.sandbox import Ended, Limits, Sandbox, layout, outputs

if TYPE_CHECKING:
    from akf.harness.request import Operand

EMULATOR = Path(routes.__file__).with_name("emulator.py")
LIMITS = Limits(wall_s=120.0, memory_bytes=4 * 1024**3)
GUARD = 4096
OBJECT, PROGRAM = "object", "program.py"
DIMENSIONS = 3


class Kernel(NamedTuple):
    """What is executed, and how it is called."""

    object: Object
    convention: str
    spec: LaunchSpec


def launch(
    kernel: Kernel, case: dict[str, Any], operands: Sequence[Operand], inputs: dict[str, bytes], work: Path
) -> tuple[Ended, dict[str, bytes]]:
    """Run the object in the sandbox.

    Args:
        kernel: what is executed.
        case: the Task's row or case.
        operands: its tensors.
        inputs: bytes of those that are read.
        work: a new folder.

    Returns:
        How it ended, and the tensors that it left, with their guards.
    """
    layout(work)
    (work / "src" / OBJECT).write_bytes(kernel.object.data)
    (work / "in" / PROGRAM).write_bytes(EMULATOR.read_bytes())
    (work / "in" / "call.json").write_text(json.dumps(_call(kernel, case, operands)), encoding="utf-8")
    for name, data in inputs.items():
        (work / "in" / name).write_bytes(data)
    python = Path(sys.executable).resolve()
    command = [str(python), "-I", "-S", "-B", f"in/{PROGRAM}"]
    variables = {"HOME": "{work}/home", "TMPDIR": "{work}/tmp", "LANG": "C"}
    ended = Sandbox(work, {}, [python.parent.parent]).run(command, variables, LIMITS)
    return ended, outputs.collect(work / "out", [each.name for each in operands]).files


def _call(kernel: Kernel, case: dict[str, Any], operands: Sequence[Operand]) -> dict[str, Any]:
    """The call as the emulator takes it."""
    grid = [evaluate(each, case["symbols"]) for each in kernel.spec.grid]
    tensors = {each.name: each for each in operands}
    arguments = [
        {
            "kind": "tensor",
            "name": each["operand"],
            "bytes": tensors[each["operand"]].nbytes,
            "elements": tensors[each["operand"]].span,
        }
        if each["kind"] == "tensor"
        else each
        for each in resolve_call(kernel.spec, case["symbols"], case["attributes"])
    ]
    return {
        "object": f"src/{OBJECT}",
        "symbol": kernel.spec.symbol,
        "convention": kernel.convention,
        "grid": [*grid, *[1] * (DIMENSIONS - len(grid))],
        "guard": GUARD,
        "arguments": arguments,
    }
