"""Blockers: every `null` that a draft may hold, with the command that fills it.

Invariants:
- A placeholder is a `null` on a field whose schema carries `x-akf-fill`; any other `null` is a statement.
- One blocker per fact, ordered by file and pointer: the same input gives the same bytes.
- The command names the file and the pointer; on platform `host` one command fills it all. A command that works on a
  Campaign names the Campaign, also for what another file leaves open. What a command writes is a new file, so the word
  after `--out` stays for the user to choose.
"""

from __future__ import annotations

from akf.contracts.pointer import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Blocker = dict[str, Any]


_POINTER = "POINTER=VALUE"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")


def blockers(schema: dict[str, Any], value: dict[str, Any], file: str, campaign: str | None = None) -> list[Blocker]:
    """Blockers of one document: `{file, pointer, expected, command}` each.

    Args:
        schema: the schema of its kind.
        value: the document.
        file: its file.
        campaign: the Campaign that it was read for, where it is none itself.
    """
    host = value.get("platform") == "host"
    names = {"CAMPAIGN": _word(campaign or file), "FILE": _word(file), "WORKLOAD": _word(file)}
    if value["kind"] != "Workload":
        del names["WORKLOAD"]
    found = [
        {"file": file, "pointer": pointer, "expected": expected, "command": _command(command, names, pointer, host)}
        for pointer, expected, command in _walk(schema, value, "", schema.get("$defs", {}))
    ]
    return sorted(found, key=lambda blocker: blocker["pointer"])


def _command(template: str, names: dict[str, str], pointer: str, host: bool) -> str:
    if "--set" in template:  # a pointer into this very file
        names = {**names, "CAMPAIGN": names["FILE"]}
    elif host:
        template = "akf fill CAMPAIGN --host"
    words = template.split(" ")
    known = {**names, _POINTER: f"{pointer}=VALUE"}
    return " ".join(
        word if before == "--out" else known.get(word, word) for before, word in zip(["", *words], words, strict=False)
    )


def _word(file: str) -> str:
    """A path as one word of a command line."""
    if file.isascii() and not set(file) - _PLAIN:
        return file
    from shlex import quote  # noqa: PLC0415 - only on trouble

    return quote(file)


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
                    yield from _walk(child, value[name], f"{pointer}/{escape(name)}", definitions)
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
