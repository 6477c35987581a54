"""The report model: plain values whose JSON form round-trips, and nothing that could not be drawn."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError
from tests.support.reports import rank, whole

from akf.contracts.problems import InvalidError
from akf.report import model as m


def test_the_json_form_round_trips() -> None:
    data = m.to_json(whole())
    again = m.from_json(data, "report.json")
    assert again == whole()
    assert m.to_json(again) == data
    assert json.loads(data)["report_version"] == 1


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        (lambda value: value.pop("title"), "/title"),
        (lambda value: value.update(report_version=2), "/report_version"),
        (lambda value: value.update(colour="red"), "/colour"),
        (lambda value: value["sections"][0]["blocks"][0].update(block="pie"), "/sections/0/blocks/0"),
        (lambda value: value["sections"][0]["blocks"][0]["mark"].update(tone="loud"),
         "/sections/0/blocks/0/verdict/mark/tone"),
    ],
)  # fmt: skip
def test_what_is_no_report_is_refused(change: Any, pointer: str) -> None:
    value = json.loads(m.to_json(whole()))
    change(value)
    with pytest.raises(InvalidError) as refused:
        m.from_json(json.dumps(value).encode(), "old.json")
    assert [(problem.code, problem.file) for problem in refused.value.problems] == [("AKF-F440", "old.json")]
    assert refused.value.problems[0].pointer == pointer


def test_every_problem_at_once() -> None:
    value = json.loads(m.to_json(whole()))
    value["title"] = 3
    value["sections"][0]["title"] = None
    with pytest.raises(InvalidError) as refused:
        m.from_json(json.dumps(value).encode(), "old.json")
    assert [problem.pointer for problem in refused.value.problems] == ["/sections/0/title", "/title"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: m.Quantity(value=float("nan"), unit="count"),
        lambda: m.Quantity(value=float("inf"), unit="times"),
        lambda: m.Quantity(value=1, unit="share", low=1),
        lambda: m.Quantity(value=1, unit="share", low=2, high=1),
        lambda: m.Table(caption="c", columns=("a", "b"), rows=(("one",),)),
        lambda: m.Bar(name="n", share_ratio=1.01),
        lambda: m.Bar(name="n", share_ratio=0.5, low_ratio=0.4),
        lambda: m.Bar(name="n", share_ratio=0.5, low_ratio=0.6, high_ratio=0.4),
        lambda: m.Curve(name="n", share_ratio=0.5, low_ratio=0.6, high_ratio=0.7),
        lambda: m.Curve(name="n", share_ratio=0.5, low_ratio=0.4, high_ratio=0.7, ceiling_ratio=0.9),
        lambda: m.Shares(caption="c", whole="w", bars=()),
        lambda: m.RankTime(**rank(0).model_dump() | {"idle_ns": -1}),
    ],
)  # fmt: skip
def test_what_could_not_be_drawn_cannot_be_said(make: Any) -> None:
    with pytest.raises(ValidationError):
        make()
