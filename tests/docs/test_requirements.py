"""REQUIREMENTS.md: every requirement names tests, every named test exists, and no number stands twice.

Tests are found by reading their files, not by importing them, so that a test that cannot run here counts all the same.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache

import pytest
from docs.generator.pages import ROOT

PAGE = ROOT / "REQUIREMENTS.md"
ENTRY = re.compile(r"^- \*\*(?P<number>R-\d{3})\*\* (?P<text>.*?)(?=^- \*\*R-|^#|\Z)", re.MULTILINE | re.DOTALL)
NODE = re.compile(r"`(tests/[\w./-]+\.py(?:::\w+)+)`")


def requirements(page: str) -> list[tuple[str, str, list[str]]]:
    """Number, text and named tests of every requirement."""
    found = []
    for match in ENTRY.finditer(page):
        nodes = NODE.findall(match["text"])
        found.append((match["number"], NODE.sub("", match["text"]).strip(), nodes))
    return found


@cache
def names(file: str) -> frozenset[str]:
    """Tests of a file: `test_name`, `TestClass`, `TestClass::test_name`; none when there is no such file."""
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            inner = {
                item.name
                for item in node.body
                if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name.startswith("test")
            }
            found |= {f"{node.name}::{name}" for name in inner}
            found |= {node.name} if inner else set()
    return frozenset(name for name in found if "::" in name or name[:1].isupper() or name.startswith("test"))


def wrong(page: str) -> list[str]:
    """What is wrong with a page of requirements."""
    problems = []
    for number, text, nodes in requirements(page):
        if not nodes:
            problems.append(f"{number} names no test")
        if not re.search(r"\w.*\.", text):
            problems.append(f"{number} says nothing")
        for node in nodes:
            file, _, name = node.partition("::")
            if name not in names(file):
                problems.append(f"{number}: there is no {node}")
    return problems


def test_every_requirement_names_tests_that_exist() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(requirements(page)) == page.count("**R-"), "a requirement does not have the form of the others"
    assert wrong(page) == []


def test_no_number_stands_twice() -> None:
    seen = Counter(number for number, _, _ in requirements(PAGE.read_text(encoding="utf-8")))
    assert [number for number, times in seen.items() if times > 1] == []


def test_the_numbers_rise() -> None:
    numbers = [number for number, _, _ in requirements(PAGE.read_text(encoding="utf-8"))]
    assert numbers == sorted(numbers)


HERE = "tests/docs/test_requirements.py"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (f"- **R-001** It holds. `{HERE}::test_no_number_stands_twice`\n", ""),
        ("- **R-001** It holds.\n", "names no test"),
        (f"- **R-001** `{HERE}::test_no_number_stands_twice`\n", "says nothing"),
        (f"- **R-001** It holds. `{HERE}::test_that_was_renamed`\n", "there is no"),
        (f"- **R-001** It holds. `{HERE}::wrong`\n", "there is no"),
        ("- **R-001** It holds. `tests/docs/test_gone.py::test_it`\n", "there is no"),
    ],
)
def test_what_makes_a_requirement_wrong(entry: str, problem: str) -> None:
    found = wrong(entry)
    assert bool(found) == bool(problem)
    assert all(problem in text for text in found)
