"""Strict JSON: what is refused, with which code, where, and all of it at once."""

import json
import random
import time
from typing import Any

import pytest

from akf.contracts.limits import MAX_DEPTH, MAX_PROBLEMS, MAX_SAFE_INTEGER
from akf.contracts.loader import Document, parse
from akf.contracts.places import Lines
from akf.contracts.problems import InvalidError, Problem


def problems(text: str | bytes) -> list[Problem]:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(InvalidError) as caught:
        parse(data, "f.json")
    assert all(problem.file == "f.json" for problem in caught.value.problems)
    return list(caught.value.problems)


def places(text: str | bytes) -> list[tuple[str, str | None, int | None, int | None]]:
    return [(p.code, p.pointer, p.line, p.column) for p in problems(text)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        (' \t\r\n{"a" : [ 1 , -2.5e3 , true , false , null , "x" ] } \n', {"a": [1, -2500.0, True, False, None, "x"]}),
        (r'{"\u0061\n\"\\\/\b\f\r\t": "\ud83d\ude00"}', {'a\n"\\/\b\f\r\t': "😀"}),
        ('{"ü€😀": "ü€😀"}', {"ü€😀": "ü€😀"}),
        ('{"a": "\u2028\x7f"}', {"a": "\u2028\x7f"}),
        ('{"a": {"b": 1}, "c": {"b": 1}}', {"a": {"b": 1}, "c": {"b": 1}}),
        ('{"": 1, " ": 2}', {"": 1, " ": 2}),
        ('{"a": 0, "A": 1}', {"a": 0, "A": 1}),
        (r'{"a": "\\ud800", "b": "\\u003a:"}', {"a": r"\ud800", "b": r"\u003a:"}),
        ('{"a": 9007199254740991, "b": -9007199254740991}', {"a": MAX_SAFE_INTEGER, "b": -MAX_SAFE_INTEGER}),
        ('{"a": 9007199254740991.0, "b": 9.007199254740991e15}', {"a": 2.0**53 - 1, "b": 2.0**53 - 1}),
        ('{"a": 1E-7, "b": 0.1e+1, "c": 1e-400}', {"a": 1e-7, "b": 1.0, "c": 0.0}),
    ],
)
def test_accepted(text: str, value: Any) -> None:
    assert parse(text.encode(), "f.json").value == value


