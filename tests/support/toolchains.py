"""Real toolchains of Ascend routes, in the folder that `AKF_TEST_TOOLCHAINS` names, and builds with them.

`AKF_TOOLCHAINS=FOLDER akf toolchain add --packages ROUTE` makes one; `.ci/run` does that for every route that can.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import Answer, inside

VARIABLE = "AKF_TEST_TOOLCHAINS"


def folder_with(name: str) -> str:
    """The folder, where it holds this toolchain; else the test is skipped."""
    folder = os.environ.get(VARIABLE, "")
    if not (Path(folder) / name / "toolchain.json").is_file():
        pytest.skip(f"needs {VARIABLE} with a toolchain: akf toolchain add --packages {name.replace('-', '_')}")
    return folder


def but(names: Iterable[str], quick: str) -> list[Any]:
    """The names as parameters: one in every run of the tests, the others in the long suites."""
    return [pytest.param(name, marks=() if name == quick else pytest.mark.soak) for name in names]


def build(source: Path, route: str, soc: str, out: Path, *options: str) -> Answer:
    """Build a source outside a run."""
    words = [word for each in options for word in ("--option", each)]
    return inside("build", source, "--route", route, "--soc", soc, "--out", out, *words).accepted()
