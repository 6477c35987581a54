"""Plans, raw samples and A/A: what stands behind a figure, and every way in which it might not."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.evidence import (
    LAUNCHES,
    Changes,
    Made,
    RunMaker,
    Value,
    acceptance,
    deciding,
    evidence,
    fired,
    lines_of,
    outcome,
    ratios,
)

from akf.contracts.canonical import digest, jcs
from akf.contracts.problems import IntegrityError

PROMOTABLE = ("promotable", 7, "ALL_GATES_HOLD")
GAIN = "operator/op-latency.gain"
PAIRED = ("operator", "reproduction")


def measurement(plan: Value, name: str) -> Value:
    found: Value = next(each for each in plan["measurements"] if each["id"] == name)
    return found


def replanned(gate: str, name: str, change: Callable[[Value], object]) -> dict[str, Any]:
    return {"edit": {f"plan/{gate}": lambda plan: change(measurement(plan, name))}}


# Plans that measure something else than the Campaign asks for


@pytest.mark.parametrize(
    ("gate", "name", "change"),
    [
        ("operator", "op-latency.gain", {"metric": "throughput"}),
        ("operator", "op-latency.gain", {"unit": "us"}),
        ("operator", "op-latency.gain", {"better": "higher"}),
        ("operator", "op-latency.gain", {"statistic": "quantile", "quantile": 0.5}),
        ("operator", "op-latency.gain", {"pairs": 7}),
        ("operator", "op-latency.gain", {"pairs": 12}),
        ("operator", "op-latency.gain", {"blocks": 3}),
        ("operator", "op-latency.gain", {"design": "legs"}),
        ("operator", "op-latency.gain", {"rule": "op-latency.x"}),
        ("model", "model-latency.gain", {"design": "abba"}),
        ("model", "model-latency.gain", {"blocks": 3}),
        ("serving", "ttft-p90.guard", {"quantile": 0.5}),
        ("serving", "ttft-p90.guard", {"statistic": "median"}),
        ("serving", "goodput.guard", {"better": "lower"}),
        ("reproduction", "tpot.gain", {"pairs": 6}),
        ("reproduction", "tpot.gain", {"rows": [{"id": "all", "weight": 2.0, "launches": 1}]}),
        ("reproduction", "tpot.gain", {"rows": [{"id": "easy", "weight": 1.0, "launches": 1}]}),
    ],
)
def test_a_plan_that_departs_from_the_campaign_is_incomparable(gate: str, name: str, change: Value) -> None:
    decision = evidence(**replanned(gate, name, lambda planned: planned.update(change))).decide()
    if "rule" in change:
        assert deciding(decision) == ("incomplete", 5, "SAMPLES_MISSING")
    elif gate == "reproduction" and "rows" in change:
        assert decision["row"] in {2, 5}  # A/A of other rows is none
    else:
        assert deciding(decision) == ("incomparable", 2, "PLAN_DIFFERS")


def test_reproduction_weighs_the_rows_that_its_gain_was_first_shown_on() -> None:
    rows = [{"id": "all", "weight": 2.0, "launches": 1}]
    both = {"plan/reproduction": lambda plan: _each(plan, "tpot", {"rows": rows})}
    assert deciding(evidence(edit=both).decide()) == ("incomparable", 2, "PLAN_DIFFERS")


def _each(plan: Value, rule: str, change: Value) -> None:
    for planned in plan["measurements"]:
        if planned["rule"] == rule:
            planned.update(change)


@pytest.mark.parametrize(
    "rows",
    [
        [("decode-1", 0.5), ("decode-8", 0.5)],
        [("decode-1", 0.4)],
        [("decode-1", 0.4), ("decode-8", 0.6), ("decode-16", 0.1)],
        [("decode-1", 0.4), ("decode-8", 0.6), ("decode-8", 0.6)],
        [("decode-1", 0.4), ("decode-8", 0.60000001)],
        [("decode-1", 0.6), ("decode-8", 0.4)],
    ],
)
def test_rows_and_weights_of_the_operator_gate_are_the_tasks(rows: list[tuple[str, float]]) -> None:
    planned = [{"id": name, "weight": weight, "launches": LAUNCHES.get(name, 1)} for name, weight in rows]
    change = {"plan/operator": lambda plan: _each(plan, "op-latency", {"rows": planned})}
    decision = evidence(edit=change).decide()
    assert deciding(decision) == ("incomparable", 2, "PLAN_DIFFERS")


def test_the_order_of_rows_is_no_difference() -> None:
    change = {"plan/operator": lambda plan: _each(plan, "op-latency", {"rows": plan["measurements"][0]["rows"][::-1]})}
    assert deciding(evidence(edit=change).decide()) == PROMOTABLE


def test_two_measurements_for_one_rule_leave_no_choice() -> None:
    """Whichever comes first, the nicer one cannot be picked afterwards."""

    def doubled(first: bool) -> Callable[[Value], None]:
        def edit(plan: Value) -> None:
            planned = measurement(plan, "op-latency.gain")
            folder = planned["path"].rpartition("/")[0]
            again = planned | {"id": "again", "path": f"{folder}/again.jsonl"}
            plan["measurements"].insert(0 if first else len(plan["measurements"]), again)

        return edit

    for first in (True, False):
        decision = evidence(edit={"plan/operator": doubled(first)}).decide()
        assert deciding(decision) == ("incomparable", 2, "PLAN_DIFFERS")


def test_two_measurements_of_one_name_are_not_told_apart() -> None:
    """A gain and its A/A under one name: whichever is read, it could be the other."""
    decision = evidence(**replanned("serving", "ttft-p90.guard", lambda each: each.update(id="ttft-p90.aa"))).decide()
    assert deciding(decision) == ("incomparable", 2, "PLAN_DIFFERS")


@pytest.mark.parametrize(
    ("gate", "name", "source"),
    [
        ("serving", "ttft-p90.guard", "ttft-p90.aa"),
        ("serving", "ttft-p90.guard", "tpot.gain"),
        ("serving", "goodput.guard", "goodput.aa"),
        ("operator", "op-latency.gain", "op-latency.aa"),
    ],
)
def test_a_file_serves_one_thing(gate: str, name: str, source: str) -> None:
    """A guard that is computed from A/A, or from another metric's samples, would always hold."""

    def edit(plan: Value) -> None:
        other = measurement(plan, source)
        measurement(plan, name).update(path=other["path"], samples=other["samples"])

    decision = evidence(edit={f"plan/{gate}": edit}).decide()
    assert deciding(decision) == ("incomparable", 2, "PLAN_DIFFERS")