@pytest.mark.parametrize("zero", ["0", "-0", "0.0", "-0.0", "-0e5"])
def test_every_zero_is_zero(zero: str) -> None:
    assert parse(f'{{"a": {zero}}}'.encode(), "f").value == {"a": 0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [("AKF-S001", "", 1, 1)]),
        (" \n\t\n", [("AKF-S001", "", 3, 1)]),
        (b"\xef\xbb\xbf{}", [("AKF-S002", "", 1, 1)]),
        (b'{"a": 1,\n "\xc3\xbc": "\xff"}', [("AKF-S003", None, 2, 8)]),
        (b'{"a": "\xc3', [("AKF-S003", None, 1, 8)]),
        (b'{"a": "\xed\xa0\x80"}', [("AKF-S003", None, 1, 8)]),  # a surrogate in UTF-8
        (b'{"a": "\xc0\xaf"}', [("AKF-S003", None, 1, 8)]),  # an overlong slash
        (b'{"a": "\xf4\x90\x80\x80"}', [("AKF-S003", None, 1, 8)]),  # beyond U+10FFFF
        ("{}\n{}", [("AKF-S005", "", 2, 1)]),
        ("[]", [("AKF-S012", "", 1, 1)]),
        (" 1", [("AKF-S012", "", 1, 2)]),
        ('"{}"', [("AKF-S012", "", 1, 1)]),
        ("null", [("AKF-S012", "", 1, 1)]),
        ('{"a": NaN}', [("AKF-S007", "/a", 1, 7)]),
        ('{"a": [Infinity, -Infinity]}', [("AKF-S007", "/a/0", 1, 8), ("AKF-S007", "/a/1", 1, 18)]),
        ('{"a": 9007199254740992}', [("AKF-S008", "/a", 1, 7)]),
        ('{"a": -9007199254740992}', [("AKF-S008", "/a", 1, 7)]),
        ('{"a": 18446744073709551616}', [("AKF-S008", "/a", 1, 7)]),
        ('{"a": 9007199254740992.0}', [("AKF-S008", "/a", 1, 7)]),
        ('{"a": 1e17}', [("AKF-S008", "/a", 1, 7)]),
        ('{"a": 1e308}', [("AKF-S008", "/a", 1, 7)]),
        ('{"a": ' + "1" * 10_000 + "}", [("AKF-S008", "/a", 1, 7)]),
        ('{"a": 1e400}', [("AKF-S009", "/a", 1, 7)]),
        ('{"a": -1' + "0" * 400 + ".0}", [("AKF-S009", "/a", 1, 7)]),
        (r'{"a": "xy\ud800"}', [("AKF-S010", "/a", 1, 10)]),
        (r'{"a": "\udc00\ud800"}', [("AKF-S010", "/a", 1, 8), ("AKF-S010", "/a", 1, 14)]),
        (r'{"a": "\ud83d\u0041"}', [("AKF-S010", "/a", 1, 8)]),
        ('{"a": 1, "a": 1}', [("AKF-S006", "/a", 1, 10)]),
        (r'{"a": 1, "\u0061": 2}', [("AKF-S006", "/a", 1, 10)]),
        ('{"x": [{"k/~": 1,\n"k/~": 2}]}', [("AKF-S006", "/x/0/k~1~0", 2, 1)]),
        ('{"a": 1, "a": 2, "a": 3}', [("AKF-S006", "/a", 1, 10), ("AKF-S006", "/a", 1, 18)]),
    ],
)
def test_refused(text: str | bytes, expected: list[Any]) -> None:
    assert places(text) == expected


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "hint"),
    [
        ('{"a": 1', 1, 8, "the file ends where a comma or } should stand", "line 1, column 1 is not closed"),
        ('{"a": [1,\n2', 2, 2, "the file ends where a comma or ] should stand", "line 1, column 7 is not closed"),
        ('{"a":', 1, 6, "the file ends where a value should stand", "not closed"),
        ('{"a": 1,}', 1, 9, "a comma stands before }", "remove the comma"),
        ('{"a": [1,]}', 1, 10, "a comma stands before ]", "remove the comma"),
        ('{"a": [,1]}', 1, 8, '"," stands where a value should', None),
        ("{'a': 1}", 1, 2, "a key in double quotes", "double quotes"),
        ("{a: 1}", 1, 2, '"a" stands where a key', "double quotes"),
        ("{\"a\": 'b'}", 1, 7, "stands where a value should", "double quotes"),
        ("{“a”: 1}", 1, 2, "stands where a key", "typographic quotes"),
        ('{"a": 1 // x\n}', 1, 9, '"/" stands where a comma or } should', "no comments"),
        ('# x\n{"a": 1}', 1, 1, "stands where a value should", "no comments"),
        ('{"a": True}', 1, 7, '"True" stands where a value should', "write true"),
        ('{"a": None}', 1, 7, '"None" stands where a value should', "write null"),
        ('{"a": nan}', 1, 7, '"nan" stands where a value should', "no NaN"),
        ('{"a": undefined}', 1, 7, '"undefined"', "write null"),
        ('{"a": 1 "b": 2}', 1, 9, '"b" stands where a comma or } should', "a comma is missing"),
        ('{"a": [1 2]}', 1, 10, '"2" stands where a comma or ] should', "a comma is missing"),
        ('{"a" 1}', 1, 6, 'a colon after the key "a"', None),
        ('{"a" = 1}', 1, 6, 'a colon after the key "a"', "colon"),
        ('{"a": 01}', 1, 7, '"01" is not a JSON number', "leading zeros"),
        ('{"a": -01}', 1, 7, '"-01" is not a JSON number', "leading zeros"),
        ('{"a": +1}', 1, 7, "stands where a value should", "plus sign"),
        ('{"a": .5}', 1, 7, "stands where a value should", "start with a digit"),
        ('{"a": 5.}', 1, 7, '"5." is not a JSON number', "digits must follow"),
        ('{"a": 0x1F}', 1, 7, '"0x1F" is not a JSON number', "decimal"),
        ('{"a": 1_000}', 1, 7, '"1_000" is not a JSON number', "underscores"),
        ('{"a": 5ms}', 1, 7, '"5ms" is not a JSON number', "field's name"),
        ('{"a": 1e}', 1, 7, '"1e" is not a JSON number', None),
        ('{"a": -}', 1, 7, '"-" stands where a value should', None),
        ('{"a": "x\ny"}', 1, 9, "the line ends inside a string", "\\n"),
        ('{"a": "x', 1, 7, "the string that starts here is never closed", "closing"),
        ('{"a": "x\ty"}', 1, 9, "control character U+0009", "\\u0009"),
        ('{"a": "\0"}', 1, 8, "control character U+0000", "\\u0000"),
        (r'{"a": "\x41"}', 1, 8, r"\x is not an escape", "JSON has"),
        (r'{"a": "\u12g4"}', 1, 8, r"\u is not an escape", "uXXXX"),
        ('{"a": 1\u00a0}', 1, 8, "stands where a comma", "U+00A0 is not white space"),
        ('{"a":\f1}', 1, 6, r'"\x0c" stands where a value should', None),
        ("{\x0b}", 1, 2, "stands where a key", None),
        ('{"a": 1}}', 1, 9, "follows the end", None),
        ('{"a": [1}', 1, 9, '"}" stands where a comma or ] should', None),
        ('{"a": \x1b[31m}', 1, 7, r'"\x1b" stands where a value should', None),
        (b"\xff\xfe{\x00}\x00", 1, 1, "byte 0xff", "UTF-16"),
        (b"{\x00}\x00", 1, 2, r'"\x00" stands where', None),
    ],
)
def test_slips(text: str | bytes, line: int, column: int, message: str, hint: str | None) -> None:
    (problem,) = problems(text)
    assert problem.code in {"AKF-S004", "AKF-S005", "AKF-S003"}
    assert (problem.line, problem.column) == (line, column)
    assert message in problem.message
    assert hint is None or hint in (problem.hint or "")


