"""`--human`, `--quiet`, `--format`: the same answer in other clothes, and no file's text paints a terminal in any."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest
from tests.support.cli import Answer, akf, inside
from tests.support.drafts import Draft

from akf.cli import formats
from akf.contracts import codes
from akf.contracts.text import printable

pytestmark = pytest.mark.usefixtures("state")

FORMATS = ("json", "human", "github", "sarif")
# What a terminal acts on or hides: ESC, BEL, CSI as one character, DEL, overrides, zero width, a line separator.
PAINT = "\x1b[2J\x1b]0;title\x07\x9b31m\x7f\u202e\u2066\u200b\ufeff\u2028\x85\u00ad\U000e0001"
NAME = "a\x1b[31m\x9b\u202eb, c:d%25\n::error::e.json"

# The parts of SARIF 2.1.0 that a consumer relies on.
SARIF: dict[str, Any] = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "version", "rules"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {"type": "object", "required": ["id"]},
                                    }
                                },
                            }
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["ruleId", "level", "message"],
                            "properties": {
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": {"type": "object", "required": ["text"]},
                                "locations": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["physicalLocation"],
                                        "properties": {
                                            "physicalLocation": {
                                                "type": "object",
                                                "required": ["artifactLocation"],
                                                "properties": {
                                                    "artifactLocation": {
                                                        "type": "object",
                                                        "required": ["uri"],
                                                        "properties": {
                                                            "uri": {
                                                                "type": "string",
                                                                "pattern": "^[A-Za-z0-9._~!$&'()*+,;=:@/%-]+$",
                                                            }
                                                        },
                                                    },
                                                    "region": {
                                                        "type": "object",
                                                        "required": ["startLine", "startColumn"],
                                                        "properties": {
                                                            "startLine": {"type": "integer", "minimum": 1},
                                                            "startColumn": {"type": "integer", "minimum": 1},
                                                        },
                                                    },
                                                },
                                            }
                                        },
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


@pytest.fixture
def invalid(tmp_path: Path) -> Path:
    """A Campaign with problems of every kind: unknown fields, wrong types, a near miss."""
    draft = Draft(tmp_path / "suite")

    def break_it(value: dict[str, Any]) -> None:
        value |= {"arm": 7, "lane": "matched_polcy", "titel": "x"}
        del value["acceptance"]

    draft.check(break_it)
    return draft.campaign


def sarif(answer: Answer) -> list[dict[str, Any]]:
    document = json.loads(answer.text)
    jsonschema.Draft202012Validator(SARIF).validate(document)
    (run,) = document["runs"]
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {each["ruleId"] for each in run["results"]}
    found: list[dict[str, Any]] = run["results"]
    return found


def test_sarif_holds_the_same_problems(invalid: Path) -> None:
    wanted = akf("validate-campaign", invalid).refused(1).problems
    results = sarif(akf("validate-campaign", invalid, "--format", "sarif"))
    assert len(wanted) > 3
    assert [each["ruleId"] for each in results] == [problem["code"] for problem in wanted]
    for result, problem in zip(results, wanted, strict=True):
        assert problem["message"] in result["message"]["text"]
        assert (problem["hint"] or "") in result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        assert unquote(place["artifactLocation"]["uri"]) == problem["file"]
        assert place["region"] == {"startLine": problem["line"], "startColumn": problem["column"]}


def test_sarif_without_problems(tmp_path: Path) -> None:
    assert sarif(akf("validate-suite", Draft(tmp_path / "suite").suite, "--format", "sarif")) == []


def test_github_holds_the_same_problems(invalid: Path) -> None:
    wanted = akf("validate-campaign", invalid).problems
    answer = akf("validate-campaign", invalid, "--format", "github")
    lines = [line for line in answer.text.splitlines() if line.startswith("::error ")]
    assert answer.status == 1
    assert len(lines) == len(wanted)
    for line, problem in zip(lines, wanted, strict=True):
        assert f"line={problem['line']},col={problem['column']},title={problem['code']}::" in line
        assert problem["message"].replace("%", "%25") in line


def test_github_shows_blockers_as_warnings(tmp_path: Path) -> None:
    suite = Draft(tmp_path / "suite").suite
    blockers = akf("validate-suite", suite).document["blockers"]
    lines = akf("validate-suite", suite, "--format", "github").text.splitlines()
    assert len(lines) == len(blockers)
    assert all(line.startswith("::warning file=") for line in lines)


def test_human_holds_the_same_problems(invalid: Path) -> None:
    wanted = akf("validate-campaign", invalid).problems
    answer = akf("validate-campaign", invalid, "--human")
    assert answer.status == 1
    for problem in wanted:
        assert f"{problem['line']}:{problem['column']}: {problem['code']} {problem['message']}" in answer.text


def test_human_shows_a_suite_as_a_table(tmp_path: Path) -> None:
    text = akf("validate-suite", Draft(tmp_path / "suite").suite, "--human").text
    assert "valid: yes" in text
    assert "ready: no" in text
    header = next(line for line in text.splitlines() if line.split()[:2] == ["id", "path"])
    rows = [line for line in text.splitlines() if line.startswith("  ") and "arms/" in line and line[2] != "/"]
    assert {row.split()[0] for row in rows} >= {"xllm", "vllm_ascend", "sglang_ascend"}
    assert header.index("path") == next(row for row in rows if row.split()[0] == "xllm").index("arms/")


@pytest.mark.parametrize("code", [*codes.all_codes(), *codes.verdicts()])
def test_human_cuts_no_text(code: str) -> None:
    document = inside("explain", code).document
    text = inside("explain", code, "--human").text
    for line in text.splitlines():
        assert len(line) <= 100 or max(map(len, line.split())) > 80, line
    joined = " ".join(text.split())
    for name, value in document.items():
        assert " ".join(printable(f"{name.replace('_', ' ')}: {value}").split()) in joined, name


def test_human_says_problems_before_blockers(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "suite")
    draft.check(lambda value: value.update(lane="matched_polcy"))
    lines = akf("validate-suite", draft.suite, "--human").text.splitlines()
    problem = next(at for at, line in enumerate(lines) if ": AKF-" in line)
    assert problem < lines.index("blockers:") < lines.index("arms:")


def test_human_shows_the_lists_of_a_decision_as_tables(whole_run: Path) -> None:
    words = ["judge", whole_run, whole_run / "attempts" / "fused" / "gates", "--dry-run"]
    decision = inside(*words).accepted().document["decision"]
    lines = inside(*words, "--human").accepted().text.splitlines()
    for name in ("reasons", "checks"):
        start = lines.index(f"  {name}:")
        rows = lines[start + 2 : start + 2 + len(decision[name])]
        columns = dict.fromkeys(key for row in decision[name] for key in row)
        assert lines[start + 1].split() == " ".join(columns).replace("_", " ").split(), name
        for row, wanted in zip(rows, decision[name], strict=True):
            assert row.startswith("    ")
            found = [text for text in wanted.values() if isinstance(text, str)]
            assert all(" ".join(text.split()) in " ".join(row.split()) for text in found), row
    assert not [line for line in lines if line.strip().startswith("parents")]
    assert decision["parents"]


def test_human_draws_whatever_a_document_holds() -> None:
    deep: dict[str, Any] = {"a_b": {"rows": [{"x": "w" * 200, "y": {"z": 1}}], "none": [], "words": ["u", "v"]}}
    text = formats.render({**deep, "long": "x y " * 60, "blank": " " * 300, "mixed": [1, {"q": None}]}, "human")
    assert "w" * 200 in text
    assert "    x" in text
    assert "  words: u, v\n" in text
    assert "  none: -\n" in text
    assert '{"z":1}' in text
    assert '  {"q":null}' in text
    assert " ".join(["x y"] * 60) in " ".join(text.split())
    assert "blank:" in text


@pytest.mark.parametrize("words", [["status", "nowhere"], ["judge"], ["nosuch"], ["explain", "AKF-S001"], ["schema"]])
def test_quiet_says_nothing_and_keeps_the_status(words: list[str]) -> None:
    loud, quiet = akf(*words), akf(*words, "--quiet")
    assert (quiet.status, quiet.out) == (loud.status, b"")


def places(words: list[str], options: list[str]) -> list[list[str]]:
    return [[*words[:at], *options, *words[at:]] for at in range(len(words) + 1)]


@pytest.mark.parametrize("options", [["--format", "sarif"], ["--format=sarif"], ["--human"], ["--quiet"]])
def test_they_may_stand_anywhere(invalid: Path, options: list[str]) -> None:
    words = ["validate", str(invalid), "--kind", "Campaign"]
    answers = {inside(*each)[:2] for each in places(words, options) if each[-1:] != ["--kind"]}
    found = {answer for answer in answers if answer[0] == 1}
    assert len(found) == 1, answers


def test_after_two_dashes_they_are_arguments() -> None:
    assert inside("explain", "--", "--human").document["problems"][0]["found"] == "--human"


@pytest.mark.parametrize("options", [["--format", "sarif"], ["--format=github"], ["--human"]])
@pytest.mark.parametrize("words", [[], ["nosuch"], ["judge"], ["validate"], ["keys"], ["explain", "a", "b"]])
def test_a_usage_error_is_shown_in_the_wanted_format(words: list[str], options: list[str]) -> None:
    answer = inside(*options, *words)
    assert answer.status == 2
    assert "AKF-U001" in answer.text
    if "--human" not in options:
        assert answer.text.startswith(("{", "::error"))


@pytest.mark.parametrize("words", [["--format"], ["--format", "xml"], ["--format="], ["--format=JSON"]])
def test_an_unknown_format_is_a_usage_error(words: list[str]) -> None:
    assert inside("schema", *words).refused(2).codes == {"AKF-U001"}


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["--format", "json", "schema"], "schema"),
        (["--format=json", "status", "nowhere"], "status"),
        (["keys", "init", "/dev/null/x"], "keys init"),
        (["ingest", "profile", "nowhere", "--format", "json"], "ingest profile"),
        (["ingest", "profiles"], "ingest"),
        (["ingest"], "ingest"),
        (["status", "ingest"], "status"),
        (["", "status"], ""),
        ([], "akf"),
        (["--format", "json"], "akf"),
    ],
)
def test_the_document_names_the_command(words: list[str], name: str) -> None:
    assert inside(*words).document["command"] == name


@pytest.mark.parametrize("form", FORMATS)
class TestPaint:
    def texts(self, answer: Answer) -> str:
        for text in (answer.out.decode(), answer.err):
            assert not [char for char in PAINT if char in text and char not in "[2J]0;title31m"]
        answer.quiet_on_stderr()
        return answer.text

    def test_in_a_file_s_text(self, tmp_path: Path, form: str) -> None:
        draft = Draft(tmp_path / "suite")

        def paint(value: dict[str, Any]) -> None:
            value |= {"arm": PAINT, PAINT: PAINT}
            value["environment"]["soc"]["family"] = PAINT
            value["acceptance"]["gains"][0]["id"] = PAINT

        draft.check(paint)
        self.texts(akf("validate-campaign", draft.campaign, "--format", form))
        for words in (["validate-campaign"], ["validate"], ["init-run", "--runs-root", tmp_path / "runs"]):
            answer = inside(words[0], draft.campaign, *words[1:], "--format", form)
            assert answer.status == 1
            self.texts(answer)

    def test_in_a_file_s_name(self, tmp_path: Path, form: str) -> None:
        folder = tmp_path / NAME.removesuffix(".json")
        Draft(folder / "suite")
        for words in (
            ["validate", folder / NAME],
            ["validate-suite", folder / "suite" / "suite.json"],
            ["status", folder],
            ["judge", folder, folder],
            ["open-task", folder, folder / NAME],
            ["explain", NAME],
            [NAME],
            ["fill", folder / "suite" / "arms" / "xllm.json", "--set", f"/{NAME}=1"],
        ):
            text = self.texts(inside(*words, "--format", form))
            if form == "github":
                assert all(line.startswith(("::error", "::warning")) for line in text.splitlines())

    def test_in_names_that_are_no_text(self, tmp_path: Path, form: str) -> None:
        folder = tmp_path / os.fsdecode(b"a\xff\x9b\xc2\x9b\xed\xa0\x80")
        draft = Draft(folder / "suite")
        self.texts(akf("validate", folder / "nothing", "--format", form))
        for words, status in (
            (["validate", folder / "nothing"], 1),
            (["validate-suite", draft.suite], 0),
            (["status", folder], 1),
            (["keys", "init", folder / "keys"], 0),
            (["fill", draft.campaign, "--set", f"/trust/keys={folder}"], 2),
            (["init-run", draft.campaign, "--run-id", os.fsdecode(b"\xff")], 2),
        ):
            answer = inside(*words, "--format", form)
            assert answer.status == status, (words, answer)
            self.texts(answer)

    def test_in_a_submission(self, open_run: Path, tmp_path: Path, form: str) -> None:
        folder = tmp_path / "agent"
        (folder / "src").mkdir(parents=True)
        (folder / "src" / NAME.replace("/", "")).touch()
        (folder / "src" / os.fsdecode(b"\xff\x1b[2J")).touch()
        (folder / "candidate.json").write_text(json.dumps({PAINT: PAINT}))
        answer = inside("submit", open_run, folder, "--format", form)
        assert answer.status == 1
        self.texts(answer)
        os.rename(folder, open_run / "inbox" / os.fsdecode(b"\x1b[31m\xff"))  # noqa: PTH104 - bytes
        for command in ("intake", "status"):
            self.texts(inside(command, open_run, "--format", form))

    def test_in_a_run(self, whole_run: Path, form: str) -> None:
        name = whole_run / "attempts" / "fused" / "gates" / NAME.replace("/", "")
        name.touch(0o444)
        for words in (["audit", whole_run], ["judge", whole_run, name.parent, "--dry-run"]):
            answer = inside(*words, "--format", form)
            assert answer.status == 3
            self.texts(answer)


class TestStandardOutput:
    def run(self, redirect: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", f'"$@" {redirect}', "sh", sys.executable, "-m", "akf", *words],
            capture_output=True,
            text=True,
            check=False,
        )

    def test_closed(self) -> None:
        done = self.run(">&-", "schema")
        assert done.returncode == 7
        assert "could not be printed" in done.stderr
        assert "Traceback" not in done.stderr

    def test_closed_and_quiet(self) -> None:
        assert self.run(">&- 2>&-", "schema", "--quiet").returncode == 0

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_full(self) -> None:
        done = self.run(">/dev/full", "schema")
        assert (done.returncode, done.stdout) == (7, "")
        assert "No space left on device" in done.stderr
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr

    def test_a_reader_that_leaves(self) -> None:
        done = self.run("| head -c 10", "schema", "Campaign")
        assert len(done.stdout) == 10
        assert done.stderr == ""

    def test_help_and_version_are_for_people(self) -> None:
        for words in (["--help"], ["--version"], ["judge", "--help"]):
            answer = akf(*words)
            assert answer.status == 0
            assert answer.text


def test_human_draws_a_benchmark_in_a_hundred_columns() -> None:
    """Rows that hold tables stand one after another; a table inside is made narrower, and loses nothing."""
    long = ("printed_difference_in_ns", "another_long_name_of_a_column", "and_one_more_of_them", "the_last_one_is_long")
    all_of_them = "completed by all of the clients that were asked"
    metrics = [
        {"concept": "ttft", "population": all_of_them, "value_ns": ns, **dict.fromkeys(long, ns)} for ns in (50, 90)
    ]
    wide = {f"figure_number_{number}": number for number in range(12)}
    rows = [{"id": f"run-{number}", "remarks": ["a sentence"], "metrics": metrics} for number in (1, 2)]
    text = formats.render({"results": rows, "figures": [{"id": "one", **wide}]}, "human")
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert [line for line in lines if line.startswith("  run-")] == ["  run-1", "  run-2"]
    assert lines.count("    remarks: a sentence") == 2
    assert lines.count(f"      every population: {all_of_them}") == 2
    assert lines.count("      every concept: ttft") == 2
    found = [line.split() for line in lines if line.split()[:1] in (["50"], ["90"])]
    assert found == [[str(ns)] * 5 for ns in (50, 90)] * 2
    assert "    figure number 11: 11" in lines
