"""The child's walls: what a kernel sees and may do."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.harness.builder import ROOT, Task, run_harness

from akf.harness import sources

AffineTask = Callable[..., Task]
TORCH = {"devices.py", "python_child.py"}
HARNESS = ROOT / "src" / "akf" / "harness"


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    return found


def test_kernel_in_name_spaces_sees_libraries_only(affine: AffineTask, out: Path) -> None:
    _, report = run_harness("check", affine("looks_around").request(), out)
    if report["facts"]["isolation"] != "userns":
        pytest.skip("needs user name spaces")
    assert report["checks"]["isfinite"]["outcome"] == "pass"
    assert report["facts"]["confinement"]["proc"] == "private"


def test_without_isolation_the_same_kernel_shows_it(affine: AffineTask, out: Path) -> None:
    _, report = run_harness("check", affine("looks_around").request(isolation="none"), out)
    assert report["facts"]["isolation"] == "none"
    assert report["checks"]["isfinite"]["outcome"] == "fail"


@pytest.mark.parametrize("path", sorted(HARNESS.glob("*.py")), ids=lambda path: path.name)
def test_harness_imports_nothing_of_akf(path: Path) -> None:
    allowed = {"torch"} if path.name in TORCH else {"numpy"}
    assert imported(path) <= set(sys.stdlib_module_names) | allowed


@pytest.mark.parametrize("name", sorted({*sources.MODULES, *sources.TEMPLATE} - {Path(name).stem for name in TORCH}))
def test_child_imports_the_standard_library_only(name: str) -> None:
    assert imported(HARNESS / f"{name}.py") <= set(sys.stdlib_module_names)


def test_a_binary_child_gets_nothing_that_knows_torch() -> None:
    assert not {f"{name}.py" for name in sources.MODULES} & TORCH


def test_digest_covers_every_module() -> None:
    assert sorted(sources.FILES) == sorted(path.name for path in HARNESS.glob("*.py"))
