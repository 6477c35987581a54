"""Settings of a framework, read from its own configuration under its own names.

Invariants:
1. The file is one JSON object: what the framework takes as configuration, with its variables under `env`. Names may
   be written with `-` or `_`; a nested object may also be given as JSON in a string, as on a command line.
2. A setting that is absent or null has its default, and the answer says so; a value that is not understood is refused.
3. A setting under which the map does not hold is refused by name. Of all other settings nothing is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from akf.contracts.limits import MAX_SAFE_INTEGER
from akf.contracts.loader import Document, fast
from akf.contracts.pointer import escape
from akf.contracts.problems import Problem
from akf.contracts.rules.finding import at
from akf.contracts.text import show
from akf.frameworks.model_config import MOST

Origin = Literal["config", "log", "option", "default"]
_ANYBODYS = frozenset({"env", "quantization", "model"})
_FLAGS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False, "on": True, "off": False}
_NOTHING: tuple[Any, ...] = (None, False, 0, "", "none", "None", "0", "false", "False")


@dataclass(frozen=True)
class Setting:
    """What holds, and who said so; a default may be the name of a size."""

    value: Any
    origin: Origin


def speaks_of(arm: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Say whether a configuration holds a field that this arm's settings are read from, and not nearly everybody's."""
    known = {spec["key"].partition(".")[0] for spec in arm.get("setting", ()) if spec.get("key")}
    return not known.isdisjoint(set(map(_plain, value)) - _ANYBODYS)


def read(
    arm: Mapping[str, Any], document: Document | None, evidence: Mapping[str, Any], problems: list[Problem]
) -> dict[str, Setting]:
    """Return the settings of an arm; what is wrong is added to `problems`.

    Args:
        arm: what is known of the arm.
        document: the framework's configuration.
        evidence: settings that the framework's log states; a log outweighs a configuration.
        problems: where problems are collected.
    """
    found: dict[str, Setting] = {}
    for spec in arm["setting"]:
        name = spec["name"]
        if name in evidence:
            found[name] = Setting(evidence[name], "log")
            continue
        try:
            pointer, value = _lookup(document, spec.get("key"))
        except _Unclear as unclear:
            assert document is not None  # noqa: S101 - where else would it come from
            problem = at(document, unclear.pointer, "AKF-F307", unclear.message, expected=unclear.expected)
            problems += [] if problem in problems else [problem]
            found[name] = Setting(_default(spec), "default")
            continue
        if value is None or value in spec.get("absent", ()):
            found[name] = Setting(_default(spec), "default")
            continue
        assert document is not None  # noqa: S101 - where else would the value come from
        taken = _taken(spec, value)
        if taken is None:
            problems.append(_problem(arm, spec, document, pointer, value))
        found[name] = Setting(_default(spec) if taken is None else taken, "config")
    return found


def _default(spec: Mapping[str, Any]) -> Any:
    return spec.get("default", 1 if spec["type"] == "one" else () if spec["type"] == "sizes" else None)


def _lookup(document: Document | None, key: str | None) -> tuple[str, Any]:
    """Return the place and value of a dotted key; None where it is absent.

    Raises:
        _Unclear: it cannot be said which value it has.
    """
    value: Any = document.value if document is not None and key is not None else None
    pointer = ""
    written = False
    for part in (key or "").split("."):
        if isinstance(value, str) and not written:
            value, written = _written(pointer, value), True
        if value is None:
            return pointer, None
        if not isinstance(value, dict):
            raise _Unclear(pointer, f"{_last(pointer)} is {show(value)}, which is no object", "an object")
        names = [name for name in value if _plain(name) == part]
        if len(names) > 1:
            listed = " and as ".join(show(name) for name in names)
            raise _Unclear(
                pointer if written else f"{pointer}/{escape(names[1])}", f"{part} stands twice, as {listed}", part
            )
        pointer = pointer if written else f"{pointer}/{escape(names[0] if names else part)}"
        value = value[names[0]] if names else None
    return pointer, value


class _Unclear(Exception):  # noqa: N818 - it never leaves this module
    def __init__(self, pointer: str, message: str, expected: str) -> None:
        super().__init__(message)
        self.pointer = pointer
        self.message = message
        self.expected = expected


def _written(pointer: str, text: str) -> dict[str, Any] | None:
    """The object that is written as JSON in a string, as on a command line; nothing in an empty one."""
    value = fast(text.encode("utf-8", "replace")) if text.strip() else None
    if value is None and text.strip():
        raise _Unclear(pointer, f"{_last(pointer)} is {show(text)}, which is no object of JSON", "an object")
    return value


def _last(pointer: str) -> str:
    return _plain(pointer.rpartition("/")[2])


def _plain(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def _taken(spec: Mapping[str, Any], value: Any) -> Any:
    """Return the value as the setting's type has it, or None if it is none."""
    if spec["type"] == "flag":
        return value if isinstance(value, bool) else _FLAGS.get(str(value).lower())
    if spec["type"] == "size":
        return _size(value)
    if spec["type"] == "sizes":
        sizes = [_size(item) for item in value] if isinstance(value, list) and value else [None]
        return None if None in sizes else tuple(sizes)
    if spec["type"] == "choice":
        return value if isinstance(value, str) and value in spec["choices"] else None
    if spec["type"] == "one":
        return 1 if _size(value) == 1 else None
    return False if any(value == nothing for nothing in _NOTHING) or value in ([], {}) else None


def _size(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < len(str(MAX_SAFE_INTEGER)):
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST else None


def _problem(arm: Mapping[str, Any], spec: Mapping[str, Any], document: Document, pointer: str, value: Any) -> Problem:
    key = spec["key"]
    if spec["type"] in {"unset", "one"}:
        return at(
            document,
            pointer,
            "AKF-F308",
            f"{key} is {show(value)}: what {arm['title']} then calls is not mapped",
            expected=1 if spec["type"] == "one" else None,
            hint="leave it out if the service does not use it; else its callsites have to be written by hand",
        )
    wanted = {"flag": "true or false", "size": "a whole number of at least 1", "sizes": "a list of such numbers"}
    expected = spec.get("choices") or wanted[spec["type"]].replace("such", "positive whole")
    message = f"{key} is {show(value)}, which is not understood"
    return at(document, pointer, "AKF-F307", message, expected=expected, found=_found(value))


def _found(value: Any) -> Any:
    return value if isinstance(value, bool | int | str) else show(value)


def listed(settings: Mapping[str, Setting]) -> Iterator[dict[str, Any]]:
    """Yield the settings for an answer, in their order."""
    for name, setting in settings.items():
        value = list(setting.value) if isinstance(setting.value, tuple) else setting.value
        yield {"name": name, "value": value, "from": setting.origin}
