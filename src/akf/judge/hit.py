"""The hit proof of the operator gate, held against the Build: which objects were proved to run, and by which controls.

Invariants:
- A proof names the Build's own candidate and its own wrong kernel by digest; one of other objects proves nothing.
- Every control is a figure of its own; one that is missing or does not hold takes the outcome away, and no figure adds
  one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from akf.contracts.gates import PYTHON
from akf.contracts.tree import module_digest

Artifact = Mapping[str, Any]
_COMPILED = {"positive_mapped": True, "positive_function_inside": True, "negative_mapped_in_baseline": False}
_MODULE = {"positive_files": True}
_PERTURBED = {"perturbation_differs": True, "perturbation_rejected": True}


def unproved(build: Artifact | None, check: Artifact) -> str:
    """What a claimed hit proof lacks, in a sentence; empty where it lacks nothing.

    Args:
        build: the attempt's Build.
        check: the check `hit_proof` of its operator gate.
    """
    if build is None:
        return "there is no Build"
    said = {each["name"]: each["value"] for each in check.get("figures", ())}
    for name, subject in (("positive_object_digest", "candidate"), ("perturbation_object_digest", "perturbed")):
        if said.get(name) not in _digests(build, subject):
            return f"{name} is {said.get(name, 'missing')}, which is no {subject} object of the Build"
    wanted = _PERTURBED | (_MODULE if build["route"] == PYTHON else _COMPILED)
    for name, value in wanted.items():
        if said.get(name) is not value:
            return f"{name} is {said.get(name, 'missing')}, not {value}"
    cases = said.get("perturbation_cases")
    return "" if isinstance(cases, int) and not isinstance(cases, bool) and cases > 0 else "no case was perturbed"


def _digests(build: Artifact, subject: str) -> set[str]:
    if build["route"] == PYTHON:
        return {module_digest(build, subject)}
    return {
        each["digest"] for each in build["outputs"] if each["subject"] == subject and each["role"] == "kernel_object"
    }