def test_everything_at_once() -> None:
    text = r"""{
  "a": NaN,
  "b": {"c": 1, "c": 2},
  "d": ["\ud800", 1e999, 12345678901234567890],
  "a": 3,
  "e": 5 5
}"""
    assert places(text) == [
        ("AKF-S007", "/a", 2, 8),
        ("AKF-S006", "/a", 5, 3),
        ("AKF-S006", "/b/c", 3, 17),
        ("AKF-S010", "/d/0", 4, 10),
        ("AKF-S009", "/d/1", 4, 19),
        ("AKF-S008", "/d/2", 4, 26),
        ("AKF-S004", "/e", 6, 10),
    ]


def test_a_key_twice_says_where_it_is_first() -> None:
    (problem,) = problems('{"status": 1,\n "status": 2}')
    assert problem.hint == "it is first at line 1, column 2; keep one of them"


def test_byte_order_mark_and_what_follows_it() -> None:
    assert places(b'\xef\xbb\xbf{"a": NaN}') == [("AKF-S002", "", 1, 1), ("AKF-S007", "/a", 1, 7)]


def test_columns_count_characters() -> None:
    assert places('{"ü😀": NaN}') == [("AKF-S007", "/ü😀", 1, 8)]


def test_lines_end_as_on_windows() -> None:
    assert places('{\r\n "a": NaN\r\n}') == [("AKF-S007", "/a", 2, 7)]


def test_nesting_limit() -> None:
    def nested(depth: int, left: str, right: str) -> str:
        return '{"a":' + left * (depth - 1) + "1" + right * (depth - 1) + "}"

    assert parse(nested(MAX_DEPTH, "[", "]").encode(), "f").value
    assert parse(nested(MAX_DEPTH, '{"a":', "}").encode(), "f").value
    for left, right in (("[", "]"), ('{"a":', "}")):
        (problem,) = problems(nested(MAX_DEPTH + 1, left, right))
        assert problem.code == "AKF-S011"
        assert problem.column == 6 + (MAX_DEPTH - 1) * len(left)
    assert places('{"a":' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}")[0][0] == "AKF-S011"  # empty ones count too


