"""Every code that rejects has one exploit and one honest control, and both are tried by a test."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from tests.evaluate.cheats import CHEATS, CONTROLS
from tests.harness.kernels import BODIES
from tests.harness.test_check_outcomes import FAILURES, WITHOUT

from akf.harness import outcome

ROOT = Path(__file__).parents[2]
REGISTRY = tomllib.loads((Path(__file__).parent / "registry.toml").read_text(encoding="utf-8"))
OTHERS_FAULT = {
    "INSENSITIVE_ORACLE", "BASELINE_FAILED", "ISOLATION_UNAVAILABLE", "FRAMEWORK_MISSING", "HIT_NOT_PROVED",
}  # fmt: skip
"""The Task's, the machine's or the proof's: no candidate is rejected for them here."""
MEASURED = {"cache_by_prefix", "works_on_waking"}
"""Kernels that the tests of timed batches try."""


def rejecting() -> set[str]:
    own = {value for name, value in vars(outcome).items() if name.isupper() and name == value}
    return (own | outcome.REFUSED_RESULTS) - OTHERS_FAULT


def test_it_holds_every_code_that_rejects() -> None:
    assert set(REGISTRY) == rejecting() - {"PASS", "FAIL", "BLOCKED"}


@pytest.mark.parametrize("code", REGISTRY)
def test_the_exploit_is_one_of_those_that_are_tried(code: str) -> None:
    kind, _, name = REGISTRY[code]["exploit"].partition(":")
    if kind == "test":
        file, _, function = name.partition("::")
        assert f"def {function}(" in (ROOT / file).read_text(encoding="utf-8")
    elif kind == "module":
        assert code in CHEATS[name].reasons
    elif name in MEASURED:
        assert name in BODIES
    else:
        assert code in {row[2] for row in [*FAILURES, *WITHOUT] if row[0] == name}


@pytest.mark.parametrize("code", REGISTRY)
def test_the_control_is_one_of_those_that_are_tried(code: str) -> None:
    kind, _, name = REGISTRY[code]["control"].partition(":")
    assert name in (CONTROLS if kind == "module" else {"honest"})