def test_two_statistics_of_one_metric_may_share_their_samples() -> None:
    def campaign(value: Value) -> None:
        acceptance(ttft_p90={"metric": "tpot"})(value)

    def plan(value: Value) -> None:
        for purpose, mine in (("aa", "aa"), ("gain", "guard")):
            other, this = measurement(value, f"tpot.{purpose}"), measurement(value, f"ttft-p90.{mine}")
            this.update(path=other["path"], samples=other["samples"])

    many = {f"serving/tpot.{each}": _tail for each in ("aa", "gain")}
    decision = evidence(edit={"campaign": campaign, "plan/serving": plan}, samples=many).decide()
    assert deciding(decision) == PROMOTABLE


def _tail(records: list[Value]) -> list[Value]:
    return [record | {"values": record["values"] * 17} for record in records]


@pytest.mark.parametrize(
    ("gate", "name", "source"),
    [
        ("reproduction", "op-latency.gain", "operator/op-latency.gain"),
        ("reproduction", "tpot.gain", "serving/tpot.gain"),
        ("serving", "ttft-p90.guard", "serving/ttft-p90.aa"),
    ],
)
def test_measured_times_never_repeat_to_the_nanosecond(gate: str, name: str, source: str) -> None:
    """Reproduction data must be fresh; a copy of the first gate's file is not."""
    made = evidence()
    folder, _, measured = source.partition("/")
    data = made.files[f"{made.base}/samples/{folder}/{measured}.jsonl"]
    decision = evidence(samples={f"{gate}/{name}": lambda _: data}).decide()
    rule, _, kind = name.rpartition(".")
    assert decision["verdict"] == "incomplete"
    assert (5, "SAMPLES_REUSED", gate, f"{kind}:{rule}") in fired(decision)


