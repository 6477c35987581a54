"""The plots of "How AKF measures" are drawn from the samples beside them, by the code that judges, and run nothing."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import pytest
from docs.generator import measured
from docs.generator.pages import DOCS

from akf.report import numbers

PAGE = DOCS / "how-akf-measures.md"
PLOTS = sorted(measured.FOLDER.glob("*.svg"))


@pytest.mark.parametrize("path", PLOTS, ids=lambda path: path.name)
def test_a_plot_is_well_formed_and_fetches_nothing(path: object) -> None:
    text = path.read_text(encoding="utf-8")  # type: ignore[attr-defined]
    root = ET.fromstring(text)  # noqa: S314 - our own file
    assert root.get("aria-label")
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names.isdisjoint({"script", "image", "foreignObject", "use", "a"})
    assert "url(" not in text
    assert "prefers-color-scheme: dark" in text


def test_every_plot_is_on_the_page_with_words_and_no_other() -> None:
    found = dict(re.findall(r"!\[([^\]]{20,})\]\((measured/[a-z]+\.svg)\)", PAGE.read_text(encoding="utf-8")))
    assert sorted(found.values()) == [f"measured/{path.name}" for path in PLOTS]
    assert len(PLOTS) == 4


def test_the_pairs_that_are_drawn_are_those_that_the_samples_give() -> None:
    drawn = (measured.FOLDER / "pairs.svg").read_text(encoding="utf-8")
    for purpose in ("ab", "aa"):
        found = measured.reduced(purpose)
        for reduction in (found.total, *found.rows.values()):
            assert ", ".join(numbers.gain(ratio - 1) for ratio in reduction.ratios) in drawn


def test_another_sample_is_another_plot(monkeypatch: pytest.MonkeyPatch) -> None:
    before = measured.plots_of_the_page()
    value = json.loads(measured.SAMPLES.read_bytes())
    value["ab"] = [[2 * each for each in given] for given in value["ab"]]
    monkeypatch.setattr(measured, "run", lambda: value)
    measured.reduced.cache_clear()
    try:
        after = measured.plots_of_the_page()
    finally:
        measured.reduced.cache_clear()
    changed = {path.stem for path, text in after.items() if text != before[path]}
    assert changed == {"values", "blocks"}  # ratios of twice the times are the same
