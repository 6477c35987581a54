"""The request: what is malformed is refused before anything runs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.harness.builder import Task, run_harness

from akf.harness.outcome import HarnessError
from akf.harness.request import parse

AffineTask = Callable[..., Task]
PLAN = {
    "pairs": 1,
    "blocks": 1,
    "batches": 1,
    "launches": {"N64": 4, "N1024": 4},
    "round_trip_ns": 1000,
    "runs": ["ab"],
}

BROKEN: list[tuple[str, Callable[[dict[str, Any]], Any], str]] = [
    ("unknown field", lambda value: value.update(extra=1), "/extra is not a field"),
    ("unknown limit", lambda value: value["limits"].update(extra=1), "/limits/extra"),
    ("missing limit", lambda value: value["limits"].pop("cpu_s"), "/limits/cpu_s is missing"),
    ("another version", lambda value: value.update(schema_version=2), "/schema_version"),
    ("no baseline", lambda value: value["artifacts"].pop("baseline"), "/artifacts"),
    ("seed too short", lambda value: value["cases"][0].update(seed="00"), "/cases/0/seed"),
    ("empty dimension", lambda value: value["cases"][0]["operands"][0].update(shape=[0]), "/operands/0/shape"),
    ("unknown dtype", lambda value: value["cases"][0]["operands"][0].update(dtype="int3"), "/dtype"),
    ("same id twice", lambda value: value["cases"].append(value["cases"][0]), "used twice"),
    ("even batches", lambda value: value["plan"].update(batches=2), "/plan/batches must be odd"),
    ("even blocks", lambda value: value["plan"].update(blocks=2), "/plan/blocks must be odd"),
    ("a row without launches", lambda value: value["plan"]["launches"].pop("N64"), "/plan/launches/N64"),
    ("no run", lambda value: value["plan"].update(runs=[]), "/plan/runs"),
    ("boolean for a number", lambda value: value["plan"].update(pairs=True), "/plan/pairs"),
    ("unknown operand", lambda value: value["rows"][0]["calls"]["baseline"][0].update(operand="y"), "no such operand"),
]


@pytest.mark.parametrize(("name", "change", "message"), BROKEN, ids=[name for name, _, _ in BROKEN])
def test_malformed_request_is_refused(
    affine: AffineTask, name: str, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    value = copy.deepcopy(affine("honest").request(plan=PLAN))
    assert parse(value).plan is not None, name
    change(value)
    with pytest.raises(HarnessError, match=message):
        parse(value)


def test_refused_request_exits_2_and_says_so_in_the_report(affine: AffineTask, out: Path) -> None:
    status, report = run_harness("check", affine("honest").request(schema_version=9), out)
    assert status == 2
    assert report["error"]["code"] == "REQUEST_INVALID"


def test_reference_that_raises_is_the_requests_fault(affine: AffineTask, out: Path) -> None:
    request = affine("honest").request(reference="def reference(x):\n    raise ValueError('no')\n")
    status, report = run_harness("check", request, out)
    assert status == 2
    assert report["error"]["code"] == "REFERENCE_INVALID"
