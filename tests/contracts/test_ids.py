"""Ids and relative paths: the whole string counts, and the reason is named."""

import re

import jsonschema_rs
import pytest

from akf.contracts.ids import (
    ID_PATTERN,
    SHORT_ID_PATTERN,
    candidate_id_problem,
    id_problem,
    is_id,
    is_relative_path,
    path_problem,
)
from akf.contracts.limits import MAX_PATH_BYTES, MAX_SEGMENT_BYTES, MAX_SHORT_ID
from akf.contracts.text import printable

GOOD = ["a", "0", "qwen3-8b-a3-bf16", "a.b_c-d", "a..b", "x" * 63, "a.r", "a.rx1", "r1", "a-", "a."]
BAD = ["", "A", "-a", ".a", "_a", "a b", "a\n", "\na", "a/b", "a\0", "x" * 64, "ü", "a\u0301", "a:b", "a\\b", " a"]


@pytest.mark.parametrize("text", GOOD)
def test_ids(text: str) -> None:
    assert is_id(text)
    assert id_problem(text) is None


@pytest.mark.parametrize("text", BAD)
def test_not_ids(text: str) -> None:
    assert not is_id(text)
    problem = id_problem(text, field="arm", file="f.json", pointer="/arm")
    assert problem is not None
    assert problem.code in {"AKF-S032", "AKF-S033"}
    assert problem.message.startswith("arm ")
    assert (problem.file, problem.pointer) == ("f.json", "/arm")
    assert printable(str(problem)) == str(problem)


@pytest.mark.parametrize("value", [None, 1, True, ["a"], {"a": 1}])
def test_other_types_are_no_ids(value: object) -> None:
    assert not is_id(value)
    problem = id_problem(value)
    assert problem is not None
    assert problem.code == "AKF-S032"


@pytest.mark.parametrize("text", GOOD + BAD)
def test_the_schema_says_the_same(text: str) -> None:
    for pattern, longest in ((ID_PATTERN, 63), (SHORT_ID_PATTERN, MAX_SHORT_ID)):
        compiled = jsonschema_rs.Draft202012Validator({"type": "string", "pattern": pattern})
        assert compiled.is_valid(text) == is_id(text, longest)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Demo 1", "for example demo-1"),
        ("demo/one", "for example demo-one"),
        ("x" * 70, "for example " + "x" * 63),
        ("-demo", "for example demo"),
        ("///", None),
    ],
)
def test_a_near_id_is_offered(text: str, hint: str | None) -> None:
    problem = id_problem(text)
    assert problem is not None
    assert problem.hint == hint


@pytest.mark.parametrize(
    ("text", "point", "meant"),
    [
        ("d\u0435mo", "U+0435", "demo"),  # Cyrillic e
        ("\u0430\u0441\u0435", "U+0430", "ace"),
        ("qw\u03b5n", "U+03B5", None),  # epsilon looks like no ASCII letter
        ("dem\u03bf", "U+03BF", "demo"),  # Greek omicron
        ("demo\u20101", "U+2010", "demo-1"),  # a hyphen that is not a minus
        ("\uff44\uff45\uff4d\uff4f", "U+FF44", "demo"),  # full width
        ("\U0001d41aemo", "U+1D41A", "aemo"),  # mathematical bold a
        ("demo\u200b", "U+200B", None),  # zero width
        ("\u202eomed", "U+202E", None),  # right to left
    ],
)
def test_look_alikes_are_called_by_name(text: str, point: str, meant: str | None) -> None:
    problem = id_problem(text)
    assert problem is not None
    assert problem.code == "AKF-S033"
    assert point in problem.message
    assert problem.hint == (f"write it as {meant}" if meant else "ids are written in ASCII")
    assert printable(problem.message) == problem.message


def test_candidate_ids() -> None:
    assert candidate_id_problem("c" * MAX_SHORT_ID) is None
    assert candidate_id_problem("c.r1x") is None
    assert candidate_id_problem("c.r") is None
    for bad in ("c" * (MAX_SHORT_ID + 1), "c.r1", "c.r007", "C"):
        problem = candidate_id_problem(bad)
        assert problem is not None
        assert problem.code == "AKF-S032"
    attempt = candidate_id_problem("fast.r2")
    assert attempt is not None
    assert attempt.hint == "for example fast-r2"


@pytest.mark.parametrize("text", ["a", "a/b.c", ".hidden", "..a", "a..b/...", "src/ä/中.cpp", "a b/c", "-x", "~/x"])
def test_relative_paths(text: str) -> None:
    assert is_relative_path(text)
    assert path_problem(text) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        ("/etc/passwd", "is absolute"),
        ("//server/share", "is absolute"),
        ("..", "leaves its folder"),
        ("../a", "leaves its folder"),
        ("a/../b", "leaves its folder"),
        ("a/..", "leaves its folder"),
        (".", "holds a . segment"),
        ("./a", "holds a . segment"),
        ("a//b", "holds an empty segment"),
        ("a/", "holds an empty segment"),
        ("C:/a", "names a drive"),
        ("c:a", "names a drive"),
        ("ab:c", "holds a colon"),
        ("a\\b", "holds a backslash"),
        ("..\\a", "holds a backslash"),
        ("a\0b", "control or invisible"),
        ("a\n", "control or invisible"),
        ("a\u202eb", "control or invisible"),
        ("a\ud800", "control or invisible"),
        ("a/" * (MAX_PATH_BYTES // 2) + "a", f"more than {MAX_PATH_BYTES} bytes"),
        ("ü" * 128, f"more than {MAX_SEGMENT_BYTES} bytes"),
        (7, "is not a string"),
        (None, "is not a string"),
    ],
)
def test_paths_that_leave(text: object, why: str) -> None:
    assert not is_relative_path(text)
    problem = path_problem(text, field="output", pointer="/output")
    assert problem is not None
    assert (problem.code, problem.pointer) == ("AKF-S034", "/output")
    assert re.search(why, problem.message)
    assert printable(str(problem)) == str(problem)