def test_a_metric_that_is_not_a_time_may_repeat() -> None:
    made = evidence()
    data = made.files[f"{made.base}/samples/serving/goodput.aa.jsonl"]
    assert deciding(evidence(samples={"serving/goodput.guard": lambda _: data}).decide()) == PROMOTABLE


# Samples


def dropped(records: list[Value]) -> list[Value]:
    return sorted(records, key=lambda record: max(record["values"]))[:-3]


def twice(records: list[Value]) -> list[Value]:
    return [*records, records[3]]


def unplanned(records: list[Value]) -> list[Value]:
    return [*records, records[3] | {"id": "p99.b0.s0.decode-1"}]


def renamed(records: list[Value]) -> list[Value]:
    return [records[0] | {"id": "best"}, *records[1:]]


def change_first(**change: Any) -> Callable[[list[Value]], list[Value]]:
    return lambda records: [records[0] | change, *records[1:]]


def swapped_sides(records: list[Value]) -> list[Value]:
    return [record | {"side": "AB"[record["side"] == "A"]} for record in records]


def swapped_rows(records: list[Value]) -> list[Value]:
    names = {"decode-1": "decode-8", "decode-8": "decode-1"}
    return [records[0] | {"row": names[records[0]["row"]]}, *records[1:]]


@pytest.mark.parametrize(
    "change",
    [
        dropped,
        twice,
        unplanned,
        renamed,
        swapped_sides,
        swapped_rows,
        lambda records: records[:-1],
        lambda records: records[:0],
        change_first(values=[]),
        change_first(values=[0]),
        change_first(values=[-1]),
        change_first(pair=8),
        change_first(pair=-1),
        change_first(block=1),
        change_first(segment=4),
        change_first(side="C"),
    ],
)
def test_planned_samples_are_there_once_each_or_there_is_no_figure(
    change: Callable[[list[Value]], list[Value]],
) -> None:
    decision = evidence(samples={GAIN: change}).decide()
    assert deciding(decision) == ("incomplete", 5, "SAMPLES_MISSING")
    assert outcome(decision, "operator", "gain:op-latency") == "not_run"
    assert outcome(decision, "operator", "row:decode-1") == "not_run"


def raw(change: Callable[[bytes], bytes]) -> Callable[[list[Value]], bytes]:
    return lambda records: change(lines_of(records))


@pytest.mark.parametrize(
    "change",
    [
        change_first(id=["p00"]),
        change_first(id=7),
        change_first(row={"decode-1": 1}),
        change_first(pair="0"),
        change_first(pair=True),
        change_first(pair=0.5),
        change_first(side=None),
        change_first(values="12345"),
        change_first(values={"0": 1}),
        change_first(extra=1),
        lambda records: [{name: item for name, item in records[0].items() if name != "side"}, *records[1:]],
        raw(lambda data: data[:-1]),
        raw(lambda data: data + b"\n"),
        raw(lambda data: b"\n" + data),
        raw(lambda data: data.replace(b'"pair":0', b'"pair":0,"pair":0', 1)),
        raw(lambda data: data.replace(b'"pair":0', b'"pair": 0', 1)),
        raw(lambda data: data.replace(b'"pair":0', b'"pair":-0', 1)),
        raw(lambda data: data.replace(b'"pair":0', b'"pair":NaN', 1)),
        raw(lambda data: data.replace(b'"values":[', b'"values":[1e999,', 1)),
        raw(lambda data: data.replace(b'"values":[', b'"values":[36893488147419103232,', 1)),
        raw(lambda data: data.replace(b'"values":[', b'"values":[9007199254740993,', 1)),
        raw(lambda data: data.replace(b'"values":[', b'"values":[' + b"[" * 2000, 1)),
        raw(lambda data: data.replace(b"decode-1", b"decode-\xff", 1)),
        raw(lambda data: b"[]\n" + data),
        raw(lambda data: b"null\n" + data),
        raw(lambda data: b"\x00" + data),
        raw(lambda data: b"\xef\xbb\xbf" + data),
        raw(lambda data: data.replace(b"\n", b"\r\n")),
    ],
)
def test_a_sample_line_is_read_in_one_way_or_not_at_all(change: Callable[[list[Value]], list[Value] | bytes]) -> None:
    decision = evidence(samples={GAIN: change}).decide()
    assert deciding(decision) == ("incomplete", 5, "SAMPLES_MALFORMED")


