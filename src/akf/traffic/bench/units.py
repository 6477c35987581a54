"""Times of foreign files as whole nanoseconds.

Invariants:
1. The conversion is exact decimal arithmetic, then one rounding to the nearest nanosecond, halves to even.
2. A unit is stated by the file (in the key, beside the value, or as a suffix) or by the tool's documentation; a number
   whose unit nobody states is refused, never guessed.
3. A time is not negative and shorter than `LONGEST_NS`.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from akf.traffic.exact import LONGEST_NS

UNITS = {"ns": 0, "us": 3, "µs": 3, "ms": 6, "s": 9, "sec": 9}
"""Power of ten that makes nanoseconds of a unit."""

_EXACT = Context(prec=800, rounding=ROUND_HALF_EVEN)
_SMALLEST = -40
_LARGEST = 20
_CELL = re.compile(r"(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?)(?: ?(?P<unit>[A-Za-zµ/]+))?")
_COMMA = re.compile(r"-?[0-9]+,[0-9]")


class UnitError(ValueError):
    """A number that is no time: the text says why, in the words of the file."""


def nanoseconds(value: Decimal | int, unit: str) -> int:
    """Convert one time.

    Raises:
        UnitError: the unit is unknown, or the time negative, infinite or too long.
    """
    if unit not in UNITS:
        raise UnitError(f"{unit} is no unit of time; known are {', '.join(UNITS)}")
    number = Decimal(value)
    if not number.is_finite() or number < 0:
        raise UnitError(f"{_short(number)} {unit} is no duration")
    if number and number.adjusted() < _SMALLEST:
        return 0
    if number.adjusted() > _LARGEST:
        raise UnitError(f"{_short(number)} {unit} is longer than any benchmark")
    whole = int(number.scaleb(UNITS[unit], _EXACT).quantize(Decimal(1), context=_EXACT))
    if whole > LONGEST_NS:
        raise UnitError(f"{_short(number)} {unit} is longer than any benchmark")
    return whole


def many(values: list[Any], unit: str) -> list[int] | None:
    """Convert times as `nanoseconds` does, at once; None where one of them is none."""
    if not values:
        return []
    if not {type(value) for value in values} <= {int, Decimal} or min(values) < 0:
        return None
    power = UNITS[unit]
    if max(values) > Decimal(LONGEST_NS).scaleb(-power):
        return None
    one = Decimal(1)
    return [int(Decimal(value).scaleb(power, _EXACT).quantize(one, context=_EXACT)) for value in values]


def cell(text: str) -> tuple[Decimal, str | None]:
    """Part a cell like `95.6 ms` into its number and its unit.

    Raises:
        UnitError: it is none.
    """
    match = _CELL.fullmatch(text.strip())
    if match is None:
        hint = "; its decimal mark is a comma, not a point" if _COMMA.match(text.strip()) else ""
        raise UnitError(f"{_short(text)} is no number with a unit{hint}")
    return Decimal(match["number"]), match["unit"]


def _short(value: Decimal | str) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:20]}… ({len(text)} characters)"  # noqa: PLR2004 - for people
