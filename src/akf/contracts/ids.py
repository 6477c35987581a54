"""Ids and paths inside artifacts.

Invariants:
1. An id matches `ID_PATTERN` from its first character to its last: a trailing newline is not forgiven.
2. Campaign and candidate ids have at most `MAX_SHORT_ID` characters; a candidate id does not end in `.rN`,
   which names a further attempt.
3. A path in an artifact is relative, POSIX, and stays inside its folder by its text alone.
4. Letters that only look like ASCII are called by name, so that nobody compares two equal-looking ids by eye.
"""

from __future__ import annotations

import re

from akf.contracts.limits import MAX_ID, MAX_PATH_BYTES, MAX_SEGMENT_BYTES, MAX_SHORT_ID
from akf.contracts.problems import Problem
from akf.contracts.text import did_you_mean, printable, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "ID_PATTERN",
    "SHORT_ID_PATTERN",
    "candidate_id_problem",
    "did_you_mean",
    "id_problem",
    "is_id",
    "is_relative_path",
    "path_problem",
    "printable",
]

ID_PATTERN = f"^[a-z0-9][a-z0-9._-]{{0,{MAX_ID - 1}}}$"
SHORT_ID_PATTERN = f"^[a-z0-9][a-z0-9._-]{{0,{MAX_SHORT_ID - 1}}}$"

_ID = re.compile(r"[a-z0-9][a-z0-9._-]*\Z")
_ATTEMPT = re.compile(r"\.r[0-9]+\Z")
_DRIVE = re.compile(r"[A-Za-z]:")
# Code points that most fonts draw like an ASCII character: Cyrillic, Greek, Armenian, dashes, dots.
_ALIKE = {
    "a": "0251 0391 03B1 0410 0430",
    "b": "0392 0412",
    "c": "0421 0441 03F2",
    "d": "0501",
    "e": "0395 0415 0435",
    "f": "017F",
    "h": "0397 041D 04BB",
    "i": "0131 0399 03B9 0406 0456",
    "j": "0408 0458 03F3",
    "k": "039A 041A 03BA 043A",
    "l": "04CF 2223",
    "m": "039C 041C",
    "n": "039D 0578",
    "o": "039F 03BF 041E 043E 0585",
    "p": "03A1 03C1 0420 0440",
    "q": "051B",
    "s": "0405 0455",
    "t": "03A4 0422",
    "u": "03C5 057D",
    "v": "03BD 0475",
    "w": "051D",
    "x": "03A7 0425 0445",
    "y": "03A5 0423 0443",
    "z": "0396",
    "-": "2010 2011 2012 2013 2014 2212 FE63",
    ".": "2024 3002 FF61",
    "_": "02CD",
}
_LOOK_ALIKE = {chr(int(code, 16)): char for char, codes in _ALIKE.items() for code in codes.split()}


def is_id(text: object, longest: int = MAX_ID) -> bool:
    """Say whether `text` is an id."""
    return isinstance(text, str) and len(text) <= longest and _ID.match(text) is not None


def id_problem(text: object, *, field: str = "id", longest: int = MAX_ID, **where: Any) -> Problem | None:
    """Return what is wrong with an id, or None; `where` goes into the problem (file, pointer, …)."""
    if is_id(text, longest):
        return None
    expected = f"1 to {longest} of a-z 0-9 . _ -, starting with a letter or digit"
    if not isinstance(text, str):
        return Problem("AKF-S032", f"{field} is {show(text)}, not an id", expected=expected, found=text, **where)
    common = {"expected": expected, "found": printable(text[:200]), **where}
    foreign = next((c for c in text if not c.isascii()), None)
    if foreign is not None:
        meant = _as_ascii(text)
        alike = f" and looks like {meant[text.index(foreign)]!r}" if meant else ""
        return Problem(
            "AKF-S033",
            f"{field} {show(text)} holds U+{ord(foreign):04X}, which is not ASCII{alike}",
            hint=f"write it as {meant}" if meant and is_id(meant, longest) else "ids are written in ASCII",
            **common,
        )
    if not text:
        why = "is empty"
    elif len(text) > longest:
        why = f"has {len(text)} characters, {len(text) - longest} too many"
    elif not (text[0].isdigit() or "a" <= text[0].lower() <= "z"):
        why = f"starts with {show(text[0])}"
    else:
        bad = sorted({c for c in text if not _ID.match("a" + c)})
        why = f"holds {', '.join(map(show, bad))}"
    meant = re.sub(r"[^a-z0-9._-]+", "-", text.strip().lower()).strip("-._")[:longest]
    hint = f"for example {meant}" if is_id(meant, longest) else None
    return Problem("AKF-S032", f"{field} {show(text)} {why}", hint=hint, **common)


def candidate_id_problem(text: object, *, field: str = "id", **where: Any) -> Problem | None:
    """Return what is wrong with a candidate id, or None."""
    problem = id_problem(text, field=field, longest=MAX_SHORT_ID, **where)
    if problem is None and isinstance(text, str) and (match := _ATTEMPT.search(text)):
        return Problem(
            "AKF-S032",
            f"{field} {show(text)} ends in {match[0]}, which names a further attempt of a candidate",
            found=text,
            hint=f"for example {text[: match.start()]}-{match[0][1:]}",
            **where,
        )
    return problem


def is_relative_path(text: object) -> bool:
    """Say whether `text` is a relative POSIX path that stays inside its folder."""
    return isinstance(text, str) and _path_fault(text) is None


def path_problem(text: object, *, field: str = "path", **where: Any) -> Problem | None:
    """Return what is wrong with a path in an artifact, or None."""
    fault = "is not a string" if not isinstance(text, str) else _path_fault(text)
    if fault is None:
        return None
    return Problem(
        "AKF-S034",
        f"{field} {show(text)} {fault}",
        expected="a relative POSIX path without . or .. segments",
        found=printable(text[:200]) if isinstance(text, str) else text,
        **where,
    )


def _path_fault(text: str) -> str | None:
    segments = text.split("/")
    rules = (
        (not text, "is empty"),
        (text.startswith("/"), "is absolute"),
        (_DRIVE.match(text) is not None, "names a drive"),
        (":" in text, "holds a colon, which names a drive or a stream on some systems"),
        ("\\" in text, "holds a backslash; segments are separated by /"),
        (printable(text) != text, "holds a control or invisible character"),
        (".." in segments, "leaves its folder through .."),
        ("." in segments, "holds a . segment"),
        ("" in segments, "holds an empty segment (// or a / at its end)"),
    )
    for broken, fault in rules:
        if broken:
            return fault
    if len(text.encode()) > MAX_PATH_BYTES:
        return f"has more than {MAX_PATH_BYTES} bytes"
    if any(len(segment.encode()) > MAX_SEGMENT_BYTES for segment in segments):
        return f"has a segment of more than {MAX_SEGMENT_BYTES} bytes"
    return None


def _as_ascii(text: str) -> str | None:
    """Return the ASCII text that `text` looks like, or None."""
    from unicodedata import normalize  # noqa: PLC0415 - only on trouble

    parts = [_LOOK_ALIKE.get(c) or normalize("NFKC", c).casefold() for c in text]
    return "".join(parts) if all(len(p) == 1 and p.isascii() for p in parts) else None
