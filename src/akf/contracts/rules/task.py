"""What a Task must mean beyond its schema.

Invariants:
- Symbols of operands, rows and cases are those of the domain, and every row and case lies inside it.
- Rows have positive weight and every attribute a value of its domain.
- Agents write below the inbox only.
- A kernel Task states all that a kernel is judged by, an integration Task all of it or nothing, any other Task nothing;
  a Task that states nothing says what it is about.
"""

from __future__ import annotations

from akf.contracts.gates import PYTHON
from akf.contracts.loader import Document
from akf.contracts.problems import PreconditionError, Problem
from akf.contracts.rules.campaign import WRITABLE
from akf.contracts.rules.finding import at, duplicates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


KERNEL = ("op", "callsite", "graph", "routes", "abi", "rows", "tolerance", "reference", "perturbed")
"""What a kernel is judged by, beside cases and domain, which may be empty."""
_JUDGED = ("abi", "rows", "tolerance", "reference", "perturbed", "routes", "cases", "domain")


def asks_for_kernel(task: dict[str, Any]) -> bool:
    """Whether candidates can be submitted to the Task: it says how they are called."""
    return task["abi"] is not None


def require_kernel(task: dict[str, Any]) -> None:
    """Refuse a Task to which no kernel can be submitted.

    Raises:
        PreconditionError: it asks for no kernel.
    """
    if not asks_for_kernel(task):
        message = f"the Task {task['id']!r} is a {task['type']} Task and asks for no kernel"
        hint = "what may be changed stands in its `problem`; kernels are submitted to a Task with an ABI"
        raise PreconditionError.of("AKF-F373", message, file=f"tasks/{task['id']}.json", pointer="/abi", hint=hint)


def task_problems(document: Document) -> list[Problem]:
    """Problems of one Task by itself."""
    task = document.value
    form = _form(document)
    more = _kernel_problems(document) if not form and asks_for_kernel(task) else []
    return [*form, *more, *_write_paths(document)]


def _form(document: Document) -> list[Problem]:
    """What the Task's type demands and forbids."""
    task, kind = document.value, document.value["type"]
    found = []
    if kind == "kernel" or (kind == "integration" and any(task.get(name) for name in _JUDGED)):
        for name in KERNEL:
            if not task[name] and not (name == "routes" and _is_python(task)):
                message = f"a Task of type {kind} that asks for a kernel states `{name}`"
                found.append(at(document, f"/{name}", "AKF-F370", message, hint="see docs/artifacts/task.md"))
        if kind == "kernel" and task.get("problem") is not None:
            message = "a kernel Task has no `problem`: its callsite and rows say what it is about"
            found.append(at(document, "/problem", "AKF-F372", message, hint="leave it out"))
        return found
    for name in _JUDGED:
        if task.get(name):
            message = f"a Task of type {kind} asks for no kernel, so `{name}` is empty"
            found.append(at(document, f"/{name}", "AKF-F371", message, hint="is it a kernel Task?"))
    if task.get("problem") is None:
        message = f"a Task of type {kind} without a kernel says in `problem` what may be changed"
        found.append(at(document, "", "AKF-F372", message))
    return found


def _is_python(task: dict[str, Any]) -> bool:
    return task["abi"] is not None and task["abi"]["kind"] == PYTHON


def _write_paths(document: Document) -> list[Problem]:
    found = []
    for index, path in enumerate(document.value["write_paths"]):
        if path != WRITABLE and not path.startswith(f"{WRITABLE}/"):
            message = f"agents may write below `{WRITABLE}` only, not to {path!r}"
            found.append(at(document, f"/write_paths/{index}", "AKF-M017", message, expected=WRITABLE, found=path))
    return found


