"""What a Task must mean beyond its schema.

Invariants:
- Symbols of operands, rows and cases are those of the domain, and every row and case lies inside it.
- Rows have positive weight and every attribute a value of its domain.
- Agents write below the inbox only.
"""

from __future__ import annotations

from akf.contracts.loader import Document
from akf.contracts.problems import Problem
from akf.contracts.rules.campaign import WRITABLE
from akf.contracts.rules.finding import at, duplicates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def task_problems(document: Document) -> list[Problem]:
    """Problems of one Task by itself."""
    task = document.value
    domain = {dimension["sym"]: dimension for dimension in task["domain"]}
    found = [
        *duplicates(document, "/rows", [row["id"] for row in task["rows"]], "row"),
        *duplicates(document, "/cases", [case["id"] for case in task.get("cases", ())], "case"),
        *duplicates(document, "/domain", [dimension["sym"] for dimension in task["domain"]], "symbol"),
        *duplicates(document, "/abi/operands", [operand["name"] for operand in task["abi"]["operands"]], "operand"),
    ]
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
            if group == "rows" and not each["weight"] > 0:
                found.append(
                    at(document, f"{pointer}/weight", "AKF-M031", "a row without weight would count for nothing")
                )
    for index, path in enumerate(task["write_paths"]):
        if path != WRITABLE and not path.startswith(f"{WRITABLE}/"):
            message = f"agents may write below `{WRITABLE}` only, not to {path!r}"
            found.append(at(document, f"/write_paths/{index}", "AKF-M017", message, expected=WRITABLE, found=path))
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
