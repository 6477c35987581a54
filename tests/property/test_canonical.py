"""Canonical bytes are byte for byte those of `rfc8785`, and what is written can be read back."""

import json
import math
import random
import struct
from typing import Any

import pytest
import rfc8785
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from akf.contracts.canonical import canonical_bytes, jcs, parse_canonical
from akf.contracts.limits import MAX_SAFE_INTEGER
from akf.contracts.problems import IntegrityError, InvalidError


def double(bits: int) -> float:
    (number,) = struct.unpack("<d", struct.pack("<Q", bits))
    return float(number)


finite = st.integers(0, 2**64 - 1).map(double).filter(math.isfinite)  # every exponent is equally likely
near = st.builds(
    lambda digits, exponent: float(f"{digits}e{exponent}"), st.integers(-(10**17), 10**17), st.integers(-25, 8)
)
whole = st.integers(-(2**60), 2**60).map(float)
numbers = (
    st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER) | finite | near | whole | st.sampled_from([0.0, -0.0, 1.0, 1e-6])
)
# Text that looks like numbers and structure, keys that order otherwise by UTF-16, and everything that is escaped.
looks = st.lists(
    st.sampled_from(["1.0,", ":2.0]", "-0.0}", "1e-6,", "e+16]", '"', "\\", "[", "{", ":", ",", "\n", "\x7f", "null"])
).map("".join)
planes = st.text(
    st.sampled_from("aA\r\x00\x1f\x7f\x80é€\ud7ff\ue000\ufb33\uffff\U00010000😀\U0010ffff").filter(str.isascii)
    | st.sampled_from("\x80é€\ud7ff\ue000\ufb33\uffff\U00010000😀\U0010ffff"),
    max_size=3,
)
text = looks | planes | st.text(max_size=6)
scalars = st.none() | st.booleans() | numbers | text
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(text, inner, max_size=5),
    max_leaves=25,
)
objects = st.dictionaries(text, values, max_size=6)


@settings(max_examples=250)
@given(values)
@example({"a": "1.0,", "b": [64.0, -0.0]})
@example({"a": '\\"1.0,', 'b":2.0,': 1e-6})
@example({"\ue000": 1.0, "\U00010000": 2})
@example([1e16, 1e20, 1e21, 9007199254740992.0])
def test_bytes_are_those_of_the_reference(value: Any) -> None:
    assert jcs(value) == rfc8785.dumps(value)


@settings(max_examples=200)
@given(st.lists(numbers))
def test_numbers_are_those_of_the_reference(value: list[float]) -> None:
    assert jcs(value) == rfc8785.dumps(value)
    assert jcs({"a": value, "b": "1.0,"}) == rfc8785.dumps({"a": value, "b": "1.0,"})


@given(values, st.sampled_from([math.nan, math.inf, -math.inf, 2**53, -(2**53), 2**64, "\ud800", {1: 2}, {1}, b"x"]))
def test_what_the_reference_refuses_is_refused(value: Any, poison: Any) -> None:
    for poisoned in ({"a": value, "b": poison}, [value, [poison]], {"a": {"b": (poison, value)}}):
        with pytest.raises(InvalidError) as caught:
            jcs(poisoned)
        assert {p.code for p in caught.value.problems} <= {"AKF-S007", "AKF-S008", "AKF-S010", "AKF-S014"}


def largest(value: Any) -> float:
    if isinstance(value, dict):
        return max(map(largest, value.values()), default=0)
    if isinstance(value, list):
        return max(map(largest, value), default=0)
    return abs(value) if isinstance(value, int | float) else 0


@settings(max_examples=150)
@given(objects)
def test_what_is_written_can_be_read_back(value: dict[str, Any]) -> None:
    if largest(value) > MAX_SAFE_INTEGER:
        with pytest.raises(InvalidError) as caught:
            canonical_bytes(value)
        assert {p.code for p in caught.value.problems} == {"AKF-S008"}
        return
    data = canonical_bytes(value)
    assert data == rfc8785.dumps(value) + b"\n"
    document = parse_canonical(data, "f")
    assert document.value == value
    assert canonical_bytes(document.value) == data


@settings(max_examples=80)
@given(objects, st.sampled_from([None, 0, 2]), st.booleans())
def test_other_spellings_are_refused(value: dict[str, Any], indent: int | None, sort: bool) -> None:
    assume(largest(value) <= MAX_SAFE_INTEGER)
    spelled = json.dumps(value, indent=indent, sort_keys=sort).encode("utf-8", "surrogatepass") + b"\n"
    try:
        parse_canonical(spelled, "f")
    except IntegrityError:
        assert spelled != canonical_bytes(value)
    else:
        assert spelled == canonical_bytes(value)


@settings(max_examples=120)
@given(objects, st.data())
def test_a_changed_byte_is_never_the_same_document(value: dict[str, Any], data: st.DataObject) -> None:
    assume(largest(value) <= MAX_SAFE_INTEGER)
    before = canonical_bytes(value)
    at = data.draw(st.integers(0, len(before) - 1))
    after = bytearray(before)
    after[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        document = parse_canonical(bytes(after), "f")
    except IntegrityError:
        return
    assert canonical_bytes(document.value) == bytes(after)
    assert document.value != value


class Fuzz:
    """Values without a strategy's overhead: many, from one seed."""

    STRINGS = ("a", "é", "😀", "\ue000", "\uffff", '"', "\\", "\n", "\x1f", "1.0,", "-0.0]", "e-6}", "e+16,", ":", "[{")

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def text(self) -> str:
        return "".join(self.rng.choices(self.STRINGS, k=self.rng.randrange(4)))

    def number(self) -> float:
        rng = self.rng
        number = double(rng.getrandbits(64)) if rng.random() < 0.5 else rng.choice((1, -1)) * 10 ** rng.uniform(-8, 22)
        number = round(number) * 1.0 if rng.random() < 0.3 and abs(number) < 1e300 else number
        return number if math.isfinite(number) else -0.0

    def value(self, depth: int) -> Any:
        choice = self.rng.randrange(8 if depth else 5)
        if choice < 2:
            return self.number()
        if choice == 2:
            return self.text()
        if choice == 3:
            return self.rng.randint(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
        if choice == 4:
            return self.rng.choice((None, True, False))
        if choice == 5:
            return [self.value(depth - 1) for _ in range(self.rng.randrange(4))]
        return {self.text(): self.value(depth - 1) for _ in range(self.rng.randrange(4))}


def fuzz(seed: int, count: int) -> None:
    source = Fuzz(seed)
    for _ in range(count):
        value = source.value(3)
        assert jcs(value) == rfc8785.dumps(value), value


def test_thousands_of_values() -> None:
    fuzz(1, 20_000)


@pytest.mark.soak
def test_a_million_values() -> None:
    fuzz(random.randrange(2**32), 1_000_000)
