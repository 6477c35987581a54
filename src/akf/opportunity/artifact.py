"""A Triage as an artifact: of a run's frozen inputs, or of the files that a Campaign names.

Invariants:
- Its parents are Campaign, Workload and Capture by the digests of their frozen bytes, so that a Triage of a draft is
  the run's own as soon as the draft is frozen unchanged.
- What a run's inputs give is recomputed, never believed: the same inputs give the same bytes. Further Captures and a
  target given by hand are inputs, too: the Triage names them, and its id tells it from the one without.
- In a run, a target given by hand is at least the Campaign's: a person may ask for more than was frozen, not for less.
- A draft may leave open what triage does not need; a missing Workload or Capture is named with the command for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from akf.contracts.canonical import canonical_bytes, digest
from akf.contracts.loader import Document
from akf.contracts.problems import IntegrityError, InvalidError, PreconditionError, Problem
from akf.contracts.rules.check import check_campaign
from akf.opportunity.policy import LIMITS, Number, policy_of
from akf.opportunity.triage import triage
from akf.store import layout
from akf.store.run import Run, checked, ref

INPUTS = ("Campaign", "Workload", "Capture")
_LINKS = ("/workload/path", "/capture/path")

Value = Mapping[str, Any]


def of_run(
    run: Run,
    stage: str | None = None,
    flags: Mapping[str, Number | None] | None = None,
    others: Sequence[Document] = (),
) -> dict[str, Any]:
    """The Triage of a run's frozen inputs.

    Raises:
        IntegrityError: an input does not hold.
        PreconditionError: the Capture is incomplete, or of another stage.
    """
    run.load("run.json")
    return _made([run.load(f"{kind.lower()}.json") for kind in INPUTS], stage, flags, others)


def of_campaign(
    path: Path,
    stage: str | None = None,
    flags: Mapping[str, Number | None] | None = None,
    others: Sequence[Document] = (),
) -> dict[str, Any]:
    """The Triage of the files that a Campaign names.

    Raises:
        InvalidError: an input is invalid.
        PreconditionError: Workload or Capture is missing, or the Capture is incomplete or of another stage.
    """
    result = check_campaign(path)
    if not result.valid:
        raise InvalidError(result.problems)
    inputs = result.inputs
    if inputs is None or inputs.workload is None or inputs.capture is None:
        raise PreconditionError(
            Problem(
                "AKF-F357",
                f"{blocker['pointer']} is still a placeholder: {blocker['expected']}",
                file=blocker["file"],
                pointer=blocker["pointer"],
                expected=blocker["expected"],
                hint=f"fill it with: {blocker['command']}",
            )
            for blocker in result.blockers
            if blocker["pointer"] in _LINKS and blocker["file"] == str(path)
        )
    return _made([inputs.campaign, inputs.workload, inputs.capture], stage, flags, others)


def recomputed_problems(value: Value, run: Run, given: Mapping[str, Document] | None = None) -> list[Problem]:
    """What does not hold of a Triage of this run: it is not what the inputs give that it names.

    Args:
        value: the Triage.
        run: its run, which holds every Capture that the Triage names, unless it is given.
        given: further Captures by their digests.
    """
    path = f"triage/{value['id']}.json"
    flags = _flags(value)
    others = [_other(each, run, given or {}) for each in value.get("others", ())]
    try:
        wanted = of_run(run, value["stage"], flags, others)
    except PreconditionError as error:
        return [problem.replace(file=path) for problem in error.problems]
    if checked(wanted) != checked(dict(value)):
        found = [name for name in sorted(wanted.keys() | value.keys()) if wanted.get(name) != value.get(name)]
        message = f"{path} is not what the inputs give that it names; it differs in {', '.join(found)}"
        hint = "make it with `akf triage RUN --out FILE`, and change nothing"
        return [Problem("AKF-F383", message, path, f"/{found[0]}", hint=hint)]
    frozen = policy_of(run.load("capture.json").value, run.campaign)
    least = frozen.target_ratio if frozen.sources["target_ratio"] == "campaign" else 0
    if (target := flags.get("target_ratio", least)) < least:
        message = f"{path} goes by the target {target}, which was given by hand; the Campaign froze {least}"
        hint = f"make it without --target, or with one of at least {least}"
        return [Problem("AKF-F391", message, path, "/policy/0/value", expected=least, found=target, hint=hint)]
    return []


def _flags(value: Value) -> dict[str, Number]:
    """The values that were given by hand, as far as a person can give them."""
    said = {each["name"]: each["value"] for each in value["policy"] if each["source"] == "flag"}
    (least, most), target = LIMITS["target_ratio"], said.get("target_ratio")
    if not isinstance(target, int | float) or isinstance(target, bool) or not least <= target <= most:
        return {}
    return {"target_ratio": target}


def _other(reference: Value, run: Run, given: Mapping[str, Document]) -> Document:
    """A further Capture: the run's, else the one that is given."""
    path = layout.other_capture(reference["digest"])
    if reference["digest"] in given and not os.path.lexists(run.path / path):
        return given[reference["digest"]]
    return run.load(path)


