"""`explain`, `schema`, `--help`: the contracts, looked up; and the thin start, which answers as the whole one does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import jsonschema
import pytest
from tests.support.cli import akf, inside
from tests.support.drafts import Draft
from tests.support.runs import tree

from akf.cli import main as entry
from akf.cli import start
from akf.cli.result import Settings
from akf.contracts import codes
from akf.contracts.models.decision import Verdict
from akf.contracts.schemas import kinds

pytestmark = pytest.mark.usefixtures("state")

SOURCE = Path(entry.__file__).parents[1]
LITERAL = re.compile(r"\"(AKF-[A-Z][0-9]{3})\"")


@pytest.mark.parametrize("code", codes.all_codes())
def test_explain_knows_every_code(code: str) -> None:
    document = inside("explain", code).accepted().document
    wanted = codes.REASON_FIELDS if not code.startswith("AKF-") else codes.PROBLEM_FIELDS
    assert document["code"] == code
    assert set(wanted) <= set(document)
    assert all(str(document[name]).strip() for name in ("title", "rule", "why"))
    assert code.startswith("AKF-") is ("exit" in document)


def test_explain_knows_every_code_that_a_source_can_emit() -> None:
    emitted = {code for path in SOURCE.rglob("*.py") for code in LITERAL.findall(path.read_text(encoding="utf-8"))}
    assert len(emitted) > 100
    for code in sorted(emitted):
        assert inside("explain", code).status == 0, code


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("AKF-S01O", "AKF-S010"),
        ("akf-s12", "AKF-S012"),
        ("no_local_gian", "NO_LOCAL_GAIN"),
        ("promotible", "promotable"),
        ("what", "docs/errors.md"),
    ],
)
def test_explain_of_a_near_miss(word: str, hint: str) -> None:
    answer = inside("explain", word).refused(2)
    assert hint in answer.problems[0]["hint"]


@pytest.mark.parametrize("verdict", get_args(Verdict))
def test_explain_knows_every_verdict(verdict: str) -> None:
    for word in (verdict, verdict.capitalize()):
        document = inside("explain", word).accepted().document
        assert document["code"] == verdict
        assert all(str(document[name]).strip() for name in codes.REASON_FIELDS)


def test_schema_lists_every_kind() -> None:
    listed = inside("schema").accepted().document["schemas"]
    assert [each["kind"] for each in listed] == sorted(kinds())
    assert len({each["id"] for each in listed}) == len(listed)


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_schema_prints_one(kind: str) -> None:
    document = inside("schema", kind).accepted().document
    jsonschema.Draft202012Validator.check_schema(document["schema"])
    assert document["schema"] == json.loads(kinds()[kind].read_bytes())


def test_schema_exports_all_of_them_once(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "schemas"
    document = inside("schema", "--export", out).accepted().document
    assert sorted(path.name for path in out.iterdir()) == sorted(document["files"])
    assert {path.name: path.read_bytes() for path in kinds().values()} == {
        path.name: path.read_bytes() for path in out.iterdir()
    }
    before = tree(tmp_path)
    inside("schema", "--export", out).refused(5)
    assert tree(tmp_path) == before


def test_schema_says_what_was_meant() -> None:
    answer = inside("schema", "Campain").refused(2)
    assert answer.problems[0]["hint"] == "did you mean Campaign?"


def test_schema_does_not_take_an_option_for_granted(tmp_path: Path) -> None:
    inside("schema", "Campaign", "--export", tmp_path / "out").refused(2)
    assert not (tmp_path / "out").exists()


LINES: list[list[str]] = [
    ["--help"],
    ["--version"],
    ["validate-suite", "{suite}"],
    ["validate-suite", "{suite}", "--require-ready"],
    ["--require-ready", "validate-suite", "{suite}"],
    ["validate-campaign", "{campaign}", "--human"],
    ["validate-campaign", "{campaign}", "--format", "sarif"],
    ["--quiet", "validate-campaign", "{campaign}", "--require-ready"],
    ["validate-campaign", "{missing}"],
    ["validate-campaign"],
    ["validate-suite"],
    ["validate-suite", "a", "b"],
    ["validate-suite", "--what", "a"],
    ["validate-suite", "--", "{suite}"],
    ["init-run", "{campaign}", "--runs-root", "{missing}"],
    ["init-run", "{campaign}", "--runs-root"],
    ["init-run", "{campaign}", "--run-id", "NOT AN ID"],
    ["init-run", "{campaign}", "--runs-root={missing}"],
    ["init-run"],
    ["judge", "{missing}", "{missing}/attempts/x/gates"],
    ["judge", "{missing}"],
    ["judge", "{missing}", "{missing}", "--recheck", "--dry-run"],
    ["judge", "{missing}", "{missing}", "--require", "promotible"],
    ["judge", "{missing}", "{missing}", "--require"],
    ["judge", "{missing}", "{missing}", "extra"],
    ["nosuch"],
    ["validat-suite"],
    ["judg"],
    ["Validate-Suite", "x"],
    [""],
    ["-"],
    ["--human"],
    [],
    ["-h"],
    ["judge", "-h"],
    ["calibrate"],
    ["verify", "x", "--what"],
    ["--human", "judge-suite", "x"],
    ["Calibrate"],
    ["judge", "{missing}", "x", "-h"],
    ["--what"],
]


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_the_thin_start_answers_as_the_whole_one(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = Draft(tmp_path / "suite")
    names = {"suite": draft.suite, "campaign": draft.campaign, "missing": tmp_path / "missing"}
    line = [word.format(**names) for word in words]
    thin = inside(*line)

    def whole(arguments: list[str], settings: Settings) -> None:
        start._after_options(arguments, settings)

    monkeypatch.setattr(entry, "fast", whole)
    assert inside(*line) == thin
    assert not (tmp_path / "missing").exists()


def test_the_thin_start_takes_what_it_is_for(tmp_path: Path) -> None:
    for line in (["validate-suite", "x"], ["judge", "a", "b", "--recheck"], ["init-run", "x", "--run-id", "y"]):
        assert start.fast(line, Settings()) is not None
    assert start.fast(["status", str(tmp_path)], Settings()) is None


def test_the_kept_help_is_the_real_one() -> None:
    from akf.cli.app import command  # noqa: PLC0415

    group = command()
    with group.make_context("akf", [], resilient_parsing=True) as context:
        assert start.HELP.read_text(encoding="utf-8") == group.get_help(context) + "\n"


def test_every_command_has_help_and_says_its_exit_by_itself() -> None:
    from akf.cli.app import command  # noqa: PLC0415

    for name in command().commands:
        answer = inside(name, "--help")
        assert answer.status == 0
        assert "Usage: akf" in answer.text


def test_what_is_printed_before_typer_is_loaded(tmp_path: Path) -> None:
    """The thin start is thin: it loads neither typer nor pydantic."""
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    code = (
        "import sys; from akf.cli.main import main; main(sys.argv[1:]);"
        "print(*sorted({'typer', 'click', 'pydantic', 'cryptography'} & set(sys.modules)), file=sys.stderr)"
    )
    suite = Draft(tmp_path / "suite").suite
    done = subprocess.run(
        [sys.executable, "-c", code, "validate-suite", str(suite)], capture_output=True, text=True, check=True
    )
    assert done.stderr == "\n"


def test_a_real_process_says_the_same(tmp_path: Path) -> None:
    suite = Draft(tmp_path / "suite").suite
    for words in (["validate-suite", suite], ["explain", "AKF-S001"], ["schema", "Gate"], ["nosuch"]):
        assert akf(*words)[:2] == inside(*words)[:2]
