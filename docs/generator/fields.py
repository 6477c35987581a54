"""The fields of a schema as a table that people can read."""

from __future__ import annotations

import json
from typing import Any

from akf.contracts.limits import MAX_SAFE_INTEGER

from .markdown import plain, table

_LONGEST_EXAMPLE = 72
_PATTERNS = {
    r"^[a-z0-9][a-z0-9._-]{0,62}$": "id",
    r"^[a-z0-9][a-z0-9._-]{0,47}$": "id of at most 48 characters",
    r"^sha256:[0-9a-f]{64}$": "digest",
    r"^[0-9a-f]{64}$": "64 hexadecimal digits",
    r"^[A-Za-z_][A-Za-z0-9_]{0,31}$": "symbol",
    r"^[A-Z][A-Z0-9_]{2,63}$": "reason code",
}


def field_table(schema: dict[str, Any]) -> list[str]:
    """One row per field; what opens every artifact comes first, what is for editors last."""
    properties, required = schema["properties"], set(schema.get("required", ()))
    ends = ("kind", "schema_version", "id", "$schema")
    names = [name for name in ends[:3] if name in properties]
    names += [name for name in properties if name not in ends]
    names += [name for name in ends[3:] if name in properties]
    rows = [
        (
            f"`{name}`",
            _type(properties[name]),
            "required" if name in required else "optional",
            _meaning(properties[name]),
            _example(properties[name]),
        )
        for name in names
    ]
    return table(("field", "type", "", "meaning", "example"), rows)


def _meaning(field: dict[str, Any]) -> str:
    text = plain(field.get("description", ""))
    if "x-akf-fill" in field:
        text += f" A draft may leave it `null`: `{field['x-akf-fill']}` fills it."
    if "x-akf-null" in field:
        text += f" `null` means: {plain(field['x-akf-null'])}"
    return text


def _example(field: dict[str, Any]) -> str:
    text = json.dumps(field.get("examples", [None])[0], ensure_ascii=False)
    return f"`{text}`" if "examples" in field and len(text) <= _LONGEST_EXAMPLE and "`" not in text else "-"


def _type(field: dict[str, Any]) -> str:
    if "$ref" in field:
        name = field["$ref"].removeprefix("#/$defs/")
        return f"[{name}](#{name.lower()})"
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(map(_type, field["anyOf"])))
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    kinds = {
        "array": _list, "object": _map, "string": _text, "integer": _number, "number": _number,
    }  # fmt: skip
    kind = str(field.get("type"))
    return kinds[kind](field) if kind in kinds else {"boolean": "`true` or `false`", "null": "`null`"}[kind]


def _list(field: dict[str, Any]) -> str:
    if "prefixItems" in field:
        return f"list of {len(field['prefixItems'])} ({', '.join(map(_type, field['prefixItems']))})"
    return f"list of {_type(field['items'])}" if "items" in field else "list"


def _map(field: dict[str, Any]) -> str:
    values = [_type(value) for value in field.get("patternProperties", {}).values()]
    return f"map of symbols to {' or '.join(values)}" if values else "object"


def _text(field: dict[str, Any]) -> str:
    pattern = field.get("pattern", "")
    return _PATTERNS.get(pattern) or ("relative path" if pattern.startswith("^(?:[^/") else "text")


def _number(field: dict[str, Any]) -> str:
    words = ["whole number" if field["type"] == "integer" else "number"]
    names = (("minimum", "from"), ("exclusiveMinimum", "over"), ("maximum", "to"), ("exclusiveMaximum", "under"))
    for name, word in names:
        bound = field.get(name)
        if bound is not None and abs(bound) < MAX_SAFE_INTEGER:
            words += [word, str(bound)]
    return " ".join(words)
