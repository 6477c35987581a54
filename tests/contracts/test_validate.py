"""Schema errors become problems that say where, what, and what was probably meant."""

import http.server
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import akf
from akf.contracts import schemas
from akf.contracts.documents import load
from akf.contracts.limits import MAX_PROBLEMS
from akf.contracts.loader import parse
from akf.contracts.problems import DefectError, InvalidError, Problem, StorageError, UsageError
from akf.contracts.schema_errors import problems as explain
from akf.contracts.shipped import shipped

SHAPE = {
    "$id": "urn:test:shape:1",
    "$defs": {
        "Integer": {"properties": {"kind": {"const": "int"}, "low": {"type": "integer"}}, "required": ["kind", "low"]},
        "Text": {"properties": {"kind": {"const": "text"}, "max": {"type": "integer"}}, "required": ["kind", "max"]},
        "Size": {"type": "object", "properties": {"rows": {"type": "integer", "minimum": 1}}, "required": ["rows"]},
    },
    "type": "object",
    "properties": {
        "$schema": {"type": "string"},
        "id": {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,62}$"},
        "digest": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$", "description": "Digest of it."},
        "path": {"type": "string", "pattern": "^[^/]+(/[^/]+)*$"},
        "safe": {"type": "string", "pattern": r"^(?!\.\.)[^/\\]+(/(?!\.\.)[^/\\]+)*$"},
        "word": {"type": "string", "pattern": "^[A-Z]+$", "examples": ["ABC"]},
        "when": {"type": "string", "format": "date"},
        "route": {"enum": ["host_cpp", "triton_cuda", 3]},
        "share": {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.25},
        "over": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 9},
        "name": {"type": "string", "minLength": 2, "maxLength": 4},
        "items": {"type": "array", "minItems": 1, "maxItems": 3, "uniqueItems": True},
        "maybe": {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}]},
        "size": {"anyOf": [{"$ref": "#/$defs/Size"}, {"type": "null"}]},
        "either": {"oneOf": [{"$ref": "#/$defs/Integer"}, {"$ref": "#/$defs/Text"}]},
        "colour": {"anyOf": [{"const": "red"}, {"const": "blue"}]},
        "both": {"oneOf": [{"type": "integer"}, {"minimum": 5}]},
        "map": {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}, "minProperties": 1},
        "pair": {"type": "array", "prefixItems": [{"type": "integer"}], "items": False},
        "never": {"not": {"type": "string"}},
        "rows": {"type": "array", "items": {"$ref": "#/$defs/Size"}},
    },
    "unevaluatedProperties": False,
}
COMPILED = jsonschema_rs.Draft202012Validator(SHAPE, validate_formats=True)


def check(text: str) -> list[Problem]:
    document = parse(text.encode(), "f.json")
    return explain(document, COMPILED, SHAPE) if not COMPILED.is_valid(document.value) else []


def only(value: Any) -> Problem:
    (problem,) = check(json.dumps(value))
    return problem


