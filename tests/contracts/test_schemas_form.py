"""The committed schemas: generated, self-contained, closed, described, and with examples that hold.

`docs/contracts.md` promises what is tested here of every schema in `schemas/`.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import pytest

from akf.contracts.generate import file_name, render, schema_of
from akf.contracts.models import MODELS

SCHEMAS = Path(__file__).parents[2] / "schemas"
KINDS = sorted(MODELS)
SHORTEST = 16  # characters of a description that still says something
DIALECT = "https://json-schema.org/draft/2020-12/schema"

CHILDREN_BY_NAME = {"properties", "patternProperties", "$defs"}
CHILDREN_IN_LIST = {"anyOf", "prefixItems"}
ONE_CHILD = {"items"}
LEAVES = {
    "$schema", "$id", "$ref", "title", "description", "examples", "type", "const", "enum", "required", "minimum",
    "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "pattern",
    "unevaluatedProperties", "x-akf-fill", "x-akf-null",
}  # fmt: skip

UNITS = re.compile(r"_(ns|us|ms|s|mhz|bytes|tokens|ratio|per_s)$")
DIMENSIONLESS = {
    # counts of things that the name itself says
    "attempts", "batches", "blocks", "calls", "calls_per_step", "candidates", "checks", "concurrency",
    "configurations", "cores", "cpus",
    "expected_calls", "jit_compiles", "launches", "ledger_lines", "legs", "model", "most_jit_compiles",
    "most_recompiles", "n", "numa_nodes",
    "operations", "operator", "pairs", "pairs_for_rows", "pairs_to_decide", "prefix_hits", "prefix_queries",
    "recompiles", "replays", "reproduction", "resumes", "seen_calls", "serving", "steps", "tokens", "tries",
    "tries_before", "bytes", "max_batch_requests",
    "failures", "follow_ups", "instants", "longest_turns", "outside", "partial_prompts", "points", "prompt_blocks",
    "requests", "reused_blocks", "sessions", "windows",
    "completed", "failed", "incomplete", "kernel_count", "needed_samples", "samples", "sent", "symbol_count",
    # numbers of one thing among its like
    "die", "landlock", "npu", "position", "rank", "row", "rules_version", "schema_version", "try_number", "returncode",
    "seeds", "misalign",
    # sizes and steps in elements, which is the unit of every shape
    "block", "dp", "ep", "grid", "group_size", "max", "min", "multiple_of", "pp", "shape", "storage_shape", "strides",
    "symbols", "tp", "domain",
    # pure numbers: probabilities, factors, weights and the ends of intervals of ratios
    "confidence", "error_factor", "estimate", "high", "lag1_correlation", "low", "quantile", "weight", "baseline",
    "routing", "atol", "rtol", "burstiness",
    # values whose unit stands in the field beside them, or which have none
    "attributes", "value", "values", "whole_value", "sample_value",
    # the two numbers of a fraction
    "numerator", "denominator",
}  # fmt: skip


def load(kind: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((SCHEMAS / file_name(kind)).read_bytes())
    return loaded


def walk(schema: Any, pointer: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every sub-schema with its pointer; a keyword that is not known here stops the test."""
    assert isinstance(schema, dict), pointer
    unknown = set(schema) - CHILDREN_BY_NAME - CHILDREN_IN_LIST - ONE_CHILD - LEAVES
    assert not unknown, f"{pointer}: {unknown}"
    yield pointer, schema
    for key in CHILDREN_BY_NAME & set(schema):
        for name, child in schema[key].items():
            yield from walk(child, f"{pointer}/{key}/{name}")
    for key in CHILDREN_IN_LIST & set(schema):
        for index, child in enumerate(schema[key]):
            yield from walk(child, f"{pointer}/{key}/{index}")
    for key in ONE_CHILD & set(schema):
        yield from walk(schema[key], f"{pointer}/{key}")


def properties(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any], bool]]:
    """Every property as (pointer, name, sub-schema, required)."""
    for pointer, node in walk(schema):
        for name, child in node.get("properties", {}).items():
            yield f"{pointer}/properties/{name}", name, child, name in node.get("required", ())


def alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = schema.get("anyOf", [schema])
    return found


def nullable(schema: dict[str, Any]) -> bool:
    return any(option.get("type") == "null" for option in alternatives(schema))


def test_the_folder_holds_exactly_the_generated_files() -> None:
    assert {path.name for path in SCHEMAS.iterdir()} == {file_name(kind) for kind in MODELS}


@pytest.mark.parametrize("kind", KINDS)
def test_the_committed_schema_is_the_generated_one(kind: str) -> None:
    assert (SCHEMAS / file_name(kind)).read_bytes() == render(kind), "run: python -m akf.contracts.generate"


