"""The judge is a function of bytes: no clock, no environment, no disk, no chance; its words are in the catalogue."""

import ast
import builtins
import io
import os
import random
import re
import secrets
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.support.evidence import REPOSITORY, Changes, RunMaker, deciding, evidence

from akf.contracts.codes import explain
from akf.contracts.loader import Document
from akf.contracts.rules.campaign import campaign_problems, membership_problems
from akf.contracts.rules.placeholders import blockers
from akf.contracts.rules.suite import suite_problems
from akf.contracts.rules.task import task_problems
from akf.contracts.rules.workload import capture_problems, workload_problems
from akf.contracts.schemas import schema
from akf.store.run import checked

JUDGE = sorted((REPOSITORY / "src" / "akf" / "judge").glob("*.py"))
STANDARD = {"__future__", "collections", "collections.abc", "fractions", "hashlib", "re", "typing"}
OTHERS = {"orjson", "akf"}
BUILTINS = {"open", "input", "print", "eval", "exec", "compile", "__import__", "id", "hash", "globals", "breakpoint"}


@pytest.mark.parametrize("path", JUDGE, ids=lambda path: path.name)
def test_the_judge_imports_nothing_that_could_tell_two_machines_apart(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
            for name in names:
                assert name in STANDARD or name.split(".")[0] in OTHERS, f"{path.name}:{node.lineno} imports {name}"
        if isinstance(node, ast.Name):
            assert node.id not in BUILTINS, f"{path.name}:{node.lineno} uses {node.id}"


def test_deciding_touches_neither_disk_nor_clock_nor_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    made = evidence(platform="ascend", graph="graph", tp=2)
    before = checked(made.decide())  # compiled schemas and imports are kept from here on

    def forbidden(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("the judge reached outside its input")

    for module, names in (
        (builtins, ("open", "input", "print")),
        (io, ("open", "open_code", "FileIO")),
        (os, ("open", "stat", "lstat", "listdir", "scandir", "getcwd", "getenv", "urandom", "getpid", "read")),
        (time, ("time", "time_ns", "monotonic", "perf_counter", "sleep", "localtime")),
        (random, ("random", "getrandbits", "seed")),
        (secrets, ("token_bytes", "token_hex")),
        (socket, ("socket",)),
        (subprocess, ("Popen",)),
    ):
        for name in names:
            monkeypatch.setattr(module, name, forbidden)
    monkeypatch.setattr(os, "environ", {})
    after = checked(made.decide())
    monkeypatch.undo()
    assert after == before


def test_deciding_changes_nothing_that_it_was_given() -> None:
    made = evidence()
    before = dict(made.files)
    made.decide()
    assert made.files == before
    assert list(made.files) == list(before)


def test_every_code_of_the_judge_is_explained() -> None:
    sources = [*JUDGE, REPOSITORY / "src/akf/contracts/measured.py", REPOSITORY / "src/akf/store/verify.py"]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    codes = set(re.findall(r'"(AKF-[A-Z]\d{3}|[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+)"', text))
    assert {"AKF-I202", "GATE_MISSING", "NO_LOCAL_GAIN", "BUCKET_MISSING"} <= codes
    outcomes = {"BLOCKED", "INCOMPARABLE", "NOT_RUN", "INCONCLUSIVE", "NO_GAIN"}
    assert [code for code in sorted(codes | outcomes) if explain(code) is None] == []


@pytest.mark.parametrize(
    "changes", [{}, {"platform": "ascend"}, {"platform": "ascend", "graph": "graph", "tp": 2}, {"signed": False}]
)
def test_the_run_behind_these_tests_is_one_that_akf_would_make(changes: dict[str, Any]) -> None:
    """Its inputs are valid, ready and agree with one another."""
    run = RunMaker(Changes(**changes))
    names = ("suite", "campaign", "workload", "capture")
    suite, campaign, workload, capture = (
        Document(run.made().value(f"{name}.json"), f"{name}.json", run.files[f"{name}.json"]) for name in names
    )
    found = [
        *suite_problems(suite),
        *campaign_problems(campaign),
        *membership_problems(campaign, suite),
        *workload_problems(workload, campaign),
        *capture_problems(capture, campaign, workload),
        *task_problems(Document(run.task, "task.json", b"")),
    ]
    assert [str(problem) for problem in found] == []
    waiting = [
        blocker["pointer"]
        for document in (suite, campaign, workload, capture)
        for blocker in blockers(schema(document.value["kind"]), document.value, document.file)
    ]
    assert waiting == ([] if changes.get("signed", True) else ["/trust/keys"])


def test_a_summary_of_the_demo_host_is_judged_for_itself_only() -> None:
    decision = evidence(gates=("environment", "operator")).decide()
    assert deciding(decision)[0] == "incomplete"
    assert (decision["envelope"]["platform"], decision["envelope"]["arm"]) == ("host", "host_reference")
