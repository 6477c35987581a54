"""bfloat16, which numpy lacks: rounding is to the nearest, ties to even, and widening is exact."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from akf.harness.dtypes import DTYPES, decode, encode, ordered, rounded

LARGEST = float.fromhex("0x1.fep127")
FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(min_value=-1e3, max_value=1e3),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.builds(lambda bits, odd: math.ldexp(bits * 2 + 1, odd), st.integers(128, 255), st.integers(-140, 100)),
    st.builds(lambda bits: math.ldexp(2 * bits + 1, -134), st.integers(0, 130)),
)


def number(bits: int) -> float:
    return float(decode(np.array([bits], dtype=np.uint16), "bfloat16")[0])


def bits_of(value: float) -> int:
    return int(encode(np.array([value]), "bfloat16")[0])


@given(FLOATS)
def test_rounding_is_to_the_nearest_ties_to_even(value: float) -> None:
    bits = bits_of(value)
    found = number(bits)
    if math.isinf(found):
        assert abs(Fraction(value)) >= Fraction(LARGEST) + Fraction(2) ** 119
        return
    gap = abs(Fraction(found) - Fraction(value))
    for other in (bits - 1, bits + 1):
        if other & 0x7FFF > 0x7F7F or other >> 15 != bits >> 15 or not 0 <= other < 1 << 16:
            continue
        distance = abs(Fraction(number(other)) - Fraction(value))
        assert gap < distance or (gap == distance and bits % 2 == 0)


@given(st.integers(0, (1 << 16) - 1))
def test_every_number_of_the_type_stays_itself(bits: int) -> None:
    value = number(bits)
    if math.isnan(value):
        assert math.isnan(number(bits_of(value)))
    else:
        assert bits_of(value) == bits


@pytest.mark.parametrize("value", [math.inf, -math.inf, 0.0, -0.0])
def test_special_values(value: float) -> None:
    assert math.copysign(1, number(bits_of(value))) == math.copysign(1, value)
    assert number(bits_of(value)) == value


@pytest.mark.parametrize("dtype", [name for name, each in DTYPES.items() if not each.exact])
@given(first=st.floats(-100, 100), second=st.floats(-100, 100))
def test_order_of_the_bits_is_the_order_of_the_numbers(dtype: str, first: float, second: float) -> None:
    pair = np.array([first, second])
    low, high = rounded(pair, dtype)
    one, two = ordered(encode(pair, dtype), dtype)
    assert (one < two) == (low < high) or low == high
    assert one != two or low == high
