"""Canonical bytes: RFC 8785 (JCS) and one newline, so that `sha256sum FILE` is AKF's digest.

Invariants:
1. `jcs(value)` is byte for byte what RFC 8785 says, or a refusal; never NaN as null, no key out of order.
2. `canonical_bytes(value)` refuses what the loader would refuse to read back: numbers beyond ±(2^53-1) and
   nesting over `MAX_DEPTH`. Its last byte is the only newline.
3. The fast bytes come from orjson and are used only with a proof: they were read back as an equal value, or
   `marshal`, which knows built-in types only, accepted the value and shows no NaN or infinity; numbers that
   ECMAScript writes otherwise are rewritten outside strings; and no two keys can be in another order by UTF-16
   than by UTF-8. All else goes through `rfc8785`.
"""

from __future__ import annotations

import marshal
import re

import orjson

from akf.contracts import numbers
from akf.contracts.digests import digest, digest_file, digest_files
from akf.contracts.limits import MAX_DEPTH, MAX_SAFE_INTEGER
from akf.contracts.loader import Document, parse
from akf.contracts.problems import AkfError, IntegrityError, InvalidError, Problem
from akf.contracts.text import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["canonical_bytes", "digest", "digest_file", "digest_files", "jcs", "parse_canonical"]

_OPTIONS = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)

# In marshal's bytes a float is "g" (with the top bit where it may be referred to again) and eight bytes,
# little-endian; these have an exponent of all ones.
_NOT_FINITE = re.compile(rb"g.{6}[\xf0-\xff][\x7f\xff]", re.DOTALL)
_NOT_FINITE_AGAIN = re.compile(rb"\xe7.{6}[\xf0-\xff][\x7f\xff]", re.DOTALL)
_MARSHAL = 4
_ASTRAL = tuple(bytes([lead]) for lead in range(0xF0, 0xF5))
_HIGH = (b"\xee", b"\xef")
_COUNTABLE = 4_096
_TOO_DEEP = b"\n" + b"  " * MAX_DEPTH


def jcs(value: Any) -> bytes:
    """Serialise a JSON value as RFC 8785 says, without a newline.

    Raises:
        InvalidError: `value` holds what JSON cannot (NaN, a lone surrogate, an integer beyond ±(2^53-1), …).
    """
    return _serialise(value)[0]


def canonical_bytes(value: Any) -> bytes:
    """Return the bytes of a canonical file that holds `value`.

    Raises:
        InvalidError: `value` is not JSON, or is beyond the limits that reading enforces.
    """
    body, large = _serialise(value)
    if (large or _may_be_deep(body, value)) and (problems := list(_limits(value))):
        raise InvalidError(problems)
    return body + b"\n"


def parse_canonical(data: bytes, file: str) -> Document:
    """Parse a file whose bytes must be canonical.

    Raises:
        IntegrityError: They are not, for whatever reason.
    """
    try:
        value = orjson.loads(data)
        body, large, _ = numbers.rewrite(orjson.dumps(value, option=_OPTIONS), value)
        if (
            isinstance(value, dict)
            and len(data) == len(body) + 1
            and data.startswith(body)
            and data.endswith(b"\n")
            and not large
            and numbers.KNOWN
            and not _order_differs(body)
            and not _may_be_deep(body, value)
        ):
            return Document(value, file, data)
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        document = parse(data, file)
        wanted = canonical_bytes(document.value)
    except AkfError as error:
        raise IntegrityError(error.problems) from None
    if wanted == data:
        return document
    raise _not_canonical(data, wanted, file)


def _serialise(value: Any) -> tuple[bytes, bool]:
    """Return canonical bytes, and whether a number may be beyond ±(2^53-1)."""
    try:
        quick = orjson.dumps(value, option=_OPTIONS)
        if numbers.KNOWN and not _order_differs(quick):
            body, large, read_back = numbers.rewrite(quick, value)
            if read_back or _plain_and_finite(value):
                return body, large
    except (TypeError, ValueError):
        pass  # refused or unusual: the careful way decides
    return _careful(value), True


def _plain_and_finite(value: Any) -> bool:
    """Say whether `value`, which orjson accepted, is built-in JSON types alone, without NaN and infinity."""
    marshalled = marshal.dumps(value, _MARSHAL)
    return not (_NOT_FINITE.search(marshalled) or _NOT_FINITE_AGAIN.search(marshalled))


