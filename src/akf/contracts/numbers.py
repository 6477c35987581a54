"""Rewrites the numbers in orjson's bytes the way ECMAScript, and so RFC 8785, writes them.

Invariants:
1. orjson and ECMAScript write the same shortest digits; they differ in 64.0 (64), -0.0 (0), 1e-6 (0.000001) and
   1e+16 (10000000000000000), and in nothing else (held by a property test against `rfc8785`).
2. Bytes inside strings are never changed.
3. A rewrite also says whether a number may be beyond ±(2^53-1); a "no" is certain.
"""

from __future__ import annotations

import re

import orjson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KNOWN = orjson.dumps([1e21, 1e16, 1e-7, 1e-6, 64.0, -0.0]) == b"[1e+21,1e+16,1e-7,1e-6,64.0,-0.0]"
"""Whether this orjson writes numbers as the first invariant says."""

# What may be such a number, or a piece of a string that looks like one.
_WHOLE = re.compile(rb"\.0(?:[,\]}]|\Z)")
_ZERO = re.compile(rb"\.0(?=[,\]}]|\Z)")
_MINUS_ZERO = re.compile(rb"-0\.0(?=[,\]}]|\Z)")
_SMALL = re.compile(rb"e-[1-6](?:[,\]}]|\Z)")
_LARGE = re.compile(rb"e\+[0-9]{2,3}(?:[,\]}]|\Z)")
_SIXTEEN = re.compile(rb"\.0(?<=[0-9]{16}\.0)")
_EXPONENT = re.compile(rb"e[-+][0-9]+")
_LONGEST = 32


def rewrite(quick: bytes, value: Any) -> tuple[bytes, bool, bool]:
    """Return `quick` with ECMAScript's numbers, whether one may be large, and whether it was read back equal.

    Args:
        quick: orjson's bytes.
        value: what they say.
    """
    exponents = _exponents(quick)
    if not exponents and not _WHOLE.search(quick):
        return quick, False, False
    if not exponents:
        # Nearly always no string looks like a number: drop every ".0" and see whether the same value is read.
        short = _drop_zeros(quick)
        if orjson.loads(short) == value:
            return short, _SIXTEEN.search(quick) is not None, True
    # orjson escapes every control character, so two of them can stand for escapes while the text is split at its
    # quotes: every second part is then outside strings.
    parts = quick.replace(b"\\\\", b"\0").replace(b'\\"', b"\1").split(b'"')
    outside = b'"'.join(parts[::2])
    large = _SIXTEEN.search(outside) is not None
    if _exponents(outside):
        outside, found = _expand(outside)
        large = large or found
    parts[::2] = _drop_zeros(outside).split(b'"')
    return b'"'.join(parts).replace(b"\1", b'\\"').replace(b"\0", b"\\\\"), large, False


def _exponents(text: bytes) -> bool:
    return bool(_SMALL.search(text) or (b"+" in text and _LARGE.search(text)))


def _drop_zeros(text: bytes) -> bytes:
    """Write 64.0 as 64 and -0.0 as 0."""
    if b"-0.0" in text:
        text = _MINUS_ZERO.sub(b"0", text)
    return _ZERO.sub(b"", text)


def _expand(outside: bytes) -> tuple[bytes, bool]:
    """Rewrite the numbers that have an exponent."""
    import rfc8785  # noqa: PLC0415 - rarely needed

    parts: list[bytes] = []
    done, large = 0, False
    for match in _EXPONENT.finditer(outside):
        window = max(done, match.start() - _LONGEST)
        start = max(window, 1 + max(outside.rfind(mark, window, match.start()) for mark in (b",", b":", b"[")))
        parts += (outside[done:start], rfc8785.dumps(float(outside[start : match.end()])))
        done = match.end()
        large = large or match[0].startswith(b"e+")
    return b"".join([*parts, outside[done:]]), large
