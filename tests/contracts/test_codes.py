"""The catalogue is whole: every code once, every field, and the JSON examples do what they say."""

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from akf.cli.main import INTERRUPTED
from akf.contracts import codes, problems
from akf.contracts.canonical import parse_canonical
from akf.contracts.loader import parse
from akf.contracts.models.decision import Verdict
from akf.contracts.problems import AkfError, IntegrityError, InvalidError

FILES = sorted(codes._FOLDER.glob("*.toml"))
SOURCE = Path(codes.__file__).parents[1]
PROBLEM = re.compile(r"AKF-[SMIPCEFUTX][0-9]{3}\Z")
REASON = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*\Z")
STATUSES = {
    error.exit_code for error in vars(problems).values() if isinstance(error, type) and issubclass(error, AkfError)
} | {INTERRUPTED}


def tables(path: Path) -> dict[str, dict[str, object]]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def test_a_code_is_defined_once() -> None:
    seen = Counter(code for path in FILES for code in tables(path))
    assert [code for code, times in seen.items() if times > 1] == []
    assert sorted(seen) == sorted([*codes.all_codes(), *codes.verdicts()])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_entries_are_whole(path: Path) -> None:
    for code, fields in tables(path).items():
        is_problem = PROBLEM.match(code) is not None
        known = is_problem or REASON.match(code) or (path.stem == "verdicts" and code in get_args(Verdict))
        assert known, f"{path.name}: {code} is neither a problem code nor a reason code nor a verdict"
        wanted = codes.PROBLEM_FIELDS if is_problem else codes.REASON_FIELDS
        assert sorted(fields) == sorted(wanted), f"{path.name}: {code}"
        assert is_problem is False or fields["exit"] in STATUSES, f"{path.name}: {code}"
        for name in wanted:
            text = fields[name]
            assert isinstance(text, int if name == "exit" else str), f"{path.name}: {code} {name}"
            assert name in {"exit", "failing"} or str(text).strip(), f"{path.name}: {code} {name} is empty"
        assert str(fields["rule"]).rstrip().endswith((".", "…", ")")), f"{path.name}: {code} rule"
        assert not str(fields["title"]).endswith("."), f"{path.name}: {code} title"


def test_every_code_that_is_raised_is_explained() -> None:
    raised = {
        code
        for path in SOURCE.rglob("*.py")
        for code in re.findall(r"\"(AKF-[A-Z][0-9]{3})\"", path.read_text(encoding="utf-8"))
    }
    assert sorted(raised - set(codes.all_codes())) == []


def test_every_structure_code_is_raised() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (SOURCE / "contracts").glob("*.py"))
    assert [code for code in tables(codes._FOLDER / "structure.toml") if code not in text] == []


JSON_EXAMPLES = [f"AKF-S{n:03}" for n in (1, 4, 5, 6, 7, 8, 9, 10, 12)]


@pytest.mark.parametrize("code", JSON_EXAMPLES)
def test_examples_do_what_they_say(code: str) -> None:
    entry = codes.explain(code)
    assert entry is not None
    assert entry.failing is not None
    assert entry.passing is not None
    with pytest.raises(InvalidError) as caught:
        parse(entry.failing.encode(), "example.json")
    assert {p.code for p in caught.value.problems} == {code}
    assert caught.value.exit_code == entry.exit
    assert parse(entry.passing.encode(), "example.json").value is not None


def test_example_of_canonical_form() -> None:
    entry = codes.explain("AKF-I001")
    assert entry is not None
    assert entry.failing is not None
    assert entry.passing is not None
    with pytest.raises(IntegrityError):
        parse_canonical(entry.failing.encode() + b"\n", "example.json")
    assert parse_canonical(entry.passing.encode() + b"\n", "example.json").value == {"a": 2, "b": 1}


def test_explain() -> None:
    entry = codes.explain("AKF-S006")
    assert entry is not None
    assert entry.to_json() | {"why": ""} == {
        "code": "AKF-S006",
        "title": "A key twice in one object",
        "rule": 'Each key of an object is there once, after escapes are decoded: "a" and "\\u0061" are the same key.',
        "why": "",
        "family": "structure and syntax",
        "exit": 1,
        "failing": '{"status": "fail", "status": "pass"}',
        "passing": '{"status": "fail"}',
    }
    reason = codes.explain("RESULT_REPLAY")
    assert reason is not None
    assert reason.is_reason
    assert list(reason.to_json()) == ["code", "title", "rule", "why"]
    assert codes.explain("AKF-S999") is None


def test_every_verdict_is_explained() -> None:
    assert sorted(codes.verdicts()) == sorted(get_args(Verdict))


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("AKF-M043", "AKF-M043"),
        ("akf_m043", "AKF-M043"),
        ("Akf m043", "AKF-M043"),
        ("no-local-gain", "NO_LOCAL_GAIN"),
        ("No Local_Gain", "NO_LOCAL_GAIN"),
        ("Promotable", "promotable"),
        ("INCOMPARABLE", "INCOMPARABLE"),
        ("incomparable", "incomparable"),
        ("Incomparable", "incomparable"),
        ("blocked", "blocked"),
        ("AKF-M43", None),
        ("", None),
        ("___", None),
        ("portable", None),
    ],
)
def test_any_spelling_finds_the_entry(word: str, meant: str | None) -> None:
    found = codes.find(word)
    assert (found.code if found else None) == meant


def test_codes_are_listed_problems_first() -> None:
    listed = codes.all_codes()
    first_reason = next(i for i, code in enumerate(listed) if not code.startswith("AKF-"))
    assert all(code.startswith("AKF-") for code in listed[:first_reason])
    assert not any(code.startswith("AKF-") for code in listed[first_reason:])
    assert listed[:first_reason] == sorted(listed[:first_reason])


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("AKF-S01O", "AKF-S010"),
        ("akf-s12", "AKF-S012"),
        ("s4", "AKF-S004"),
        ("RESULT_REPLY", "RESULT_REPLAY"),
        ("hidden fallback", "HIDDEN_FALLBACK"),
        ("nothing of the kind", None),
    ],
)
def test_nearest(word: str, meant: str | None) -> None:
    assert codes.nearest(word) == meant