@pytest.mark.parametrize("kind", KINDS)
def test_two_generations_are_equal(kind: str) -> None:
    assert json.dumps(schema_of(kind)) == json.dumps(schema_of(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_both_libraries_accept_it_as_draft_2020_12(kind: str) -> None:
    schema = load(kind)
    assert schema["$schema"] == DIALECT
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema_rs.Draft202012Validator(schema, ignore_unknown_formats=False)
    assert jsonschema_rs.meta.is_valid(schema)


def test_identifiers_are_stable_urns_and_unique() -> None:
    names = {kind: load(kind)["$id"] for kind in KINDS}
    assert len(set(names.values())) == len(KINDS)
    for kind, name in names.items():
        assert name == f"urn:akf:schema:{file_name(kind).removesuffix('.schema.json')}:1"


@pytest.mark.parametrize("kind", KINDS)
def test_no_reference_leaves_the_file(kind: str) -> None:
    schema = load(kind)
    for pointer, node in walk(schema):
        target = node.get("$ref")
        if target is not None:
            assert target.removeprefix("#/$defs/") in schema["$defs"], f"{pointer} -> {target}"
    assert "://" not in json.dumps({key: value for key, value in schema.items() if key != "$schema"})


@pytest.mark.parametrize("kind", KINDS)
def test_every_artifact_opens_with_kind_and_version(kind: str) -> None:
    schema = load(kind)
    assert schema["properties"]["kind"]["const"] == kind
    assert schema["properties"]["schema_version"]["const"] == 1
    assert {"kind", "schema_version", "id"} <= set(schema["required"])
    assert "$schema" not in schema["required"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_object_is_closed(kind: str) -> None:
    for pointer, node in walk(load(kind)):
        if node.get("type") == "object":
            assert ("properties" in node) != ("patternProperties" in node), pointer
            assert node.get("unevaluatedProperties") is False, pointer


@pytest.mark.parametrize("kind", KINDS)
def test_every_property_is_described_and_its_example_holds(kind: str) -> None:
    schema = load(kind)
    for pointer, name, child, _ in properties(schema):
        text = child.get("description", "")
        assert len(text) >= SHORTEST, f"{pointer} says too little: {text}"
        assert text[0].isupper() or text[0] in "`1", f"{pointer}: {text}"
        assert text.endswith("."), f"{pointer}: {text}"
        assert child.get("examples"), f"{pointer} has no example"
        judge = jsonschema_rs.Draft202012Validator({**child, "$defs": schema.get("$defs", {})})
        for example in child["examples"]:
            assert [error.message for error in judge.iter_errors(example)] == [], f"{pointer} ({name})"
            assert example is not None, f"{pointer} shows only a placeholder"


@pytest.mark.parametrize("kind", KINDS)
def test_placeholders_stand_on_required_nullable_fields_and_name_a_command(kind: str) -> None:
    for pointer, _, child, required in properties(load(kind)):
        marks = {"x-akf-fill", "x-akf-null"} & set(child)
        if required and nullable(child):
            assert len(marks) == 1, f"{pointer}: a required null is a placeholder or an answer; say which"
        else:
            assert not marks, f"{pointer}: {marks}"
        if "x-akf-fill" in child:
            assert re.match(r"akf [a-z][a-z-]+\b", child["x-akf-fill"]), pointer
        if "x-akf-null" in child:
            assert child["x-akf-null"].endswith("."), pointer
    inside = [pointer for pointer, node in walk(load(kind)) if "x-akf-fill" in node and "/properties/" not in pointer]
    assert not inside


def _numeric(schema: dict[str, Any], definitions: dict[str, Any]) -> bool:
    for option in alternatives(schema):
        node = definitions[option["$ref"].removeprefix("#/$defs/")] if "$ref" in option else option
        if node.get("type") in {"number", "integer"}:
            return True
        inner = [*node.get("prefixItems", ())]
        inner += [*node.get("patternProperties", {}).values()]
        inner += [node["items"]] if "items" in node else []
        if node.get("type") in {"array", "object"} and any(_numeric(child, definitions) for child in inner):
            return True
    return False


def test_a_number_carries_its_unit_in_its_name() -> None:
    used = set()
    for kind in KINDS:
        schema = load(kind)
        for pointer, name, child, _ in properties(schema):
            if not _numeric(child, schema.get("$defs", {})) or UNITS.search(name):
                continue
            assert name in DIMENSIONLESS, f"{kind}{pointer}: which unit?"
            used.add(name)
    listed_for_nothing = DIMENSIONLESS - used
    assert not listed_for_nothing
