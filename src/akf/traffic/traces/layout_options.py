"""What the user says of a trace's layout: its name, other names of its fields, its unit of time, its block size.

Invariants:
- Only `timed_trace` has fields, unit and block size to be named, as `vllm bench serve` has; for any other layout they
  are part of it, and an option that would change them is refused, not ignored.
- The unit is a decimal number of seconds that is a whole number of nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from akf.contracts.problems import UsageError
from akf.contracts.text import did_you_mean, printable
from akf.traffic.traces.layouts import NS_PER_S, Layout
from akf.traffic.traces.recognise import NAMED_ONLY, named

_LABELS = {"timestamp": "time", "input_length": "input", "output_length": "output", "hash_ids": "blocks"}
MAX_BLOCK_TOKENS = 1 << 20


def stated(
    name: str | None, labels: Sequence[str], sec_multiplier: str | None, block_size: int | None
) -> Layout | None:
    """The layout that the options state, or None when it is to be recognised.

    Raises:
        UsageError: The options do not fit one another.
    """
    given = {
        "--label": bool(labels),
        "--sec-multiplier": sec_multiplier is not None,
        "--block-size": block_size is not None,
    }
    if name != NAMED_ONLY:
        for option, there in given.items():
            if there:
                message = f"{option} belongs to --layout {NAMED_ONLY}; any other layout says it by itself"
                raise UsageError.of("AKF-F261", message, expected=NAMED_ONLY, found=name)
        return None if name is None else named(name)
    layout = named(name)
    if sec_multiplier is None:
        hint = "--sec-multiplier 1 for seconds, 0.001 for milliseconds"
        raise UsageError.of("AKF-F251", f"--layout {name} does not say its unit of time", hint=hint)
    size = layout.block_size_tokens if block_size is None else block_size
    if not 1 <= size <= MAX_BLOCK_TOKENS:
        raise UsageError.of("AKF-F261", f"--block-size: {size} is not from 1 to {MAX_BLOCK_TOKENS}", found=size)
    fields = layout.fields | _labels(labels)
    twice = next((name for name in fields.values() if list(fields.values()).count(name) > 1), None)
    if twice is not None:
        message = f"--label: two fields would be {printable(twice)}"
        raise UsageError.of("AKF-F261", message, hint="name the other field too, or each of them once")
    return layout._replace(fields=fields, unit_ns=_unit(sec_multiplier), block_size_tokens=size)


def _labels(texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for field, name in map(_label, texts):
        if found.setdefault(field, name) != name:
            message = f"--label: one field cannot be {printable(found[field])} and {printable(name)}"
            raise UsageError.of("AKF-F261", message, hint="name each field once")
    return found


def _label(text: str) -> tuple[str, str]:
    field, _, name = text.partition("=")
    if field not in _LABELS or not name:
        near = did_you_mean(field, _LABELS)
        hint = f"did you mean {near}?" if near else f"FIELD is one of {', '.join(_LABELS)}"
        raise UsageError.of("AKF-F261", f"--label: {printable(text)} is not FIELD=NAME", hint=hint)
    return _LABELS[field], name


def _unit(text: str) -> int:
    try:
        unit = Fraction(text) * NS_PER_S if len(text) <= 20 and text.isascii() else Fraction(0)  # noqa: PLR2004
    except (ValueError, ZeroDivisionError):
        unit = Fraction(0)
    if unit < 1 or unit.denominator != 1 or unit > 86_400 * NS_PER_S:
        message = f"--sec-multiplier: {printable(text)} s is not a whole number of nanoseconds of at most a day"
        raise UsageError.of("AKF-F261", message, expected="such as 1 or 0.001", found=text)
    return int(unit)