@pytest.mark.parametrize(
    "values",
    [[1.5], [True], [None], ["1"], [-1], [[1]]],
    ids=["fraction", "boolean", "nothing", "text", "negative", "list"],
)
def test_raw_values_are_whole_numbers_above_zero(values: list[Any]) -> None:
    decision = evidence(samples={GAIN: change_first(values=values)}).decide()
    assert deciding(decision) == ("incomplete", 5, "SAMPLES_MISSING")


def test_one_wild_value_among_eight_pairs_is_judged_as_it_stands() -> None:
    for value in (1, 2**53 - 1):
        found = [evidence(samples={f"{gate}/op-latency.gain": change_first(values=[value])}) for gate in PAIRED]
        assert {made.decide()["row"] for made in found} <= {1, 5, 7}


def test_the_order_of_the_lines_is_no_input_to_the_figures() -> None:
    def checks(decision: Value) -> Any:
        return decision["checks"]

    backwards = evidence(samples={GAIN: lambda records: records[::-1]}).decide()
    assert checks(backwards) == checks(evidence().decide())


def test_a_gate_that_names_no_samples_has_measured_nothing() -> None:
    made = evidence(edit={"gates/model": lambda gate: gate.update(samples=[])})
    made.files = {path: data for path, data in made.files.items() if "/samples/model/" not in path}
    assert deciding(made.decide()) == ("incomplete", 5, "SAMPLES_MISSING")


def test_a_quantile_needs_its_samples() -> None:
    fewer = {"serving/ttft-p90.guard": lambda records: [r | {"values": r["values"][:16]} for r in records]}
    decision = evidence(samples=fewer).decide()
    assert deciding(decision) == ("incomplete", 5, "SAMPLES_TOO_FEW")


def test_a_total_weighs_the_latency_of_a_launch_and_not_that_of_a_batch() -> None:
    """Rows are timed in batches of different numbers of launches; the plan says of how many."""
    rows = {"decode-1": (0.40, 0.42), "decode-8": (0.01, 0.02)}
    decision = evidence(rows=rows).decide()
    (found,) = [c for c in decision["checks"] if (c["gate"], c["check"]) == ("operator", "gain:op-latency")]
    weights, sizes = {"decode-1": 0.4, "decode-8": 0.6}, {"decode-1": 1, "decode-8": 8}
    base = sum(weights[row] * sizes[row] for row in rows)
    totals = [
        base / sum(weights[row] * sizes[row] / ratios(wanted, 8)[pair] for row, wanted in rows.items())
        for pair in range(8)
    ]
    assert min(totals) - 0.002 <= found["interval"]["low"] <= found["interval"]["high"] <= max(totals) + 0.002


@pytest.mark.parametrize("weight", [1e-15, 1.0, float(2**53 - 1)])
def test_weights_of_any_size_are_weighed(weight: float) -> None:
    edit = {"task": lambda task: task["rows"][0].update(weight=weight)}
    assert deciding(evidence(edit=edit).decide()) == PROMOTABLE


def test_a_row_without_weight_is_never_judged() -> None:
    edit = {"task": lambda task: task["rows"][0].update(weight=0)}
    assert deciding(evidence(edit=edit).decide()) == ("incomplete", 5, "SAMPLES_MALFORMED")


def test_a_row_that_stands_twice_in_the_task_is_never_judged() -> None:
    edit = {"task": lambda task: task["rows"].append(task["rows"][0] | {"symbols": {"T": 16}})}
    decision = evidence(edit=edit).decide()
    assert decision["row"] == 2
    assert decision["envelope"]["rows"] == []


# A/A


def without_aa(*gates: str) -> dict[str, Any]:
    def edit(plan: Value) -> None:
        plan["measurements"] = [each for each in plan["measurements"] if each["purpose"] != "aa"]

    return {"edit": {f"plan/{gate}": edit for gate in gates}}


def test_without_noise_there_is_no_figure() -> None:
    for gate in ("operator", "model", "serving"):
        decision = evidence(**without_aa(gate)).decide()
        assert deciding(decision) == ("incomplete", 5, "AA_MISSING")


