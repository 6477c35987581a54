"""Rows 1 to 7 of the decision table, each with its ways in, and what can never lead to the last."""

import copy
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, get_args

import pytest
from tests.support.evidence import Made, Value, acceptance, deciding, evidence, fired, outcome

from akf.contracts.canonical import digest
from akf.contracts.gates import GATES, required_checks
from akf.contracts.models.gate import Outcome

PROMOTABLE = ("promotable", 7, "ALL_GATES_HOLD")
NOT_PASS = [each for each in get_args(Outcome) if each != "pass"]
ROW_OF = {"fail": 1, "incomparable": 2, "blocked": 3, "no_gain": 5, "not_run": 5, "inconclusive": 5}
OTHERS_FAULT = {
    ("environment", "identity"): 2,
    ("environment", "toolkit_unmodified"): 2,
    ("environment", "baseline_health"): 2,
    ("operator", "sensitivity"): 3,
    ("release", "incumbent"): 2,
}
CLAIMED = [
    (gate, check)
    for gate, checks in {
        "environment": ("identity", "leases", "exclusive", "clock", "toolkit_unmodified", "baseline_health"),
        "operator": ("sensitivity", "correctness", "isfinite", "hit_proof", "timing"),
        "model": ("accuracy_smoke", "hit_proof", "graph", "peak_hbm", "accuracy:gsm8k"),
        "serving": ("hit_proof", "error_rate", "peak_hbm", "kv_capacity", "max_concurrency", "stability"),
        "reproduction": ("load", "hit_proof", "replay", "cleanup"),
        "release": ("owner", "license", "rollback", "cleanup", "envelope", "fallback", "incumbent"),
    }.items()
    for check in checks
]
MEASURED = [
    ("operator", "gain:op-latency"),
    ("operator", "row:decode-1"),
    ("operator", "row:decode-8"),
    ("model", "gain:model-latency"),
    ("serving", "gain:tpot"),
    ("serving", "guard:ttft-p90"),
    ("serving", "guard:goodput"),
    ("reproduction", "gain:op-latency"),
    ("reproduction", "gain:model-latency"),
    ("reproduction", "gain:tpot"),
]


@cache
def ascend() -> Made:
    return evidence(platform="ascend")


def with_check(gate: str, name: str, change: Callable[[Value], object]) -> Made:
    """The promotable Ascend run with one check of one gate changed, signed and written down again."""
    base = ascend()
    made = Made(dict(base.files), base.candidate, base.signers)
    path = f"{made.base}/gates/{gate}.json"
    value = made.value(path)
    for check in value["checks"]:
        if check["name"] == name:
            change(check)
    made.put(path, value)
    return made


def outcomes_of(gate: str, name: str, told: str, **more: Any) -> Value:
    return with_check(gate, name, lambda check: check.update(outcome=told, **more)).decide()


# Row 7


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"platform": "ascend"},
        {"platform": "ascend", "graph": "graph", "tp": 2},
        {"isolation": "bwrap"},
        {"others": 5},
        {"abi": "python", "edit": {"campaign": lambda value: value["promotion"].update(python_abi=True)}},
        {"edit": {"gates/operator": lambda value: value.update(status="not_run")}},
    ],
    ids=["host", "ascend", "ascend-two-ranks", "bwrap", "six-tries", "python-allowed", "status-is-no-input"],
)
def test_six_gates_that_hold_are_promotable(changes: dict[str, Any]) -> None:
    decision = evidence(**changes).decide()
    assert deciding(decision) == PROMOTABLE
    assert decision["missing"] == []
    assert [row["id"] for row in decision["envelope"]["rows"]] == ["decode-1", "decode-8"]


def test_the_lists_of_checks_above_are_all_that_a_gate_must_hold() -> None:
    campaign = ascend().value("campaign.json")
    wanted = {(gate, name) for gate in GATES for name in required_checks(gate, campaign, ("decode-1", "decode-8"))}
    assert wanted == {*CLAIMED, *MEASURED}