def _made(
    inputs: Sequence[Document], stage: str | None, flags: Mapping[str, Number | None] | None, others: Sequence[Document]
) -> dict[str, Any]:
    campaign, workload, capture = (document.value for document in inputs)
    _staged(stage, workload, inputs[2])
    policy = policy_of(capture, campaign, flags, stage=stage)
    _same_platform(others, capture)
    pairs = sorted(
        ((each.value, ref(each.value, checked(each.value))) for each in others), key=lambda each: each[1]["digest"]
    )
    body = triage(workload, capture, policy, pairs, file=inputs[2].file)
    return {
        "kind": "Triage",
        "schema_version": 1,
        "id": _id(policy.stage, flags or {}, [each["digest"] for _, each in pairs]),
        "parents": [ref(document.value, checked(document.value)) for document in inputs],
        **body,
    }


def _id(stage: str | None, flags: Mapping[str, Number | None], others: Sequence[str]) -> str:
    """An id by the stage, and by what was given by hand: a run may hold the Triage with it and the one without."""
    parts = ["triage"] if stage is None else ["triage", stage]
    hand = {name: value for name, value in flags.items() if value is not None}
    if hand or others:
        parts.append(digest(canonical_bytes([hand, list(others)])).removeprefix("sha256:")[:12])
    return "-".join(parts)


def _staged(stage: str | None, workload: Value, capture: Document) -> None:
    """Refuse a stage that the Workload does not have, or that the Capture is not about."""
    found, wanted = capture.value.get("stage"), stage or capture.value.get("stage")
    stages = [each["id"] for each in workload["stages"]]
    if stage is not None and found not in {None, stage}:
        message = f"the Capture is about the stage {found}, not {stage}"
        hint = f"ask about that one: --stage {found}; or profile {stage} and name that Capture"
        raise PreconditionError.of(
            "AKF-F356", message, file=capture.file, pointer="/stage", expected=stage, found=found, hint=hint
        )
    if wanted is not None and wanted not in stages:
        message = f"the Workload has no stage {wanted}"
        hint = f"its stages: {', '.join(stages)}"
        raise PreconditionError.of("AKF-F356", message, file=capture.file, expected=stages, found=wanted, hint=hint)


def _same_platform(others: Sequence[Document], capture: Value) -> None:
    """Evidence never crosses platforms, not even to say that something is faster elsewhere."""
    problems = [
        Problem(
            "AKF-F358",
            f"the Capture was measured on {each.value['platform']}, the Campaign's on {capture['platform']}",
            file=each.file,
            pointer="/platform",
            expected=capture["platform"],
            found=each.value["platform"],
        )
        for each in others
        if each.value["platform"] != capture["platform"]
    ]
    if problems:
        raise PreconditionError(problems)


def require_recomputed(value: Value, run: Run, file: str, given: Mapping[str, Document]) -> None:
    """Refuse a Triage that is not this run's.

    Raises:
        IntegrityError: its parents are another run's, or the inputs give another one.
        PreconditionError: a Capture that it names is neither given nor in the run.
    """
    wanted = [
        ref(document.value, document.source) for document in (run.load(f"{kind.lower()}.json") for kind in INPUTS)
    ]
    if list(value["parents"]) != wanted:
        message = "the Triage is about other inputs than the run's"
        hint = "make it with `akf triage RUN --out FILE` of this run"
        raise IntegrityError.of(
            "AKF-F382", message, file=file, pointer="/parents", expected=wanted, found=value["parents"], hint=hint
        )
    missing = [
        Problem(
            "AKF-F390",
            f"the triage looked at another Capture, {each['id']}, which the run does not hold",
            file,
            f"/others/{place}",
            expected=each["digest"],
            hint="name its file: akf open-task RUN TRIAGE --capture FILE",
        )
        for place, each in enumerate(value.get("others", ()))
        if each["digest"] not in given and not os.path.lexists(run.path / layout.other_capture(each["digest"]))
    ]
    if missing:
        raise PreconditionError(missing)
    problems = recomputed_problems(value, run, given)
    if problems:
        raise IntegrityError(problem.replace(file=file) for problem in problems)
