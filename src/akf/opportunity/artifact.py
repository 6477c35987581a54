"""A Triage as an artifact: of a run's frozen inputs, or of the files that a Campaign names.

Invariants:
- Its parents are Campaign, Workload and Capture by the digests of their frozen bytes, so that a Triage of a draft is
  the run's own as soon as the draft is frozen unchanged.
- What a run's inputs give is recomputed, never believed: the same inputs give the same bytes.
- A draft may leave open what triage does not need; a missing Workload or Capture is named with the command for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from akf.contracts.documents import load
from akf.contracts.loader import Document
from akf.contracts.problems import IntegrityError, InvalidError, PreconditionError, Problem
from akf.contracts.rules.check import check_campaign
from akf.opportunity.policy import Number, policy_of
from akf.opportunity.triage import triage
from akf.store.run import Run, checked, ref

INPUTS = ("Campaign", "Workload", "Capture")
_LINKS = ("/workload/path", "/capture/path")

Value = Mapping[str, Any]


def of_run(
    run: Run, stage: str | None = None, flags: Mapping[str, Number | None] | None = None, others: Sequence[Path] = ()
) -> dict[str, Any]:
    """The Triage of a run's frozen inputs.

    Raises:
        IntegrityError: an input does not hold.
        PreconditionError: the Capture is incomplete, or of another stage.
        InvalidError: another Capture is invalid.
    """
    run.load("run.json")
    return _made([run.load(f"{kind.lower()}.json") for kind in INPUTS], stage, flags, others)


def of_campaign(
    path: Path, stage: str | None = None, flags: Mapping[str, Number | None] | None = None, others: Sequence[Path] = ()
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


def recomputed_problems(value: Value, run: Run) -> list[Problem]:
    """What does not hold of a Triage of this run: it is not what the frozen inputs give."""
    path = f"triage/{value['id']}.json"
    try:
        wanted = of_run(run, value["stage"])
    except PreconditionError as error:
        return [problem.replace(file=path) for problem in error.problems]
    if checked(wanted) == checked(dict(value)):
        return []
    found = [name for name in sorted(wanted.keys() | value.keys()) if wanted.get(name) != value.get(name)]
    message = f"{path} is not what the run's Campaign, Workload and Capture give; it differs in {', '.join(found)}"
    hint = "make it with `akf triage RUN --out FILE`, without --target and without --capture"
    return [Problem("AKF-F383", message, path, f"/{found[0]}", hint=hint)]


def _made(
    inputs: Sequence[Document], stage: str | None, flags: Mapping[str, Number | None] | None, others: Sequence[Path]
) -> dict[str, Any]:
    campaign, workload, capture = (document.value for document in inputs)
    _staged(stage, workload, inputs[2])
    policy = policy_of(capture, campaign, flags, stage=stage)
    further = [load(path, "Capture") for path in others]
    _same_platform(further, capture)
    pairs = sorted(
        ((each.value, ref(each.value, checked(each.value))) for each in further), key=lambda each: each[1]["digest"]
    )
    body = triage(workload, capture, policy, pairs, file=inputs[2].file)
    return {
        "kind": "Triage",
        "schema_version": 1,
        "id": "triage" if policy.stage is None else f"triage-{policy.stage}",
        "parents": [ref(document.value, checked(document.value)) for document in inputs],
        **body,
    }


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


def require_recomputed(value: Value, run: Run, file: str) -> None:
    """Refuse a Triage that is not this run's.

    Raises:
        IntegrityError: its parents are another run's, or the inputs give another one.
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
    problems = recomputed_problems(value, run)
    if problems:
        raise IntegrityError(problem.replace(file=file) for problem in problems)
