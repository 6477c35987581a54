"""The schemas that ship with AKF, and validation of a document against the one of its kind.

Invariants:
1. A document is judged by the schema of its `kind` at its `schema_version`; an unknown one of either is refused
   with what is known, and nothing else is said about it.
2. Nothing is fetched: a schema that refers outside itself does not compile.
3. Every error becomes a Problem with pointer, line and column; a document without problems costs one call into
   compiled code.
4. Files are read and validators compiled once per process, on first use.
"""

from __future__ import annotations

import json
from functools import cache
from types import MappingProxyType

from akf.contracts.loader import Document
from akf.contracts.problems import DefectError, Problem, UsageError
from akf.contracts.shipped import shipped
from akf.contracts.text import did_you_mean, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any, NoReturn

    from jsonschema_rs import Draft202012Validator

_SUFFIX = ".schema.json"
_LAUNCH_SPEC = frozenset({"abi", "symbol", "args"})  # it has no schema of its own
_OTHER_COMMAND = {
    ("Campaign", "OptimizationSuite"): "akf validate-campaign checks a Campaign",
    ("OptimizationSuite", "Campaign"): "akf validate-suite checks a Suite; its Campaigns are what required_arms names",
}


@cache
def kinds() -> Mapping[str, Path]:
    """Return the schema file of every kind of artifact."""
    found = {}
    for path in sorted(shipped("schemas").glob(f"*{_SUFFIX}")):
        words = path.name.removesuffix(_SUFFIX).split("-")
        found["".join(word.capitalize() for word in words)] = path
    return MappingProxyType(found)


@cache
def schema(kind: str) -> dict[str, Any]:
    """Return the schema of a kind; it is shared, so do not change it.

    Raises:
        UsageError: There is no such kind.
        DefectError: The file that ships with AKF is damaged.
    """
    path = kinds().get(kind)
    if path is None:
        text = f"there is no artifact of kind {show(kind)}"
        raise UsageError.of("AKF-U002", text, expected=list(kinds()), found=kind, hint=_near(kind))
    try:
        loaded = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error
    if not isinstance(loaded, dict):
        raise _damaged(path, ValueError("it is not an object"))
    return loaded


@cache
def validator(kind: str) -> Draft202012Validator:
    """Return the compiled validator of a kind."""
    from jsonschema_rs import Draft202012Validator, ValidationError  # noqa: PLC0415 - costs start-up time

    try:
        return Draft202012Validator(
            schema(kind), validate_formats=True, ignore_unknown_formats=False, retriever=_refuse
        )
    except (ValidationError, ValueError) as error:
        raise _damaged(kinds()[kind], error) from error


def versions(kind: str) -> list[int]:
    """Return the values of `schema_version` that this AKF knows for a kind."""
    declared = schema(kind).get("properties", {}).get("schema_version", {})
    found = declared.get("enum", [declared.get("const", 1)])
    return [int(version) for version in found]


def validate(document: Document, kind: str | None = None) -> list[Problem]:
    """Return everything about a document that its schema refuses, in order.

    Args:
        document: What was parsed.
        kind: What it must be; None takes the document's own word for it.

    Raises:
        UsageError: `kind` is given and there is no such kind.
    """
    if kind is not None:
        schema(kind)
    misfit = _header(document, kind)
    if misfit is not None:
        return [misfit]
    compiled = validator(kind or document.value["kind"])
    if compiled.is_valid(document.value):
        return []
    from akf.contracts.schema_errors import problems  # noqa: PLC0415 - only on trouble

    return problems(document, compiled, schema(kind or document.value["kind"]))


def _header(document: Document, wanted: str | None) -> Problem | None:
    """Return why `kind` or `schema_version` leave no schema to judge by."""
    value = document.value
    if "kind" not in value:
        if wanted is not None and (not value or value.keys() & schema(wanted)["properties"].keys()):
            return None  # the schema says that it is missing, and what else is
        if wanted is not None:
            text = f"this is no {wanted}: it has none of its fields"
            return document.problem("AKF-S020", text, "", expected=wanted)
        text = 'the field "kind" is missing'
        looks = value.keys() >= _LAUNCH_SPEC
        hint = "a launch spec names no kind: check it with --kind LaunchSpec" if looks else "name what this file is"
        return document.problem("AKF-S020", text, "/kind", expected=list(kinds()), hint=hint)
    kind = value["kind"]
    if not isinstance(kind, str) or kind not in kinds():
        text = f"there is no artifact of kind {show(kind)}"
        near = _near(kind) if isinstance(kind, str) else None
        found = kind if isinstance(kind, str) else None
        return document.problem("AKF-S020", text, "/kind", expected=list(kinds()), found=found, hint=near)
    if wanted is not None and kind != wanted:
        from akf.contracts.wording import article  # noqa: PLC0415 - only on trouble

        text = f"this is {article(kind)}, but {article(wanted)} is expected"
        other = _OTHER_COMMAND.get((kind, wanted))
        return document.problem("AKF-S020", text, "/kind", expected=wanted, found=kind, hint=other)
    version = value.get("schema_version")
    known = versions(kind)
    if isinstance(version, int) and not isinstance(version, bool) and version not in known:
        text = f"schema_version {version} of {kind} is not known"
        listed = ", ".join(map(str, known))
        hint = f"this AKF knows {listed}; a newer one may know more" if version > max(known) else f"known: {listed}"
        return document.problem("AKF-S021", text, "/schema_version", expected=known, found=version, hint=hint)
    return None


def _near(kind: str) -> str | None:
    near = did_you_mean(kind, kinds())
    return f"did you mean {near}?" if near else None


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} lies outside the schema, and nothing is fetched")


def _damaged(path: Path, error: Exception) -> DefectError:
    reason = str(error).partition("\n")[0]
    return DefectError.of(
        "AKF-X001",
        f"a schema that ships with AKF does not compile: {show(reason, 200)}",
        file=str(path),
        hint="reinstall ascend-kernel-forge; if that does not help, please report it",
    )
