"""What a Campaign must mean: acceptance against noise, pairs, write paths, keys, membership of its Suite."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.drafts import ARMS, HOST, Draft, codes, said
from tests.support.runs import Ready, change

from akf.contracts.canonical import canonical_bytes, digest
from akf.contracts.rules.check import check_campaign, check_suite
from akf.stats import min_pairs

Value = dict[str, Any]


@pytest.fixture
def draft(tmp_path: Path) -> Draft:
    return Draft(tmp_path / "suite")


@pytest.fixture
def host(tmp_path: Path) -> Draft:
    return Draft(tmp_path / "suite", HOST)


class TestNoise:
    @pytest.mark.parametrize(
        "place",
        ["/acceptance/gains/0/threshold_ratio", "/acceptance/guards/1/margin_ratio", "/acceptance/row_margin_ratio"],
    )
    @pytest.mark.parametrize(("bound", "fits"), [(0.0199, False), (0.02, True), (0.3, True), (0.0, False)])
    def test_no_threshold_or_margin_lies_below_it(self, host: Draft, place: str, bound: float, fits: bool) -> None:
        def edit(value: Value) -> None:
            value["noise"]["noise_limit_ratio"] = 0.02
            acceptance = value["acceptance"]
            group = place.split("/")[2]
            if group == "row_margin_ratio":
                acceptance[group] = bound
            else:
                rule = acceptance[group][int(place.split("/")[3])]
                rule["threshold_ratio" if group == "gains" else "margin_ratio"] = bound

        assert (("AKF-M019", place) in said(host.check(edit))) is not fits

    def test_an_unknown_noise_limit_is_a_blocker_and_no_problem(self, host: Draft) -> None:
        result = host.check()
        assert codes(result) == set()
        assert "/noise/noise_limit_ratio" in {blocker["pointer"] for blocker in result.blockers}


def test_a_gain_is_claimed_in_the_operator_gate(host: Draft) -> None:
    def edit(value: Value) -> None:
        value["acceptance"]["gains"] = [each for each in value["acceptance"]["gains"] if each["gate"] != "operator"]

    assert ("AKF-M035", "/acceptance/gains") in said(host.check(edit))


class TestPairs:
    @pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
    @pytest.mark.parametrize("gate", ["operator", "model", "serving", "reproduction"])
    def test_they_suffice_for_the_confidence(self, host: Draft, confidence: float, gate: str) -> None:
        needed = min_pairs(confidence)

        def pairs(number: int) -> set[tuple[str, str | None]]:
            def edit(value: Value) -> None:
                value["acceptance"]["confidence"] = confidence
                value["acceptance"]["pairs"] = dict.fromkeys(value["acceptance"]["pairs"], 12) | {
                    gate: number,
                    "blocks": 1,
                }

            return said(host.check(edit))

        place = f"/acceptance/pairs/{gate}"
        assert ("AKF-M020", place) in pairs(needed - 1)
        assert ("AKF-M020", place) not in pairs(needed)

    @pytest.mark.parametrize(("blocks", "fits"), [(1, True), (2, False), (3, True), (4, False)])
    def test_the_number_of_blocks_is_odd(self, host: Draft, blocks: int, fits: bool) -> None:
        found = said(host.check(lambda value: value["acceptance"]["pairs"].update(blocks=blocks)))
        assert (("AKF-M026", "/acceptance/pairs/blocks") in found) is not fits

    @pytest.mark.parametrize("confidence", [0.5, 1, 1.5, 0, -1])
    def test_a_confidence_that_is_none_is_refused(self, host: Draft, confidence: float) -> None:
        assert not host.check(lambda value: value["acceptance"].update(confidence=confidence)).valid


class TestWritePaths:
    @pytest.mark.parametrize("path", ["inbox", "inbox/agent-1", "inbox/a/b"])
    def test_below_the_inbox(self, host: Draft, path: str) -> None:
        assert codes(host.check(lambda value: value.update(write_paths=[path]))) == set()

    @pytest.mark.parametrize(
        "path",
        [
            "attempts", "gates", "tasks", "ledger.jsonl", "campaign.json", "suite.json", "workload.json",
            "capture.json", "run.json",
            "inbox-2", "inboxes", "Inbox", "baseline", "adapters/host_reference", "journal.jsonl", ".lock",
            "attempts/fused/gates", "decision.json",
        ],
    )  # fmt: skip
    def test_nothing_else(self, host: Draft, path: str) -> None:
        assert ("AKF-M017", "/write_paths/0") in said(host.check(lambda value: value.update(write_paths=[path])))

    @pytest.mark.parametrize(
        "path",
        [
            "inbox/../attempts", "../inbox", "/usr/local/Ascend", "/usr/local/Ascend/cann/opp", "inbox/..", "./inbox",
            "inbox//a", "inbox/", "", "inbox\\..\\gates", "C:/inbox", "inbox/\x1b[2J", "inbox/a\x00b", "~/inbox/../..",
        ],
    )  # fmt: skip
    def test_no_way_out_of_it(self, host: Draft, path: str) -> None:
        result = host.check(lambda value: value.update(write_paths=[path]))
        assert not result.valid
        assert any(pointer == "/write_paths/0" for _, pointer in said(result))

    def test_all_of_them_are_named(self, host: Draft) -> None:
        result = host.check(lambda value: value.update(write_paths=["gates", "inbox", "tasks"]))
        assert {p for c, p in said(result) if c == "AKF-M017"} == {"/write_paths/0", "/write_paths/2"}


class TestKeys:
    def test_two_roles_never_share_one(self, my_ready: Ready) -> None:
        def edit(value: Value) -> None:
            keys = value["trust"]["keys"]
            keys["judge"] = dict(keys["evaluator"])

        change(my_ready.campaign, edit)
        assert ("AKF-M027", "/trust/keys") in said(check_campaign(my_ready.campaign))

    def test_a_key_has_the_id_that_follows_from_it(self, my_ready: Ready) -> None:
        def edit(value: Value) -> None:
            keys = value["trust"]["keys"]
            keys["judge"]["key_id"], keys["builder"]["key_id"] = keys["builder"]["key_id"], keys["judge"]["key_id"]

        change(my_ready.campaign, edit)
        found = said(check_campaign(my_ready.campaign))
        assert {("AKF-T012", "/trust/keys/judge/key_id"), ("AKF-T012", "/trust/keys/builder/key_id")} <= found

    def test_one_key_under_two_ids_is_refused(self, my_ready: Ready) -> None:
        def edit(value: Value) -> None:
            keys = value["trust"]["keys"]
            keys["judge"]["public_key"] = keys["evaluator"]["public_key"]

        change(my_ready.campaign, edit)
        assert not check_campaign(my_ready.campaign).valid

    @pytest.mark.parametrize("role", ["supervisor", "builder", "evaluator", "judge"])
    def test_every_role_has_one(self, my_ready: Ready, role: str) -> None:
        change(my_ready.campaign, lambda value: value["trust"]["keys"].pop(role))
        assert not check_campaign(my_ready.campaign).valid

    def test_an_unsigned_campaign_pins_none(self, my_ready: Ready) -> None:
        change(my_ready.campaign, lambda value: value["trust"].update(mode="unsigned"))
        assert ("AKF-M021", "/trust/keys") in said(check_campaign(my_ready.campaign))
        change(my_ready.campaign, lambda value: value["trust"].update(keys=None))
        result = check_campaign(my_ready.campaign)
        assert (result.valid, result.ready) == (True, True)


class TestMembership:
    @pytest.mark.parametrize(
        ("edit", "place"),
        [
            (lambda v: v["suite"].update(id="another"), "/suite/id"),
            (lambda v: v["workload"].update(id="another"), "/workload/id"),
            (lambda v: v["model"].update(name="Qwen3-32B"), "/model/name"),
            (lambda v: v["model"].update(dtype="float16"), "/model/dtype"),
            (lambda v: v["ranks"].update(tp=2), "/ranks/tp"),
            (lambda v: v["ranks"].update(ep=8), "/ranks/ep"),
        ],
    )
    def test_a_campaign_does_not_contradict_its_suite(self, draft: Draft, edit: Any, place: str) -> None:
        assert ("AKF-M010", place) in said(draft.check(edit))

    def test_a_toolkit_of_its_own_is_allowed_only_where_the_suite_says_so(self, draft: Draft) -> None:
        other = {"name": "cann", "version": "9.0.1", "build": "V100R001C25SPC005B220"}

        def edit(value: Value) -> None:
            value["environment"]["toolkit"] = other
            for capability in value["capabilities"]:
                capability["toolkit"] = other

        place = ("AKF-M010", "/environment/toolkit/version")
        draft.check_suite(lambda value: value.update(toolkit_policy="exact_per_arm"))
        assert place not in said(draft.check(edit))
        draft.check_suite(lambda value: value.update(toolkit_policy="exact_across_arms"))
        assert place in said(draft.check())

    @pytest.mark.parametrize("arm", ["vllm", "mindie", "xllm-2"])
    def test_its_arm_is_one_of_the_suites(self, draft: Draft, arm: str) -> None:
        assert ("AKF-M011", "/arm") in said(draft.check(lambda value: value.update(arm=arm)))

    def test_its_lane_is_one_of_the_suites(self, draft: Draft) -> None:
        draft.check_suite(lambda value: value.update(lanes=["matched_policy"]))
        assert ("AKF-M011", "/lane") in said(draft.check(lambda value: value.update(lane="per_framework_native_ab")))

    @pytest.mark.parametrize("lane", ["best_effort", "", None])
    def test_there_are_three_lanes(self, draft: Draft, lane: Any) -> None:
        assert not draft.check(lambda value: value.update(lane=lane)).valid

    def test_a_primary_gain_cannot_be_left_out(self, draft: Draft) -> None:
        result = draft.check(lambda value: value["acceptance"]["gains"].pop())
        assert ("AKF-M012", "/acceptance/gains") in said(result)

    @pytest.mark.parametrize("field", ["metric", "better", "gate"])
    def test_a_rule_is_the_kpi_that_it_names(self, draft: Draft, field: str) -> None:
        other = {"metric": "another", "better": "higher", "gate": "serving"}[field]
        result = draft.check(lambda value: value["acceptance"]["gains"][0].update({field: other}))
        assert ("AKF-M012", "/acceptance/gains/0") in said(result)

    def test_a_guard_is_not_a_gain(self, draft: Draft) -> None:
        def swap(value: Value) -> None:
            acceptance = value["acceptance"]
            guard = acceptance["guards"].pop()
            guard["threshold_ratio"] = guard.pop("margin_ratio")
            acceptance["gains"].append(guard)

        assert any(code == "AKF-M012" for code, _ in said(draft.check(swap)))

    def test_a_rule_that_the_suite_does_not_know(self, draft: Draft) -> None:
        result = draft.check(lambda value: value["acceptance"]["gains"][0].update(id="speed"))
        assert ("AKF-M012", "/acceptance/gains/0/id") in said(result)


class TestSuite:
    @pytest.mark.parametrize("keep", [("xllm",), ("xllm", "vllm_ascend"), (*ARMS, "xllm"), ()])
    def test_an_ascend_suite_requires_exactly_the_three_arms(self, draft: Draft, keep: tuple[str, ...]) -> None:
        def edit(value: Value) -> None:
            arms = {arm["id"]: arm for arm in value["required_arms"]}
            value["required_arms"] = [copy.deepcopy(arms[name]) for name in keep]

        result = draft.check_suite(edit)
        assert not result.valid
        if keep:
            assert ("AKF-M002", "/required_arms") in said(result)

    def test_another_arm_is_no_replacement(self, draft: Draft) -> None:
        result = draft.check_suite(lambda value: value["required_arms"][0].update(id="mindie"))
        assert ("AKF-M002", "/required_arms") in said(result)

    def test_the_order_of_the_arms_does_not_matter(self, draft: Draft) -> None:
        assert codes(draft.check_suite(lambda value: value["required_arms"].reverse())) == set()

    def test_a_host_suite_requires_the_arms_that_it_names(self, host: Draft) -> None:
        assert [arm["id"] for arm in host.check_suite().arms] == ["host_reference"]
        assert codes(host.check_suite()) == set()

    def test_an_arm_whose_file_is_another_arms(self, draft: Draft) -> None:
        result = draft.check_suite(lambda value: value["required_arms"][0].update(path="arms/vllm_ascend.json"))
        assert ("AKF-M011", "/required_arms/0/id") in said(result)

    def test_an_arm_without_a_file_is_named_and_the_others_are_recognised(self, draft: Draft) -> None:
        draft.campaign.unlink()
        result = check_suite(draft.suite)
        assert {arm["id"]: arm["recognised"] for arm in result.arms} == {
            "xllm": False,
            "vllm_ascend": True,
            "sglang_ascend": True,
        }
        assert codes(result) == {"AKF-F001"}

    def test_no_kpi_is_primary(self, draft: Draft) -> None:
        result = draft.check_suite(lambda value: [kpi.update(primary=False) for kpi in value["kpis"]])
        assert ("AKF-M004", "/kpis") in said(result)

    @pytest.mark.parametrize(("statistic", "quantile"), [("median", 0.99), ("quantile", None)])
    def test_a_quantile_is_named_exactly_where_it_is_one(self, draft: Draft, statistic: str, quantile: Any) -> None:
        def edit(value: Value) -> None:
            value["kpis"][0] |= {"statistic": statistic, "quantile": quantile}
            if quantile is None:
                del value["kpis"][0]["quantile"]

        assert ("AKF-M003", "/kpis/0") in said(draft.check_suite(edit))

    @pytest.mark.parametrize("group", ["required_arms", "kpis", "lanes"])
    def test_nothing_is_named_twice(self, draft: Draft, group: str) -> None:
        result = draft.check_suite(lambda value: value[group].append(copy.deepcopy(value[group][0])))
        assert "AKF-M001" in codes(result)


class TestFrozen:
    """Thresholds, workload and baseline are inside the digest: what decides cannot change without another Campaign."""

    @pytest.mark.parametrize(
        "edit",
        [
            lambda v: v["acceptance"]["gains"][0].update(threshold_ratio=0.3),
            lambda v: v["acceptance"].update(row_margin_ratio=0.3),
            lambda v: v["baseline"].update(incumbent_digest="sha256:" + "0" * 64),
            lambda v: v["workload"].update(id="another"),
            lambda v: v["noise"].update(noise_limit_ratio=0.1),
            lambda v: v["promotion"].update(min_isolation="none"),
        ],
    )
    def test_a_change_changes_the_digest(self, my_ready: Ready, edit: Any) -> None:
        value = json.loads(my_ready.campaign.read_bytes())
        before = digest(canonical_bytes(value))
        edit(value)
        assert digest(canonical_bytes(value)) != before


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_AUDIT", "PYTHONSTARTUP"])
def test_foreign_code_in_every_process_is_no_arm(draft: Draft, name: str) -> None:
    result = draft.check(lambda value: value["environment"].update(variables=[{"name": name, "value": "x.so"}]))
    assert ("AKF-M018", "/environment/variables/0") in said(result)


@pytest.mark.parametrize("name", [HOST, "qwen3-8b-a3-bf16"])
def test_machine_facts_are_those_of_the_platform(tmp_path: Path, name: str) -> None:
    draft = Draft(tmp_path / "suite", name)
    place = "host" if name == HOST else "ascend"
    result = draft.check(lambda value: value["environment"].pop(place))
    assert ("AKF-M013", "/environment") in said(result)


def test_a_duplicate_rule_is_named(host: Draft) -> None:
    result = host.check(lambda v: v["acceptance"]["gains"].append(copy.deepcopy(v["acceptance"]["gains"][0])))
    assert ("AKF-M001", "/acceptance/gains/3") in said(result)


class TestInputs:
    def test_weights_add_up(self, host: Draft) -> None:
        change(host.workload, lambda value: value["stages"][0]["shapes"][0].update(weight_ratio=0.5))
        assert "AKF-M022" in codes(host.check())

    def test_every_shape_has_its_callsite(self, host: Draft) -> None:
        change(host.workload, lambda value: value["stages"][0]["shapes"][0].update(callsite="another"))
        assert "AKF-M023" in codes(host.check())

    def test_the_workload_belongs_to_the_model(self, host: Draft) -> None:
        change(host.workload, lambda value: value.update(model="another"))
        assert "AKF-M010" in codes(host.check())

    def test_a_workload_under_another_name(self, host: Draft) -> None:
        change(host.workload, lambda value: value.update(id="another"))
        assert ("AKF-M010", "/workload/id") in said(host.check())

    def test_a_capture_of_another_platform(self, my_ready: Ready) -> None:
        change(my_ready.folder / "captures" / "host_reference.json", lambda value: value.update(platform="cuda"))
        assert "AKF-M024" in codes(check_campaign(my_ready.campaign))

    def test_a_capture_that_names_an_unknown_callsite(self, my_ready: Ready) -> None:
        capture = my_ready.folder / "captures" / "host_reference.json"
        change(capture, lambda value: value["entries"][0].update(callsite="another"))
        assert "AKF-M023" in codes(check_campaign(my_ready.campaign))

    @pytest.mark.parametrize("path", ["a" * 255, "a" * 256, "b/" * 100 + "c"])
    @pytest.mark.parametrize("link", ["suite", "workload", "capture"])
    def test_a_path_that_no_system_takes(self, host: Draft, link: str, path: str) -> None:
        result = host.check(lambda value: value[link].update(path=path))
        assert codes(result) <= {"AKF-F001", "AKF-F007", "AKF-M009"}
        assert not result.valid

    def test_a_suite_that_is_not_there(self, host: Draft) -> None:
        host.suite.unlink()
        assert ("AKF-M009", "/suite/path") in said(check_campaign(host.campaign))
