"""RFC 8785 and one newline: the RFC's own vectors, the limits, and files that must be canonical."""

import datetime as dt
import enum
import hashlib
import json
import math
import struct
import subprocess
import uuid
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from akf.contracts.canonical import canonical_bytes, digest, digest_file, jcs, parse_canonical
from akf.contracts.limits import MAX_DEPTH, MAX_SAFE_INTEGER
from akf.contracts.problems import IntegrityError, InvalidError

# RFC 8785, appendix B: the bits of a double and how ECMAScript writes it.
NUMBERS = """
0000000000000000 0
8000000000000000 0
0000000000000001 5e-324
8000000000000001 -5e-324
7fefffffffffffff 1.7976931348623157e+308
ffefffffffffffff -1.7976931348623157e+308
4340000000000000 9007199254740992
c340000000000000 -9007199254740992
4430000000000000 295147905179352830000
44b52d02c7e14af5 9.999999999999997e+22
44b52d02c7e14af6 1e+23
44b52d02c7e14af7 1.0000000000000001e+23
444b1ae4d6e2ef4e 999999999999999700000
444b1ae4d6e2ef4f 999999999999999900000
444b1ae4d6e2ef50 1e+21
3eb0c6f7a0b5ed8c 9.999999999999997e-7
3eb0c6f7a0b5ed8d 0.000001
41b3de4355555553 333333333.3333332
41b3de4355555554 333333333.33333325
41b3de4355555555 333333333.3333333
41b3de4355555556 333333333.3333334
41b3de4355555557 333333333.33333343
becbf647612f3696 -0.0000033333333333333333
43143ff3c1cb0959 1424953923781206.2
"""


@pytest.mark.parametrize("line", NUMBERS.split("\n")[1:-1])
def test_numbers_of_the_rfc(line: str) -> None:
    bits, text = line.split()
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert jcs(number) == text.encode()
    assert jcs([number, {"a": number}]) == f'[{text},{{"a":{text}}}]'.encode()


@pytest.mark.parametrize("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
def test_what_the_rfc_forbids(bits: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    for value in (number, [None, number], {"a": {"b": (None, number)}}):
        with pytest.raises(InvalidError) as caught:
            jcs(value)
        assert [p.code for p in caught.value.problems] == ["AKF-S007"]


def test_example_of_the_rfc() -> None:
    text = r"""{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}"""
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        r'"string":"€$\u000f\nA' + "'" + r'B\"\\\\\"/"}'
    )
    assert jcs(json.loads(text)) == expected.encode()


def test_order_of_keys_of_the_rfc() -> None:
    keys = ["\u20ac", "\r", "\ufb33", "1", "😀", "\u0080", "\u00f6"]
    written = json.loads(jcs(dict.fromkeys(keys)), object_pairs_hook=lambda pairs: [key for key, _ in pairs])
    assert written == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "😀", "\ufb33"]


@pytest.mark.parametrize(
    "value",
    [
        {"a": 64.0, "b": [0.0, -0.0, 1.0, -10.0, 100.0]},
        {"a": "1.0,", "b": 1.0},  # a string that looks like a number
        {"a": 'x:1.0,"', "b": "[-0.0]", "c": -0.0},
        {"a": "\\", "b": '\\"', "c": "\\\\", "d": 2.0, 'e":1.0,"': 1},
        {"a": "1e-6]", "b": 1e-6, "c": [1.5e-6, 1e-7, 9.9e-7]},
        {"a": "g++ -O3, e+16,", "b": [1e16, 1e20, 1e21, -1.5e18]},
        {"a": "\x00\x01\x1f\x7f\u0080\u2028\u2029", "b": 3.0},
        {"\ue000": 1, "😀": 2.0, "\uffff": 3},
        {"ü": {"😀": [{"\ufb33": 1e-6}]}},
        [1, 2.0, "1.0"],
        (1, [2.0, (3,)]),
        "1.0,",
        -0.0,
        -10.0,
        1e16,
        OrderedDict(b=1.0, a=2),
        True,
        None,
    ],
)
def test_agrees_with_the_reference(value: Any) -> None:
    assert jcs(value) == rfc8785.dumps(value)


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    "value",
    [
        {1: 2},
        {None: 2},
        {"a": {1, 2}},
        {"a": b"bytes"},
        {"a": uuid.UUID(int=1)},
        {"a": dt.date(2026, 1, 1)},
        {"a": Colour.RED},
        {"a": 1j},
        {"a": object()},
        {"a": Path("x")},
        {"a": ...},
    ],
)
def test_foreign_values_are_refused(value: Any) -> None:
    with pytest.raises(InvalidError) as caught:
        canonical_bytes(value)
    assert [p.code for p in caught.value.problems] == ["AKF-S014"]


def test_every_fault_is_listed_with_its_pointer() -> None:
    with pytest.raises(InvalidError) as caught:
        canonical_bytes({"a": [math.nan, 2**53], "b/c": {"\ud800": "\udfff"}, "d": {1}})
    assert [(p.code, p.pointer) for p in caught.value.problems] == [
        ("AKF-S007", "/a/0"),
        ("AKF-S008", "/a/1"),
        ("AKF-S010", "/b~1c"),
        ("AKF-S010", "/b~1c/\ud800"),
        ("AKF-S014", "/d"),
    ]


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(InvalidError):
        canonical_bytes({"a": loop})


def test_bytes_end_in_one_newline() -> None:
    assert canonical_bytes({"b": 1, "a": "é"}) == '{"a":"é","b":1}\n'.encode()