def test_a_decision_names_every_parent_and_the_ledger_up_to_the_last_gate() -> None:
    made = evidence()
    decision = made.decide()
    kinds = [parent["kind"] for parent in decision["parents"]]
    assert (
        kinds
        == ["Run", "OptimizationSuite", "Campaign", "Workload", "Capture", "Triage", "Task", "Candidate", "Build"]
        + ["Plan"] * 6
        + ["Gate"] * 6
    )
    known = {digest(data) for data in made.files.values()}
    assert {parent["digest"] for parent in decision["parents"]} <= known
    assert decision["ledger_lines"] == len(made.lines())
    assert decision["ledger_head"] == digest(made.files["ledger.jsonl"].splitlines(keepends=True)[-1])
    assert (decision["tries"], decision["isolation"], decision["trust"]) == (1, "userns", "signed")


# Row 5: what was not made, not run or not decided


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_that_was_not_made_is_named_and_missing(gate: str) -> None:
    decision = evidence(gates=[each for each in GATES if each != gate]).decide()
    assert deciding(decision) == ("incomplete", 5, "GATE_MISSING")
    assert {"gate": gate} in decision["missing"]


def test_an_attempt_without_any_gate_misses_all_six() -> None:
    decision = evidence(gates=()).decide()
    assert deciding(decision) == ("incomplete", 5, "GATE_MISSING")
    assert decision["missing"] == [{"gate": gate} for gate in GATES]
    assert "isolation" not in decision


@pytest.mark.parametrize(("gate", "name"), [*CLAIMED, *MEASURED])
def test_a_check_that_is_left_out_is_missing(gate: str, name: str) -> None:
    decision = with_check(gate, name, lambda check: check.update(name="something_else")).decide()
    assert deciding(decision) == ("incomplete", 5, "CHECK_MISSING")
    assert fired(decision) == {(5, "CHECK_MISSING", gate, name)}


@pytest.mark.parametrize("name", ["Correctness", "correctness ", "correctnes\u0455", "gain:op", "row:decode-2"])
def test_a_look_alike_is_another_check(name: str) -> None:
    wanted = {"g": "gain:op-latency", "r": "row:decode-1"}.get(name[0].lower(), "correctness")
    decision = with_check("operator", wanted, lambda check: check.update(name=name)).decide()
    assert deciding(decision) == ("incomplete", 5, "CHECK_MISSING")
    assert outcome(decision, "operator", wanted) == "not_run"


@pytest.mark.parametrize("told", NOT_PASS)
def test_no_outcome_but_pass_of_a_required_check_leads_to_promotion(told: str) -> None:
    for gate, name in CLAIMED:
        fault = OTHERS_FAULT.get((gate, name)) or (3 if gate == "environment" else None)
        row = fault if fault and told in {"fail", "no_gain"} else ROW_OF[told]
        decision = outcomes_of(gate, name, told)
        assert decision["row"] == row, (gate, name)
        assert decision["reasons"][0]["check"] == name


def test_a_gate_that_checks_something_else_holds_nothing() -> None:
    for gate in GATES:
        nothing = {"name": "all_good", "category": "evidence", "outcome": "pass", "profiler": "off"}
        edit = {f"gates/{gate}": lambda value, nothing=nothing: value.update(checks=[nothing], status="pass")}
        decision = evidence(edit=edit).decide()
        assert deciding(decision) == ("incomplete", 5, "CHECK_MISSING")
        assert {reason["gate"] for reason in decision["reasons"]} == {gate}


def test_an_environment_check_never_says_that_the_candidate_failed() -> None:
    assert outcomes_of("environment", "clock", "fail", reasons=["CLOCK_LOW"])["verdict"] == "blocked"


def test_an_evaluation_of_the_operator_alone_is_incomplete() -> None:
    decision = evidence(gates=("environment", "operator")).decide()
    assert deciding(decision) == ("incomplete", 5, "GATE_MISSING")
    assert [missing["gate"] for missing in decision["missing"]] == ["model", "serving", "reproduction", "release"]


def test_evidence_that_was_not_measured_neither_passes_nor_fails() -> None:
    for told in ("simulated", "modelled"):
        wrong = {"operator/correctness": {"outcome": "fail", "reasons": ["WRONG_RESULT"]}}
        decision = evidence(evidence=told, outcomes=wrong).decide()
        assert deciding(decision) == ("incomplete", 5, "EVIDENCE_NOT_MEASURED")