@pytest.mark.parametrize(
    ("value", "code", "pointer", "message", "expected", "found", "hint"),
    [
        (
            {"id": 5},
            "AKF-S024",
            "/id",
            "id is 5, not a string",
            "string",
            "integer",
            None,
        ),
        ({"share": "0.5"}, "AKF-S024", "/share", None, "number", "string", "write the number without quotes"),
        (
            {"items": {}},
            "AKF-S024",
            "/items",
            "items is an object with 0 fields, not an array",
            "array",
            "object",
            None,
        ),
        (
            {"maybe": "x"},
            "AKF-S024",
            "/maybe",
            'maybe is "x", not an integer or null',
            ["integer", "null"],
            "string",
            None,
        ),
        ({"maybe": 1}, "AKF-S027", "/maybe", "maybe is 1, but must be at least 3", "at least 3", 1, None),
        ({"maybe": 1.5}, "AKF-S024", "/maybe", "maybe is 1.5, not an integer or null", None, "number", None),
        ({"size": {}}, "AKF-S022", "/size/rows", 'the field "rows" is missing', "integer", None, None),
        ({"size": {"rows": 0}}, "AKF-S027", "/size/rows", "rows is 0, but must be at least 1", "at least 1", 0, None),
        ({"size": 4}, "AKF-S024", "/size", "size is 4, not an object or null", ["object", "null"], "integer", None),
        ({"id": "A b"}, "AKF-S032", "/id", None, None, "A b", "for example a-b"),
        ({"id": "d\u0435mo"}, "AKF-S033", "/id", None, None, "d\u0435mo", "write it as demo"),
        ({"id": "demo\n"}, "AKF-S032", "/id", r'id "demo\n" holds "\n"', None, r"demo\n", "for example demo"),
        (
            {"digest": "sha256:0"},
            "AKF-S026",
            "/digest",
            'digest is "sha256:0", not sha256: and 64 digits 0-9 a-f',
            None,
            "sha256:0",
            "Digest of it.",
        ),
        ({"digest": "sha256:" + "0" * 64 + "\n"}, "AKF-S026", "/digest", None, None, None, "Digest of it."),
        ({"safe": "../x"}, "AKF-S034", "/safe", None, None, "../x", None),
        ({"word": "abc"}, "AKF-S026", "/word", None, "^[A-Z]+$", "abc", 'For example "ABC"'),
        ({"when": "2026-13-01"}, "AKF-S026", "/when", None, "date", "2026-13-01", None),
        (
            {"route": "hostcpp"},
            "AKF-S025",
            "/route",
            'route is "hostcpp", not one of "host_cpp", "triton_cuda", 3',
            ["host_cpp", "triton_cuda", 3],
            "hostcpp",
            "did you mean host_cpp?",
        ),
        ({"share": 1.25}, "AKF-S027", "/share", None, "at most 1", 1.25, None),
        ({"share": -0.25}, "AKF-S027", "/share", None, "at least 0", -0.25, None),
        ({"share": 0.3}, "AKF-S027", "/share", None, "a multiple of 0.25", 0.3, None),
        ({"over": 0}, "AKF-S027", "/over", None, "more than 0", 0, None),
        ({"over": 9}, "AKF-S027", "/over", None, "less than 9", 9, None),
        ({"name": "x"}, "AKF-S028", "/name", "name has 1, but must have at least 2 characters", None, 1, None),
        ({"name": "x" * 9}, "AKF-S028", "/name", None, "at most 4 characters", 9, None),
        ({"items": []}, "AKF-S028", "/items", "items has 0, but must have at least 1 item", None, 0, None),
        ({"items": [1, 2, 3, 4]}, "AKF-S028", "/items", None, "at most 3 items", 4, None),
        (
            {"items": [{"a": 1}, 2, {"a": 1}]},
            "AKF-S029",
            "/items/2",
            "item 2 repeats item 0 of items",
            None,
            None,
            None,
        ),
        ({"items": [1, 1.0]}, "AKF-S029", "/items", "an item of items is there twice", None, None, None),
        ({"map": {}}, "AKF-S028", "/map", "map has 0, but must have at least 1 field", None, 0, None),
        ({"map": {"A": 1}}, "AKF-S030", "/map/A", 'the field name "A" is not allowed here', None, "A", None),
        ({"pair": [1, 2]}, "AKF-S030", "/pair/1", None, None, 2, None),
        ({"never": "x"}, "AKF-S030", "/never", None, None, "x", None),
        ({"both": 7}, "AKF-S031", "/both", None, None, None, None),
        (
            {"either": {"kind": "text"}},
            "AKF-S022",
            "/either/max",
            'the field "max" is missing',
            "integer",
            None,
            None,
        ),
        ({"either": {"kind": "text", "low": 1}}, "AKF-S022", "/either/max", None, "integer", None, None),
        (
            {"either": {"kind": "txt", "max": 1}},
            "AKF-S025",
            "/either/kind",
            'kind is "txt", not one of "int", "text"',
            ["int", "text"],
            "txt",
            "did you mean text?",
        ),
        ({"colour": "blu"}, "AKF-S025", "/colour", None, ["red", "blue"], "blu", "did you mean blue?"),
        (
            {"rows": [{"rows": 1}, {"rows": "1"}]},
            "AKF-S024",
            "/rows/1/rows",
            None,
            "integer",
            "string",
            "write the number without quotes",
        ),
        ({"rows": [{"rows": 1}, 2]}, "AKF-S024", "/rows/1", "item 1 of rows is 2, not an object", None, None, None),
        ({"idd": "x"}, "AKF-S023", "/idd", 'the field "idd" is not known here', None, "idd", "did you mean id?"),
        ({"a/b~": 1}, "AKF-S023", "/a~1b~0", None, None, "a/b~", None),
        ({"\x1b[31m": 1}, "AKF-S023", "/\x1b[31m", r'the field "\x1b[31m" is not known here', None, r"\x1b[31m", None),
    ],
)
def test_one_fault_one_problem(
    value: Any, code: str, pointer: str, message: str | None, expected: Any, found: Any, hint: str | None
) -> None:
    problem = only(value)
    assert (problem.code, problem.pointer) == (code, pointer)
    assert message is None or problem.message == message
    assert expected is None or problem.expected == expected
    assert found is None or problem.found == found
    assert problem.hint == hint or (hint is None and code in {"AKF-S022", "AKF-S030", "AKF-S034"})
    assert json.dumps(problem.to_json())


