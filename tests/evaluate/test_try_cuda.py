"""The corpus of modules with their tensors on a GPU: what is found on the processor is found there too."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evaluate.cheats import CHEATS, CONTROLS

from akf.contracts.shipped import shipped
from akf.evaluate.trial import try_candidate

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("state")]
OF_THE_PROCESSOR = frozenset({"joins_its_threads", "gives_a_view_of_its_own", "by_numpy", "keeps_a_pool"})
"""Controls that compute with numpy, or hand out memory of the processor: on a GPU they cannot be right."""
HARMLESS = frozenset({"answers_by_version"})
"""Staging writes into every operand, so that its version counts: what is kept by it is right."""


def tried(name: str, tmp_path: Path) -> tuple[str, list[str]]:
    candidate = {**CHEATS, **CONTROLS}[name]
    file = tmp_path / f"{name}.py"
    file.write_text(candidate.source)
    answer = try_candidate(shipped("examples") / "tasks" / candidate.task, file, "cuda", quick=True)
    return answer["outcome"], answer["reasons"]


@pytest.mark.parametrize("name", sorted(CHEATS.keys() - HARMLESS))
def test_a_cheat_fails(name: str, tmp_path: Path) -> None:
    assert tried(name, tmp_path)[0] == "fail"


@pytest.mark.parametrize("name", sorted(CONTROLS.keys() - OF_THE_PROCESSOR))
def test_an_honest_candidate_passes(name: str, tmp_path: Path) -> None:
    assert tried(name, tmp_path) == ("pass", [])


@pytest.mark.parametrize("name", sorted(OF_THE_PROCESSOR))
def test_what_is_not_on_the_device_is_said_so(name: str, tmp_path: Path) -> None:
    outcome, reasons = tried(name, tmp_path)
    assert (outcome, reasons[0]) in {("fail", "DEVICE_MISMATCH"), ("fail", "CANDIDATE_RAISED")}
