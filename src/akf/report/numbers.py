"""Numbers for people: a handful of digits and a unit.

Invariants:
- Every finite number has a form, and the same number always the same one, be it 2 or 2.0; no exponent, no locale.
- Four significant digits for times and factors; shares in percent with at most two decimals.
- What rounds to nothing but is something says so (`<0.01 %`).
"""

from __future__ import annotations

_DIGITS = 4
_TIMES = ((1, "ns"), (1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s"), (3_600_000_000_000, "h"))
_BYTES = ((1, "B"), (1 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB"), (1 << 40, "TiB"))
_AS_NS = {"ns": 1, "ms": 1_000_000, "s": 1_000_000_000}
_AFTER = {"mhz": " MHz", "tokens": " tokens", "per_s": " /s"}
_SMALL = 0.005


def interval(low: float | None, high: float | None, unit: str) -> str:
    """Both ends in brackets, or nothing."""
    return "" if low is None or high is None else f"[{number(low, unit)}, {number(high, unit)}]"


def number(value: float, unit: str) -> str:
    """A number with its unit."""
    value = int(value) if value == int(value) else value
    if unit in _AS_NS:
        return _scaled(value * _AS_NS[unit], _TIMES)
    if unit == "bytes":
        return _scaled(value, _BYTES)
    if unit == "share":
        return percent(value)
    if unit == "gain":
        return gain(value)
    if unit == "times":
        return times(_rounded(value))
    return f"{_rounded(value)}{_AFTER.get(unit, '')}"


def times(digits: str) -> str:
    """A factor."""
    return f"{digits}\N{MULTIPLICATION SIGN}"


def percent(ratio: float) -> str:
    """A share in percent."""
    value = ratio * 100
    if value and abs(value) < _SMALL:
        return "<0.01 %" if value > 0 else ">-0.01 %"
    if value == round(value):
        return f"{round(value)} %"
    return f"{value:.2f} %" if abs(value) < 10 else f"{value:.1f} %"  # noqa: PLR2004 - three digits


def gain(ratio: float) -> str:
    """A change in percent, with its sign."""
    words = percent(ratio)
    return f"+{words}" if ratio > 0 else words


def _scaled(value: float, units: tuple[tuple[int, str], ...]) -> str:
    size, name = next(((size, name) for size, name in reversed(units) if abs(value) >= size), units[0])
    return f"{_rounded(value if size == 1 else value / size)} {name}"


def _rounded(value: float) -> str:
    """Four significant digits, all of an integer's, thousands parted."""
    if isinstance(value, int):
        return f"{value:,}"
    whole = len(str(abs(int(value))))
    return f"{value:,.{max(0, _DIGITS - whole)}f}"