def _kernel_problems(document: Document) -> list[Problem]:
    """What a Task that asks for a kernel must mean."""
    task = document.value
    domain = {dimension["sym"]: dimension for dimension in task["domain"]}
    found = [
        *duplicates(document, "/rows", [row["id"] for row in task["rows"]], "row"),
        *duplicates(document, "/cases", [case["id"] for case in task.get("cases", ())], "case"),
        *duplicates(document, "/domain", [dimension["sym"] for dimension in task["domain"]], "symbol"),
        *duplicates(document, "/abi/operands", [operand["name"] for operand in task["abi"]["operands"]], "operand"),
    ]
    found += _brought(document)
    found += _product(document)
    for index, operand in enumerate(task["abi"]["operands"]):
        for place, size in enumerate(operand["shape"]):
            if isinstance(size, dict) and size != domain.get(size["sym"]):
                message = f"operand {operand['name']}: symbol {size['sym']} is not bounded as in the domain"
                found.append(
                    at(
                        document,
                        f"/abi/operands/{index}/shape/{place}",
                        "AKF-M030",
                        message,
                        expected=domain.get(size["sym"]),
                    )
                )
    attributes = {each["name"]: each["values"] for each in task["abi"].get("attributes", ())}
    for group in ("rows", "cases"):
        for index, each in enumerate(task.get(group, ())):
            pointer = f"/{group}/{index}"
            found += _inside(document, pointer, each, domain, attributes)
            found += _misaligned(document, pointer, each)
            if group == "rows" and not each["weight"] > 0:
                found.append(
                    at(document, f"{pointer}/weight", "AKF-M031", "a row without weight would count for nothing")
                )
    return found


def _misaligned(document: Document, pointer: str, case: dict[str, Any]) -> list[Problem]:
    """The operands that a case moves off their alignment are the Task's."""
    names = [operand["name"] for operand in document.value["abi"]["operands"]]
    return [
        at(
            document,
            f"{pointer}/misalign/{name}",
            "AKF-M051",
            f"{case['id']}: {name} is no operand",
            expected=names,
            found=name,
        )
        for name in case.get("misalign") or {}
        if name not in names
    ]


def _product(document: Document) -> list[Problem]:
    """A Task that is a product has two matrices that fit, and their product as its only output."""
    task = document.value
    named = task.get("product")
    if named is None:
        return []
    shapes = {operand["name"]: operand["shape"] for operand in task["abi"]["operands"] if operand["access"] == "in"}
    left, right = shapes.get(named["left"], []), shapes.get(named["right"], [])
    outputs = [operand["shape"] for operand in task["abi"]["operands"] if operand["access"] != "in"]
    if len(left) == len(right) == 2 and left[1] == right[0] and outputs == [[left[0], right[1]]]:  # noqa: PLR2004
        return []
    message = f"{named['left']} @ {named['right']} is not the only output: two matrices that fit, and their product"
    return [at(document, "/product", "AKF-M052", message, expected=sorted(shapes), found=named)]


def _brought(document: Document) -> list[Problem]:
    """The kernels that the Task brings along: one of a route, and modules where candidates are modules."""
    task = document.value
    found = []
    for name in ("perturbed", "plain"):
        routes = [kernel["route"] for kernel in task.get(name, ())]
        found += duplicates(document, f"/{name}", routes, "route")
        if _is_python(task) and PYTHON not in routes:
            message = f"candidates of the python ABI need a {name} kernel of the route `python`"
            hint = f"write {name}/python/kernel.py with run(...), and name its folder here"
            found.append(at(document, f"/{name}", "AKF-M046", message, hint=hint))
    return found


def _inside(
    document: Document, pointer: str, each: dict[str, Any], domain: dict[str, Any], attributes: dict[str, Any]
) -> list[Problem]:
    found = []
    if set(each["symbols"]) != set(domain):
        message = f"{each['id']} must give a size for exactly the symbols {', '.join(sorted(domain))}"
        found.append(
            at(
                document,
                f"{pointer}/symbols",
                "AKF-M030",
                message,
                expected=sorted(domain),
                found=sorted(each["symbols"]),
            )
        )
    for name, size in each["symbols"].items():
        bounds = domain.get(name)
        if bounds and not (bounds["min"] <= size <= bounds["max"] and size % bounds["multiple_of"] == 0):
            message = f"{each['id']}: {name} = {size} lies outside the support domain"
            found.append(at(document, f"{pointer}/symbols/{name}", "AKF-M030", message, expected=bounds, found=size))
    if set(each["attributes"]) != set(attributes):
        message = (
            f"{each['id']} must give a value for exactly the attributes {', '.join(sorted(attributes)) or '(none)'}"
        )
        found.append(at(document, f"{pointer}/attributes", "AKF-M032", message))
    for name, value in each["attributes"].items():
        if name in attributes and value not in attributes[name]:
            message = f"{each['id']}: {name} = {value} lies outside the support domain"
            found.append(
                at(
                    document,
                    f"{pointer}/attributes/{name}",
                    "AKF-M032",
                    message,
                    expected=attributes[name],
                    found=value,
                )
            )
    return found
