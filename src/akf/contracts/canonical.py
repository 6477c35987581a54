"""Canonical bytes: RFC 8785 (JCS) and one newline, so that `sha256sum FILE` is AKF's digest.

Invariants:
1. `jcs(value)` is byte for byte what RFC 8785 says, or a refusal; never NaN as null, no key out of order.
2. `canonical_bytes(value)` refuses what the loader would refuse to read back: numbers beyond ±(2^53-1) and
   nesting over `MAX_DEPTH`. Its last byte is the only newline.
3. The fast bytes come from orjson and are used only when they are proven canonical: they read back to an
   equal value (no NaN, no foreign type), hold no number that ECMAScript writes otherwise, and no pair of keys
   that UTF-16 orders otherwise. All else goes through `rfc8785`.
4. A digest is `sha256:` and 64 hexadecimal digits over exactly the file's bytes.
"""

from __future__ import annotations

import os
import re

import orjson

from akf.contracts.limits import MAX_DEPTH, MAX_SAFE_INTEGER
from akf.contracts.loader import Document, open_regular, parse, shallow
from akf.contracts.problems import AkfError, IntegrityError, InvalidError, Problem
from akf.contracts.text import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_OPTIONS = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)
# Numbers that ECMAScript writes otherwise: 64.0, -0.0, 1e-6, 1e+16. A match inside a string only costs time.
_ODD = re.compile(
    rb"(?:\A|[:,\[])-?[0-9]+(?:\.[0-9]+)?"
    rb"(?:(?<=\.0)|e(?!\+(?:2[1-9]|[3-9][0-9]|[0-9]{3})|-(?:[7-9]|[1-9][0-9]))[-+]?[0-9]+)(?:\Z|[,\]}])"
)
_LARGE = re.compile(rb"(?:\A|[:,\[])-?(?:[0-9]{16}|[0-9.]+e\+)[0-9]*(?:\.[0-9]+)?(?:\Z|[,\]}])")
_ASTRAL = re.compile(rb"[\xf0-\xf4]")
_HIGH = re.compile(rb"[\xee\xef]")


def jcs(value: Any) -> bytes:
    """Serialise a JSON value as RFC 8785 says, without a newline.

    Raises:
        InvalidError: `value` holds what JSON cannot (NaN, a lone surrogate, an integer beyond ±(2^53-1), …).
    """
    try:
        quick = orjson.dumps(value, option=_OPTIONS)
        if is_jcs(quick) and orjson.loads(quick) == value:
            return quick
        value = _plain_floats(value)
        quick = orjson.dumps(value, option=_OPTIONS)
        if is_jcs(quick) and orjson.loads(quick) == value:
            return quick
    except (TypeError, ValueError, RecursionError):
        pass  # refused or unusual: the careful way decides
    return _careful(value)


def canonical_bytes(value: Any) -> bytes:
    """Return the bytes of a canonical file that holds `value`.

    Raises:
        InvalidError: `value` is not JSON, or is beyond the limits that reading enforces.
    """
    body = jcs(value)
    if not shallow(value, body) or _LARGE.search(body):
        problems = list(_limits(value))
        if problems:
            raise InvalidError(problems)
    return body + b"\n"


def parse_canonical(data: bytes, file: str) -> Document:
    """Parse a file whose bytes must be canonical.

    Raises:
        IntegrityError: They are not, for whatever reason.
    """
    try:
        value = orjson.loads(data)
        body = orjson.dumps(value, option=_OPTIONS)
        if (
            isinstance(value, dict)
            and len(data) == len(body) + 1
            and data.startswith(body)
            and data.endswith(b"\n")
            and is_jcs(body)
            and not _LARGE.search(body)
            and shallow(value, body)
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


def digest(data: bytes) -> str:
    """Return `sha256:<hex>` of some bytes."""
    import hashlib  # noqa: PLC0415 - loads OpenSSL

    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def digest_file(path: str | os.PathLike[str]) -> str:
    """Return `sha256:<hex>` of a regular file of any size."""
    import hashlib  # noqa: PLC0415 - loads OpenSSL

    with os.fdopen(open_regular(path), "rb", buffering=0) as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"


def is_jcs(quick: bytes) -> bool:
    """Say whether orjson's sorted bytes are RFC 8785's too: numbers and the order of keys."""
    if not quick.isascii() and _ASTRAL.search(quick) and _HIGH.search(quick):
        return False
    suspicious = b".0" in quick or b"e+" in quick or b"e-" in quick
    return not (suspicious and _ODD.search(quick))


def _plain_floats(value: Any) -> Any:
    """Turn whole floats into integers and tuples into lists: the usual reasons why fast bytes fail."""
    if type(value) is dict:
        return {key: _plain_floats(item) for key, item in value.items()}
    if type(value) is list or type(value) is tuple:
        return [_plain_floats(item) for item in value]
    if type(value) is float and value.is_integer() and abs(value) <= MAX_SAFE_INTEGER:
        return int(value)
    return value


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
    from akf.contracts.scanner import escape  # noqa: PLC0415 - only on trouble

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
    at = next(
        (i for i, (a, b) in enumerate(zip(data, wanted, strict=False)) if a != b), min(len(data), len(wanted))
    )
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