def test_a_profiler_at_a_timed_check_voids_it_but_not_a_hit_proof() -> None:
    for gate, name in [*MEASURED, ("model", "accuracy:gsm8k")]:
        decision = outcomes_of(gate, name, "pass", profiler="on")
        assert deciding(decision) == ("incomplete", 5, "PROFILER_ON"), name
    peak = {"serving/peak_hbm": {"category": "guard", "profiler": "on", "outcome": "fail"}}
    assert deciding(evidence(outcomes=peak).decide()) == ("incomplete", 5, "PROFILER_ON")
    assert deciding(outcomes_of("serving", "hit_proof", "pass", profiler="on")) == PROMOTABLE


@pytest.mark.parametrize("gate", ["operator", "model", "serving", "reproduction"])
@pytest.mark.parametrize(
    "ranks",
    [[0], [1], [0, 0], [0, 1, 2], [0, 2], [None]],
    ids=["first", "second", "first-twice", "one-too-many", "another", "none-named"],
)
def test_a_hit_is_proved_on_exactly_the_ranks_there_are(gate: str, ranks: Sequence[int | None]) -> None:
    proofs = [{} if rank is None else {"rank": rank} for rank in ranks]
    decision = evidence(platform="ascend", tp=2, outcomes={f"{gate}/hit_proof": proofs}).decide()
    assert deciding(decision) == ("incomplete", 5, "RANK_MISSING")


@pytest.mark.parametrize("gate", ["model", "serving"])
@pytest.mark.parametrize("buckets", [(1,), (8,), (1, 4), ()])
def test_a_hit_inside_the_engine_is_proved_in_every_captured_size(gate: str, buckets: Sequence[int]) -> None:
    proofs = [{"rank": 0, "bucket_tokens": size} for size in buckets] or [{"rank": 0}]
    decision = evidence(platform="ascend", graph="graph", outcomes={f"{gate}/hit_proof": proofs}).decide()
    assert deciding(decision) == ("incomplete", 5, "BUCKET_MISSING")


def test_a_callsite_that_the_workload_does_not_know_has_no_proof_of_its_graphs() -> None:
    task = {"task": lambda value: value.update(callsite="unheard-of")}
    decision = evidence(platform="ascend", graph="graph", opportunity=False, edit=task).decide()
    assert deciding(decision) == ("incomplete", 5, "BUCKET_MISSING")


@pytest.mark.parametrize("others", [6, 20])
def test_many_tries_need_more_pairs_than_there_are(others: int) -> None:
    decision = evidence(others=others).decide()
    assert deciding(decision) == ("incomplete", 5, "SAMPLES_TOO_FEW")
    assert decision["tries"] == others + 1
    assert {missing["gate"] for missing in decision["missing"]} == {"reproduction"}
    assert all(missing["pairs_to_decide"] > 8 for missing in decision["missing"])


def test_a_gain_that_only_the_best_of_many_shows_is_not_shown() -> None:
    gains = {"reproduction/op-latency": (0.055, 0.30)}
    assert deciding(evidence(gains=gains).decide()) == PROMOTABLE
    decision = evidence(gains=gains, others=5).decide()
    assert deciding(decision) == ("incomplete", 5, "MANY_TRIES")
    assert decision["missing"][0]["pairs_to_decide"] > 8


@pytest.mark.parametrize("gate", ["operator", "reproduction"])
def test_an_evaluation_that_was_started_again_is_one_more_try(gate: str) -> None:
    assert evidence(resumes={gate: 2}).decide()["tries"] == 3
    assert deciding(evidence(resumes={gate: 6}).decide()) == ("incomplete", 5, "SAMPLES_TOO_FEW")


def test_reproduction_that_excludes_the_gain_is_no_promotion() -> None:
    decision = evidence(gains={"reproduction/op-latency": (0.0, 0.02)}).decide()
    assert deciding(decision) == ("incomplete", 5, "REPRODUCTION_DIFFERS")