@pytest.mark.parametrize("opener", ["[", '{"a":', '[{"a":', "[[],"])
def test_a_hill_of_brackets_neither_crashes_nor_takes_long(opener: str) -> None:
    started = time.process_time()
    (problem,) = problems(opener * 200_000)
    assert problem.code == "AKF-S011"
    assert time.process_time() - started < 1


def test_brackets_inside_strings_do_not_nest() -> None:
    assert parse(('{"a": "' + "[" * 5_000 + '"}').encode(), "f").value


def test_lines_and_columns_of_long_texts() -> None:
    rng = random.Random(1)
    for size, breaks in ((0, 1), (65_535, 1), (65_536, 9), (65_537, 0), (200_000, 1), (200_000, 0)):
        text = "".join(rng.choices("ab\n", weights=[5, 5, breaks], k=size))
        lines = Lines(text)
        for offset in {0, size, min(size, 65_535), min(size, 65_536), *(rng.randrange(size + 1) for _ in range(100))}:
            assert lines.at(offset) == (text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def test_the_list_is_cut() -> None:
    listed = problems('{"a": [' + "NaN," * 5_000 + "1]}")
    assert len(listed) == MAX_PROBLEMS + 1
    assert [p.code for p in listed].count("AKF-S013") == 1


def test_long_faults_are_quoted_in_part() -> None:
    for text in ('{"a": ' + "9" * 100_000 + "}", '{"a": 1} ' + "x" * 100_000, '{"' + "k" * 100_000 + '": 1 1}'):
        assert all(len(p.message) < 300 for p in problems(text))


def test_problems_can_be_encoded_whatever_the_file_holds() -> None:
    for problem in problems(r'{"\ud800": 1, "\ud800": "\udfff"}'):
        assert json.dumps(problem.to_json(), ensure_ascii=False).encode()


def document(text: str) -> Document:
    return parse(text.encode(), "f.json")


def test_locate() -> None:
    found = document('{\n "a": [1,\n  {"b/c": 3, "": {"~": []}}]\n}')
    assert found.locate("") == (1, 1)
    assert found.locate("/a") == (2, 7)
    assert found.locate("/a", key=True) == (2, 2)
    assert found.locate("/a/0") == (2, 8)
    assert found.locate("/a/1") == (3, 3)
    assert found.locate("/a/1/b~1c") == (3, 11)
    assert found.locate("/a/1/b~1c", key=True) == (3, 4)
    assert found.locate("/a/1//~0") == (3, 24)


def test_what_is_not_there_is_located_at_its_container() -> None:
    found = document('{\n "a": {"b": 1}}')
    assert found.locate("/a/missing/deeper") == (2, 7)
    assert found.locate("/zz") == (1, 1)


def test_locate_in_a_large_document_keeps_only_what_is_wanted() -> None:
    items = ",\n".join(f'{{"n": {i}}}' for i in range(50_000))
    found = document(f'{{"items": [\n{items}]}}')
    assert found.locate("/items/49999/n") == (50_001, 7)
    found.prefetch(["/items/0/n", "/items/7/n"])
    assert found.locate("/items/7/n") == (9, 7)
    assert found.locate("/items/7/absent") == (9, 1)
    assert found.locate("/items/60000") == (1, 11)
    assert found._places is not None
    assert len(found._places.inside["items"].inside) == 4


@pytest.mark.parametrize("size", [100_000, 4_000_000])
def test_long_keys_cost_no_more_than_they_are_long(size: int) -> None:
    key, count = "k" * size, 30_000
    started = time.process_time()
    found = document(f'{{"{key}": [{"1," * count}1]}}')
    assert found.locate(f"/{key}/{count}") == (1, size + 2 * count + 7)
    listed = problems(f'{{"{key}": [{"NaN," * count}1]}}')
    assert {p.pointer for p in listed} == {""}  # the container that a pointer has room for
    assert time.process_time() - started < 5


def test_a_document_makes_problems_in_its_own_place() -> None:
    problem = document('{\n "a": 5}').problem("AKF-M001", "too small", "/a", expected=6, found=5, hint="more")
    assert problem == Problem("AKF-M001", "too small", "f.json", "/a", 2, 7, 6, 5, "more")
