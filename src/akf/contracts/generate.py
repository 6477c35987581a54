"""Schemas from models: `python -m akf.contracts.generate` rewrites `schemas/`.

Invariants:
- One self-contained Draft 2020-12 file per kind, `$id` `urn:akf:schema:KIND:1`; no reference leaves it.
- Objects are closed with `unevaluatedProperties: false`.
- Every property has a description and an example.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from akf.contracts.models import MODELS
from akf.contracts.shipped import shipped


def file_name(kind: str) -> str:
    """`CandidateManifest` -> `candidate-manifest.schema.json`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", kind).lower() + ".schema.json"


def _close(node: Any) -> Any:
    """Use the keywords of Draft 2020-12 and drop what pydantic adds for its own ends."""
    if isinstance(node, list):
        return [_close(item) for item in node]
    if not isinstance(node, dict):
        return node
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key in {"properties", "patternProperties", "$defs"}:
            out[key] = {name: _close(child) for name, child in value.items()}
        elif key == "additionalProperties" and value is False:
            out["unevaluatedProperties"] = False
        elif key in {"examples", "const", "enum"}:
            out[key] = value
        elif key not in {"title", "default"}:
            out[key] = _close(value)
    if "patternProperties" in out:  # a map with named keys: pydantic refuses other names but does not say so
        out["unevaluatedProperties"] = False
    return out


def schema_of(kind: str) -> dict[str, Any]:
    """The schema of one kind, as a JSON value."""
    model = MODELS[kind]
    body = _close(model.model_json_schema(by_alias=True))
    slug = file_name(kind).removesuffix(".schema.json")
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:akf:schema:{slug}:1",
        "title": kind,
    }
    return {**head, **body}


def render(kind: str) -> bytes:
    """The schema file's bytes."""
    return json.dumps(schema_of(kind), indent=2, ensure_ascii=False).encode() + b"\n"


def main() -> None:
    """Write every schema; remove none (a test names a file without a model)."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else shipped("schemas")
    for kind in MODELS:
        (folder / file_name(kind)).write_bytes(render(kind))


if __name__ == "__main__":
    main()
