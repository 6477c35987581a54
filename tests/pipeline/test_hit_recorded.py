"""The three controls of the hit proof stand in the gate, and are about the Build's own object."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from akf.evaluate.hit_figures import figures


@pytest.mark.usefixtures("measured")
def test_the_gate_holds_every_control(measured_run: Path) -> None:
    attempt = measured_run / "attempts" / "rmsnorm-fused"
    gate = json.loads((attempt / "gates" / "operator.json").read_bytes())
    build = json.loads((attempt / "build.json").read_bytes())
    check = next(check for check in gate["checks"] if check["name"] == "hit_proof")
    found = {each["name"]: each["value"] for each in check["figures"]}
    built = {each["subject"]: each["digest"] for each in build["outputs"] if each["role"] == "kernel_object"}
    assert found.pop("positive_object_digest") == built["candidate"]
    assert found.pop("perturbation_object_digest") == built["perturbed"]
    assert found.pop("perturbation_cases") > 0
    assert found == {
        "positive_mapped": True,
        "positive_function_inside": True,
        "negative_mapped_in_baseline": False,
        "perturbation_differs": True,
        "perturbation_rejected": True,
    }


def test_a_proof_that_was_not_run_has_no_figures() -> None:
    assert figures({}) == []
