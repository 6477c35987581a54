"""One line of a trace to one request: exact numbers, or a problem with the line.

Invariants:
- A count is a whole number from 0 to `MAX_TOKENS`, written as one: no sign, no fraction, no exponent, no quotes.
- A time is read digit by digit into whole nanoseconds; digits below a nanosecond are rounded half to even. An exponent
  is refused: it is what spreadsheets leave of a long number, and its last digits are gone.
- A time has the form its layout has. Whole numbers where seconds have a point, or a point where milliseconds are whole,
  are another unit under the same name, and are refused.
- The number of block ids is the prompt's length over the block size, rounded up. So a trace of 16-token blocks is never
  read as one of 512.
"""

from __future__ import annotations

import json
import re
from typing import Any

from akf.contracts.problems import Problem
from akf.contracts.text import printable, show
from akf.traffic.exact import divided
from akf.traffic.traces.layouts import NS_PER_S

MAX_TOKENS = 1 << 24
MAX_TIME_NS = (1 << 63) - 1
_NUMBER = re.compile(r"(\d{1,18})(?:\.(\d{1,40}))?")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?")
_NO_ZONE = ""
_OTHER_UNIT = (
    "name the layout and its unit: --layout timed_trace --sec-multiplier 0.001 for milliseconds, 1 for seconds"
)


class Literal(str):
    """A number that is no whole number, as it was written."""

    __slots__ = ()


