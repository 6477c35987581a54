"""Properties of the judge: order is no input, no byte is spare, nothing that is missing promotes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.evidence import REPOSITORY, Made, Range, evidence

from akf.contracts.canonical import digest
from akf.contracts.gates import GATES
from akf.contracts.problems import IntegrityError, InvalidError, UsageError
from akf.store.run import checked

NOT_PASS = ("fail", "no_gain", "inconclusive", "blocked", "incomparable", "not_run")


def examples(number: int) -> settings:
    return settings(max_examples=number, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@cache
def sound() -> Made:
    return evidence(others=2)


@cache
def decided() -> bytes:
    return checked(sound().decide())


def answer(files: dict[str, bytes]) -> bytes | None:
    """The Decision's bytes, or None where the judge refuses for integrity; any other error is a defect."""
    try:
        return checked(Made(files, sound().candidate, sound().signers).decide())
    except IntegrityError:
        return None


paths = st.sampled_from(sorted(evidence(others=2).files))


# Order


@examples(25)
@given(st.permutations(sorted(evidence(others=2).files)))
def test_the_order_of_the_files_is_no_input(order: list[str]) -> None:
    assert answer({path: sound().files[path] for path in order}) == decided()


# Bytes


def damaged(data: bytes, at: int, kind: str, value: int) -> bytes:
    at %= max(len(data), 1)
    if kind == "flip" and data:
        return data[:at] + bytes([data[at] ^ value]) + data[at + 1 :]
    if kind == "delete" and data:
        return data[:at] + data[at + 1 :]
    if kind == "cut" and data:
        return data[:at]
    return data[:at] + bytes([value]) + data[at:]


@examples(250)
@given(paths, st.integers(0, 10**6), st.sampled_from(["flip", "delete", "insert", "cut"]), st.integers(1, 255))
def test_no_byte_of_any_input_can_change_unseen(path: str, at: int, kind: str, value: int) -> None:
    """Every file that the builder makes is an input; none of them is spare."""
    data = sound().files[path]
    changed = damaged(data, at, kind, value)
    if changed != data:
        assert answer({**sound().files, path: changed}) is None


@pytest.mark.parametrize("path", sorted(evidence(others=2).files))
def test_no_file_can_be_taken_away(path: str) -> None:
    assert answer({name: data for name, data in sound().files.items() if name != path}) is None


@examples(60)
@given(paths, paths)
def test_no_file_can_stand_in_the_place_of_another(one: str, other: str) -> None:
    if sound().files[one] != sound().files[other]:
        assert answer({**sound().files, one: sound().files[other]}) is None


