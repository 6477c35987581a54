"""Whatever a report's texts hold, the page is well formed, runs nothing, hides nothing, and is the same each time."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from tests.support.reports import REPORTS, Page

from akf.contracts.text import printable
from akf.report.model import Report, from_json, to_json
from akf.report.page import render

ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "h1", "p", "nav", "ul", "li", "a", "main", "section",
    "h2", "code", "pre", "div", "dl", "dt", "dd", "span", "strong", "figure", "figcaption", "table", "caption", "thead",
    "tbody", "tr", "th", "td", "svg", "g", "rect", "line", "path", "polygon", "circle", "text",
}  # fmt: skip


@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(REPORTS)
def test_any_text_stays_text(report: Report) -> None:
    data = render(report)
    assert data == render(report)
    page = Page(data)
    assert {name for name, _ in page.elements} <= ALLOWED
    assert sum(name == "section" for name, _ in page.elements) == len(report.sections)
    assert printable(report.title) in page.text
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    for line in data.decode("utf-8").split("\n")[-2:]:
        assert printable(line) == line


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(REPORTS)
def test_a_report_is_drawn_again_from_its_json_form(report: Report) -> None:
    data = to_json(report)
    again = from_json(data, "report.json")
    assert again == report
    assert render(again) == render(report)
