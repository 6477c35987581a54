"""Sources and catalogue agree: what is emitted is explained, what is explained is emitted, with one exit status."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from akf.contracts import codes, problems
from akf.contracts.models.gate import Outcome
from akf.contracts.problems import AkfError

SOURCE = Path(codes.__file__).parents[1]
PROBLEM = re.compile(r"AKF-[A-Z][0-9]{3}")
REASON = re.compile(r"[A-Z]{2,}[A-Z0-9]*(_[A-Z0-9]+)*")
EMITTERS = (
    "judge", "evaluate", "harness", "opportunity", "contracts/measured.py", "routes/outcomes.py", "build/cache.py",
)  # fmt: skip

# Reason codes of later steps: boards, model and serving gates, and the corpus of exploits.
RESERVED = frozenset({
    "ACCURACY_LOST", "BASELINE_UNHEALTHY", "DUPLICATE_KEY",
    "INCUMBENT_REPLACED", "ISOLATION_TOO_WEAK", "LANE_MIXED", "NO_TRIAGE", "ORACLE_LEAK",
    "PLATFORM_HOST", "PYTHON_ABI",
    "UNSIGNED_RUN",
})  # fmt: skip
# Words in capitals that are no reason codes.
OTHER_WORDS = frozenset(
    {
        "ABBA",
        "AKF_STATE",
        "ASCEND_HOME_PATH",
        "ASCEND_RT_VISIBLE_DEVICES",
        "COMMUNICATION",
        "CUDA_VISIBLE_DEVICES",
        "HCCL",
        "HOME",
        "LANG",
        "LD_LIBRARY_PATH",
        "MKL_NUM_THREADS",
        "OMP_NUM_THREADS",
        "OMP_WAIT_POLICY",
        "OPENBLAS_NUM_THREADS",
        "PATH",
        "RAISE_VARARGS",
        "RETURN_CONST",
        "RETURN_VALUE",
        "TMPDIR",
        "XDG_STATE_HOME",
        "YIELD_VALUE",
    }
)
# The judge names a check whose gate gives no code by the check's outcome (`akf.judge.table`).
BY_OUTCOME = frozenset(outcome.upper() for outcome in get_args(Outcome)) - {"PASS", "FAIL"}
ERRORS = {
    name: error.exit_code
    for name, error in vars(problems).items()
    if isinstance(error, type) and issubclass(error, AkfError)
}


def trees(*parts: str) -> Iterator[tuple[str, ast.Module]]:
    for part in parts or (".",):
        root = SOURCE / part
        for path in [root] if root.is_file() else sorted(root.rglob("*.py")):
            yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def literals(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def problem_codes() -> set[str]:
    return {text for _, tree in trees() for text in literals(tree) if PROBLEM.fullmatch(text)}


def reason_codes() -> set[str]:
    found = {text for _, tree in trees(*EMITTERS) for text in literals(tree) if REASON.fullmatch(text)}
    return (found - OTHER_WORDS) | BY_OUTCOME


def raised() -> Iterator[tuple[str, str, str]]:
    """Place, error class and code wherever both stand in one expression: `XError.of("CODE", …)`, `XError([…])`."""
    for name, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            function = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            if not isinstance(function, ast.Name) or function.id not in ERRORS:
                continue
            for text in literals(node):
                if PROBLEM.fullmatch(text):
                    yield f"{name}:{node.lineno}", function.id, text


def listed(*, reasons: bool) -> set[str]:
    return {code for code in codes.all_codes() if code.startswith("AKF-") != reasons}


def test_every_problem_code_is_explained() -> None:
    assert sorted(problem_codes() - listed(reasons=False)) == []


def test_every_explained_problem_code_is_emitted() -> None:
    assert sorted(listed(reasons=False) - problem_codes()) == []


def test_every_reason_code_is_explained() -> None:
    assert sorted(reason_codes() - listed(reasons=True)) == []


def test_every_explained_reason_code_is_emitted_or_reserved() -> None:
    assert sorted(listed(reasons=True) - reason_codes() - RESERVED) == []


def test_reserved_codes_are_explained_and_not_emitted() -> None:
    assert sorted(listed(reasons=True) & RESERVED) == sorted(RESERVED)
    assert sorted(reason_codes() & RESERVED) == []


def test_the_words_that_are_no_codes_are_there() -> None:
    found = {text for _, tree in trees(*EMITTERS) for text in literals(tree)}
    assert sorted(OTHER_WORDS - found) == []


def test_the_exit_status_is_that_of_the_error() -> None:
    wrong = []
    seen = 0
    for where, error, code in raised():
        seen += 1
        entry = codes.explain(code)
        if entry is not None and entry.exit != ERRORS[error]:
            wrong.append(f"{where}: {error} ends with {ERRORS[error]}, {code} says {entry.exit}")
    assert wrong == []
    assert seen > 50


@pytest.mark.parametrize(
    ("family", "status"), [("M", {1}), ("S", {1}), ("I", {3}), ("P", {4}), ("C", {5}), ("E", {6}), ("X", {70})]
)
def test_a_family_has_one_exit_status(family: str, status: set[int]) -> None:
    found = [entry for code in listed(reasons=False) if (entry := codes.explain(code)) and code[4] == family]
    assert {entry.exit for entry in found} == status
