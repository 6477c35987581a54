"""Blockers: every `null` that a draft may hold, with the command that fills it.

Invariants:
- A placeholder is a `null` on a field whose schema carries `x-akf-fill`; any other `null` is a statement.
- One blocker per fact, ordered by file and pointer: the same input gives the same bytes.
- The command can be run as it stands: it names the file and the pointer; on platform `host` one command fills it all.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Blocker = dict[str, Any]


def blockers(schema: dict[str, Any], value: dict[str, Any], file: str) -> list[Blocker]:
    """Blockers of one document: `{file, pointer, expected, command}` each."""
    host = value.get("platform") == "host"
    found = [
        {"file": file, "pointer": pointer, "expected": expected, "command": _command(command, file, pointer, host=host)}
        for pointer, expected, command in _walk(schema, value, "", schema.get("$defs", {}))
    ]
    return sorted(found, key=lambda blocker: blocker["pointer"])


def _command(template: str, file: str, pointer: str, *, host: bool) -> str:
    if host and "--set" not in template:
        template = "akf fill CAMPAIGN --host"
    return template.replace("CAMPAIGN", file).replace("FILE", file).replace("POINTER", pointer)


def _walk(
    schema: dict[str, Any], value: Any, pointer: str, definitions: dict[str, Any]
) -> Iterator[tuple[str, str, str]]:
    if value is None:
        if "x-akf-fill" in schema:
            yield pointer, schema.get("description", ""), schema["x-akf-fill"]
        return
    for branch in _branches(schema, definitions):
        if isinstance(value, dict):
            for name, child in branch.get("properties", {}).items():
                if name in value:
                    escaped = name.replace("~", "~0").replace("/", "~1")
                    yield from _walk(child, value[name], f"{pointer}/{escaped}", definitions)
        elif isinstance(value, list) and isinstance(branch.get("items"), dict):
            for index, item in enumerate(value):
                yield from _walk(branch["items"], item, f"{pointer}/{index}", definitions)


def _branches(schema: dict[str, Any], definitions: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schema itself with its references followed and its alternatives opened."""
    if "$ref" in schema:
        yield from _branches(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
        return
    options = schema.get("anyOf")
    if options is None:
        yield schema
        return
    for option in options:
        yield from _branches(option, definitions)
