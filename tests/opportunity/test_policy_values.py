"""Where each value of a Policy comes from, and that its default is the documented one."""

from __future__ import annotations

import json
import re

import pytest
from tests.support import captures

from akf.contracts.canonical import canonical_bytes
from akf.contracts.models.triage import OpportunityPolicy
from akf.contracts.shipped import shipped
from akf.opportunity.policy import DEFAULTS, LIMITS, policy_of
from akf.opportunity.triage import triage

CAMPAIGN = json.loads((shipped("suites") / "host-demo" / "arms" / "host_reference.json").read_bytes())


@pytest.mark.parametrize("name", sorted(OpportunityPolicy.model_fields))
def test_the_default_is_the_one_that_the_field_documents(name: str) -> None:
    text = str(OpportunityPolicy.model_fields[name].description)
    if name == "target_ratio":
        assert "least service gain of the acceptance" in text
        return
    found = re.search(r"; ([0-9.]+) if absent\.$", text)
    assert found, text
    assert float(found[1]) == DEFAULTS[name]


@pytest.mark.parametrize("name", sorted(OpportunityPolicy.model_fields))
def test_a_campaign_takes_what_the_command_line_takes(name: str) -> None:
    number = OpportunityPolicy.model_json_schema()["properties"][name]["anyOf"][0]
    assert (number["minimum"], number["maximum"]) == LIMITS[name]


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_default_lies_inside_its_limits(name: str) -> None:
    assert LIMITS[name][0] <= DEFAULTS[name] <= LIMITS[name][1]


@pytest.mark.parametrize("most", [0, 1])
def test_no_value_inside_its_limits_is_a_defect(most: int) -> None:
    """Each by itself, and all together: every number is finite, and one that JSON holds."""
    capture = captures.capture(captures.kernel(0.3), lines={"host_gap": 0.2})
    extremes = {name: LIMITS[name][most] for name in DEFAULTS if name != "confidence"}
    for flags in (*({name: value} for name, value in extremes.items()), extremes):
        body = triage(captures.workload(), capture, policy_of(capture, None, flags))
        canonical_bytes(body)


def test_a_campaign_states_more_than_its_section() -> None:
    found = policy_of({}, CAMPAIGN)
    assert {found.sources[name] for name in DEFAULTS} == {"campaign", "default"}
    assert [name for name in DEFAULTS if found.sources[name] == "default"] == ["noise_ratio", "noise_pairs"]
    assert (found.target_ratio, found.serving_pairs, found.board_s) == (1.2, 8, 3600)


def test_without_a_target_the_least_service_gain_is_it() -> None:
    campaign = {**CAMPAIGN, "opportunity": None}
    campaign["acceptance"] = json.loads(json.dumps(CAMPAIGN["acceptance"]))
    campaign["acceptance"]["gains"][1]["threshold_ratio"] = 0.03
    assert policy_of({}, campaign).target_ratio == pytest.approx(1.03)
    for gain in campaign["acceptance"]["gains"]:
        gain["threshold_ratio"] = None
    assert policy_of({}, campaign).sources["target_ratio"] == "default"


def test_a_flag_goes_before_all_and_measured_noise_before_a_default() -> None:
    noise = {"noise": [{"metric": "tpot", "pairs": 6, "low_ratio": 0.98, "high_ratio": 1.01}]}
    found = policy_of(noise, CAMPAIGN, {"target_ratio": 1.5, "leg_s": None})
    assert (found.sources["target_ratio"], found.sources["leg_s"]) == ("flag", "campaign")
    assert (found.noise_ratio, found.noise_pairs) == (pytest.approx(0.02), 6)


def test_the_shipped_campaigns_state_their_policy() -> None:
    stated = set(OpportunityPolicy.model_fields) - {"target_ratio"}
    for path in shipped("suites").glob("*/arms/*.json"):
        assert stated <= json.loads(path.read_bytes())["opportunity"].keys(), path.name
