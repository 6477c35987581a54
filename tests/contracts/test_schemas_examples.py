"""The example of every artifact under `docs/examples/artifacts`: valid everywhere, the full one really full."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import pytest

from akf.cli.commands.validate import artifact
from akf.contracts.generate import file_name, schema_of
from akf.contracts.models import MODELS
from akf.contracts.models.base import Value

FOLDER = Path(__file__).parents[2] / "docs" / "examples" / "artifacts"
SLUGS = {file_name(kind).removesuffix(".schema.json"): kind for kind in MODELS}
CASES = [(kind, variant) for kind in sorted(MODELS) for variant in ("minimal", "full")]


def load(kind: str, variant: str) -> dict[str, Any]:
    slug = file_name(kind).removesuffix(".schema.json")
    loaded: dict[str, Any] = json.loads((FOLDER / f"{slug}.{variant}.json").read_bytes())
    return loaded


def objects(value: Any, pointer: str = "") -> Iterator[tuple[str, Value]]:
    """Every modelled object inside a model, with its pointer."""
    if isinstance(value, Value):
        yield pointer, value
        for name in type(value).model_fields:
            yield from objects(getattr(value, name), f"{pointer}/{name}")
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from objects(item, f"{pointer}/{index}")


def test_every_kind_has_a_minimal_and_a_full_example_and_there_is_nothing_else() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {
        f"{slug}.{variant}.json" for slug in SLUGS for variant in ("minimal", "full")
    }


@pytest.mark.parametrize(("kind", "variant"), CASES)
def test_an_example_holds_for_both_libraries_and_the_model(kind: str, variant: str) -> None:
    value, schema = load(kind, variant), schema_of(kind)
    assert [error.message for error in jsonschema_rs.Draft202012Validator(schema).iter_errors(value)] == []
    assert [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(value)] == []
    model = MODELS[kind].model_validate(value)
    assert json.loads(model.model_dump_json(by_alias=True, exclude_unset=True)) == value
    assert MODELS[kind].model_validate_json(json.dumps(value)) == model


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_the_full_example_shows_every_field_of_every_object(kind: str) -> None:
    for pointer, value in objects(MODELS[kind].model_validate(load(kind, "full"))):
        absent = set(type(value).model_fields) - value.model_fields_set
        assert not absent, f"{pointer or '/'} lacks {sorted(absent)}"


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_the_full_example_has_no_placeholder(kind: str) -> None:
    for pointer, value in objects(MODELS[kind].model_validate(load(kind, "full"))):
        required = [name for name, field in type(value).model_fields.items() if field.is_required()]
        assert [f"{pointer}/{name}" for name in required if getattr(value, name) is None] == []


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_the_minimal_example_has_the_required_fields_only(kind: str) -> None:
    for pointer, value in objects(MODELS[kind].model_validate(load(kind, "minimal"))):
        required = {name for name, field in type(value).model_fields.items() if field.is_required()}
        assert value.model_fields_set == required, pointer or "/"


@pytest.mark.parametrize(("kind", "variant"), CASES)
def test_examples_are_recognisable_as_examples(kind: str, variant: str) -> None:
    value = load(kind, variant)
    assert value["id"].startswith("example-") or kind in {"Plan", "Gate"}
    text = re.sub(r'"key_id": "sha256:[0-9a-f]{64}"', "", json.dumps(value))  # these follow from the keys
    for part in text.split("sha256:")[1:]:
        assert len(set(part[:64])) == 1, "a digest in an example is one digit repeated"


@pytest.mark.parametrize("slug", ["campaign", "optimization-suite", "task"])
@pytest.mark.parametrize("variant", ["minimal", "full"])
def test_an_example_also_means_something(slug: str, variant: str) -> None:
    assert artifact(FOLDER / f"{slug}.{variant}.json", None).document["problems"] == []
