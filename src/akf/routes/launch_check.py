"""The launch spec among a candidate's files: parsed, compared with the Task's ABI, and callable in the twin's place.

Invariants:
- The spec agrees with the Task operand by operand.
- It is the one of the Task's deliberately wrong kernel, which the hit proof binds in the candidate's place.
- A kernel that is compiled just in time needs a finite, bounded set of specialisations over the whole envelope.
- Submission and building ask the same questions here, so that what is taken can be built.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from akf.contracts.canonical import canonical_bytes
from akf.contracts.loader import parse
from akf.contracts.problems import InvalidError, PreconditionError
from akf.routes.constexprs import FILE, read_rules
from akf.routes.declaration import declaration
from akf.routes.expressions import ExpressionError
from akf.routes.launch_spec import LaunchSpec, LaunchSpecError, check_against, parse_spec
from akf.routes.specialisation import Specialisation, TooMany, classes, envelope, shapes
from akf.store.untrusted import TreeFile

TWIN = "launch.json"


def checked_launch(
    files: Sequence[TreeFile], path: str, task: dict[str, Any], route: str, shown: str
) -> tuple[LaunchSpec, dict[str, Any]]:
    """The launch spec at `path` among `files`, and its JSON value.

    Args:
        files: the candidate's sources.
        path: the spec's path among them.
        task: the frozen Task.
        route: the candidate's route.
        shown: how problems name the file.

    Raises:
        InvalidError: it is missing or malformed, or disagrees with the Task or the twin.
        PreconditionError: the Task has no wrong kernel for this route.
    """
    spec, value = _launch(files, path, task, shown)
    made = declaration(route).abi
    if spec.abi != made:
        message = f"launch spec: route {route} makes an object of the abi {made}, not {spec.abi}"
        raise InvalidError.of("AKF-M043", message, file=shown, pointer="/abi", expected=made, found=spec.abi)
    _, wanted = _launch(perturbed(task, route), TWIN, task, "the Task's perturbed kernel")
    differing = sorted(name for name in wanted.keys() | value.keys() if wanted.get(name) != value.get(name))
    if differing:
        name = differing[0]
        message = f"the launch spec differs from that of the Task's perturbed kernel in {', '.join(differing)}"
        hint = "it must be callable in the candidate's place: copy the perturbed kernel's launch.json unchanged"
        raise InvalidError.of(
            "AKF-M045",
            message,
            file=shown,
            pointer=f"/{name}",
            expected=wanted.get(name),
            found=value.get(name),
            hint=hint,
        )
    return spec, value


def needed_specialisations(
    files: Sequence[TreeFile], path: str, spec: LaunchSpec, task: dict[str, Any], claim: dict[str, Any], shown: str
) -> tuple[Specialisation, ...]:
    """What has to be compiled so that no call inside the envelope compiles anything; none for a route that needs one.

    Args:
        files: the kernel's sources.
        path: the launch spec's path among them.
        spec: the launch spec.
        task: the frozen Task.
        claim: the Candidate's claim: its route, and the domain that it declares.
        shown: how problems name the folder of the sources.

    Raises:
        InvalidError: the rules for constexpr parameters are malformed or leave a point out; or there are too many.
    """
    kind = declaration(claim["route"]).specialises
    if kind is None:
        return ()
    rules = read_rules(files, path, shown, [each["sym"] for each in task["domain"]])
    inside = envelope(task, claim)
    where = f"{shown}/{FILE if rules else path}"
    try:
        found = classes(spec, inside, rules) if kind == "classes" else shapes(inside)
    except TooMany as error:
        hint = "narrow `domain` in candidate.json, or derive fewer arguments from the sizes"
        raise InvalidError.of("AKF-M049", str(error), file=where, hint=hint) from error
    except ExpressionError as error:
        raise InvalidError.of("AKF-M048", f"{error}", file=where, hint="every size of the domain needs one") from error
    if not found:
        message = "no size lies inside both the Task's domain and the Candidate's, so there is nothing to compile"
        raise InvalidError.of("AKF-M049", message, file=where)
    return tuple(found)


def perturbed(task: dict[str, Any], route: str) -> list[TreeFile]:
    """Files of the Task's deliberately wrong kernel for a route.

    Raises:
        PreconditionError: there is none.
    """
    kernel = next((each for each in task["perturbed"] if each["route"] == route), None)
    if kernel is None or kernel["files"] is None:
        message = f"the Task has no perturbed kernel for route {route}, so a hit could never be proved"
        raise PreconditionError.of("AKF-P111", message)
    return [TreeFile(each["path"], each["text"].encode(), False) for each in kernel["files"]]


def abi_of(task: dict[str, Any]) -> dict[str, Any]:
    """The Task's ABI as a launch spec is compared with it."""
    return {
        "operands": [
            {**operand, "shape": [size["sym"] if isinstance(size, dict) else size for size in operand["shape"]]}
            for operand in task["abi"]["operands"]
        ],
        "symbols": [dimension["sym"] for dimension in task["domain"]],
        "attributes": [attribute["name"] for attribute in task["abi"].get("attributes", ())],
    }


def _launch(
    files: Sequence[TreeFile], path: str, task: dict[str, Any], shown: str
) -> tuple[LaunchSpec, dict[str, Any]]:
    data = next((file.data for file in files if file.path == path), None)
    if data is None:
        raise InvalidError.of("AKF-M041", f"{shown} is missing", file=shown)
    value = parse(data, shown).value
    try:
        spec = parse_spec(value)
        check_against(spec, abi_of(task))
    except LaunchSpecError as error:
        raise InvalidError.of("AKF-M043", f"launch spec: {error}", file=shown, pointer=error.pointer) from error
    canonical_bytes(value)
    return spec, value