def test_problems_stand_where_the_fault_is() -> None:
    text = '{\n "id": 5,\n "bad": 1,\n "worse": {"x": [1, 2]},\n "size": {\n  }\n}'
    assert [(p.code, p.pointer, p.line, p.column) for p in check(text)] == [
        ("AKF-S023", "/bad", 3, 2),  # at the key
        ("AKF-S024", "/id", 2, 8),  # at the value
        ("AKF-S022", "/size/rows", 5, 10),  # at the object that lacks it
        ("AKF-S023", "/worse", 4, 2),
    ]


def test_an_optional_schema_reference_is_allowed() -> None:
    assert check('{"$schema": "../schemas/shape.json"}') == []


def test_a_wrong_type_is_said_once() -> None:
    schema = {"properties": {"v": {"const": 1, "type": "integer"}}}
    document = parse(b'{"v": "1"}', "f.json")
    compiled = jsonschema_rs.Draft202012Validator(schema)
    assert [p.code for p in explain(document, compiled, schema)] == ["AKF-S024"]


def test_the_list_is_cut() -> None:
    listed = check("{" + ",".join(f'"x{i}": 1' for i in range(5_000)) + "}")
    assert len(listed) == MAX_PROBLEMS + 1
    assert [p.code for p in listed].count("AKF-S013") == 1


def test_long_values_are_quoted_in_part() -> None:
    for value in ({"id": "X" * 100_000}, {"route": "y" * 100_000}, {"k" * 100_000: 1}, {"word": "a" * 100_000}):
        problem = only(value)
        assert len(problem.message) < 400
        assert len(json.dumps(problem.found)) < 400


def test_every_row_of_a_large_document_is_looked_at() -> None:
    rows: list[Any] = [{"rows": at + 1, "note": "x" * 20} for at in range(9_000)]
    assert check(json.dumps({"rows": rows})) == []
    rows[8_765] = {"rows": 0}
    rows[4_321] = 7
    listed = check(json.dumps({"rows": rows}, indent=0))
    assert [(p.code, p.pointer, p.message) for p in listed if p.code != "AKF-S013"] == [
        ("AKF-S024", "/rows/4321", "item 4321 of rows is 7, not an object"),
        ("AKF-S027", "/rows/8765/rows", "rows is 0, but must be at least 1"),
    ]
    assert [p.line for p in listed] == [1, 3 + 4 * 4_321, 3 + 4 * 8_764 + 2]


def test_faults_at_the_top_of_a_large_document_come_first() -> None:
    listed = check(json.dumps({"rows": [{"rows": 1}] * 50_000 + [3], "id": 5, "idd": 6}))
    assert [(p.code, p.pointer) for p in listed] == [
        ("AKF-S013", ""),
        ("AKF-S024", "/id"),
        ("AKF-S023", "/idd"),
    ]


def test_cutting_a_large_document_makes_no_faults() -> None:
    shape = {"properties": {"v": {"type": "array", "minItems": 2_000, "uniqueItems": True, "maxItems": 30_000}}}
    compiled = jsonschema_rs.Draft202012Validator(shape)
    for items in ([*range(20_000), 5], list(range(40_000)), ["x" * 90_000, 1]):
        document = parse(json.dumps({"v": items}).encode(), "f.json")
        (first, *_) = [p for p in explain(document, compiled, shape) if p.code != "AKF-S013"]
        assert (first.code, first.pointer) in {("AKF-S029", "/v/20000"), ("AKF-S028", "/v")}
        assert first.found in {None, 5, 40_000, 2}


