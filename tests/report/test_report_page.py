"""The page of a report: self-contained, readable by machines and in every theme, with every number of the model."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.reports import Page, whole

from akf.contracts.models.base import Value
from akf.report import model as m
from akf.report import numbers, page
from akf.report.page import render

STYLE = Path(page.__file__).with_name("page.css").read_text(encoding="utf-8")
LEAST_CONTRAST = 4.5
WORDS = (
    "Survey of a decode profile", "Synthetic", "rms-norm", "MatMulV2", "everything else", "AKF-F440", "fused", "Next:",
    "akf triage campaign.json", "ceiling 1.135 exceeds 1.05", "waiting for a slower rank",
)  # fmt: skip
X = "\N{MULTIPLICATION SIGN}"
LEAST_CONTRAST_OF_SHAPES = 1.5


@pytest.fixture(scope="module")
def drawn() -> Page:
    return Page(render(whole()))


def test_same_report_same_bytes() -> None:
    assert render(whole()) == render(m.from_json(m.to_json(whole()), "report.json"))


def test_nothing_is_fetched_and_nothing_runs(drawn: Page) -> None:
    names = {name for name, _ in drawn.elements}
    assert names.isdisjoint({"script", "img", "iframe", "object", "embed", "link", "base", "form", "audio", "video"})
    for _, attributes in drawn.elements:
        assert not any(name.startswith("on") or name in {"src", "srcset", "style", "xlink:href"} for name in attributes)
        assert attributes.get("href", "#").startswith("#")
    assert "url(" not in STYLE
    assert "@import" not in STYLE


def test_the_policy_lets_only_this_style_through() -> None:
    data = render(whole()).decode()
    inside = re.search(r"<style>(.*?)</style>", data, re.DOTALL)
    assert inside is not None
    digest = base64.b64encode(hashlib.sha256(inside[1].encode()).digest()).decode()
    assert f"default-src &#x27;none&#x27;; style-src &#x27;sha256-{digest}&#x27;" in data


def test_structure_for_readers_of_screens(drawn: Page) -> None:
    of = {name: [attributes for tag, attributes in drawn.elements if tag == name] for name, _ in drawn.elements}
    assert of["html"][0]["lang"] == "en"
    assert len(of["h1"]) == len(of["main"]) == 1
    ids = [attributes["id"] for _, attributes in drawn.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert [attributes["href"][1:] for attributes in of["a"]] == ids
    assert [attributes["aria-labelledby"] for attributes in of["section"]] == ids
    assert all(attributes["scope"] in {"row", "col"} for attributes in of["th"])
    assert len(of["caption"]) == len(of["table"])
    for attributes in of["svg"]:
        inner = "viewbox" in attributes  # part of a picture that is labelled as a whole
        assert (
            inner
            or attributes.get("aria-hidden") == "true"
            or (attributes["role"] == "img" and attributes["aria-label"])
        )


def test_every_number_of_the_model_is_on_the_page_as_text(drawn: Page) -> None:
    found = list(_numbers(whole()))
    assert len(found) > 60
    for text in found:
        assert text in drawn.text, text


def test_every_word_of_the_model_is_on_the_page(drawn: Page) -> None:
    flat = "".join(drawn.words)
    for word in WORDS:
        assert word in flat, word


def test_a_target_out_of_reach_is_said(drawn: Page) -> None:
    assert f"1.050{X} is out of reach" in drawn.text


def test_code_and_paragraphs() -> None:
    report = m.Report(title="t", sections=(m.Section(title="s", blocks=(m.Prose(text="a `b<c` d\ne\n\n`x"),)),))
    assert "<p>a <code>b&lt;c</code> d e</p><p>`x</p>" in render(report).decode()


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_text_can_be_read(scheme: str) -> None:
    colours = _colours(scheme)
    pairs = [
        (ink, ground) for ink in ("ink", "soft", "accent", "target") for ground in ("ground", "card") if ink != "target"
    ]
    pairs += [("target", "ground")]
    pairs += [(tone, f"{tone}-ground") for tone in ("good", "warn", "bad", "info", "plain")]
    pairs += [("ink", f"{tone}-ground") for tone in ("good", "warn", "bad", "info", "plain")]
    pairs += [("soft", f"{tone}-ground") for tone in ("good", "warn", "bad", "info", "plain")]
    for ink, ground in pairs:
        assert _contrast(colours[ink], colours[ground]) >= LEAST_CONTRAST, (scheme, ink, ground)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_lines_of_time_can_be_told_apart_without_colour(scheme: str) -> None:
    colours = _colours(scheme)
    order = ["computing", "communication", "waiting", "host-gap", "idle"]
    for name in order:
        assert _contrast(colours[name], colours["ground"]) >= LEAST_CONTRAST_OF_SHAPES, (scheme, name)
    assert _contrast(colours["bar"], colours["ground"]) >= 3


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (850, "ns", "850 ns"),
        (999, "ns", "999 ns"),
        (1_000, "ns", "1.000 µs"),
        (28_441_000, "ns", "28.44 ms"),
        (0, "ns", "0 ns"),
        (12.75, "ms", "12.75 ms"),
        (0.5, "ms", "500.0 µs"),
        (46_800, "s", "13.00 h"),
        (2**53 - 1, "ns", "2,502 h"),
        (0.05543, "share", "5.54 %"),
        (0.0541, "share", "5.41 %"),
        (1, "share", "100 %"),
        (0.1213, "gain", "+12.1 %"),
        (-0.0013, "gain", "-0.13 %"),
        (0.00001, "gain", "+<0.01 %"),
        (0, "gain", "0 %"),
        (0.125, "share", "12.5 %"),
        (0.00001, "share", "<0.01 %"),
        (0, "share", "0 %"),
        (1.0587, "times", f"1.059{X}"),
        (123.456, "times", f"123.5{X}"),
        (12_345, "count", "12,345"),
        (49_152, "bytes", "48.00 KiB"),
        (4.25, "per_s", "4.250 /s"),
        (1800, "mhz", "1,800 MHz"),
        (2048, "tokens", "2,048 tokens"),
        (-1_500_000, "ns", "-1.500 ms"),
    ],
)
def test_numbers(value: float, unit: str, text: str) -> None:
    assert numbers.number(value, unit) == text


def _numbers(value: Any, name: str = "") -> Iterator[str]:
    """Every number of a model, as it must be written."""
    if isinstance(value, m.Quantity):
        yield numbers.number(value.value, value.unit)
        yield numbers.interval(value.low, value.high, value.unit)
    elif isinstance(value, Value):
        for field in type(value).model_fields:
            if field != "report_version":
                yield from _numbers(getattr(value, field), field)
    elif isinstance(value, tuple):
        for item in value:
            yield from _numbers(item, name)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield _number(value, name)


def _number(value: float, name: str) -> str:
    if name.endswith("_gains"):
        return numbers.gain(value)
    if name.endswith("_ns"):
        return numbers.number(value, "ns")
    if name in {"share_ratio", "low_ratio", "high_ratio"}:
        return numbers.percent(value)
    return numbers.number(float(value), "times") if name.endswith("_ratio") else f"{value:,}"


def _colours(scheme: str) -> dict[str, str]:
    roots = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    blocks = dict(zip(("light", "dark", "print"), roots, strict=True))
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", blocks["light"])) | dict(
        re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", blocks[scheme])
    )


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
