"""P4: validation in process, every error with its pointer, line and column, against `jsonschema`.

Run it from anywhere: `python benchmarks/p04_validation.py`. Both sides get the same parsed value and the same schema.
AKF's side is all that a command does with it: the compiled schema and, where the document is invalid, a Problem for
every error. The other side is `jsonschema`'s iterator and the path of every error. Before anything is timed, both must
call the valid document valid, and find a fault at every place where one was put.

Growth: rows of the Workload, at 1x, 10x and 100x.
"""

import copy
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import jsonschema  # noqa: E402
from benchmarks.side_by_side import ROUNDS, compare, median_seconds, report, report_growth  # noqa: E402

from akf.contracts.loader import Document, parse  # noqa: E402 (the checkout comes first)
from akf.contracts.schemas import schema, validate  # noqa: E402

FILE = ROOT / "suites" / "qwen3-8b-a3-bf16" / "workload.json"
FAULTS = 10
AT_ONCE = 20
SIZES = (1, 10, 100)


def document(value: dict[str, Any]) -> Document:
    return parse(json.dumps(value).encode(), "workload.json")


def lists(value: Any) -> list[list[Any]]:
    """Return every list of objects, the longest first."""
    found: list[list[Any]] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        waiting += list(item.values()) if isinstance(item, dict) else item if isinstance(item, list) else []
        if isinstance(item, list) and item and isinstance(item[0], dict):
            found.append(item)
    return sorted(found, key=len, reverse=True)


def spoiled(value: dict[str, Any]) -> dict[str, Any]:
    """Return a copy with a field that nobody knows in `FAULTS` rows."""
    value = copy.deepcopy(value)
    for row in lists(value)[0][:FAULTS]:
        row["unheard_of"] = 1
    return value


def theirs(validator: Any, value: Any) -> list[str]:
    return [error.json_path for error in validator.iter_errors(value)]


def main() -> None:
    value = json.loads(FILE.read_bytes())
    validator = jsonschema.Draft202012Validator(schema(value["kind"]))
    valid, invalid = document(value), document(spoiled(value))
    places = [problem.pointer for problem in validate(invalid)]
    if validate(valid) or theirs(validator, value):
        raise ValueError("the shipped workload is not valid")
    if len(places) != FAULTS or len(theirs(validator, invalid.value)) < FAULTS:
        raise ValueError(f"{FAULTS} faults were put in, found: {places}")

    def ours(checked: Document) -> None:
        for _ in range(AT_ONCE):
            validate(checked)

    size = f"{len(FILE.read_bytes()) // 1024} KB"
    for what, checked, goal in (
        ("valid", valid, "at least 150 times as fast"),
        (f"{FAULTS} faults", invalid, "none: AKF also says line, column, expected, found and what was meant"),
    ):
        found = compare(partial(ours, checked), partial(theirs, validator, checked.value), ROUNDS)
        report("P4", f"validation of {size}, {what}", goal, found)
        print(f"    AKF is {AT_ONCE / found.ratio:.0f} times as fast (it ran {AT_ONCE} times a round)")
    times = []
    for times_as_many in SIZES:
        grown = copy.deepcopy(value)
        rows = lists(grown)[0]
        rows[:] = [
            dict(row, id=f"{row['id']}-{n}") if "id" in row else row for n in range(times_as_many) for row in rows
        ]
        grown_document = document(grown)
        times.append(median_seconds(partial(validate, grown_document)))
    report_growth(SIZES, times)


if __name__ == "__main__":
    main()