def nested(width: int, depth: int) -> Any:
    return [nested(width, depth - 1) for _ in range(width)] if depth else 1


@pytest.mark.parametrize(
    "content",
    [
        "[" + "1," * 500_000 + "1]",
        "[" + "{}," * 250_000 + "1]",
        "{" + ",".join(f'"x{at}":[]' for at in range(60_000)) + "}",
        json.dumps(nested(4, 9)),
        json.dumps("x" * 4_000_000),
    ],
    ids=["items", "rows", "fields", "tree", "text"],
)
def test_memory_is_bounded_by_the_document(content: str) -> None:
    """Twenty fields are missing at the top; each error of the library would hold a copy of the whole."""
    code = """
import resource, sys
from akf.contracts.loader import parse
from akf.contracts.schemas import validate
source = sys.stdin.buffer.read()
document = parse(source, "f.json")
validate(parse(b'{"kind": "Campaign", "schema_version": 1}', "f.json"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
problems = validate(document)
print(len(problems), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 // len(source))
"""
    for field in ("x", "capabilities"):
        text = f'{{"kind": "Campaign", "schema_version": 1, "{field}": {content}}}'
        run = subprocess.run([sys.executable, "-c", code], input=text.encode(), capture_output=True, check=True)
        listed, times_its_size = map(int, run.stdout.split())
        assert listed > 15
        assert times_its_size < 40


def test_same_input_same_problems() -> None:
    text = json.dumps({"b": 1, "a": 2, "id": 7, "size": 4, "items": [1, 1]})
    assert [p.to_json() for p in check(text)] == [p.to_json() for p in check(text)]
    assert check(text) == sorted(check(text), key=Problem.sort_key)


# The schemas that ship.


def test_every_kind_has_a_schema_that_compiles() -> None:
    assert "Campaign" in schemas.kinds()
    assert "OptimizationSuite" in schemas.kinds()
    for kind in schemas.kinds():
        shape = schemas.schema(kind)
        assert shape["properties"]["kind"]["const"] == kind
        assert shape["$id"] == f"urn:akf:schema:{schemas.kinds()[kind].name.removesuffix('.schema.json')}:1"
        assert schemas.versions(kind) == [1]
        assert schemas.validator(kind) is schemas.validator(kind)


def validate(value: dict[str, Any], kind: str | None = None) -> list[Problem]:
    return schemas.validate(parse(json.dumps(value).encode(), "f.json"), kind)


def first(value: dict[str, Any], kind: str | None = None) -> Problem:
    (problem,) = validate(value, kind)
    return problem


def test_kind_is_missing() -> None:
    problem = first({"id": "demo"})
    assert (problem.code, problem.pointer, problem.line) == ("AKF-S020", "/kind", 1)
    assert "Campaign" in problem.expected


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("Campain", "did you mean Campaign?"),
        ("campaign", "did you mean Campaign?"),
        ("Zebra", None),
        (5, None),
        ([], None),
    ],
)
def test_kind_is_unknown(kind: Any, hint: str | None) -> None:
    problem = first({"kind": kind, "schema_version": 1})
    assert (problem.code, problem.pointer, problem.hint) == ("AKF-S020", "/kind", hint)


def test_kind_is_another_one() -> None:
    problem = first({"kind": "Campaign", "schema_version": 1}, "Workload")
    assert (problem.code, problem.message) == ("AKF-S020", "this is a Campaign, but a Workload is expected")


def test_a_file_that_shares_no_field_with_the_kind_is_told_so_once() -> None:
    problem = first({"architectures": ["Qwen3ForCausalLM"], "hidden_size": 4096}, "Workload")
    assert (problem.code, problem.message) == ("AKF-S020", "this is no Workload: it has none of its fields")
    assert {each.code for each in validate({"id": "demo"}, "Workload")} == {"AKF-S022"}


def test_asking_for_an_unknown_kind_is_a_usage_error() -> None:
    with pytest.raises(UsageError) as caught:
        validate({"kind": "Campaign"}, "Campain")
    assert caught.value.problems[0].hint == "did you mean Campaign?"


