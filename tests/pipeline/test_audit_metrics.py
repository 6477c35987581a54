"""The audit computes every metric of a gate again from its raw samples; each change here was signed by its owner."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import evidence, runs
from tests.support.cli import inside
from tests.support.evidence import Made
from tests.support.runs import on_disk, overwrite, resign

from akf.contracts.canonical import digest

Value = dict[str, Any]
GATE = "attempts/fused/gates/operator.json"
SAMPLES = "attempts/fused/samples/operator/op-latency.gain.jsonl"


def stating(**more: Any) -> Made:
    """A run whose operator gate states what the judge computes from its samples."""
    computed = {each["check"]: each.get("interval") for each in evidence.evidence().decide()["checks"]
                if each["gate"] == "operator"}  # fmt: skip

    def state(gate: Value) -> None:
        for check in gate["checks"]:
            if computed.get(check["name"]) is not None:
                check |= {"measurement": "op-latency.gain", "interval": dict(computed[check["name"]])}

    return evidence.evidence(edit={"gates/operator": state}, **more)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return runs.evidence_keys(tmp_path / "keys")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return on_disk(stating(gates=("environment", "operator")), tmp_path / "run")


def interval_of(gate: Value, name: str) -> Value:
    found: Value = next(each for each in gate["checks"] if each["name"] == name)
    return found


def test_true_metrics_are_accepted(run: Path) -> None:
    gate = json.loads((run / GATE).read_bytes())
    assert sum("interval" in check for check in gate["checks"]) == 3  # the gain and two rows
    inside("audit", run).accepted()


@pytest.mark.parametrize(("field", "value"), [("low", 1.4), ("estimate", 1.2251), ("pairs", 12), ("confidence", 0.99)])
def test_a_changed_number_is_named(run: Path, keys: Path, field: str, value: float) -> None:
    resign(run, GATE, lambda gate: interval_of(gate, "gain:op-latency")["interval"].update({field: value}), keys)
    answer = inside("audit", run).refused(3)
    assert answer.codes == {"AKF-I225"}
    (problem,) = answer.problems
    assert (problem["file"], problem["found"][field]) == (GATE, value)
    assert problem["pointer"].endswith("/interval")
    assert problem["expected"][field] != value


def test_the_last_bit_counts(run: Path, keys: Path) -> None:
    def nudge(gate: Value) -> None:
        interval = interval_of(gate, "row:decode-8")["interval"]
        interval["low"] = interval["low"] * (1 - 2**-52)

    resign(run, GATE, nudge, keys)
    assert inside("audit", run).refused(3).codes == {"AKF-I225"}


def test_a_changed_sample_line_is_found_by_its_digest(run: Path) -> None:
    overwrite(run / SAMPLES, slower((run / SAMPLES).read_bytes()))
    answer = inside("audit", run).refused(3)
    assert "AKF-I211" in answer.codes
    assert SAMPLES in {each["file"] for each in answer.problems}


def test_a_changed_sample_line_under_a_gate_signed_anew_is_found_by_the_metric(run: Path, keys: Path) -> None:
    data = slower((run / SAMPLES).read_bytes())
    overwrite(run / SAMPLES, data)

    def rename(gate: Value) -> None:
        entry = next(each for each in gate["samples"] if each["path"] == SAMPLES)
        entry |= {"digest": digest(data), "bytes": len(data)}

    resign(run, GATE, rename, keys)
    answer = inside("audit", run).refused(3)
    assert answer.codes == {"AKF-I225"}
    assert "gain:op-latency" in str(answer.problems)


def slower(data: bytes) -> bytes:
    """The same samples, the candidate's of one pair a fifth slower."""
    records = [json.loads(line) for line in data.splitlines()]
    for each in records:
        if (each["pair"], each["side"]) == (0, "B"):
            each["values"] = [value * 6 // 5 for value in each["values"]]
    return evidence.lines_of(records)


def of_noise(check: Value, other: Value) -> None:
    """The interval and the name of A/A, both right."""
    del other
    check |= {"measurement": "op-latency.aa", "interval": aa_interval()}


def of_another_row(check: Value, other: Value) -> None:
    check["interval"] = dict(other["interval"])


def of_no_measurement(check: Value, other: Value) -> None:
    del other
    check.pop("measurement")


def of_a_measurement_that_is_not_planned(check: Value, other: Value) -> None:
    del other
    check["measurement"] = "op-latency.best"


@pytest.mark.parametrize("name", ["gain:op-latency", "row:decode-1"])
@pytest.mark.parametrize("change", [of_noise, of_another_row, of_no_measurement, of_a_measurement_that_is_not_planned])
def test_a_metric_that_is_right_for_something_else_is_named(
    run: Path, keys: Path, name: str, change: Callable[[Value, Value], None]
) -> None:
    def edit(gate: Value) -> None:
        change(interval_of(gate, name), interval_of(gate, "row:decode-8"))

    resign(run, GATE, edit, keys)
    answer = inside("audit", run).refused(3)
    assert answer.codes == {"AKF-I225"}
    assert [name in each["message"] for each in answer.problems] == [True]


def aa_interval() -> Value:
    """What the samples of A/A really give."""
    from akf.contracts.measured import measure  # noqa: PLC0415

    made = evidence.evidence()
    planned = next(each for each in made.value("plan/operator.json")["measurements"] if each["purpose"] == "aa")
    reduced = measure(planned, made.files[planned["path"]], 0.95).reduced
    assert reduced is not None
    found = reduced.total.interval
    assert found is not None
    return {"estimate": found.estimate, "low": found.low, "high": found.high, "pairs": found.n,
            "confidence": found.confidence}  # fmt: skip


def test_a_real_gate_states_what_its_samples_give(measured_run: Path) -> None:
    document = inside("audit", measured_run).accepted().document
    assert document["attempts"] == 4