class Bad(Exception):  # noqa: N818 - it never leaves this package
    """What is wrong with a line."""

    def __init__(
        self, code: str, message: str, expected: Any = None, found: Any = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.expected = expected
        self.found = found
        self.hint = hint

    def problem(self, file: str, line: int) -> Problem:
        """As of a line."""
        return Problem(self.code, self.message, file, None, line, None, self.expected, self.found, self.hint)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field stands twice")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_float=Literal, parse_constant=Literal)


def decode(line: bytes) -> Any:
    """The value of one line of JSON; a `ValueError` itself where it is none."""
    try:
        return _DECODER.decode(line.decode())
    except (ValueError, RecursionError) as error:
        return error if isinstance(error, ValueError) else ValueError("it nests too deep")


def tokens(value: Any, field: str) -> int:
    """A count of tokens, from JSON."""
    if type(value) is int and 0 <= value <= MAX_TOKENS:
        return value
    raise _count(value, field)


def tokens_text(text: str, field: str, known: dict[str, int]) -> int:
    """A count of tokens, from CSV; `known` remembers counts that were read before."""
    if (value := known.get(text)) is not None:
        return value
    if text.isascii() and text.isdigit() and len(text) <= 8:  # noqa: PLR2004 - digits of MAX_TOKENS
        value = int(text)
        if value <= MAX_TOKENS:
            known[text] = value
            return value
    raise _count(text, field)


def _count(value: Any, field: str) -> Bad:
    shown = printable(value[:80]) if isinstance(value, Literal) else show(value)
    expected = f"a whole number from 0 to {MAX_TOKENS}"
    return Bad("AKF-F253", f"{field} is {shown}, which is no count of tokens", expected, shown)


def number_text(value: Any, field: str) -> str:
    """A number of JSON as it was written."""
    if type(value) is int or isinstance(value, Literal):
        return str(value)
    raise Bad("AKF-F254", f"{field} is {show(value)}, which is no time", "a number that is not negative", show(value))


def number_ns(text: str, field: str, form: str, unit_ns: int) -> int:
    """A time written as a number, in nanoseconds.

    Args:
        text: the number as it was written.
        field: its name in the file.
        form: `seconds` (with a point), `whole` (without one) or `number` (either).
        unit_ns: nanoseconds of one unit.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        spreadsheet = "e" in text.lower() and any(char.isdigit() for char in text)
        hint = "a spreadsheet writes long numbers with an exponent: export the trace anew" if spreadsheet else None
        expected = "a number that is not negative"
        raise Bad("AKF-F254", f"{field} is {show(text)}, which is no time", expected, text[:80], hint)
    whole, fraction = match.groups()
    if form == "seconds" and fraction is None:
        message = f"{field} is {text}, a whole number; this layout writes seconds, with a point"
        raise Bad("AKF-F254", message, "seconds, such as 61.114", text, _OTHER_UNIT)
    if form == "whole" and fraction is not None:
        message = f"{field} is {text}, with a point; this layout writes whole milliseconds"
        raise Bad("AKF-F254", message, "whole milliseconds, such as 27482", text, _OTHER_UNIT)
    time = int(whole) * unit_ns
    if fraction is not None:
        time += divided(int(fraction) * unit_ns, 10 ** len(fraction))
    if time > MAX_TIME_NS:
        raise Bad("AKF-F254", f"{field} is {text}, which is beyond any clock", found=text)
    return time


class Calendar:
    """Dates of one trace in nanoseconds; all of them have a zone, or none has."""

    def __init__(self) -> None:
        self._minutes: dict[str, int] = {}
        self._zoned: bool | None = None

    def ns(self, text: str, field: str) -> int:
        """A date as nanoseconds since 1970, of its own zone's clock where it names none."""
        match = _DATE.fullmatch(text)
        if match is None:
            hint = "a spreadsheet rewrites dates: export the trace anew"
            example = "2023-11-16 18:15:46.6805900"
            raise Bad("AKF-F254", f"{field} is {show(text)}, which is no date", example, text[:80], hint)
        second, fraction, zone = int(match[6]), match[7], match[8] or _NO_ZONE
        if self._zoned is None:
            self._zoned = bool(zone)
        if self._zoned != bool(zone):
            here, before = ("no zone", "one") if self._zoned else ("a zone", "none")
            raise Bad("AKF-F254", f"{field} has {here}, the lines before it have {before}", found=text)
        minute = self._minutes.get(key := text[:16] + zone)
        if minute is None:
            minute = self._minutes[key] = self._minute(match, zone, field)
        if second > 59:  # noqa: PLR2004 - a leap second is no time of this calendar
            raise Bad("AKF-F254", f"{field} is {text}, which is no date", found=text)
        time = (minute + second) * NS_PER_S + (int(fraction.ljust(9, "0")) if fraction else 0)
        if not 0 <= time <= MAX_TIME_NS:
            raise Bad("AKF-F254", f"{field} is {text}, which is beyond any clock", "from 1970 to 2262", text)
        return time

    def _minute(self, match: re.Match[str], zone: str, field: str) -> int:
        from datetime import date  # noqa: PLC0415 - once a minute

        hour, minute = int(match[4]), int(match[5])
        try:
            days = date(int(match[1]), int(match[2]), int(match[3])).toordinal() - date(1970, 1, 1).toordinal()
        except ValueError:
            days = None
        if days is None or hour > 23 or minute > 59:  # noqa: PLR2004
            raise Bad("AKF-F254", f"{field} is {match[0]}, which is no date", found=match[0])
        offset = 0
        if zone not in {_NO_ZONE, "Z"}:
            offset = (int(zone[1:3]) * 60 + int(zone[4:6])) * 60 * (-1 if zone[0] == "-" else 1)
        return days * 86_400 + hour * 3_600 + minute * 60 - offset


def blocks(value: Any, field: str, input_tokens: int, block_size: int) -> list[int]:
    """The block ids of a prompt."""
    if not isinstance(value, list) or not all(type(item) is int and 0 <= item < 1 << 63 for item in value):
        raise Bad("AKF-F255", f"{field} is no list of block ids", "whole numbers", show(value))
    expected = -(-input_tokens // block_size)
    if len(value) != expected:
        fits = [size for size in (16, 32, 64, 128, 256, 512, 1024) if -(-input_tokens // size) == len(value)]
        other = f"; {len(value)} would be blocks of {', '.join(map(str, fits))}" if fits else ""
        message = f"{input_tokens} tokens are {expected} blocks of {block_size}, {field} holds {len(value)}{other}"
        hint = "name the block size: --layout timed_trace --block-size TOKENS" if fits else None
        raise Bad("AKF-F255", message, expected, len(value), hint)
    return value