@pytest.mark.parametrize("version", [0, 2, 99, -1])
def test_version_is_unknown(version: int) -> None:
    problem = first({"kind": "Campaign", "schema_version": version})
    assert (problem.code, problem.pointer) == ("AKF-S021", "/schema_version")
    assert (problem.expected, problem.found) == ([1], version)


@pytest.mark.parametrize("version", ["1", None, True, 1.5])
def test_version_of_the_wrong_type_is_one_problem_among_the_others(version: Any) -> None:
    found = validate({"kind": "Campaign", "schema_version": version})
    assert [p.code for p in found if p.pointer == "/schema_version"] in (["AKF-S024"], ["AKF-S025"])
    assert len(found) > 5


def test_without_its_kind_a_document_is_judged_by_the_one_asked_for() -> None:
    found = {(p.code, p.pointer) for p in validate({"schema_version": 1}, "Revocation")}
    assert ("AKF-S022", "/kind") in found
    assert ("AKF-S022", "/id") in found


def test_load(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"kind": "Campaign", "schema_version": 7}')
    with pytest.raises(InvalidError) as caught:
        load(tmp_path / "a.json")
    assert [p.code for p in caught.value.problems] == ["AKF-S021"]
    assert caught.value.problems[0].file == str(tmp_path / "a.json")
    with pytest.raises(InvalidError) as caught:
        load(tmp_path / "a.json", "Workload", file="workload.json")
    assert caught.value.problems[0].file == "workload.json"
    with pytest.raises(InvalidError) as caught:
        load(tmp_path / "absent.json")
    assert [p.code for p in caught.value.problems] == ["AKF-F001"]


@pytest.fixture
def served() -> Iterator[tuple[str, list[str]]]:
    """A server that would answer with a schema, and what it was asked for."""
    asked: list[str] = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"true")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/schema.json", asked
        server.shutdown()
        thread.join()


def test_nothing_is_fetched_and_nothing_unknown_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: tuple[str, list[str]]
) -> None:
    uri, asked = served
    (tmp_path / "true.json").write_text("true")
    bodies = {
        "remote": json.dumps({"$ref": uri}),
        "file": json.dumps({"$ref": (tmp_path / "true.json").as_uri()}),
        "relative": '{"$ref": "true.json"}',
        "format": '{"format": "no-such-format"}',
        "pattern": '{"pattern": "("}',
        "type": '{"type": "text"}',
        "broken": "{",
        "array": "[]",
    }
    for name, body in bodies.items():
        (tmp_path / f"{name}.schema.json").write_text(body)
    cached = (schemas.kinds, schemas.schema, schemas.validator)
    monkeypatch.setattr(schemas, "shipped", lambda _: tmp_path)
    try:
        for function in cached:
            function.cache_clear()
        for name in bodies:
            with pytest.raises(DefectError) as caught:
                schemas.validator(name.capitalize())
            assert caught.value.problems[0].code == "AKF-X001"
    finally:
        for function in cached:
            function.cache_clear()
    assert asked == []


def test_a_copy_without_its_schemas_says_so(tmp_path: Path) -> None:
    package = Path(akf.__file__).parent
    shutil.copytree(package / "contracts", tmp_path / "lib" / "akf" / "contracts")
    shutil.copy(package / "__init__.py", tmp_path / "lib" / "akf" / "__init__.py")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path / "lib")!r})
from akf.contracts.schemas import kinds
from akf.contracts.problems import StorageError
try:
    kinds()
except StorageError as error:
    print(error.exit_code, error.problems[0].code)
else:
    print(len(kinds()))
"""
    run = [sys.executable, "-c", code]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "7 AKF-F008\n"
    shutil.copytree(shipped("schemas"), tmp_path / "lib" / "akf" / "_shipped" / "schemas")
    assert int(subprocess.run(run, capture_output=True, text=True, check=True).stdout) == len(schemas.kinds())


def test_shipped_folders() -> None:
    assert (shipped("schemas") / "campaign.schema.json").is_file()
    with pytest.raises(StorageError) as caught:
        shipped("no-such-folder")
    assert caught.value.problems[0].code == "AKF-F008"
