"""Values of constexpr parameters by rule: `specialisations.json` beside the launch spec.

Invariants:
- A rule holds within bounds of the Task's symbols; the first rule that holds at a point counts.
- A value is an integer, true, false or a word for a dtype. Nothing is evaluated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from akf.contracts.loader import parse
from akf.contracts.problems import InvalidError
from akf.contracts.text import show
from akf.store.untrusted import TreeFile

FILE = "specialisations.json"
EXAMPLE = '{"rules": [{"within": {"N": [8, 1024]}, "constexprs": {"BLOCK": 1024}}]}'
_MOST = 64
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
_WORDS = frozenset({"fp16", "bf16", "fp32", "i8", "i32", "i64"})


class Rule(NamedTuple):
    """Values of constexpr parameters within bounds of sizes."""

    within: Mapping[str, tuple[int, int]]
    values: Mapping[str, str]

    def holds(self, point: Mapping[str, int]) -> bool:
        """Whether a point lies inside."""
        return all(low <= point[name] <= high for name, (low, high) in self.within.items())


class _RuleError(ValueError):
    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(message)
        self.pointer = pointer


def read_rules(files: Sequence[TreeFile], launch: str, shown: str, known: Iterable[str]) -> tuple[Rule, ...]:
    """The rules beside a launch spec; none where there is no such file.

    Args:
        files: the sources.
        launch: the launch spec's path among them.
        shown: how problems name the folder of the sources.
        known: the Task's symbols.

    Raises:
        InvalidError: the file is malformed.
    """
    path = str(PurePosixPath(launch).with_name(FILE))
    data = next((file.data for file in files if file.path == path), None)
    if data is None:
        return ()
    file = f"{shown}/{path}"
    try:
        return _rules(parse(data, file).value, frozenset(known))
    except _RuleError as error:
        message = f"{FILE}: {error}"
        raise InvalidError.of("AKF-M048", message, file=file, pointer=error.pointer, hint=EXAMPLE) from error


def _rules(value: Any, known: frozenset[str]) -> tuple[Rule, ...]:
    if not isinstance(value, dict) or set(value) != {"rules"} or not isinstance(value["rules"], list):
        raise _RuleError("", "must be an object with the one field `rules`, a list")
    if not 0 < len(value["rules"]) <= _MOST:
        raise _RuleError("/rules", f"must have 1 to {_MOST} rules")
    return tuple(_rule(each, f"/rules/{index}", known) for index, each in enumerate(value["rules"]))


def _rule(value: Any, pointer: str, known: frozenset[str]) -> Rule:
    if not isinstance(value, dict) or not set(value) <= {"within", "constexprs"} or "constexprs" not in value:
        raise _RuleError(pointer, "a rule has `constexprs` and may have `within`")
    within, values = value.get("within", {}), value["constexprs"]
    if not isinstance(within, dict) or not isinstance(values, dict):
        raise _RuleError(pointer, "`within` and `constexprs` are objects")
    for name, bounds in within.items():
        if name not in known:
            raise _RuleError(f"{pointer}/within", f"{show(name)} is no symbol of the Task")
        if not _bounds(bounds):
            raise _RuleError(f"{pointer}/within/{name}", "must be [smallest, largest]")
    for name, each in values.items():
        if not _NAME.fullmatch(name) or not _constexpr(each):
            raise _RuleError(f"{pointer}/constexprs", f"{show(name)} must be an integer, true, false or a dtype word")
    texts = {name: each if isinstance(each, str) else json.dumps(each) for name, each in values.items()}
    return Rule({name: (low, high) for name, (low, high) in within.items()}, texts)


def _bounds(value: Any) -> bool:
    pair = isinstance(value, list) and len(value) == 2 and all(type(each) is int for each in value)  # noqa: PLR2004
    return pair and 0 < value[0] <= value[1]


def _constexpr(value: Any) -> bool:
    return isinstance(value, (int, bool)) or (isinstance(value, str) and value in _WORDS)