# Row 1


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"gains": {"operator/op-latency": (-0.2, -0.1)}}, "LOSS_SHOWN"),
        ({"gains": {"model/model-latency": (-0.2, -0.1)}}, "LOSS_SHOWN"),
        ({"gains": {"serving/tpot": (-0.2, -0.1)}}, "LOSS_SHOWN"),
        ({"gains": {"serving/ttft-p90": (-0.2, -0.1)}}, "GUARD_BROKEN"),
        ({"gains": {"serving/goodput": (-0.2, -0.1)}}, "GUARD_BROKEN"),
        ({"gains": {"reproduction/tpot": (-0.2, -0.1)}}, "LOSS_SHOWN"),
        ({"rows": {"decode-1": (-0.2, -0.1), "decode-8": (0.4, 0.5)}}, "ROW_REGRESSED"),
    ],
)
def test_what_the_samples_show_as_worse_rejects_whatever_the_gate_says(changes: dict[str, Any], code: str) -> None:
    decision = evidence(**changes).decide()
    assert deciding(decision) == ("rejected", 1, code)


def test_a_candidate_that_fails_is_rejected_without_the_later_gates() -> None:
    wrong = {"operator/correctness": {"outcome": "fail", "reasons": ["WRONG_RESULT"]}}
    decision = evidence(gates=("environment", "operator"), outcomes=wrong).decide()
    assert deciding(decision) == ("rejected", 1, "WRONG_RESULT")
    assert decision["envelope"]["rows"] == []


def test_one_failure_among_repetitions_of_a_check_is_a_failure() -> None:
    for others, verdict in (("fail", "rejected"), ("incomparable", "incomparable"), ("blocked", "blocked")):
        twice = [{"outcome": "pass"}, {"outcome": others}, {"outcome": "pass"}]
        assert evidence(outcomes={"operator/correctness": twice}).decide()["verdict"] == verdict
        assert evidence(outcomes={"operator/correctness": twice[::-1]}).decide()["verdict"] == verdict


def test_a_check_beyond_the_required_ones_may_fail_but_not_excuse() -> None:
    def extra(told: str) -> Value:
        check = {"name": "beyond", "category": "evidence", "outcome": told, "profiler": "off"}
        return evidence(extra={"operator": [check]}).decide()

    assert deciding(extra("fail")) == ("rejected", 1, "CHECK_FAILED")
    for told in ("pass", "blocked", "incomparable", "not_run", "no_gain", "inconclusive"):
        assert deciding(extra(told)) == PROMOTABLE


def test_a_gain_that_a_gate_need_not_show_decides_nothing_when_it_is_excluded() -> None:
    for gate, rule in (("operator", "tpot"), ("serving", "op-latency")):
        check = {"name": f"gain:{rule}", "category": "gain", "outcome": "no_gain", "profiler": "off"}
        assert deciding(evidence(extra={gate: [check]}).decide()) == PROMOTABLE


# The summary against the samples


@pytest.mark.parametrize(("gate", "name"), MEASURED)
def test_a_claimed_pass_without_a_measurement_behind_it_is_not_run(gate: str, name: str) -> None:
    def drop(plan: Value) -> None:
        plan["measurements"] = [each for each in plan["measurements"] if each["rule"] != name.partition(":")[2]]
        if name.startswith("row:"):
            plan["measurements"] = []

    decision = evidence(edit={f"plan/{gate}": drop}).decide()
    assert decision["verdict"] == "incomplete"
    assert (5, "SAMPLES_MISSING", gate, name) in fired(decision)


@pytest.mark.parametrize("told", ["no_gain", "inconclusive", "fail"])
def test_a_summary_that_is_worse_than_its_samples_is_judged_by_the_samples(told: str) -> None:
    for gate, name in MEASURED:
        assert deciding(outcomes_of(gate, name, told)) == PROMOTABLE
        assert deciding(outcomes_of(gate, name, "fail", reasons=["LOSS_SHOWN", "GUARD_BROKEN"])) == PROMOTABLE


def test_what_samples_cannot_say_stands_as_it_was_said() -> None:
    for gate, name in MEASURED:
        clocks = outcomes_of(gate, name, "fail", reasons=["LOSS_SHOWN", "TIMING_MISMATCH"])
        assert clocks["verdict"] == "rejected"
        assert outcomes_of(gate, name, "not_run", reasons=["CHILD_CRASHED"])["row"] == 5
        assert outcomes_of(gate, name, "incomparable", reasons=["NOISE_TOO_HIGH"])["row"] == 2
        assert outcomes_of(gate, name, "blocked", reasons=["DEVICE_BUSY"])["row"] == 3


