"""Three readers of one contract agree: the run-time validator, `jsonschema`, and the typed models.

Examples are broken in every way that the contract knows (a field dropped, added, of another type, out of range,
of another kind or version); all three must accept or refuse together, whatever the verdict.
"""

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from akf.contracts.canonical import jcs
from akf.contracts.generate import file_name, schema_of
from akf.contracts.models import MODELS

FOLDER = Path(__file__).parents[2] / "docs" / "examples" / "artifacts"
KINDS = sorted(MODELS)

# Values that are right for one field and wrong for most others, and the near misses of every rule.
STRANGERS: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 0.5, 1.5, -0.5, 2**53 - 1, 2**53, -(2**53), 1e300, "", " ", "x", "X", "T", "eps",
    "a" * 48, "a" * 49, "a" * 63, "a" * 64, "é", "a\n", "A_B", "KEY_COMPROMISED", "userns", "promotable", "float32",
    "sha256:" + "0" * 64, "sha256:" + "0" * 63, "SHA256:" + "0" * 64, "sha256:" + "A" * 64, "0" * 64, "0" * 64 + "\n",
    "sha256:" + "0" * 64 + "\n", "inbox", "a/b.c", "../x", "a/../b", "a/./b", "/a", "a//b", "a/", ".", "..", "...",
    ".a", "..a", "a\\b", "c:x", "a\0b", "a/b\n", "x" * 512, "x" * 513, "t" * 4096, "t" * 4097, "A" * 43 + "=",
    [], [1], ["x"], [None], [1, 2, 3], {}, {"x": 1}, {"T": 1}, {"T": 0}, {"": 1}, {"é": 1}, {"a b": 1}, {"T": [1, 16]},
)  # fmt: skip


@cache
def examples(kind: str) -> tuple[dict[str, Any], ...]:
    slug = file_name(kind).removesuffix(".schema.json")
    return tuple(json.loads((FOLDER / f"{slug}.{variant}.json").read_bytes()) for variant in ("minimal", "full"))


@cache
def judges(kind: str) -> tuple[jsonschema_rs.Draft202012Validator, Any]:
    schema = schema_of(kind)
    return jsonschema_rs.Draft202012Validator(schema), jsonschema.Draft202012Validator(_python_anchors(schema))


def _python_anchors(node: Any) -> Any:
    """Python's `$` also matches before a final newline, which ECMA-262 (and so JSON Schema) does not mean."""
    if isinstance(node, list):
        return [_python_anchors(item) for item in node]
    if not isinstance(node, dict):
        return node
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key == "pattern" and isinstance(value, str):
            out[key] = _end(value)
        elif key == "patternProperties":
            out[key] = {_end(name): _python_anchors(child) for name, child in value.items()}
        else:
            out[key] = value if key in {"examples", "enum", "const"} else _python_anchors(value)
    return out