@pytest.mark.soak
@pytest.mark.parametrize("path", sorted(evidence(others=2).files))
def test_no_byte_of_any_input_can_change_unseen_in_a_sweep(path: str) -> None:
    data = sound().files[path]
    for at in range(0, len(data), max(1, len(data) // 150)):
        for kind, value in (("flip", 1), ("flip", 32), ("delete", 0), ("insert", 32)):
            changed = damaged(data, at, kind, value)
            if changed != data:
                assert answer({**sound().files, path: changed}) is None, (at, kind, value)


# What is missing


@examples(30)
@given(st.sets(st.sampled_from(GATES), max_size=len(GATES) - 1))
def test_a_gate_that_was_never_made_never_promotes(gates: set[str]) -> None:
    decision = evidence(gates=sorted(gates)).decide()
    assert decision["verdict"] == "incomplete"
    assert {missing["gate"] for missing in decision["missing"]} >= set(GATES) - gates


@examples(60)
@given(st.sets(st.integers(1, 21), min_size=1))
def test_a_ledger_that_is_thinned_out_and_chained_anew_never_gives_the_same_answer(at: set[int]) -> None:
    made = Made(dict(sound().files), sound().candidate, sound().signers)
    lines = made.lines()
    made.rechain([line for seq, line in enumerate(lines) if seq not in at])
    found = answer(made.files)
    assert found != decided()
    if found is not None:
        told = json.loads(found)
        assert told["tries"] == json.loads(decided())["tries"]


@examples(40)
@given(st.integers(1, 21), st.integers(1, 21))
def test_a_ledger_in_another_order_never_gives_the_same_answer(one: int, other: int) -> None:
    made = Made(dict(sound().files), sound().candidate, sound().signers)
    lines = made.lines()
    lines[one], lines[other] = lines[other], lines[one]
    made.rechain(lines)
    if one != other:
        assert answer(made.files) != decided()


# Outcomes


def claimed() -> Iterator[tuple[str, str]]:
    made = evidence()
    for gate in GATES:
        for check in made.value(f"gates/{gate}.json")["checks"]:
            if ":" not in check["name"]:
                yield gate, check["name"]


INCOMPARABLE = {
    ("environment", "identity"), ("environment", "toolkit_unmodified"), ("environment", "baseline_health"),
    ("release", "incumbent"),
}  # fmt: skip
"""What a fault here makes of the evidence; any other fault of the environment blocks."""


def row_of(claims: dict[tuple[str, str], str]) -> int:
    """The decision table for claimed outcomes, told once more in another way."""
    told = set()
    for place, outcome in claims.items():
        bad = outcome in {"fail", "no_gain"}
        if bad and place in INCOMPARABLE:
            told.add("incomparable")
        elif bad and (place[0] == "environment" or place == ("operator", "sensitivity")):
            told.add("blocked")
        else:
            told.add(outcome)
    rows = {"fail": 1, "incomparable": 2, "blocked": 3}
    return min((rows.get(outcome, 5) for outcome in told), default=7)


@examples(60)
@given(st.dictionaries(st.sampled_from(sorted(claimed())), st.sampled_from(NOT_PASS), max_size=5))
def test_claims_lead_where_the_table_says(claims: dict[tuple[str, str], str]) -> None:
    outcomes = {f"{gate}/{name}": outcome for (gate, name), outcome in claims.items()}
    assert evidence(outcomes=outcomes).decide()["row"] == row_of(claims)


@st.composite
def intervals(draw: st.DrawFn) -> Range:
    low = draw(st.floats(-0.2, 0.4))
    return round(low, 4), round(low + draw(st.floats(0.0001, 0.2)), 4)


GAINS = {"operator/op-latency": 0.05, "model/model-latency": 0.03, "serving/tpot": 0.02}
GAINS |= {"reproduction/op-latency": 0.05, "reproduction/model-latency": 0.03, "reproduction/tpot": 0.02}
GUARDS = {"serving/ttft-p90": -0.02, "serving/goodput": -0.02}


@examples(50)
@given(st.dictionaries(st.sampled_from(sorted(GAINS | GUARDS)), intervals(), min_size=1, max_size=3))
def test_only_intervals_that_clear_their_limits_promote(drawn: dict[str, Range]) -> None:
    """At one try; rows follow the operator's total, and their margin is 2 %."""
    decision = evidence(gains=drawn).decide()
    limits = GAINS | GUARDS
    clear = {name: low - limits[name] for name, (low, _) in drawn.items()}
    if all(distance > 1e-6 for distance in clear.values()):
        assert decision["verdict"] in {"promotable", "inventory"}  # the ceiling may be too low
    if any(distance < -1e-6 for distance in clear.values()):
        assert decision["row"] in {1, 4, 5}
    highs = [high - (limits[name] if name in GUARDS else 0) for name, (_, high) in drawn.items()]
    highs.append(drawn.get("operator/op-latency", (0, 1))[1] - 0.05)
    if all(abs(high) > 1e-6 for high in highs):  # samples give back a bound to that much
        assert (decision["row"] == 1) == any(high < 0 for high in highs)


# Whoever holds the keys

ANYTHING: tuple[Any, ...] = (
    *(0, 1, -1, 7, 0.5, 1e-300, 1e15, 2**53 - 1, True, None, [], {}),
    *("", "x", "pass", "fail", "median", "legs", "aa"),
)
SEALED = [f"{folder}/{gate}.json" for folder in ("plan", "gates") for gate in GATES] + ["candidate.json", "build.json"]


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place inside a JSON value; of a list only the first and the last."""
    if isinstance(value, dict):
        inside = list(value.items())
    else:
        inside = [(0, value[0]), (-1, value[-1])] if isinstance(value, list) and value else []
    for name, item in inside:
        yield (*at, name)
        yield from places(item, (*at, name))


@examples(150)
@given(st.sampled_from(SEALED), st.data())
def test_whatever_a_holder_of_the_keys_writes_is_refused_or_answered(name: str, data: st.DataObject) -> None:
    made = Made(dict(sound().files), sound().candidate, sound().signers)
    path = f"{made.base}/{name}"
    value = made.value(path)
    *steps, last = data.draw(st.sampled_from(sorted(places(value), key=str)))
    target: Any = value
    for step in steps:
        target = target[step]
    if data.draw(st.booleans()):
        target[last] = data.draw(st.sampled_from(ANYTHING))
    else:
        del target[last]
    try:
        made.put(path, value)
        gate = path.replace("/plan/", "/gates/")
        if name.startswith("plan/"):
            child = made.value(gate)
            child["parents"][4]["digest"] = digest(made.files[path])
            made.put(gate, child)
    except (InvalidError, UsageError, KeyError, TypeError):
        return  # no artifact: the builder of this test refuses it as the schema does
    answer(made.files)


# Processes

SCRIPT = """
import hashlib, locale, os, sys
folder, order, mask = sys.argv[1], sys.argv[2], int(sys.argv[3], 8)
os.umask(mask)
try:
    locale.setlocale(locale.LC_ALL, "")
except locale.Error:
    pass
files = {}
for base, folders, names in os.walk(folder):
    for name in names:
        path = os.path.join(base, name)
        with open(path, "rb") as stream:
            files[os.path.relpath(path, folder)] = stream.read()
files = dict(sorted(files.items(), reverse=order == "down"))
from akf.judge import decide
from akf.store.run import checked
sys.stdout.buffer.write(checked(decide(files, "fused")))
"""


def test_processes_of_other_surroundings_give_the_same_bytes(tmp_path: Path) -> None:
    for path, data in sound().files.items():
        target = tmp_path / "run" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    (tmp_path / "elsewhere").mkdir()
    surroundings = [
        ([], "up", "022", tmp_path, {"LC_ALL": "C", "TZ": "UTC", "PYTHONHASHSEED": "0"}),
        (["-O"], "down", "077", tmp_path / "elsewhere", {"LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu"}),
        ([], "down", "000", Path("/"), {"LC_ALL": "C.UTF-8", "TZ": "Pacific/Apia", "PYTHONHASHSEED": "4294967295"}),
    ]
    found = []
    for flags, order, mask, folder, variables in surroundings:
        environment = {"PATH": os.defpath, "PYTHONPATH": str(REPOSITORY / "src"), **variables}
        command = [sys.executable, *flags, "-B", "-c", SCRIPT, str(tmp_path / "run"), order, mask]
        found.append(subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE).stdout)
    assert set(found) == {decided()}
