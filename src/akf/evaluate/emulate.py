"""What a Build without a device computes, compared with the Task's oracle. For ranking; no gate takes it.

Invariants:
- Every answer says `diagnostic: true`; nothing of it is signed or lies in a run.
- What the Build carries is executed, found by its digest: its object, or its IR after the route's tools for this
  machine.
- Each case runs in the sandbox, in a process of its own, which an illegal tile may end.
- Inputs come from a fixed seed, so that candidates are ranked by the same ones. They are not hidden, which alone keeps
  every gate from standing on this.
- NaN never passes; a write beyond a tensor and a changed input are found.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from akf.contracts.canonical import digest
from akf.contracts.documents import load
from akf.contracts.files import read_input
from akf.contracts.problems import IntegrityError, InvalidError, PreconditionError
from akf.contracts.text import printable
from akf.evaluate.emulate_launch import GUARD, Kernel, launch
from akf.evaluate.emulate_object import executable
from akf.evaluate.program import require_numpy
from akf.evaluate.request import distribution
from akf.routes.declaration import Emulation
from akf.routes.launch_check import abi_of
from akf.routes.launch_spec import LaunchSpecError, check_against, parse_spec
from akf.routes.route import Route, route, routes
from akf.routes.sandbox.limits import SIGNALLED

if TYPE_CHECKING:
    from akf.harness.request import Case

SEED = b"akf-emulation-1"
_STOPPED = {"time": "CHILD_TIMEOUT", "memory": "CHILD_OOM", "disk": "CHILD_KILLED", "processes": "CHILD_KILLED"}


def emulate(build: Path, task: Path) -> dict[str, Any]:
    """Execute a diagnostic Build for every row and case of a Task.

    Args:
        build: the folder of a Build that `akf build SOURCE --route R` made.
        task: the Task's folder.

    Returns:
        `{diagnostic: true, route, stage, task, object, compiled, isolation, outcome: pass|fail, reasons, cases}`.

    Raises:
        PreconditionError: nothing of the Build can be executed here.
        InvalidError: its launch spec disagrees with the Task's ABI.
        IntegrityError: the object is not the one that the Build names.
        BlockedError: this interpreter lacks numpy, or this machine a tool that makes an object of the Build's IR.
    """
    require_numpy()
    value = load(build / "build.json", "Build").value
    asked = load(task / "task.json", "Task").value
    chosen = route(value["route"])
    emulation, data = _carried(build, value, chosen)
    spec = parse_spec(value["launch"])
    try:
        check_against(spec, abi_of(asked))
    except LaunchSpecError as error:
        raise InvalidError.of("AKF-M043", f"launch spec: {error}", file=str(build), pointer=error.pointer) from error
    kernel = Kernel(executable(chosen, data, build), emulation.convention, spec)
    text = read_input(task / asked["reference"]["path"]).decode()
    cases = [*({**row, "inputs": "normal"} for row in asked["rows"]), *asked.get("cases", ())]
    answers = [_answer(kernel, asked, case, text) for case in cases]
    reasons = sorted({reason for answer in answers for reason in answer["reasons"]})
    return {
        "diagnostic": True,
        "route": value["route"],
        "stage": emulation.stage,
        "task": asked["id"],
        "object": digest(data),
        "compiled": kernel.object.compiled,
        "isolation": answers[0].pop("isolation"),
        "outcome": "fail" if reasons else "pass",
        "reasons": reasons,
        "cases": [{name: each for name, each in answer.items() if name != "isolation"} for answer in answers],
    }


def _carried(build: Path, value: dict[str, Any], chosen: Route) -> tuple[Emulation, bytes]:
    """The Build's file that is executed, or made executable."""
    emulation = chosen.data.emulation
    path = f"candidate/{chosen.data.stage_file(emulation.stage)}" if emulation is not None else None
    output = next((each for each in value["outputs"] if each["path"] == path), None)
    if emulation is None or output is None or "launch" not in value:
        message = f"a Build of route {value['route']} at the stage {value['stage']} cannot be executed without a device"
        able = [f"{each.name} from the stage {each.data.emulation.stage}" for each in routes() if each.data.emulation]
        hint = f"these can, where a launch.json stands beside the source: {', '.join(able)}"
        raise PreconditionError.of("AKF-P500", message, file=str(build), found=value["stage"], hint=hint)
    data = read_input(build / "build" / output["path"])
    if digest(data) != output["digest"]:
        message = f"{output['path']} is not the object that the Build names"
        raise IntegrityError.of("AKF-I211", message, file=str(build), expected=output["digest"], found=digest(data))
    return emulation, data


