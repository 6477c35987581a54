"""The fast path, the slow scanner and an oracle of `json` agree on what is JSON and what it says.

The oracle is written from the rules alone: Python's `json` with hooks, then a walk over the value.
"""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from akf.contracts import loader
from akf.contracts.limits import MAX_DEPTH, MAX_SAFE_INTEGER
from akf.contracts.pointer import escape
from akf.contracts.problems import InvalidError

SURROGATE = "ud800"
FRAGMENTS = [
    *"{}[]:,\"\\ \t\r\n-+.0123456789eEu/'#",
    '"a"',
    '"b"',
    '"\\u0061"',
    '{"a":',
    "[1,2]",
    "true",
    "false",
    "null",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "1e-400",
    "-0",
    "-0.0",
    "9007199254740991",
    "9007199254740992",
    "9007199254740992.0",
    "1e17",
    "18446744073709551616",
    "\\ud83d",
    "\\ude00",
    "\\ud83d\\ude00",
    "\\u0000",
    "é",
    "😀",
    "\u2028",
    "\x00",
    "\x1f",
    "\f",
    "\x0b",
    "\xa0",
    "\x7f",
    "\ufeff",
]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    | st.floats(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    | st.text(max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)
objects = st.dictionaries(st.text(max_size=4), values, max_size=5)
layouts = st.sampled_from([None, 0, 1, "\t"])


class Refused(Exception):  # noqa: N818 - an answer, not an error
    """The oracle says no."""


def refuse(*_: Any) -> Any:
    raise Refused


def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in items}) != len(items):
        raise Refused
    return dict(items)


def check(value: Any, depth: int) -> None:
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, float | int):
        if not abs(value) <= MAX_SAFE_INTEGER:
            raise Refused
    elif isinstance(value, list | dict):
        if depth > MAX_DEPTH:
            raise Refused
        for item in value if isinstance(value, list) else [*value, *value.values()]:
            check(item, depth + 1)


def oracle(data: bytes) -> str | None:
    """Return what a document says (as text that tells 1, 1.0 and true apart), or None when it is refused."""
    try:
        value = json.loads(data.decode(), object_pairs_hook=pairs, parse_constant=refuse)
        check(value, 1)
    except (ValueError, Refused, RecursionError):
        return None
    return json.dumps(value) if isinstance(value, dict) else None


def agree(data: bytes) -> None:
    expected = oracle(data)
    if expected is None:
        with pytest.raises(InvalidError) as caught:
            loader.parse(data, "f")
        assert all(p.code.startswith("AKF-S") and p.line and p.column for p in caught.value.problems)
        assert loader.fast(data) is None
        return
    assert json.dumps(loader.slow(data, "f")) == expected
    assert json.dumps(loader.parse(data, "f").value) == expected
    fast = loader.fast(data)
    if fast is None:
        assert b"\\ud" in data.lower(), "a plain valid document took the slow way"
    else:
        assert json.dumps(fast) == expected


@given(objects, layouts, st.booleans())
def test_valid_documents(value: dict[str, Any], indent: Any, ascii_only: bool) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    agree(data)


@settings(max_examples=250)
@given(objects, layouts, st.data())
def test_valid_documents_with_a_few_slips(value: dict[str, Any], indent: Any, data: st.DataObject) -> None:
    text = json.dumps(value, indent=indent)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 2))
        text = text[:at] + data.draw(st.sampled_from(["", *FRAGMENTS])) + text[at + cut :]
    agree(text.encode("utf-8", "surrogatepass"))


@settings(max_examples=250)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14))
def test_heaps_of_fragments(fragments: list[str]) -> None:
    agree("".join(fragments).encode())
    agree(('{"a":' + "".join(fragments) + "}").encode())


@given(st.binary(max_size=40))
@example(b"\xef\xbb\xbf{}")
@example(b"\xff\xfe{\x00}\x00")
@example(b'{"a":"\xed\xa0\x80"}')
def test_any_bytes(data: bytes) -> None:
    agree(data)
    agree(b'{"a":"' + data + b'"}')


@given(st.lists(st.sampled_from(["ud83d", "ude00", SURROGATE, "u0041", "\\", '"', "n", "x"]), max_size=6))
def test_escapes(parts: list[str]) -> None:
    agree(('{"' + "".join("\\" + part for part in parts) + '":1}').encode())


@given(st.integers(1, 2 * MAX_DEPTH), st.booleans(), st.booleans())
def test_depths(depth: int, arrays: bool, empty: bool) -> None:
    left, right = ("[", "]") if arrays else ('{"a":', "}")
    inner = ("[]" if arrays else "{}") if empty else "1"
    agree(b'{"a":' + (left * depth + inner + right * depth).encode() + b"}")


@given(
    st.from_regex(
        r"-?[0-9]{1,20}(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,3})?", fullmatch=True, alphabet=st.characters(codec="ascii")
    )
)
def test_numbers(text: str) -> None:
    agree(f'{{"a":{text}}}'.encode())


def pointers(value: Any, here: str = "") -> list[tuple[str, Any]]:
    found = [(here, value)]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += pointers(inner, f"{here}/{escape(str(key))}")
    return found


@given(objects, layouts, st.booleans())
def test_every_value_is_where_locate_says(value: dict[str, Any], indent: Any, large: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False) + " " * (300_000 if large else 0)
    document = loader.parse(text.encode(), "f")
    lines = text.split("\n")
    found = dict(pointers(value))
    document.prefetch([*found, "/absent/deeper", *(f"{pointer}/absent" for pointer in found)])

    def at(pointer: str, *, key: bool = False) -> Any:
        line, column = document.locate(pointer, key=key)
        offset = sum(len(before) + 1 for before in lines[: line - 1]) + column - 1
        return json.JSONDecoder().raw_decode(text, offset)[0]

    for pointer, expected in found.items():
        assert at(pointer) == expected
        parent, _, token = pointer.rpartition("/")
        if pointer and isinstance(found[parent], dict):
            assert at(pointer, key=True) == token.replace("~1", "/").replace("~0", "~")
        if "absent" not in expected if isinstance(expected, dict) else True:
            assert at(f"{pointer}/absent") == expected


@pytest.mark.parametrize("data", [b"", b"{}", b'{"a":1}', b"[" * 300, b'{"a":NaN}'])
def test_fixed_points(data: bytes) -> None:
    agree(data)


@pytest.mark.soak
@settings(max_examples=30_000)
@given(objects, layouts, st.data())
def test_many_slips(value: dict[str, Any], indent: Any, data: st.DataObject) -> None:
    text = json.dumps(value, indent=indent)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from(["", *FRAGMENTS])) + text[at + data.draw(st.integers(0, 3)) :]
    agree(text.encode("utf-8", "surrogatepass"))
