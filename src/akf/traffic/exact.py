"""Times as profilers print them, as whole nanoseconds.

Invariants:
1. Nothing passes through a float: a time of sixteen digits and three decimals has more than a float can hold.
2. An exponent is refused: whoever wrote it (a spreadsheet, mostly) has thrown digits away.
3. What is finer than a nanosecond is rounded, half to even, once.
"""

from __future__ import annotations

import re

from akf.contracts.limits import MAX_SAFE_INTEGER
from akf.contracts.text import show

LONGEST_NS = MAX_SAFE_INTEGER
"""A hundred days, and what every JSON reader holds exactly."""
LATEST_NS = 2**62
"""Since 1970: the year 2116. Adding a duration stays inside 64 bits."""

_NUMBER = re.compile(r"([+-]?)(\d{1,19})(?:\.(\d{1,24}))?", re.ASCII)
_EXPONENT = re.compile(r"[+-]?[\d.]+[eE][+-]?\d+", re.ASCII)
_MICRO = 3


def nanoseconds(value: object, decimals: int = _MICRO) -> int:
    """Return a time in whole nanoseconds; `decimals` is 3 for microseconds, 0 for nanoseconds.

    Raises:
        ValueError: It is no number, negative, or written with an exponent; the message says which.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise ValueError(f"is negative: {value}")
        return value * int(10**decimals)
    text = value.strip() if isinstance(value, str) else ""
    found = _NUMBER.fullmatch(text)
    if found is None:
        if _EXPONENT.fullmatch(text):
            raise ValueError(f"is written with an exponent, {show(text)}, so digits are lost")
        raise ValueError(f"is {show(value)}, not a number")
    sign, whole, fraction = found.groups()
    fraction = (fraction or "").ljust(decimals, "0")
    time = int(whole + fraction[:decimals])
    rest = fraction[decimals:].rstrip("0")
    if rest and (rest > "5" or (rest == "5" and time % 2)):
        time += 1
    if sign == "-" and (time or rest):
        raise ValueError(f"is negative: {show(text)}")
    return time


def divided(total: int, parts: int) -> int:
    """Divide, half to even."""
    whole, rest = divmod(total, parts)
    return whole + (2 * rest > parts or (2 * rest == parts and whole % 2 == 1))