def _order_differs(quick: bytes) -> bool:
    """Say whether keys may be ordered otherwise by UTF-16: only U+E000 to U+FFFF against what is beyond."""
    if quick.isascii():
        return False
    return any(lead in quick for lead in _ASTRAL) and any(lead in quick for lead in _HIGH)


def _may_be_deep(body: bytes, value: Any) -> bool:
    if len(body) < _COUNTABLE and body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
        return False
    try:
        pretty = orjson.dumps(value, option=orjson.OPT_INDENT_2)
    except TypeError:
        return True
    return _TOO_DEEP in pretty  # strings hold no raw line break, so the indent is the depth


def _careful(value: Any) -> bytes:
    import rfc8785  # noqa: PLC0415 - rarely needed

    try:
        return rfc8785.dumps(value)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        problems = list(_foreign(value))
        text = f"this value cannot be written as JSON: {error}"
        raise InvalidError(problems or [Problem("AKF-S014", text)]) from error


def _walk(value: Any) -> Iterator[tuple[str, Any, int]]:
    """Yield pointer, value and depth of everything inside `value`, without recursion."""
    from akf.contracts.pointer import escape  # noqa: PLC0415 - only on trouble

    waiting: list[tuple[str, Any, int]] = [("", value, 1)]
    while waiting:
        pointer, item, depth = waiting.pop()
        yield pointer, item, depth
        if depth > MAX_DEPTH:
            continue
        if isinstance(item, dict):
            waiting += [(f"{pointer}/{escape(str(key))}", inner, depth + 1) for key, inner in item.items()]
        elif isinstance(item, list | tuple):
            waiting += [(f"{pointer}/{index}", inner, depth + 1) for index, inner in enumerate(item)]


def _foreign(value: Any) -> Iterator[Problem]:
    for pointer, item, _ in _walk(value):
        for part in item if isinstance(item, dict) else ():
            if not isinstance(part, str):
                yield Problem("AKF-S014", f"the key {show(part)} is not a string", pointer=pointer)
            elif not _encodable(part):
                yield Problem("AKF-S010", f"the key {show(part)} holds a lone surrogate", pointer=pointer)
        fault = _scalar_fault(item)
        if fault:
            yield Problem(*fault, pointer=pointer)


def _scalar_fault(item: Any) -> tuple[str, str] | None:
    if isinstance(item, str):
        return None if _encodable(item) else ("AKF-S010", f"{show(item)} holds a lone surrogate")
    if isinstance(item, float):
        finite = -float("inf") < item < float("inf")
        return None if finite else ("AKF-S007", f"{item} is not a JSON value")
    if isinstance(item, int):
        fits = abs(item) <= MAX_SAFE_INTEGER
        return None if fits else ("AKF-S008", f"{show(item)} is beyond ±(2^53-1)")
    if item is None or isinstance(item, dict | list | tuple):
        return None
    return "AKF-S014", f"a {type(item).__name__} is not a JSON value"


def _limits(value: Any) -> Iterator[Problem]:
    for pointer, item, depth in _walk(value):
        if isinstance(item, dict | list | tuple) and depth > MAX_DEPTH:
            text = f"arrays and objects are nested more than {MAX_DEPTH} deep"
            yield Problem("AKF-S011", text, pointer=pointer)
        elif isinstance(item, float) and abs(item) > MAX_SAFE_INTEGER:
            yield Problem("AKF-S008", f"{item} is beyond ±(2^53-1)", pointer=pointer)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _not_canonical(data: bytes, wanted: bytes, file: str) -> IntegrityError:
    at = next((i for i, (a, b) in enumerate(zip(data, wanted, strict=False)) if a != b), min(len(data), len(wanted)))
    before = data[:at].decode("utf-8", "ignore")
    return IntegrityError.of(
        "AKF-I001",
        "the file is valid JSON but not in canonical form",
        file=file,
        pointer="",
        line=before.count("\n") + 1,
        column=len(before) - before.rfind("\n"),
        expected=digest(wanted),
        found=digest(data),
        hint="canonical files are written by AKF and never edited; this byte is the first that differs",
    )