def test_a_long_note_does_not_keep_a_decision_from_being_written() -> None:
    decision = outcomes_of("operator", "correctness", "fail", note="x" * 4096)
    assert len(decision["reasons"][0]["text"]) == 4096


# Row 2


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_of_another_identity_is_incomparable_even_where_it_fails(gate: str) -> None:
    wrong = {"operator/correctness": {"outcome": "fail"}} if gate == "operator" else {}
    decision = evidence(identity={gate: {"model_digest": digest(b"other weights")}}, outcomes=wrong).decide()
    assert deciding(decision) == ("incomparable", 2, "IDENTITY_MISMATCH")
    assert [reason["gate"] for reason in decision["reasons"]] == [gate]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("platform", "cuda"),
        ("arm", "vllm_ascend"),
        ("lane", "matched_policy"),
        ("soc", "ascend910_9392"),
        ("toolkit", {"name": "cann", "version": "9.1.0", "build": "other"}),
        ("route", "triton_ascend"),
        ("graph", "graph"),
        ("frameworks", [{"name": "xllm", "revision": "0.0.0"}]),
        ("model_digest", digest(b"x")),
        ("workload_digest", digest(b"x")),
        ("policy_digest", digest(b"x")),
        ("machine_digest", digest(b"x")),
        ("incumbent_digest", digest(b"x")),
    ],
)
def test_every_field_of_the_identity_counts(name: str, found: Any) -> None:
    decision = evidence(platform="ascend", identity={"serving": {name: found}}).decide()
    assert deciding(decision) == ("incomparable", 2, "IDENTITY_MISMATCH")
    assert f": {name} differ" in decision["reasons"][0]["text"]


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "failed", "reasons": ["kernel.cpp:3: error"]},
        {"soc": "ascend910b"},
        {"route": "triton_ascend"},
        {"toolkit": {"name": "cann", "version": "9.1.0", "build": "other"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_build_that_is_not_the_campaigns_makes_every_gate_incomparable(change: Value) -> None:
    decision = evidence(platform="ascend", edit={"build": lambda build: build.update(change)}).decide()
    assert deciding(decision) == ("incomparable", 2, "IDENTITY_MISMATCH")
    assert {reason["gate"] for reason in decision["reasons"] if "gate" in reason} == set(GATES)


@pytest.mark.parametrize(
    "edit",
    [
        {"campaign": lambda value: value["capabilities"][0].update(op="add_rms_norm")},
        {"campaign": lambda value: value["capabilities"][0].update(graph="graph")},
        {"campaign": lambda value: value["capabilities"][0].update(dtype="float16")},
        {"campaign": lambda value: value["capabilities"][0]["shape"].append(1)},
        {"campaign": lambda value: value["capabilities"][0]["shape"][0].update(max=8)},
        {"campaign": lambda value: value["capabilities"][0]["shape"][0].update(multiple_of=2)},
        {"task": lambda value: value["rows"][1]["symbols"].update(T=17)},
        {"task": lambda value: value["rows"][1].update(symbols={"U": 8})},
        {"task": lambda value: value.update(routes=["host_cpp", "catlass_cpp"][1:])},
        {"task": lambda value: value["abi"].update(kind="python")},
    ],
)
def test_a_task_outside_every_capability_fails_closed(
    edit: dict[str, Callable[[Value], object]],
) -> None:
    decision = evidence(edit=edit).decide()
    assert decision["row"] == 2
    assert {"capability", "task"} & set(decision["reasons"][0]["text"].replace(",", "").split())


# Row 4


def test_an_excluded_model_gain_needs_no_later_gates() -> None:
    decision = evidence(
        gates=("environment", "operator", "model"), gains={"model/model-latency": (-0.01, 0.01)}
    ).decide()
    assert deciding(decision) == ("inventory", 4, "NO_MODEL_GAIN")


def test_an_excluded_serving_gain_makes_inventory() -> None:
    decision = evidence(gains={"serving/tpot": (-0.01, 0.01)}).decide()
    assert deciding(decision) == ("inventory", 4, "NO_SERVING_GAIN")


def test_an_excluded_model_gain_says_little_when_the_operator_does_not_hold() -> None:
    decision = evidence(
        outcomes={"operator/isfinite": "not_run"}, gains={"model/model-latency": (-0.01, 0.01)}
    ).decide()
    assert decision["row"] == 5


def test_the_ceiling_is_computed_again_with_the_speedup_that_was_measured() -> None:
    assert deciding(evidence(share=0.05).decide()) == ("inventory", 4, "CEILING_TOO_LOW")
    assert deciding(evidence(share=0.2).decide()) == PROMOTABLE
    fast = {"gains": {f"{gate}/op-latency": (4.0, 5.0) for gate in ("operator", "reproduction")}}
    assert deciding(evidence(share=0.05, **fast).decide()) == PROMOTABLE


# Row 6


@pytest.mark.parametrize(
    ("changes", "ground"),
    [
        ({"signed": False}, "unsigned"),
        ({"abi": "python"}, "python ABI"),
        ({"isolation": "container"}, "weaker than userns"),
        ({"isolation": "none"}, "isolation none"),
        ({"opportunity": False}, "no triage"),
    ],
)
def test_what_forbids_promotion_leaves_inventory(changes: dict[str, Any], ground: str) -> None:
    decision = evidence(**changes).decide()
    assert deciding(decision) == ("inventory", 6, "PROMOTION_FORBIDDEN")
    assert ground in decision["reasons"][0]["text"]


def test_isolation_none_leads_to_inventory_even_where_the_campaign_allows_it() -> None:
    allow = {"campaign": lambda value: value["promotion"].update(min_isolation="none")}
    assert deciding(evidence(isolation="none", edit=allow).decide()) == ("inventory", 6, "PROMOTION_FORBIDDEN")
    assert deciding(evidence(isolation="uid", edit=allow).decide()) == PROMOTABLE


def test_the_weakest_isolation_of_any_gate_counts() -> None:
    weak = {"gates/model": lambda value: value.update(isolation="uid")}
    decision = evidence(edit=weak).decide()
    assert deciding(decision) == ("inventory", 6, "PROMOTION_FORBIDDEN")
    assert decision["isolation"] == "uid"
    harmless = {f"gates/{gate}": lambda value: value.update(isolation="none") for gate in ("environment", "release")}
    assert deciding(evidence(edit=harmless).decide()) == PROMOTABLE


@pytest.mark.parametrize(("built", "said"), [("uid", "weaker than userns"), ("none", "isolation none of the Build")])
def test_the_isolation_of_the_build_counts_too(built: str, said: str) -> None:
    """A compiler that ran a stranger's source unshut could have written anything into the object."""
    decision = evidence(edit={"build": lambda value: value.update(isolation=built)}).decide()
    assert deciding(decision) == ("inventory", 6, "PROMOTION_FORBIDDEN")
    assert said in decision["reasons"][0]["text"]
    assert decision["isolation"] == "userns"
    strong = {"build": lambda value: value.update(isolation="bwrap")}
    assert deciding(evidence(edit=strong).decide()) == PROMOTABLE


def test_every_ground_is_listed() -> None:
    decision = evidence(signed=False, abi="python", isolation="none", opportunity=False).decide()
    assert [reason["row"] for reason in decision["reasons"]] == [6] * 4


def test_an_unsigned_run_that_lacks_something_is_judged_by_what_it_lacks() -> None:
    decision = evidence(signed=False, gates=("environment", "operator")).decide()
    assert deciding(decision) == ("incomplete", 5, "GATE_MISSING")
    assert 6 not in {reason["row"] for reason in decision["reasons"]}


# The order of the rows


def test_the_first_row_that_matches_decides_and_all_that_match_are_listed() -> None:
    steps: list[tuple[int, dict[str, Any]]] = [
        (1, {"outcomes": {"serving/stability": {"outcome": "fail"}}}),
        (2, {"identity": {"release": {"arm": "other"}}}),
        (3, {"outcomes": {"environment/identity": "blocked"}}),
        (4, {"gains": {"model/model-latency": (-0.01, 0.01)}}),
        (5, {"outcomes": {"reproduction/load": "not_run"}}),
    ]
    for first in range(len(steps)):
        changes: dict[str, Any] = {}
        for _, step in steps[first:]:
            for name, value in copy.copy(step).items():
                changes[name] = {**changes.get(name, {}), **value}
        decision = evidence(**changes).decide()
        assert decision["row"] == steps[first][0]
        assert {row for row, _ in steps[first:]} == {reason["row"] for reason in decision["reasons"]}


# Campaigns that a validator would refuse


@pytest.mark.parametrize(
    "campaign",
    [
        acceptance(row_margin_ratio=None),
        acceptance(row_margin_ratio=1.0),
        acceptance(op_latency={"threshold_ratio": None}),
        acceptance(op_latency={"threshold_ratio": 1e6}),
        acceptance(goodput={"margin_ratio": None}),
        acceptance(goodput={"margin_ratio": 1.0}),
        acceptance(goodput={"margin_ratio": 1e15}),
        acceptance(ttft_p90={"quantile": None}),
        acceptance(ttft_p90={"quantile": 0}),
        acceptance(ttft_p90={"quantile": 1}),
        acceptance(ttft_p90={"quantile": 0.9999999999}),
        acceptance(tpot={"threshold_ratio": 0.0}),
        acceptance(goodput={"margin_ratio": 0.0}),
        acceptance(op_latency={"gate": "model"}),
        acceptance(goodput={"id": "tpot"}),
        acceptance(goodput={"id": "ttft-p90"}),
        acceptance(model_latency={"id": "op-latency"}),
        lambda value: value["acceptance"]["pairs"].update(operator=501, model=600),
        lambda value: value["acceptance"]["pairs"].update(blocks=2),
        lambda value: value["acceptance"]["pairs"].update(serving=5),
        lambda value: value["acceptance"].update(confidence=0.9999),
    ],
)
def test_a_senseless_campaign_is_answered_and_promotes_nothing(campaign: Callable[[Value], object]) -> None:
    made = evidence()  # the samples stay those of the sound Campaign

    def edit(value: Value) -> None:
        campaign(value)

    plans = {f"plan/{gate}": _kept(made, gate) for gate in ("operator", "model", "serving", "reproduction")}
    decision = evidence(edit={"campaign": edit, **plans}, gates=GATES).decide()
    assert decision["verdict"] in {"incomplete", "incomparable", "inventory"}


def _kept(made: Made, gate: str) -> Callable[[Value], None]:
    measurements = made.value(f"plan/{gate}.json")["measurements"]
    return lambda plan: plan.update(measurements=measurements)


def test_noise_that_is_not_bounded_is_measured_against_each_limit() -> None:
    for bound in (None, 5.0):
        edit = {"campaign": lambda value, bound=bound: value["noise"].update(noise_limit_ratio=bound)}
        assert deciding(evidence(edit=edit).decide()) == PROMOTABLE
        wide = {"operator/op-latency": (-0.06, 0.06)}
        assert deciding(evidence(edit=edit, noise=wide).decide()) == ("incomparable", 2, "NOISE_TOO_HIGH")


def test_the_envelope_ends_where_the_candidate_says_that_it_ends() -> None:
    domain = {"candidate": lambda value: value["claim"].update(domain={"T": [1, 4]})}
    assert [row["id"] for row in evidence(edit=domain).decide()["envelope"]["rows"]] == ["decode-1"]
    rows = {"rows": {"decode-1": (-0.03, 0.01), "decode-8": (0.3, 0.4)}}
    assert [row["id"] for row in evidence(**rows).decide()["envelope"]["rows"]] == ["decode-8"]


def test_a_failed_build_is_named_where_no_gate_could_be_made() -> None:
    decision = evidence(gates=(), edit={"build": lambda build: build.update(outcome="failed")}).decide()
    assert deciding(decision)[:2] == ("incomplete", 5)
    assert (5, "BUILD_FAILED") in {(reason["row"], reason["code"]) for reason in decision["reasons"]}


def test_the_largest_part_that_passes_has_the_gain_of_its_rows_alone() -> None:
    made = evidence(rows={"decode-1": (0.30, 0.34), "decode-8": (-0.31, -0.29)})
    envelope = made.decide()["envelope"]
    assert [row["id"] for row in envelope["rows"]] == ["decode-1"]
    assert (envelope["gain"]["low"], envelope["gain"]["high"]) == pytest.approx((1.30, 1.34), abs=1e-6)
    assert "gain" not in evidence().decide()["envelope"]  # all rows: the gain is that of the check
    assert "gain" not in evidence(gates=("environment",)).decide()["envelope"]
