"""Each answer and each refusal of triage, beside an honest control that differs in one thing."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from tests.support import captures

from akf.contracts.models import MODELS
from akf.contracts.models.base import refs
from akf.contracts.problems import PreconditionError
from akf.opportunity.policy import Policy, policy_of
from akf.opportunity.triage import triage

Value = dict[str, Any]
Edit = Callable[[Value], object]

REST = {"idle": 0.01}


def policy(capture: Value, capabilities: list[Value] | None = None, **flags: float) -> Policy:
    """A Policy with a target of 1.05 and little noise, unless told otherwise."""
    found = policy_of(capture, None, {"target_ratio": 1.05, "noise_ratio": 0.004, **flags})
    return found._replace(arm="vllm_ascend", capabilities=capabilities)


def answered(capture: Value, workload: Value | None = None, **more: Any) -> Value:
    """A triage whose value is a whole Triage once it is named."""
    others = more.pop("others", ())
    body = triage(workload, capture, policy(capture, **more), others)
    head = {"kind": "Triage", "schema_version": 1, "id": "t", "parents": refs("Campaign", "Workload", "Capture")}
    MODELS["Triage"].model_validate({**head, **body})
    return body


def spot(body: Value, name: str = "add-rms-norm") -> Value:
    return next(each for each in body["hotspots"] if each["name"] == name)


def plain(share: float = 0.2, **more: Any) -> Value:
    return captures.capture(captures.kernel(share, **more), lines=REST)


class TestKernel:
    def test_a_hotspot_that_can_reach_the_target(self) -> None:
        body = answered(plain(0.2), captures.workload(), capabilities=[captures.capability()])
        assert (body["answer"]["answer"], body["answer"]["rule"]) == ("kernel", "KERNEL_WORTHWHILE")
        assert body["answer"]["hotspot"] == "add-rms-norm"
        assert (body["ready"], body["blockers"]) == (True, [])
        found = spot(body)
        assert found["ceiling_ratio"] == pytest.approx(1.25, abs=1e-5)
        assert found["needed_speedup_ratio"] == pytest.approx(0.2 / (1 / 1.05 - 0.8), abs=1e-4)
        assert found["bound_ratio"] == pytest.approx(1 / 0.9, abs=1e-5)
        assert found["coverage_ratio"] == 1
        assert found["active_bound"]["bound"] == "transfer"

    def test_the_share_of_the_issue_has_its_ceiling_and_misses_1_10(self) -> None:
        body = answered(plain(0.05543), captures.workload(), target_ratio=1.10)
        found = spot(body)
        assert found["ceiling_ratio"] == pytest.approx(1.0587, abs=5e-5)
        assert (found["answer"], found["rule"]) == ("no_go", "CEILING_TOO_LOW")
        assert found["needed_speedup_ratio"] is None
        assert body["answer"]["answer"] == "no_go"
        assert not body["ready"]

    def test_the_high_end_decides_not_the_estimate(self) -> None:
        """At 1.05 the estimate misses and the high end of the interval reaches: it is not given up."""
        body = answered(plain(0.045, jitter=0.2), captures.workload(), noise_ratio=0.0)
        found = spot(body)
        assert found["ceiling_ratio"] < 1.05 < found["ceiling_high_ratio"]
        assert found["answer"] == "kernel"

    def test_a_share_by_hand(self) -> None:
        found = spot(answered(plain(0.12), captures.workload()))
        assert found["ceiling_ratio"] == pytest.approx(1.13636, abs=1e-5)
        assert found["total_share_ratio"] == pytest.approx(found["exposed_ns"] / sum(captures.walls()))


class TestIntegration:
    def other(self, faster: float, calls: int = 72) -> Value:
        name = "AddRmsNormBias"
        return captures.kernel(0.01, name=name, time_ns=int(calls * faster), calls=calls, exposed_ns=None,
                               steps_exposed_ns=None)  # fmt: skip

    def test_another_provider_is_faster_in_another_capture(self) -> None:
        capture, mean = plain(0.2), 0.2 * captures.STEP_NS / captures.CALLS
        there = captures.capture(self.other(mean / 2), lines=REST)
        reference = {"kind": "Capture", "id": "there", "digest": "sha256:" + "1" * 64}
        body = answered(capture, captures.workload(), others=[(there, reference)])
        assert (spot(body)["answer"], spot(body)["rule"]) == ("integration", "PROVIDER_WINS")
        rival = spot(body)["elsewhere"]
        assert rival["kernel"] == "AddRmsNormBias"
        assert rival["speedup_ratio"] == pytest.approx(2, abs=1e-3)
        assert rival["bound_ratio"] == pytest.approx(1 / 0.9, abs=1e-3)
        assert rival["capture"] == reference
        assert body["others"] == [reference]

    @pytest.mark.parametrize("faster", [0.99, 1.5])
    def test_one_that_is_hardly_faster_or_slower_does_not_win(self, faster: float) -> None:
        capture, mean = plain(0.2), 0.2 * captures.STEP_NS / captures.CALLS
        there = captures.capture(self.other(mean * faster), lines=REST)
        reference = {"kind": "Capture", "id": "there", "digest": "sha256:" + "1" * 64}
        body = answered(capture, captures.workload(), others=[(there, reference)])
        assert spot(body)["answer"] == "kernel"

    def test_at_other_shapes_nothing_is_compared(self) -> None:
        capture, mean = plain(0.2), 0.2 * captures.STEP_NS / captures.CALLS
        there = captures.capture(self.other(mean / 2) | {"symbols": {"T": 8}}, lines=REST)
        body = answered(capture, captures.workload(), others=[(there, refs("Capture")[0])])
        assert "elsewhere" not in spot(body)

    def test_other_weights_of_one_operator_are_other_work(self) -> None:
        """Two matrix products at the same T: that the small one is fast says nothing of the large one."""

        def linear(name: str, outer: int) -> Value:
            x, y = (
                {"name": side, "access": access, "dtype": "bfloat16", "shape": [captures.SIZE, size], "layout": "ND"}
                for side, access, size in (("x", "in", 4096), ("y", "out", outer))
            )
            return captures.site(name, op="linear", operands=[x, y])

        large = captures.kernel(0.4, "gate-up-proj", name="MatMulV2")
        small = captures.kernel(0.1, "qkv-proj", name="MatMulV3")
        capture = captures.capture(large, small, lines=REST)
        apart = captures.workload(linear("gate-up-proj", 24576), linear("qkv-proj", 6144))
        assert "elsewhere" not in spot(answered(capture, apart), "gate-up-proj")
        alike = captures.workload(linear("gate-up-proj", 6144), linear("qkv-proj", 6144))
        assert spot(answered(capture, alike), "gate-up-proj")["rule"] == "PROVIDER_WINS"

    def test_a_log_that_names_the_operator_and_one_that_does_not(self) -> None:
        capture = plain(0.2)
        capture["health"]["remarks"] = ["add_rms_norm: custom operator is not registered, falling back"]
        assert spot(answered(capture, captures.workload()))["rule"] == "FALLBACK_SEEN"
        capture["health"]["remarks"] = ["swiglu: custom operator is not registered, falling back"]
        assert spot(answered(capture, captures.workload()))["answer"] == "kernel"

    @pytest.mark.parametrize(("factor", "answer"), [(1.2, "integration"), (0.5, "kernel")])
    def test_host_time_of_tiling(self, factor: float, answer: str) -> None:
        capture = plain(0.2, graph="eager")
        capture["health"] = {}
        time = capture["entries"][0]["time_ns"]
        tiling = {"level": "acl", "api": "AddRmsNorm_Tiling", "calls": 1000, "time_ns": 0}
        tiling["time_ns"] = int(factor * time * 1000 / capture["entries"][0]["calls"])
        capture["host"] = [tiling]
        eager = captures.site(graph={"mode": "eager"})
        found = spot(answered(capture, captures.workload(eager)))
        assert found["answer"] == answer
        assert (found["active_bound"]["bound"] == "launch_graph") is (answer == "integration")


def test_a_pipe_that_was_busier_than_its_kernel_lasted_was_not_observed() -> None:
    capture = plain(0.2)
    entry = capture["entries"][0]
    assert spot(answered(capture, captures.workload()))["active_bound"]["bound"] == "transfer"
    entry["counters"][0]["time_ns"] = entry["time_ns"] * 3
    body = answered(capture, captures.workload())
    assert spot(body)["active_bound"] == {"bound": "unobserved", "metrics": [], "moves": []}
    assert ["Counters" in each["expected"] for each in body["blockers"]] == [True]


class TestConfiguration:
    CASES: tuple[tuple[str, Edit], ...] = (
        ("BASELINE_EAGER", lambda value: value["health"].update(eager_share_ratio=0.4)),
        ("BASELINE_PADDED", lambda value: value["health"]["buckets"][0].update(padded_tokens=captures.STEPS * 8)),
        ("BASELINE_RECOMPILES", lambda value: value["health"].update(recompiles=1)),
        ("BASELINE_COMPILES", lambda value: value["health"].update(jit_compiles=2)),
        ("OPERATORS_NOT_LOADED", lambda value: value["health"].update(custom_operators=False)),
        ("CLOCK_CHANGED", lambda value: value.update(clock="changed", clocks_mhz=[1200, 1800])),
        ("CLOCK_CHANGED", lambda value: value.update(clock="steady", clocks_mhz=[1200, 1800])),
    )

    @pytest.mark.parametrize(("rule", "edit"), CASES, ids=[rule for rule, _ in CASES])
    def test_an_unhealthy_baseline_makes_every_hotspot_incomparable(self, rule: str, edit: Edit) -> None:
        capture = plain(0.2)
        assert answered(capture, captures.workload())["answer"]["answer"] == "kernel"
        edit(capture)
        body = answered(capture, captures.workload())
        assert (body["answer"]["answer"], body["answer"]["rule"]) == ("configuration", rule)
        assert body["answer"]["hotspot"] is None
        assert body["ready"]
        assert {(each["answer"], each["comparable"]) for each in body["hotspots"]} == {("configuration", False)}
        assert spot(body)["share_ratio"] == pytest.approx(0.2, abs=1e-5)

    def test_an_arm_that_is_eager_by_choice_is_healthy(self) -> None:
        capture = plain(0.2, graph="eager")
        capture["health"] = {"eager_share_ratio": 1.0, "recompiles": 0, "jit_compiles": 0, "custom_operators": True}
        body = answered(capture, captures.workload(captures.site(graph={"mode": "eager"})))
        assert body["health"] == {"healthy": True, "findings": [], "unseen": []}

    def test_what_was_not_seen_is_listed(self) -> None:
        capture = plain(0.2, graph=None)
        capture |= {"health": None, "clock": "unknown"}
        body = answered(capture, captures.workload())
        assert body["health"]["unseen"] == sorted(
            ["clock", "custom_operators", "eager_share", "jit_compiles", "padding", "recompiles"]
        )
        assert body["health"]["healthy"]
        assert [each["pointer"] for each in body["blockers"]] == ["/health/eager_share_ratio"]
        assert not body["ready"]
        eager = answered(capture, captures.workload(captures.site(graph={"mode": "eager"})))
        assert (eager["blockers"], eager["ready"]) == ([], True)

    def test_launches_tell_the_eager_share_where_nothing_states_it(self) -> None:
        capture = captures.capture(captures.kernel(0.2), captures.kernel(0.1, "swiglu", name="SwiGlu", graph="eager"))
        del capture["health"]["eager_share_ratio"]
        body = answered(capture, captures.workload(captures.site(), captures.site("swiglu", "swiglu")))
        assert body["answer"]["rule"] == "BASELINE_EAGER"


class TestPipeline:
    @pytest.mark.parametrize(
        ("line", "rule"),
        [("communication", "COMMUNICATION_EXPOSED"), ("waiting", "RANKS_WAIT"), ("host_gap", "HOST_GAP"),
         ("idle", "DEVICE_IDLE")],
    )  # fmt: skip
    def test_the_largest_part_is_no_kernel(self, line: str, rule: str) -> None:
        capture = captures.capture(captures.kernel(0.2), lines={line: 0.4})
        body = answered(capture, captures.workload())
        assert body["answer"] | {"text": ""} == {"answer": "pipeline", "rule": rule, "hotspot": line, "text": ""}
        assert spot(body)["answer"] == "kernel"
        small = answered(captures.capture(captures.kernel(0.2), lines={line: 0.03}), captures.workload())
        assert spot(small, line)["rule"] == "CEILING_TOO_LOW"
        assert small["answer"]["answer"] == "kernel"

    @pytest.mark.parametrize("mark", [{"core_type": "HCCL"}, {"core_type": "GPU", "communicates": True}])
    def test_a_collective_is_no_hotspot(self, mark: Value) -> None:
        wait = captures.kernel(0.0, None, name="hcom_allReduce_", exposed_ns=0, time_ns=9_000_000,
                               steps_exposed_ns=[0] * captures.STEPS, **mark)  # fmt: skip
        body = answered(captures.capture(captures.kernel(0.2), wait, lines={"waiting": 0.1}), captures.workload())
        assert {each["name"] for each in body["hotspots"]} == {"add-rms-norm", "waiting"}


class TestNoGo:
    def test_a_domain_that_covers_no_call(self) -> None:
        body = answered(plain(0.2), captures.workload(), capabilities=[captures.capability(max=8)])
        assert (spot(body)["rule"], spot(body)["coverage_ratio"]) == ("SCOPE_UNBOUNDED", 0)

    def test_a_domain_that_covers_too_little_of_the_time(self) -> None:
        """20 % of the step in all, 4 % of it at T = 4; only the latter is covered."""
        parts = [captures.kernel(0.04, tokens=4), captures.kernel(0.16)]
        body = answered(captures.capture(*parts), captures.workload(), capabilities=[captures.capability(max=8)])
        assert spot(body)["rule"] == "COVERAGE_TOO_LOW"
        assert spot(body)["coverage_ratio"] == 0.5
        assert spot(body)["covered_time_ratio"] == pytest.approx(0.2, abs=1e-4)
        more = answered(captures.capture(*parts), captures.workload(), capabilities=[captures.capability()])
        assert spot(more)["answer"] == "kernel"

    def test_an_operator_that_no_capability_names(self) -> None:
        body = answered(plain(0.2), captures.workload(), capabilities=[captures.capability("swiglu")])
        assert spot(body)["rule"] == "NO_EDITABLE_PATH"

    def test_a_kernel_without_a_callsite(self) -> None:
        body = answered(captures.capture(captures.kernel(0.4), captures.kernel(0.1, None, name="Cast")),
                        captures.workload())  # fmt: skip
        assert spot(body, "Cast")["rule"] == "SCOPE_UNBOUNDED"
        assert spot(body)["answer"] == "kernel"

    def test_a_proof_that_costs_too_much(self) -> None:
        body = answered(plain(0.2), captures.workload(), board_s=20_000)
        assert (spot(body)["rule"], body["cost"]["kernel_s"]) == ("VERIFICATION_OVER_BUDGET", 10 * 600 + 2 * 300 * 36)
        assert answered(plain(0.2), captures.workload(), board_s=27_600)["answer"]["answer"] == "kernel"

    def test_a_pipeline_task_pays_no_operator_gate(self) -> None:
        capture = captures.capture(captures.kernel(0.2), lines={"host_gap": 0.4})
        body = answered(capture, captures.workload(), board_s=21_600)
        assert body["cost"]["service_s"] == 2 * 300 * 36
        assert body["answer"]["answer"] == "pipeline"
        assert spot(body)["rule"] == "VERIFICATION_OVER_BUDGET"

    def test_a_gain_that_noise_hides(self) -> None:
        body = answered(plain(0.06), captures.workload(), noise_ratio=0.05)
        assert spot(body)["rule"] == "GAIN_UNDETECTABLE"
        assert spot(answered(plain(0.06), captures.workload(), noise_ratio=0.001))["answer"] == "kernel"

    def test_pairs_that_give_no_interval(self) -> None:
        assert spot(answered(plain(0.2), captures.workload(), serving_pairs=5))["rule"] == "GAIN_UNDETECTABLE"

    def test_a_share_that_is_not_known(self) -> None:
        capture = plain(0.2, exposed_ns=None, steps_exposed_ns=None)
        body = answered(capture, captures.workload())
        found = spot(body)
        assert (found["answer"], found["rule"], found["share_ratio"]) == (None, "SHARE_UNKNOWN", None)
        assert body["answer"] | {"text": ""} == {
            "answer": None, "rule": "SHARE_UNKNOWN", "hotspot": "add-rms-norm", "text": "",
        }  # fmt: skip
        assert not body["ready"]
        assert [each["expected"] for each in body["blockers"]] == ["The exposed time of every kernel, step by step."]


class TestSteps:
    def test_five_steps_give_no_interval_and_six_do(self) -> None:
        for steps in (5, 6):
            kernel = captures.kernel(0.2, steps=steps)
            body = answered(captures.capture(kernel, lines=REST, steps=steps), captures.workload())
            found = spot(body)
            assert (found["interval"] is None) is (steps == 5)
            assert found["share_ratio"] == pytest.approx(0.2, abs=1e-5)
            assert body["ready"] is (steps == 6)
            assert [each["pointer"] for each in body["blockers"]] == (["/breakdown/0/steps_ns"] if steps == 5 else [])

    @pytest.mark.parametrize("target", [1.05, 3.0])
    def test_too_few_steps_are_no_conclusion(self, target: float) -> None:
        """Neither a Task nor no-go, of a kernel or of a line, however far the target is."""
        kernel = captures.kernel(0.2, steps=5)
        capture = captures.capture(kernel, lines={"host_gap": 0.4}, steps=5)
        body = answered(capture, captures.workload(), target_ratio=target)
        assert {(each["name"], each["answer"], each["rule"]) for each in body["hotspots"]} == {
            ("add-rms-norm", None, "SHARE_UNKNOWN"), ("host_gap", None, "SHARE_UNKNOWN"),
        }  # fmt: skip
        assert body["answer"]["answer"] is None
        assert "cannot be told yet" in body["answer"]["text"]
        assert [each["ceiling_high_ratio"] for each in body["hotspots"]] == [None, None]
        assert not body["ready"]

    def test_an_answer_beside_one_that_cannot_be_told(self) -> None:
        """A Task is one; no-go is about the whole only when nothing is open."""
        known = captures.kernel(0.2)
        unknown = captures.kernel(0.05, None, name="Cast", exposed_ns=None, steps_exposed_ns=None)
        both = captures.workload()
        assert answered(captures.capture(known, unknown, lines=REST), both)["answer"]["hotspot"] == "add-rms-norm"
        body = answered(captures.capture(known, unknown, lines=REST), both, target_ratio=1.5)
        assert spot(body)["answer"] == "no_go"
        assert (body["answer"]["answer"], body["answer"]["hotspot"], body["ready"]) == (None, "Cast", False)

    def test_ranks_of_different_steps_have_no_interval(self) -> None:
        capture = captures.capture(captures.kernel(0.2), lines=REST)
        other = copy.deepcopy(capture["breakdown"][0]) | {"rank": 1}
        other["steps_ns"] = [*other["steps_ns"][:-2], sum(other["steps_ns"][-2:])]
        other["steps"] -= 1
        del other["steps_lines"]
        capture["breakdown"].append(other)
        capture["entries"][0]["rank"] = 0
        body = answered(capture, captures.workload())
        assert body["answer"]["answer"] is None
        assert "there are 11 to 12" in body["blockers"][0]["expected"]

    def test_one_slow_step_moves_the_ratio_of_totals_and_not_the_estimate(self) -> None:
        capture = plain(0.2)
        entry, line = capture["entries"][0], capture["breakdown"][0]
        line["steps_ns"][3] *= 50
        line |= {"step_ns": sum(line["steps_ns"])}
        del line["steps_lines"]
        line["computing_ns"] = line["step_ns"] - line["idle_ns"]
        body = answered(capture, captures.workload())
        found = spot(body)
        assert found["share_ratio"] == pytest.approx(0.2, abs=1e-3)
        assert found["total_share_ratio"] == pytest.approx(entry["exposed_ns"] / line["step_ns"])
        assert "lies outside the interval" in found["note"]

    @pytest.mark.parametrize("line", captures.LINES)
    def test_a_line_has_its_interval_over_steps(self, line: str) -> None:
        """Two steps of three have a share of 0.1, one of 0.4: 0.2 in all, and 0.25 the median of pairs."""
        capture = captures.capture(captures.kernel(0.2), lines={line: 0.1})
        rank = capture["breakdown"][0]
        split = rank["steps_lines"]
        for step in range(0, captures.STEPS, 3):
            more = 3 * split[f"{line}_ns"][step]
            split[f"{line}_ns"][step] += more
            split["computing_ns"][step] -= more
        rank |= {name: sum(split[name]) for name in (f"{line}_ns", "computing_ns")}
        found = spot(answered(capture, captures.workload()), line)
        assert found["total_share_ratio"] == pytest.approx(0.2, abs=1e-3)
        assert found["share_ratio"] == pytest.approx(0.25, abs=1e-3)
        assert found["interval"]["low_ratio"] == pytest.approx(0.1, abs=1e-3)
        assert found["interval"]["high_ratio"] == pytest.approx(0.25, abs=1e-3)
        assert (found["interval"]["steps"], "note" in found) == (12, False)
        assert found["ceiling_high_ratio"] == pytest.approx(1 / 0.75, abs=2e-3)

    def test_a_line_that_is_a_total_has_none_and_says_so(self) -> None:
        capture = captures.capture(captures.kernel(0.2), lines=REST)
        del capture["breakdown"][0]["steps_lines"]
        found = spot(answered(capture, captures.workload()), "idle")
        assert found["interval"] is None
        assert "holds this line as a total" in found["note"]
        assert found["ceiling_high_ratio"] == found["ceiling_ratio"]

    @pytest.mark.parametrize("steps", [5, 6])
    def test_a_line_of_few_steps_has_no_interval(self, steps: int) -> None:
        found = spot(answered(captures.capture(captures.kernel(0.2, steps=steps), lines=REST, steps=steps)), "idle")
        assert (found["interval"] is None) is (steps == 5)
        assert (found["ceiling_high_ratio"] is None) is (steps == 5)

    def test_many_steps_are_pooled(self) -> None:
        kernel = captures.kernel(0.2, steps=300)
        body = answered(captures.capture(kernel, lines=REST, steps=300), captures.workload())
        assert spot(body)["interval"]["steps"] == 128
        assert body["steps"] == 300

    def test_ranks_are_added_up_step_by_step(self) -> None:
        one = plain(0.2)
        two = copy.deepcopy(one)
        two["entries"][0]["rank"] = 0
        two["entries"].append({**two["entries"][0], "rank": 1})
        two["breakdown"].append({**two["breakdown"][0], "rank": 1})
        alone, both = (spot(answered(each, captures.workload())) for each in (one, two))
        assert both["share_ratio"] == alone["share_ratio"]
        assert both["interval"] == alone["interval"]

    def test_a_kernel_that_is_named_like_a_callsite_has_a_name_of_its_own(self) -> None:
        alike = captures.kernel(0.05, None, name="add-rms-norm")
        body = answered(captures.capture(captures.kernel(0.2), alike, lines=REST), captures.workload())
        assert [each["name"] for each in body["hotspots"]] == ["add-rms-norm", "add-rms-norm (no callsite)", "idle"]


class TestSurvey:
    def test_without_a_workload_the_answer_says_what_is_missing(self) -> None:
        body = answered(captures.capture(captures.kernel(0.2, None), lines=REST))
        assert (body["answer"]["answer"], body["ready"]) == ("kernel", False)
        assert {(each["artifact"], each["pointer"]) for each in body["blockers"]} == {
            ("Workload", "/callsites"),
            ("Capture", "/entries"),
        }

    def test_without_counters_the_bound_is_not_guessed(self) -> None:
        body = answered(plain(0.2, counters={}), captures.workload())
        assert spot(body)["active_bound"] == {"bound": "unobserved", "metrics": [], "moves": []}
        assert body["answer"]["answer"] == "kernel"
        assert [each["expected"].split(",")[0] for each in body["blockers"]] == ["Counters of the kernels' pipes"]

    def test_values_that_nobody_stated_are_marked(self) -> None:
        listed = {each["name"]: each for each in answered(plain(), captures.workload())["policy"]}
        assert listed["target_ratio"] == {"name": "target_ratio", "value": 1.05, "source": "flag", "assumed": False}
        assert listed["leg_s"] == {"name": "leg_s", "value": 300, "source": "default", "assumed": True}

    def test_noise_that_was_measured_is_not_assumed(self) -> None:
        capture = plain()
        capture["noise"] = [{"metric": "tpot", "pairs": 8, "low_ratio": 0.99, "high_ratio": 1.004}]
        found = policy_of(capture)
        assert (found.noise_ratio, found.noise_pairs) == (pytest.approx(0.01), 8)
        assert found.sources["noise_ratio"] == "capture"


class TestActiveBound:
    @pytest.mark.parametrize(
        ("busy", "bound"),
        [
            ({"aic_mac": 0.8, "aic_mte2": 0.75}, "compute"),
            ({"aic_mac": 0.75, "aic_mte2": 0.8}, "transfer"),
            ({"aiv_vec": 0.71}, "compute"),
            ({"aic_fixpipe": 0.9}, "transfer"),
            ({"aiv_scalar": 0.9, "aiv_vec": 0.69}, "unobserved"),
        ],
    )
    def test_the_busier_pipe_that_reaches_its_threshold(self, busy: dict[str, float], bound: str) -> None:
        found = spot(answered(plain(0.2, counters=busy), captures.workload()))["active_bound"]
        assert found["bound"] == bound
        assert {each["name"]: each["value"] for each in found["metrics"]} == pytest.approx(busy, abs=1e-3)
        assert bool(found["moves"]) is (bound != "unobserved")

    @pytest.mark.parametrize(("longest", "bound"), [(30_000, "balance"), (22_000, "unobserved")])
    def test_cores_that_end_early(self, longest: int, bound: str) -> None:
        blocks = {"unit": "aiv", "launches": 1, "blocks": 40, "mean_ns": 20_000, "longest_ns": longest, "last_ns": 9000}
        found = spot(answered(plain(0.2, counters={}, balance=[blocks]), captures.workload()))["active_bound"]
        assert found["bound"] == bound
        assert found["metrics"][0]["value"] == pytest.approx(1 - 20_000 / longest)


def _missing(value: Value) -> None:
    value["completeness"][0].update(seen_calls=12)


def _uneven(value: Value) -> None:
    value["entries"][0]["steps_exposed_ns"].pop()


def _unsummed(value: Value) -> None:
    value["entries"][0]["exposed_ns"] += 1


def _overfull(value: Value) -> None:
    entry = value["entries"][0]
    entry["steps_exposed_ns"][0] = captures.STEP_NS * 2
    entry["exposed_ns"] = sum(entry["steps_exposed_ns"])


def _moved(value: Value, name: str) -> Value:
    """A line of which a nanosecond lies in another step: its sum is what it was."""
    first, second, *rest = value["breakdown"][0]["steps_lines"][name]
    return {name: [first - 1, second + 1, *rest]}


def _stranger(value: Value) -> None:
    value["entries"].append(captures.kernel(0.4, None, name="Mystery"))


def test_where_no_call_was_seen_at_all_the_profile_may_be_of_something_else() -> None:
    for seen, asked in ((0, True), (1, False)):
        capture = plain(0.2)
        for each in capture["completeness"]:
            each["seen_calls"] = seen
        with pytest.raises(PreconditionError) as refused:
            triage(captures.workload(), capture, policy(capture), file="capture.json")
        hints = {problem.hint or "" for problem in refused.value.problems if problem.code == "AKF-F350"}
        assert {"was this the model" in hint for hint in hints} == {asked}


INCOMPLETE: tuple[tuple[str, str, Edit], ...] = (
    ("AKF-F350", "calls", _missing),
    ("AKF-F350", "a callsite that was never seen", lambda v: v["completeness"].append(
        {"callsite": "swiglu", "expected_calls": 36, "seen_calls": 0})),
    ("AKF-F351", "a cross-check", lambda v: v["checks"][0].update(holds=False)),
    ("AKF-F352", "lines", lambda v: v["breakdown"][0].update(idle_ns=captures.STEP_NS * 4)),
    ("AKF-F352", "a step's lines", lambda v: v["breakdown"][0]["steps_lines"].update(_moved(v, "idle_ns"))),
    ("AKF-F352", "a line's steps", lambda v: v["breakdown"][0]["steps_lines"]["idle_ns"].pop()),
    ("AKF-F352", "a line and its steps", lambda v: v["breakdown"][0].update(
        idle_ns=v["breakdown"][0]["idle_ns"] - 1, computing_ns=v["breakdown"][0]["computing_ns"] + 1)),
    ("AKF-F353", "a step less", _uneven),
    ("AKF-F353", "a sum", _unsummed),
    ("AKF-F353", "more than the step", _overfull),
    ("AKF-F353", "a part longer than the whole", lambda v: v["entries"][0].update(time_ns=10)),
    ("AKF-F353", "a launch longer than all", lambda v: v["entries"][0].update(longest_ns=10**12)),
    ("AKF-F353", "an entry twice", lambda v: v["entries"].append(copy.deepcopy(v["entries"][0]))),
    ("AKF-F353", "a rank twice", lambda v: v["breakdown"].append(copy.deepcopy(v["breakdown"][0]))),
    ("AKF-F353", "a counter twice", lambda v: v["entries"][0]["counters"].append(v["entries"][0]["counters"][0])),
    ("AKF-F353", "more times than steps", lambda v: v["breakdown"][0].update(steps=3)),
    ("AKF-F353", "another rank", lambda v: v["entries"][0].update(rank=3)),
    ("AKF-F353", "steps and step time", lambda v: v["breakdown"][0]["steps_ns"].pop()),
    ("AKF-F354", "no callsite", _stranger),
    ("AKF-F355", "no step", lambda v: v.update(breakdown=[])),
    ("AKF-F355", "an empty step", lambda v: v["breakdown"][0]["steps_ns"].__setitem__(0, 0)),
)  # fmt: skip


@pytest.mark.parametrize(("code", "name", "edit"), INCOMPLETE, ids=[f"{code}-{name}" for code, name, _ in INCOMPLETE])
def test_an_incomplete_capture_is_refused(code: str, name: str, edit: Edit) -> None:
    del name
    capture = plain(0.2)
    answered(copy.deepcopy(capture), captures.workload())
    edit(capture)
    with pytest.raises(PreconditionError) as refused:
        triage(captures.workload(), capture, policy(capture), file="capture.json")
    assert code in {problem.code for problem in refused.value.problems}
    assert {problem.file for problem in refused.value.problems} == {"capture.json"}


def test_missing_calls_point_to_a_separate_eager_capture() -> None:
    capture = plain(0.2)
    _missing(capture)
    with pytest.raises(PreconditionError) as refused:
        triage(captures.workload(), capture, policy(capture))
    problem = refused.value.problems[0]
    assert (problem.expected, problem.found) == (864, 12)
    assert problem.hint is not None
    assert "separate Capture of an eager run" in problem.hint


@pytest.mark.parametrize(("per_step", "complete"), [(captures.CALLS, True), (captures.CALLS + 4, False)])
def test_calls_are_counted_where_the_capture_does_not_state_them(per_step: int, complete: bool) -> None:
    capture = plain(0.2)
    del capture["completeness"]
    found = captures.workload(captures.site(calls_per_step=per_step))
    if complete:
        assert answered(capture, found)["completeness"]["calls"] == "agree"
        return
    with pytest.raises(PreconditionError, match="912 calls are expected, 864 were seen"):
        triage(found, capture, policy(capture))


def test_many_problems_are_cut_and_counted() -> None:
    capture = captures.capture(*(captures.kernel(0.01, None, name=f"K{number}") for number in range(40)))
    for entry in capture["entries"]:
        entry["steps_exposed_ns"].pop()
    with pytest.raises(PreconditionError, match="20 more problems are not listed") as refused:
        triage(None, capture, policy(capture))
    assert len(refused.value.problems) == 20
