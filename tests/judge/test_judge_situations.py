"""The thirteen situations that the decision table must get right."""

from typing import Any

from tests.support.evidence import LAUNCH_NS, Value, acceptance, deciding, evidence, fired, outcome

from akf.contracts.canonical import digest


def test_a_model_gain_that_is_excluded_makes_inventory() -> None:
    decision = evidence(gains={"model/model-latency": (-0.005, 0.01)}).decide()
    assert deciding(decision) == ("inventory", 4, "NO_MODEL_GAIN")


def test_an_operator_interval_across_the_threshold_is_incomplete() -> None:
    campaign = acceptance(op_latency={"threshold_ratio": 0.01})
    decision = evidence(gains={"operator/op-latency": (-0.005, 0.035)}, edit={"campaign": campaign}).decide()
    assert deciding(decision) == ("incomplete", 5, "GAIN_INCONCLUSIVE")
    (missing,) = decision["missing"]
    assert (missing["gate"], missing["check"]) == ("operator", "gain:op-latency")
    assert missing["pairs_to_decide"] > 8


def test_an_operator_gain_that_is_excluded_rejects_although_all_else_is_fine() -> None:
    decision = evidence(gains={"operator/op-latency": (-0.005, 0.01)}).decide()
    assert deciding(decision) == ("rejected", 1, "NO_LOCAL_GAIN")
    assert fired(decision) == {(1, "NO_LOCAL_GAIN", "operator", "gain:op-latency")}


def test_a_serving_gain_with_an_undecided_tail_guard_is_incomplete() -> None:
    decision = evidence(gains={"serving/ttft-p90": (-0.03, 0.01)}).decide()
    assert deciding(decision) == ("incomplete", 5, "GUARD_INCONCLUSIVE")
    assert outcome(decision, "serving", "gain:tpot") == "pass"
    assert [missing["check"] for missing in decision["missing"]] == ["guard:ttft-p90"]


def test_a_foreign_process_on_the_sibling_die_blocks() -> None:
    busy = {"environment/exclusive": {"outcome": "blocked", "reasons": ["DEVICE_BUSY"]}}
    assert deciding(evidence(platform="ascend", outcomes=busy).decide()) == ("blocked", 3, "DEVICE_BUSY")


def test_the_same_toolkit_version_of_another_inner_build_is_incomparable() -> None:
    other = {"toolkit": {"name": "cann", "version": "9.1.0", "build": "V100R001C25SPC006B001"}}
    decision = evidence(platform="ascend", identity={"operator": other}).decide()
    assert deciding(decision) == ("incomparable", 2, "IDENTITY_MISMATCH")
    assert decision["reasons"][0]["gate"] == "operator"
    assert "toolkit" in decision["reasons"][0]["text"]


def test_a_hit_at_the_operator_and_none_in_serving_rejects() -> None:
    fallback = {"serving/hit_proof": {"outcome": "fail", "reasons": ["HIDDEN_FALLBACK"]}}
    assert deciding(evidence(outcomes=fallback).decide()) == ("rejected", 1, "HIDDEN_FALLBACK")


def test_a_gain_over_a_baseline_that_ran_eager_through_a_bucket_hole_is_incomparable() -> None:
    eager = {"environment/baseline_health": {"outcome": "incomparable", "reasons": ["BASELINE_UNHEALTHY"]}}
    decision = evidence(platform="ascend", graph="graph", outcomes=eager).decide()
    assert deciding(decision) == ("incomparable", 2, "BASELINE_UNHEALTHY")


def test_faster_with_a_broken_accuracy_suite_rejects() -> None:
    lost = {"model/accuracy:gsm8k": {"outcome": "fail", "reasons": ["ACCURACY_LOST"]}}
    assert deciding(evidence(platform="ascend", outcomes=lost).decide()) == ("rejected", 1, "ACCURACY_LOST")


def test_one_rank_of_two_that_fell_back_rejects() -> None:
    ranks = [{"rank": 0}, {"rank": 1, "outcome": "fail", "reasons": ["HIDDEN_FALLBACK"]}]
    decision = evidence(platform="ascend", tp=2, outcomes={"serving/hit_proof": ranks}).decide()
    assert deciding(decision) == ("rejected", 1, "HIDDEN_FALLBACK")


def test_wide_noise_does_not_touch_a_gain_far_above_the_threshold() -> None:
    noise = {f"{gate}/op-latency": (-0.024, 0.024) for gate in ("operator", "reproduction")}
    gains = {f"{gate}/op-latency": (0.25, 0.31) for gate in ("operator", "reproduction")}
    campaign = acceptance(op_latency={"threshold_ratio": 0.05}, row_margin_ratio=0.05)
    decision = evidence(noise=noise, gains=gains, edit={"campaign": campaign}).decide()
    assert outcome(decision, "operator", "gain:op-latency") == "pass"
    assert deciding(decision) == ("promotable", 7, "ALL_GATES_HOLD")


def test_a_row_that_lives_in_cache_may_be_faster_than_main_memory() -> None:
    def peaks(*levels: tuple[str, int, int]) -> Any:
        def edit(campaign: Value) -> None:
            named = [
                {"level": name, "capacity_bytes": size, "bytes_per_s": rate, "operations_per_s": 10**15}
                for name, size, rate in levels
            ]
            campaign["capabilities"][0]["peaks"] = named

        return edit

    too_slow = 32768 * 10**9 // LAUNCH_NS  # bytes per second that the candidate exceeds by its gain
    memory, cache = ("hbm", 2**36, too_slow), ("l2", 192 * 2**20, 5 * too_slow)
    assert deciding(evidence(edit={"campaign": peaks(memory, cache)}).decide())[0] == "promotable"
    assert deciding(evidence(edit={"campaign": peaks(memory)}).decide()) == ("rejected", 1, "ROOFLINE_EXCEEDED")
    tiny = ("l2", 4096, 5 * too_slow)
    assert deciding(evidence(edit={"campaign": peaks(memory, tiny)}).decide()) == ("rejected", 1, "ROOFLINE_EXCEEDED")


def test_an_incumbent_that_was_replaced_after_the_freeze_is_incomparable() -> None:
    replaced = {"release": {"incumbent_digest": digest(b"a newer object")}}
    decision = evidence(identity=replaced).decide()
    assert deciding(decision) == ("incomparable", 2, "IDENTITY_MISMATCH")
    assert decision["reasons"][0]["gate"] == "release"
    said = {"release/incumbent": {"outcome": "incomparable", "reasons": ["INCUMBENT_REPLACED"]}}
    assert deciding(evidence(outcomes=said).decide()) == ("incomparable", 2, "INCUMBENT_REPLACED")
