"""Problems are frozen, ordered, encodable; errors carry them and their exit status."""

import copy
import json
import pickle
import random
import subprocess
import sys

import pytest

from akf.contracts import problems
from akf.contracts.problems import AkfError, ConflictError, InvalidError, Problem

FULL = Problem("AKF-S024", "x is 1", "f.json", "/x", 2, 3, "string", 1, "quote it")


def test_json_has_all_nine_fields() -> None:
    assert list(FULL.to_json()) == [
        "code",
        "message",
        "file",
        "pointer",
        "line",
        "column",
        "expected",
        "found",
        "hint",
    ]
    assert Problem("AKF-S001", "empty").to_json()["hint"] is None


def test_lone_surrogates_are_escaped() -> None:
    problem = Problem("AKF-F001", "no \udcff", "caf\udce9.json", "/\ud800", expected=["\ud800", {"\ud801": 1}])
    said = problem.to_json()
    assert json.dumps(said, ensure_ascii=False).encode()
    assert (said["file"], said["expected"]) == ("caf\\udce9.json", ["\\ud800", {"\\ud801": 1}])


def test_problems_are_frozen_values() -> None:
    with pytest.raises(AttributeError):
        FULL.code = "AKF-S001"
    with pytest.raises(AttributeError):
        del FULL.code
    assert copy.deepcopy(FULL) == pickle.loads(pickle.dumps(FULL)) == FULL  # noqa: S301 - our own bytes
    assert len({FULL, FULL.replace(), FULL.replace(line=9)}) == 2
    assert FULL != "FULL"
    assert repr(Problem("AKF-S001", "empty")) == "Problem(code='AKF-S001', message='empty')"


def test_order() -> None:
    ordered = [
        Problem("AKF-S001", "a"),
        Problem("AKF-S001", "b"),
        Problem("AKF-S001", "a", pointer=""),
        Problem("AKF-S001", "a", "a.json"),
        Problem("AKF-S001", "a", "a.json", "/a"),
        Problem("AKF-S001", "a", "a.json", "/a", 1, 2),
        Problem("AKF-S002", "a", "a.json", "/a", 1, 2),
        Problem("AKF-S001", "a", "a.json", "/a", 1, 3),
        Problem("AKF-S001", "a", "a.json", "/a", 2, 1),
        Problem("AKF-S001", "a", "a.json", "/b", 1, 1),
        Problem("AKF-S001", "a", "b.json"),
    ]
    for seed in range(20):
        shuffled = random.Random(seed).sample(ordered, len(ordered))
        assert sorted(shuffled, key=Problem.sort_key) == ordered
        assert list(InvalidError(shuffled).problems) == ordered


def test_text_cannot_paint_a_terminal() -> None:
    text = str(Problem("AKF-S023", "x", "\x1b[31m.json", "/\u202e", 1, 2, hint="y"))
    assert text == r"\x1b[31m.json:1:2:/\u202e: AKF-S023 x (y)"
    assert str(Problem("AKF-S001", "x")) == "AKF-S001 x"


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("InvalidError", 1),
        ("UsageError", 2),
        ("IntegrityError", 3),
        ("PreconditionError", 4),
        ("ConflictError", 5),
        ("BlockedError", 6),
        ("StorageError", 7),
        ("DefectError", 70),
    ],
)
def test_exit_status(name: str, status: int) -> None:
    kind = getattr(problems, name)
    error = kind.of("AKF-S001", "m", file="f", pointer="/p", line=1, column=2, expected=3, found=4, hint="h")
    assert isinstance(error, AkfError)
    assert type(error) is kind
    assert error.exit_code == status
    assert error.problems == (Problem("AKF-S001", "m", "f", "/p", 1, 2, 3, 4, "h"),)


def test_an_error_says_something() -> None:
    with pytest.raises(ValueError, match="says nothing"):
        InvalidError([])
    error = ConflictError([Problem("AKF-C002", "b"), Problem("AKF-C001", "a")])
    assert str(error) == "AKF-C001 a\nAKF-C002 b"
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (type(again), again.problems) == (ConflictError, error.problems)


def test_importing_problems_costs_nothing() -> None:
    code = "import sys, akf.contracts.problems; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    if loaded.returncode:  # not installed for an isolated interpreter: give it the path
        path = problems.__file__.split("/akf/", maxsplit=1)[0]
        code = f"import sys; sys.path.insert(0, {path!r}); {code}"
        loaded = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert not {"typing", "dataclasses", "inspect", "json", "pathlib", "pydantic"} & set(loaded.stdout.split())
