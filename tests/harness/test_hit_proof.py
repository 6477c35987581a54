"""The hit proof: positive evidence from the kernel, and controls that must fail when they should."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.harness.builder import Task, run_harness

AffineTask = Callable[..., Task]


def test_proof_names_the_evidence(affine: AffineTask, out: Path) -> None:
    task = affine("honest", baseline="less_exact")
    _, report = run_harness("check", task.request(baseline_factor=1e6), out)
    facts = report["checks"]["hit_proof"]["facts"]
    assert facts["mapped"] is True
    assert facts["function_inside"] is True
    assert facts["mapped_in_baseline"] is False
    assert facts["object_digest"] == task.artifacts["candidate"]["digest"]
    own = task.artifacts["perturbed"]["digest"]
    assert facts["perturbed"] == {"object_digest": own, "cases": 3, "differs": True, "rejected": True}


def test_perturbed_kernel_that_changes_nothing_proves_nothing(affine: AffineTask, out: Path) -> None:
    _, report = run_harness("check", affine("honest", perturbed="honest").request(), out)
    proof = report["checks"]["hit_proof"]
    assert proof["outcome"] == "fail"
    assert {reason["code"] for reason in proof["reasons"]} == {"HIT_NOT_PROVED"}


def test_object_with_another_digest_is_an_integrity_error(affine: AffineTask, out: Path) -> None:
    request = affine("honest").request()
    request["artifacts"]["candidate"] = {**request["artifacts"]["candidate"], "digest": "sha256:" + "0" * 64}
    status, report = run_harness("check", request, out)
    assert status == 3
    assert report["error"]["code"] == "ARTIFACT_CHANGED"
    assert report["checks"] == {}
