"""The operator gate's hit proof is about the Build's own objects, control by control, or it is no proof."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.evidence import Changes, evidence, hit_figures

from akf.contracts.canonical import digest

Value = dict[str, Any]
PROMOTABLE = ("promotable", "ALL_GATES_HOLD")
UNPROVED = ("incomplete", "HIT_NOT_PROVED")
PYTHON = {"abi": "python", "edit": {"campaign": lambda value: value["promotion"].update(python_abi=True)}}


def with_figure(name: str, value: Any, **changes: Any) -> tuple[str, str]:
    """Verdict and first reason where one figure of the proof is another one; None for one that is missing."""
    figures = [each for each in hit_figures(Changes(abi=changes.get("abi", "binary"))) if each["name"] != name]
    figures += [] if value is None else [{"name": name, "value": value}]
    return decided({"outcome": "pass", "figures": figures}, **changes)


def decided(claim: Value, **changes: Any) -> tuple[str, str]:
    decision = evidence(outcomes={"operator/hit_proof": claim}, **changes).decide()
    return decision["verdict"], decision["reasons"][0]["code"]


@pytest.mark.parametrize("changes", [{}, PYTHON], ids=["binary", "python"])
def test_a_proof_of_the_build_s_objects_counts(changes: Value) -> None:
    assert with_figure("not_a_control", 1, **changes) == PROMOTABLE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("positive_object_digest", digest(b"another object")),
        ("perturbation_object_digest", digest(b"another wrong kernel")),
        ("positive_mapped", False),
        ("positive_function_inside", False),
        ("positive_function_inside", 1),
        ("negative_mapped_in_baseline", True),
        ("perturbation_differs", False),
        ("perturbation_rejected", False),
        ("perturbation_cases", 0),
        ("perturbation_cases", True),
    ],
)
def test_any_control_that_is_missing_or_of_something_else_proves_nothing(name: str, value: Any) -> None:
    assert with_figure(name, value) == UNPROVED
    assert with_figure(name, None) == UNPROVED


@pytest.mark.parametrize("name", ["positive_object_digest", "perturbation_object_digest", "positive_files"])
def test_a_module_is_held_to_the_digest_of_its_files(name: str) -> None:
    assert with_figure(name, digest(b"another module"), **PYTHON) == UNPROVED
    assert with_figure(name, None, **PYTHON) == UNPROVED


def test_figures_turn_no_failure_into_a_pass() -> None:
    claim = {"outcome": "fail", "reasons": ["HIDDEN_FALLBACK"], "figures": hit_figures(Changes())}
    assert decided(claim) == ("rejected", "HIDDEN_FALLBACK")
