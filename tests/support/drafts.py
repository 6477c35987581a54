"""The shipped suites, copied and changed: what the rules say of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.runs import change

from akf.contracts.rules.check import Result, check_campaign, check_suite
from akf.contracts.shipped import shipped

Value = dict[str, Any]
Edit = Callable[[Value], object]

ASCEND, HOST = "qwen3-8b-a3-bf16", "host-demo"
ARMS = ("xllm", "vllm_ascend", "sglang_ascend")


class Draft:
    """A copy of a Suite folder; its files are changed in place."""

    def __init__(self, folder: Path, name: str = ASCEND, arm: str = "xllm") -> None:
        self.folder = folder
        self.arm = arm if name == ASCEND else "host_reference"
        shutil.copytree(shipped("suites") / name, folder)
        for path in folder.rglob("*.json"):
            if path.parent.name != "model":
                change(path, lambda _: None)

    @property
    def suite(self) -> Path:
        """The Suite file."""
        return self.folder / "suite.json"

    @property
    def campaign(self) -> Path:
        """The Campaign of the arm."""
        return self.folder / "arms" / f"{self.arm}.json"

    @property
    def workload(self) -> Path:
        """The Workload file."""
        return self.folder / "workload.json"

    def value(self, path: Path) -> Value:
        """A file's value."""
        found: Value = json.loads(path.read_bytes())
        return found

    def check(self, edit: Edit = lambda _: None) -> Result:
        """What validate-campaign says after a change of the Campaign."""
        change(self.campaign, edit)
        return check_campaign(self.campaign)

    def check_suite(self, edit: Edit = lambda _: None) -> Result:
        """What validate-suite says after a change of the Suite."""
        change(self.suite, edit)
        return check_suite(self.suite)


def said(result: Result) -> set[tuple[str, str | None]]:
    """Code and place of every problem."""
    return {(problem.code, problem.pointer) for problem in result.problems}


def codes(result: Result) -> set[str]:
    """The codes of the problems."""
    return {problem.code for problem in result.problems}