def _answer(kernel: Kernel, task: dict[str, Any], case: dict[str, Any], reference: str) -> dict[str, Any]:
    """One case: its inputs, the run, the comparison."""
    import numpy as np  # noqa: PLC0415

    from akf.harness.draw import draw, in_shape, stream  # noqa: PLC0415
    from akf.harness.dtypes import DTYPES  # noqa: PLC0415
    from akf.harness.oracle import Oracle, compare  # noqa: PLC0415

    drawn = _case(task, case)
    label = f"{task['id']}:{case['id']}"
    inputs = {each.name: draw(each, stream(SEED, f"{label}:{each.name}"), 1)[0] for each in drawn.inputs}
    sizes = {each.name: each.nbytes for each in drawn.operands}
    given = {name: array.tobytes() for name, array in inputs.items()}
    with tempfile.TemporaryDirectory(prefix="akf-emulate-") as scratch:
        ended, left = launch(kernel, case, drawn.operands, given, Path(scratch, "work"))
    answer: dict[str, Any] = {"case": case["id"], "outcome": "fail", "isolation": ended.isolation}
    if any(len(left.get(name, b"")) != size + 2 * GUARD for name, size in sizes.items()):
        signalled = ended.status < 0 or ended.status > SIGNALLED
        reason = _STOPPED[ended.stopped] if ended.stopped else "CHILD_CRASHED" if signalled else "CHILD_EXITED"
        said = (ended.text.strip().splitlines() or ["nothing"])[-1]
        return answer | {"reasons": [reason], "said": printable(said)[:400]}
    edge = b"\xff" * GUARD
    inside = {name: data[GUARD:-GUARD] for name, data in left.items()}
    errors = []
    for operand, expected in zip(drawn.outputs, Oracle(reference).expected(drawn, inputs), strict=True):
        stored = np.frombuffer(inside[operand.name], dtype=DTYPES[operand.dtype].store)
        actual = in_shape(operand, stored)
        errors.append(compare(actual, expected, task["tolerance"], operand.dtype))
    read_only = [each.name for each in drawn.operands if each.access == "in"]
    found = {
        "OUT_OF_BOUNDS_WRITE": any(data[:GUARD] + data[-GUARD:] != edge + edge for data in left.values()),
        "INPUT_MUTATED": any(inside[name] != given[name] for name in read_only),
        "NON_FINITE": any(each.non_finite for each in errors),
        "WRONG_RESULT": any(each.violations for each in errors),
    }
    reasons = [code for code, holds in found.items() if holds]
    return answer | {
        "outcome": "fail" if reasons else "pass",
        "reasons": reasons,
        "max_abs": max(each.max_abs for each in errors),
        "bound_share": max(each.bound_share for each in errors),
    }


def _case(task: dict[str, Any], case: dict[str, Any]) -> Case:
    from akf.harness.request import Case, Operand  # noqa: PLC0415

    operands = []
    for place, each in enumerate(task["abi"]["operands"]):
        shape = tuple(case["symbols"][size["sym"]] if isinstance(size, dict) else size for size in each["shape"])
        form = distribution(shape, case["inputs"], first=place == 0) if each["access"] != "out" else {}
        strides = tuple(each.get("strides") or ())
        operands.append(Operand(each["name"], each["dtype"], shape, each["access"], form, strides=strides))
    return Case(case["id"], SEED, case["attributes"], tuple(operands), {})