def _end(pattern: str) -> str:
    assert pattern.endswith("$"), pattern
    return pattern.removesuffix("$") + r"\Z"


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value inside, the root first."""
    yield path
    if isinstance(value, dict):
        for key, child in value.items():
            yield from places(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from places(child, (*path, index))


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def with_value(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """A copy of `value` with `new` at `path`."""
    if not path:
        return new
    out = copy.deepcopy(value)
    at(out, path[:-1])[path[-1]] = new
    return out


def verdicts(kind: str, value: Any) -> tuple[bool, bool, bool]:
    fast, slow = judges(kind)
    try:
        MODELS[kind].model_validate(value)
    except ValidationError:
        modelled = False
    else:
        modelled = True
    return fast.is_valid(value), slow.is_valid(value), modelled


def agree(kind: str, value: Any) -> bool:
    found = verdicts(kind, value)
    assert len(set(found)) == 1, f"jsonschema-rs, jsonschema, model: {found} on {json.dumps(value)[:2000]}"
    return found[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_dropped_field_is_refused_by_all_exactly_when_it_is_required(kind: str) -> None:
    minimal, full = examples(kind)
    for example in (minimal, full):
        for path in list(places(example))[1:]:
            if isinstance(path[-1], str):
                broken = copy.deepcopy(example)
                del at(broken, path[:-1])[path[-1]]
                agree(kind, broken)
    for name in minimal:
        broken = dict(minimal)
        del broken[name]
        assert not agree(kind, broken), name


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_field_is_refused_by_all_in_every_object(kind: str) -> None:
    for example in examples(kind):
        for path in places(example):
            target = at(example, path)
            if isinstance(target, dict) and path[-1:] not in {("symbols",), ("attributes",), ("domain",)}:
                for name in ("extra", "schema_uri", "x-note", "Kind"):
                    assert not agree(kind, with_value(example, path, {**target, name: "x"})), (path, name)


@pytest.mark.parametrize("kind", KINDS)
def test_another_kind_or_version_is_refused_by_all(kind: str) -> None:
    for example in examples(kind):
        for other in KINDS:
            assert agree(kind, {**example, "kind": other}) is (other == kind)
        for version in (0, 2, -1, "1", True, None, [1], 2**53):
            assert not agree(kind, {**example, "schema_version": version})


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_of_another_type_gets_one_verdict(kind: str) -> None:
    strangers: tuple[Any, ...] = (None, True, -1, 0.5, "x", [], {})
    minimal, _ = examples(kind)
    for path in places(minimal):
        for new in strangers:
            agree(kind, with_value(minimal, path, new))


@given(data=st.data())
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_one_or_two_changes_get_one_verdict(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    value: Any = data.draw(st.sampled_from(examples(kind)))
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(places(value))))
        target = at(value, path)
        how = data.draw(st.sampled_from(("replace", "drop", "double", "add")))
        if how == "drop" and path:
            value = copy.deepcopy(value)
            del at(value, path[:-1])[path[-1]]
        elif how == "double" and isinstance(target, list):
            value = with_value(value, path, [*target, *target])
        elif how == "add" and isinstance(target, dict):
            name = data.draw(st.sampled_from(("extra", "T", "x" * 32, "x" * 33, "1", "a\n", "$schema", "kind")))
            value = with_value(value, path, {**target, name: data.draw(st.sampled_from(STRANGERS))})
        else:
            value = with_value(value, path, data.draw(st.sampled_from(STRANGERS)))
    agree(kind, value)


@pytest.mark.parametrize("number", [1.0, 16.0, -0.0, 1e15])
def test_a_whole_number_written_with_a_point_is_the_same_number_once_canonical(number: float) -> None:
    """To JSON Schema `1.0` is an integer, to a strict model it is not; the canonical form writes it `1`."""
    for kind, name in (("Triage", "board_s"), ("LaneResult", "legs"), ("Adapter", "schema_version")):
        agree(kind, json.loads(jcs({**examples(kind)[1], name: number})))


@given(text=st.text(alphabet=st.sampled_from("a.-_/\\:\0\n\x7fé~A0$ "), max_size=6))
@settings(max_examples=300, deadline=None)
def test_any_path_and_any_id_get_one_verdict(text: str) -> None:
    adapter = examples("Adapter")[1]
    for field in ("id", "sources"):
        agree("Adapter", {**adapter, field: [text] if field == "sources" else text})


@pytest.mark.parametrize(
    "path", ["../x", "a/../b", "/a", "a//b", "a/", ".", "..", "a/.", "c:x", "a\\b", "a\0b", "a\n", ""]
)
def test_a_path_that_could_leave_its_folder_is_refused(path: str) -> None:
    assert not agree("Adapter", {**examples("Adapter")[1], "sources": [path]})


@pytest.mark.parametrize("path", ["a", "a/b.c", ".a", "..a", "...", "a..b", "src/rms_norm.cpp", "é/x y"])
def test_an_ordinary_path_is_accepted(path: str) -> None:
    assert agree("Adapter", {**examples("Adapter")[1], "sources": [path]})
