"""A triage drawn: the answer and its rule, every hotspot with its numbers, and what was assumed or is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support import captures
from tests.support.reports import Page

from akf.opportunity.policy import policy_of
from akf.opportunity.triage import triage
from akf.report import numbers
from akf.report import triage as drawing
from akf.report.model import Report, from_json, to_json
from akf.report.page import render

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "artifacts"
Value = dict[str, Any]


def drawn(body: Value, capture: Value | None) -> Page:
    report = Report(title="Triage", sections=drawing.sections(body, capture))
    assert from_json(to_json(report), "report.json") == report
    return Page(render(report))


@pytest.fixture(scope="module")
def capture() -> Value:
    return captures.capture(
        captures.kernel(0.3), captures.kernel(0.1, name="SwiGlu", callsite=None), lines={"host_gap": 0.05, "idle": 0.01}
    )


def test_every_hotspot_with_its_numbers_and_its_rule(capture: Value) -> None:
    body = triage(captures.workload(), capture, policy_of(capture))
    page = drawn(body, capture)
    assert len(body["hotspots"]) >= 4
    for spot in body["hotspots"]:
        name = spot["name"].replace("_", " ") if spot["what"] == "line" else spot["name"]
        for said in (name, spot["rule"], spot["text"]):
            assert said in page.text
        assert numbers.percent(spot["share_ratio"]) in page.text
        assert numbers.number(spot["time_ns"], "ns") in page.text
        if spot["interval"] is not None:
            ends = numbers.interval(spot["interval"]["low_ratio"], spot["interval"]["high_ratio"], "share")
            assert ends in page.text
        for key in ("ceiling_ratio", "needed_speedup_ratio"):
            if spot[key] is not None:
                assert numbers.number(spot[key], "times") in page.text


def test_what_cannot_be_told_yet_is_no_no_go() -> None:
    capture = captures.capture(captures.kernel(0.3, steps=5), steps=5)
    body = triage(captures.workload(), capture, policy_of(capture))
    page = drawn(body, capture)
    assert "cannot be told yet" in page.text
    assert "no-go" not in page.text
    assert body["blockers"][0]["expected"] in page.text


def test_a_baseline_is_healthy_only_where_all_was_seen(capture: Value) -> None:
    assert "nothing wrong was seen" not in drawn(triage(captures.workload(), capture, policy_of(capture)), capture).text
    unseen = {**capture, "clock": "unknown"}
    page = drawn(triage(captures.workload(), unseen, policy_of(unseen)), unseen)
    assert "nothing wrong was seen" in page.text


def test_where_the_time_goes(capture: Value) -> None:
    body = triage(captures.workload(), capture, policy_of(capture))
    page = drawn(body, capture)
    for line in body["lines"]:
        assert line["name"].replace("_", " ") in page.text
        assert numbers.number(line["time_ns"], "ns") in page.text
    for rank in capture["breakdown"]:
        assert all(numbers.number(time, "ns") in page.text for time in rank["steps_ns"])


def test_each_step_is_drawn_by_its_lines_where_there_are_few_enough(capture: Value) -> None:
    page = drawn(triage(captures.workload(), capture, policy_of(capture)), capture)
    [rank] = capture["breakdown"]
    first = {name: times[0] for name, times in rank["steps_lines"].items()}
    wanted = [
        f"{line} {numbers.number(first[name], 'ns')}"
        for line, name in (("computing", "computing_ns"), ("host gap", "host_gap_ns"), ("idle", "idle_ns"))
    ]
    whole = numbers.number(rank["steps_ns"][0], "ns")
    assert f"step 1: {whole}: {', '.join(wanted)}" in page.text
    assert "what each step was made of" in page.text
    many = captures.capture(captures.kernel(0.2, steps=500), lines={"idle": 0.1}, steps=500)["breakdown"][0]
    ranks = drawing.rank_times({"breakdown": [{**many, "rank": number} for number in range(5)]})
    assert [(len(each.splits), len(each.steps_ns)) for each in ranks] == [(0, 500)] * 5
    assert len(drawing.rank_times({"breakdown": [many]})[0].splits) == 500


def test_the_answer_and_what_it_goes_by(capture: Value) -> None:
    body = triage(captures.workload(), capture, policy_of(capture, None, {"target_ratio": 1.07}))
    page = drawn(body, capture)
    assert body["answer"]["text"] in page.text
    assert f"Rule {body['answer']['rule']}" in page.text.replace("\n", "")
    assert body["ready"]
    assert "not ready" not in page.text
    for value in body["policy"]:
        assert value["name"] in page.text
        assert str(value["value"]) in page.text
    assert page.text.count("assumed") >= sum(value["assumed"] for value in body["policy"])


def test_blockers_and_findings_are_said(capture: Value) -> None:
    sick = capture | {"health": {"custom_operators": False}, "completeness": []}
    body = triage(None, sick, policy_of(sick))
    page = drawn(body, sick)
    assert body["blockers"]
    for blocker in body["blockers"]:
        assert blocker["expected"] in page.text
        assert blocker["command"] in page.text
    assert "OPERATORS_NOT_LOADED" in page.text
    assert "configuration, not ready for a Task" in page.text
    assert "unhealthy" in page.text


def test_a_few_steps_have_no_interval_and_no_band_is_invented() -> None:
    few = captures.capture(captures.kernel(0.2, steps=3), lines={"idle": 0.01}, steps=3)
    page = drawn(triage(captures.workload(), few, policy_of(few)), few)
    assert "At least 6 steps" in page.text


@pytest.mark.parametrize("form", ["minimal", "full"])
def test_the_examples_of_the_artifact_can_be_drawn(form: str) -> None:
    body = json.loads((EXAMPLES / f"triage.{form}.json").read_bytes())
    capture = json.loads((EXAMPLES / f"capture.{form}.json").read_bytes())
    assert drawn(body, capture).text
    assert drawn(body, None).text
