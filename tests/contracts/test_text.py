"""Text from files cannot paint a terminal, and near misses are found."""

import pytest

from akf.contracts.text import did_you_mean, printable, show


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ünïcödé, 中文, 😀", "plain text, ünïcödé, 中文, 😀"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\nb\rc\td", r"a\nb\rc\td"),
        ("\x00\x08\x7f", r"\x00\x08\x7f"),
        ("\x9b31m\x85", r"\x9b31m\x85"),  # C1: the eight-bit CSI
        ("\u202eevil\u202c\u2066x\u2069\u200e\u200f\u061c", r"\u202eevil\u202c\u2066x\u2069\u200e\u200f\u061c"),
        ("a\u200bb\u200c\u200d\u2060\ufeff\u00ad\u180e", r"a\u200bb\u200c\u200d\u2060\ufeff\xad\u180e"),
        ("\u2028\u2029\u00a0\u3000", r"\u2028\u2029\xa0\u3000"),
        ("\u115f\u1160\u3164\uffa0\u034f\u2800", r"\u115f\u1160\u3164\uffa0\u034f\u2800"),
        ("\ufe0f\U000e0100\U000e0041", r"\ufe0f\U000e0100\U000e0041"),
        ("\ud800\udfff", r"\ud800\udfff"),
        ("\ue000\U000f0000\uffff\U0010ffff", r"\ue000\U000f0000\uffff\U0010ffff"),
        ("back\\slash", "back\\slash"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown
    printable(text).encode()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (1.5, "1.5"),
        (-7, "-7"),
        ("x", '"x"'),
        ("\x1b[2J", r'"\x1b[2J"'),
        ("x" * 100, '"' + "x" * 79 + '…"'),
        ({}, "an object with 0 fields"),
        ({"a": 1}, "an object with 1 field"),
        ([1, 2], "an array of 2 items"),
    ],
)
def test_show(value: object, shown: str) -> None:
    assert show(value) == shown


def test_show_never_prints_more_digits_than_python_allows() -> None:
    assert show(10**10_000) == "a whole number of 33220 bits"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("Campain", "Campaign"),
        ("campaign", "Campaign"),
        ("optimization-suite", "OptimizationSuite"),
        ("OptimisationSuite", "OptimizationSuite"),
        ("Gates", "Gate"),
        ("zebra", None),
        ("", None),
        ("Campaign" * 10_000, None),
    ],
)
def test_did_you_mean(word: str, meant: str | None) -> None:
    assert did_you_mean(word, ["Campaign", "OptimizationSuite", "Gate", "Optimization_Suite"]) in (
        {meant, "Optimization_Suite"} if meant == "OptimizationSuite" else {meant}
    )


@pytest.mark.parametrize(
    ("word", "meant"), [("vllm", "vllm_ascend"), ("sglang", "sglang_ascend"), ("xlm", "xllm"), ("v", None)]
)
def test_the_one_that_a_word_begins_is_meant_before_one_that_looks_like_it(word: str, meant: str | None) -> None:
    assert did_you_mean(word, ["sglang_ascend", "transformers", "vllm_ascend", "xllm"]) == meant


def test_did_you_mean_does_not_depend_on_order() -> None:
    words = ["aab", "aac", "aad"]
    assert {did_you_mean("aax", order) for order in (words, words[::-1], set(words))} == {"aad"}
    assert did_you_mean("x", []) is None
