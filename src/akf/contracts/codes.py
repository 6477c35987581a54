"""The catalogue: what every problem code and every reason code means.

Invariants:
1. Each `catalogue/*.toml` is one area, a table a code; all files are merged, and a code is defined once (held
   by a test).
2. A problem code (`AKF-S012`) says title, rule, why, a failing and a passing example, and the exit status; a
   reason code (`RESULT_REPLAY`) and a verdict (`promotable`) say title, rule and why.
3. Nothing is read until somebody asks.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from types import MappingProxyType

from akf.contracts.text import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_FOLDER = Path(__file__).parent / "catalogue"
_NEAR = re.compile(r"(?:AKF[-_ ]?)?([A-Z])([0-9O]{1,3})")
_LONGEST = 64
_VERDICTS = "verdicts"
PROBLEM_FIELDS = ("title", "rule", "why", "failing", "passing", "exit")
REASON_FIELDS = ("title", "rule", "why")
FAMILIES = {
    "S": "structure and syntax",
    "M": "meaning",
    "I": "integrity",
    "P": "precondition",
    "C": "conflict",
    "E": "environment",
    "F": "files",
    "U": "usage",
    "T": "trust and signatures",
    "X": "defects of AKF",
}


class Entry:
    """What one code or verdict means; `failing`, `passing` and `exit` are None but for problem codes."""

    __slots__ = ("area", "code", "exit", "failing", "passing", "rule", "title", "why")

    def __init__(self, code: str, area: str, fields: dict[str, Any]) -> None:
        self.code = code
        self.area = area
        self.title: str = fields["title"]
        self.rule: str = fields["rule"]
        self.why: str = fields["why"]
        self.failing: str | None = fields.get("failing")
        self.passing: str | None = fields.get("passing")
        self.exit: int | None = fields.get("exit")

    def __repr__(self) -> str:
        return f"Entry({self.code!r}, {self.title!r})"

    @property
    def is_reason(self) -> bool:
        """Say whether this is the code of a check, or a verdict; not the code of a refusal."""
        return not self.code.startswith("AKF-")

    def to_json(self) -> dict[str, Any]:
        """Return the entry as a JSON object."""
        fields: dict[str, Any] = {"code": self.code, "title": self.title, "rule": self.rule, "why": self.why}
        if self.is_reason:
            return fields
        family = FAMILIES[self.code[len("AKF-")]]
        return fields | {
            "family": family,
            "exit": self.exit,
            "failing": self.failing,
            "passing": self.passing,
        }


def explain(code: str) -> Entry | None:
    """Return what `code` means, or None when there is no such code."""
    return _entries().get(code)


def find(word: str) -> Entry | None:
    """Return what is meant by a code or a verdict in any case, with `-`, `_` or spaces between its parts.

    `INCOMPARABLE` is a reason code, `incomparable` a verdict; in any other spelling the verdict is meant.
    """
    exact = explain(word)
    if exact is not None:
        return exact
    entries = sorted(_entries().values(), key=lambda entry: entry.area != _VERDICTS)
    return next((entry for entry in entries if _folded(entry.code) == _folded(word)), None)


def all_codes() -> list[str]:
    """Return every code, problem codes first, each list sorted."""
    found = (code for code, entry in _entries().items() if entry.area != _VERDICTS)
    return sorted(found, key=lambda code: (not code.startswith("AKF-"), code))


def verdicts() -> list[str]:
    """Return the verdicts, as the catalogue orders them."""
    return [code for code, entry in _entries().items() if entry.area == _VERDICTS]


def nearest(code: str) -> str | None:
    """Return the code that was probably meant: `akf-s12` and `AKF-SO12` mean `AKF-S012`."""
    word = code.strip().upper()
    match = _NEAR.fullmatch(word)
    if match:
        word = f"AKF-{match[1]}{match[2].replace('O', '0'):0>3}"
    return did_you_mean(word[:_LONGEST], _entries())


def _folded(word: str) -> str:
    return "_".join(word.casefold().replace("-", " ").replace("_", " ").split())


@cache
def _entries() -> Mapping[str, Entry]:
    import tomllib  # noqa: PLC0415 - costs start-up time, needed only by `akf explain` and the docs

    found: dict[str, Entry] = {}
    for path in sorted(_FOLDER.glob("*.toml")):
        for code, fields in tomllib.loads(path.read_text(encoding="utf-8")).items():
            found[code] = Entry(code, path.stem, fields)
    return MappingProxyType(found)