@pytest.mark.parametrize("number", [2.0**53, -(2.0**53), 9007199254740994.0, 1e16, 1e17, 1e20, 1e21, 1e300])
@pytest.mark.parametrize("more", [[], ["1.0,"], ["\ue000", {"😀": 1, "\ue000": 2}]])
def test_nothing_is_written_that_would_not_be_read(number: float, more: list[Any]) -> None:
    with pytest.raises(InvalidError) as caught:
        canonical_bytes({"a": [number, *more]})
    assert [(p.code, p.pointer) for p in caught.value.problems] == [("AKF-S008", "/a/0")]


@pytest.mark.parametrize("number", [MAX_SAFE_INTEGER, -MAX_SAFE_INTEGER, float(MAX_SAFE_INTEGER), 1e15, 1e-300])
def test_the_largest_numbers_come_back(number: float) -> None:
    data = canonical_bytes({"a": number})
    assert parse_canonical(data, "f").value == {"a": number}


@pytest.mark.parametrize("padding", [0, 5_000])
@pytest.mark.parametrize("innermost", [1, [], {}])
@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"a": v}])
def test_depth(padding: int, innermost: Any, wrap: Any) -> None:
    value = innermost
    own = 0 if innermost == 1 else 1
    for _ in range(MAX_DEPTH - 1 - own):
        value = wrap(value)
    fits = {"p": "x" * padding, "v": value}
    assert parse_canonical(canonical_bytes(fits), "f").value == fits
    deep = {"p": "x" * padding, "v": wrap(value)}
    with pytest.raises(InvalidError) as caught:
        canonical_bytes(deep)
    assert [p.code for p in caught.value.problems] == ["AKF-S011"]
    with pytest.raises(IntegrityError):
        parse_canonical(jcs(deep) + b"\n", "f")


def test_very_deep_values_are_refused_without_recursion() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InvalidError):
        canonical_bytes({"a": value})
    while isinstance(value, list):  # take it apart here: deleting it whole would recurse
        value = value.pop()


def test_parse_canonical_accepts_what_was_written() -> None:
    data = canonical_bytes({"a": [1, 2.5, None, True, "é😀"], "\r": {}})
    document = parse_canonical(data, "f.json")
    assert document.value == {"a": [1, 2.5, None, True, "é😀"], "\r": {}}
    assert document.source == data
    assert document.locate("/a/1") == (1, 17)


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [
        (b'{"a":1}', 1, 8),
        (b'{"a":1}\n\n', 2, 1),
        (b'{"a":1}\r\n', 1, 8),
        (b'{"a": 1}\n', 1, 6),
        (b' {"a":1}\n', 1, 1),
        (b'{"a":1.0}\n', 1, 7),
        (b'{"a":1e3}\n', 1, 7),
        (b'{"a":-0}\n', 1, 6),
        (b'{"a":1e-400}\n', 1, 6),
        (b'{"b":1,"a":2}\n', 1, 3),
        (b'{"a":"\\u0041"}\n', 1, 7),
        (b'{"a":"\\/"}\n', 1, 7),
        (b'{"a":"\\u000A"}\n', 1, 8),
        ('{"\ue000":1,"😀":2}\n'.encode(), 1, 3),
    ],
)
def test_parse_canonical_refuses_other_spellings(data: bytes, line: int, column: int) -> None:
    with pytest.raises(IntegrityError) as caught:
        parse_canonical(data, "f.json")
    (problem,) = caught.value.problems
    assert (problem.code, problem.line, problem.column) == ("AKF-I001", line, column)
    assert problem.found == digest(data)
    assert problem.expected != problem.found


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "AKF-S001"),
        (b"[]\n", "AKF-S012"),
        (b'{"a":1,"a":1}\n', "AKF-S006"),
        (b'{"a":NaN}\n', "AKF-S007"),
        (b'{"a":9007199254740992}\n', "AKF-S008"),
        (b'{"a":100000000000000000}\n', "AKF-S008"),
        (b'{"a":18446744073709552000}\n', "AKF-S008"),
        (b'{"a":1e+21}\n', "AKF-S008"),
        (b'{"a":"\\ud800"}\n', "AKF-S010"),
        (b'{"a":"\xff"}\n', "AKF-S003"),
        (b'\xef\xbb\xbf{"a":1}\n', "AKF-S002"),
        (b'{"a":' + b"[" * 200_000, "AKF-S011"),
    ],
)
def test_a_canonical_file_that_is_no_json_is_an_integrity_error(data: bytes, code: str) -> None:
    with pytest.raises(IntegrityError) as caught:
        parse_canonical(data, "f.json")
    assert [p.code for p in caught.value.problems] == [code]


def test_digest_is_what_sha256sum_says(tmp_path: Path) -> None:
    data = canonical_bytes({"id": "demo", "größe": 1.5})
    (tmp_path / "a.json").write_bytes(data)
    said = subprocess.run(["sha256sum", tmp_path / "a.json"], capture_output=True, text=True, check=True).stdout
    assert digest(data) == digest_file(tmp_path / "a.json") == "sha256:" + said.split()[0]
    assert digest(b"") == "sha256:" + hashlib.sha256().hexdigest()


def test_digest_of_a_file_larger_than_an_artifact(tmp_path: Path) -> None:
    with (tmp_path / "samples.jsonl").open("wb") as stream:
        stream.truncate(20 << 20)
    assert digest_file(tmp_path / "samples.jsonl") == digest(bytes(20 << 20))