def test_reproduction_falls_back_on_the_noise_of_the_first_gate() -> None:
    assert deciding(evidence(**without_aa("reproduction")).decide()) == PROMOTABLE
    decision = evidence(**without_aa("reproduction"), noise={"serving/tpot": (-0.03, 0.03)}).decide()
    assert (2, "NOISE_TOO_HIGH", "reproduction", "gain:tpot") in fired(decision)


def test_noise_of_its_own_that_broke_is_not_replaced_by_another_gates() -> None:
    decision = evidence(samples={"reproduction/op-latency.aa": dropped}).decide()
    assert deciding(decision) == ("incomplete", 5, "AA_MISSING")


def test_noise_of_a_gate_of_another_identity_or_not_measured_is_none() -> None:
    other = evidence(**without_aa("reproduction"), identity={"serving": {"arm": "other"}}).decide()
    assert outcome(other, "reproduction", "gain:tpot") == "not_run"
    simulated = without_aa("reproduction")
    simulated["edit"]["gates/serving"] = lambda gate: gate.update(evidence="simulated")
    assert outcome(evidence(**simulated).decide(), "reproduction", "gain:tpot") == "not_run"


@pytest.mark.parametrize(
    ("noise", "row"),
    [
        ((-0.009, 0.009), 7),  # inside the limit of 1 %
        ((-0.019, 0.019), 7),  # outside, below every threshold and margin
        ((-0.021, 0.019), 2),  # could swallow the margin of a row, 2 %
        ((0.005, 0.019), 7),  # does not contain 1, too small to swallow anything
        ((0.021, 0.03), 2),
        ((-0.3, 0.3), 2),
    ],
)
def test_noise_counts_where_it_could_swallow_the_answer(noise: tuple[float, float], row: int) -> None:
    assert evidence(noise={"operator/op-latency": noise}).decide()["row"] == row


def test_noise_has_the_rows_and_weights_of_what_it_bounds() -> None:
    rows = [{"id": "all", "weight": 2.0, "launches": 1}]
    decision = evidence(**replanned("model", "model-latency.aa", lambda aa: aa.update(rows=rows))).decide()
    assert deciding(decision) == ("incomplete", 5, "AA_MISSING")


def test_noise_beside_a_gain_is_of_the_same_batches() -> None:
    """Launches turn a batch into a launch, so another number of them is another weight of the row."""
    rows = [{"id": "decode-1", "weight": 0.4, "launches": 2000}, {"id": "decode-8", "weight": 0.6, "launches": 10**15}]
    decision = evidence(**replanned("operator", "op-latency.gain", lambda gain: gain.update(rows=rows))).decide()
    assert deciding(decision) == ("incomplete", 5, "AA_MISSING")


def test_two_measurements_of_noise_leave_no_choice() -> None:
    def edit(plan: Value) -> None:
        aa = measurement(plan, "tpot.aa")
        plan["measurements"].append(aa | {"id": "second", "path": aa["path"].replace("tpot.aa", "second")})

    decision = evidence(edit={"plan/serving": edit}).decide()
    assert deciding(decision) == ("incomplete", 5, "AA_MISSING")


# A/A that another attempt measured


def lent(change: Callable[[Value], object] | None = None, first: dict[str, Any] | None = None) -> Made:
    """Two attempts; the operator gate of the second uses the first one's A/A."""
    run = RunMaker(Changes(candidate="first", **(first or {})))
    run.attempt()
    plan = run.made("first").value("plan/operator.json")
    aa = measurement(plan, "op-latency.aa")

    def borrow(value: Value) -> None:
        value["measurements"][0] = dict(aa)
        if change is not None:
            change(value["measurements"][0])

    run.attempt(candidate="second", edit={"plan/operator": borrow}, identity={})
    return run.made("second")


def test_an_earlier_attempt_may_lend_its_noise() -> None:
    made = lent()
    decision = made.decide()
    assert (deciding(decision), decision["tries"]) == (PROMOTABLE, 2)
    own = [path for path in made.files if path.startswith("attempts/second/samples/operator/")]
    assert own == ["attempts/second/samples/operator/op-latency.gain.jsonl"]


@pytest.mark.parametrize(
    "path",
    [
        "attempts/first/gates/operator.json",
        "attempts/first/plan/operator.json",
        "attempts/first/candidate.json",
        "attempts/first/build.json",
        "attempts/first/gates/operator.sig.json",
        "attempts/first/samples/operator/op-latency.aa.jsonl",
    ],
)
def test_what_stands_behind_lent_noise_must_be_there_and_hold(path: str) -> None:
    made = lent()
    data = made.files.pop(path)
    with pytest.raises(IntegrityError):
        made.decide()
    made.files[path] = data.replace(b"first", b"fitst", 1) if b"first" in data else data.replace(b"1", b"2", 1)
    assert made.files[path] != data
    with pytest.raises(IntegrityError):
        made.decide()


@pytest.mark.parametrize(
    "path",
    [
        "attempts/first/samples/model/model-latency.aa.jsonl",
        "attempts/first/samples/reproduction/op-latency.aa.jsonl",
        "attempts/second/source/kernel.cpp",
        "attempts/first/build/candidate/kernel.so",
    ],
)
def test_only_noise_of_the_same_kind_of_gate_is_lent(path: str) -> None:
    made = lent(lambda aa: aa.update(path=path))
    with pytest.raises(IntegrityError):
        made.decide()


def test_lent_noise_was_planned_as_it_is_used_and_under_this_identity() -> None:
    gain = "attempts/first/samples/operator/op-latency.gain.jsonl"
    for decision in (
        lent(lambda aa: aa.update(path=gain)).decide(),
        lent(lambda aa: aa.update(rows=aa["rows"][::-1])).decide(),
        lent(first={"identity": {"operator": {"machine_digest": digest(b"other")}}}).decide(),
        lent(first={"edit": {"gates/operator": lambda gate: gate.update(evidence="simulated")}}).decide(),
    ):
        assert deciding(decision) == ("incomplete", 5, "AA_MISSING")


def test_a_gain_is_never_taken_from_another_attempt() -> None:
    run = RunMaker(Changes(candidate="first"))
    run.attempt()
    theirs = measurement(run.made("first").value("plan/operator.json"), "op-latency.gain")
    borrow = {"plan/operator": lambda plan: plan["measurements"].__setitem__(1, dict(theirs))}
    run.attempt(candidate="second", edit=borrow)
    with pytest.raises(IntegrityError, match="no sample file of this gate"):
        run.made("second").decide()


def test_noise_and_gain_under_one_path_lend_nothing() -> None:
    """A path that is A/A and gain at once would let a gain in through the door of A/A."""
    run = RunMaker(Changes(candidate="first"))
    run.attempt()
    first = run.made("first").value("plan/operator.json")

    def borrow(plan: Value) -> None:
        theirs = measurement(first, "op-latency.gain")
        plan["measurements"] = [dict(theirs), theirs | {"id": "op-latency.aa", "purpose": "aa"}]

    run.attempt(candidate="second", edit={"plan/operator": borrow})
    with pytest.raises(IntegrityError, match="no sample file of this gate"):
        run.made("second").decide()


def test_the_lines_of_a_file_are_as_the_builder_writes_them() -> None:
    made = evidence()
    data = made.files[f"{made.base}/samples/operator/op-latency.gain.jsonl"]
    first = data.splitlines()[0]
    assert first == jcs(
        {
            "id": "p00.b0.s0.decode-1", "row": "decode-1", "pair": 0, "block": 0, "segment": 0, "side": "A",
            "values": [int(first.rpartition(b"[")[2].rstrip(b"]}"))],
        }
    )  # fmt: skip


@pytest.mark.parametrize("planned", [3, 2, None])
def test_a_segment_has_one_value_per_planned_batch(planned: int | None) -> None:
    """One batch more or less than planned is a choice that somebody made after seeing the times."""
    decision = evidence(**replanned("operator", "op-latency.gain", lambda each: each.update(batches=planned))).decide()
    assert deciding(decision) == ("incomplete", 5, "SAMPLES_MISSING")
    three = {GAIN: lambda records: [{**each, "values": each["values"] * 3} for each in records]}
    change = replanned("operator", "op-latency.gain", lambda each: each.update(batches=planned))
    verdict, row, code = deciding(evidence(**change, samples=three).decide())
    assert (code == "SAMPLES_MISSING") is (planned != 3), (verdict, row)
