"""`init-run`: an immutable snapshot of Suite, Campaign, Workload and Capture.

Invariants:
- Nothing is written unless the inputs are valid and ready; a draft is refused with every blocker.
- The four inputs are frozen in canonical form; the Run records both digests, as written and as frozen.
- The nonce is random, so that two runs of one Campaign are never the same run.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from akf import __version__
from akf.contracts.canonical import digest
from akf.contracts.ids import id_problem
from akf.contracts.loader import Document
from akf.contracts.problems import InvalidError, PreconditionError, Problem, UsageError
from akf.contracts.rules.check import Result, check_campaign
from akf.store.run import checked, create, ref
from akf.trust.keys import Signer, load_signer, pinned

FILES = ("suite.json", "campaign.json", "workload.json", "capture.json")


def init_run(campaign: Path, runs_root: Path, keys: Path, run_id: str | None = None) -> Path:
    """Make a run of a ready Campaign.

    Args:
        campaign: the Campaign file.
        runs_root: folder of all runs.
        keys: folder of the role keys; the supervisor's signs.
        run_id: name of the run; made from the Campaign's id and the nonce when absent.

    Returns:
        The run's folder.

    Raises:
        InvalidError: an input is invalid.
        PreconditionError: the Campaign is not ready, or the key is not the pinned one.
        ConflictError: a run of this name exists.
    """
    if run_id is not None and (problem := id_problem(run_id, field="--run-id")):
        raise UsageError([problem])
    documents = _ready(check_campaign(campaign))
    nonce = secrets.token_hex(32)
    root = {name: checked(document.value) for name, document in zip(FILES, documents, strict=True)}
    run = {
        "kind": "Run",
        "schema_version": 1,
        "id": run_id or f"{documents[1].value['id']}-{nonce[:12]}",
        "nonce": nonce,
        "akf_version": __version__,
        "parents": [ref(document.value, root[name]) for name, document in zip(FILES, documents, strict=True)],
        "sources": [
            {"kind": document.value["kind"], "name": Path(document.file).name, "digest": digest(document.source)}
            for document in documents
        ],
    }
    return create(runs_root, run, root, _supervisor(documents[1], keys))


def _ready(result: Result) -> tuple[Document, Document, Document, Document]:
    if not result.valid:
        raise InvalidError(result.problems)
    if result.blockers:
        raise PreconditionError(
            Problem(
                "AKF-P101",
                f"{blocker['pointer']} is still a placeholder: {blocker['expected']}",
                file=blocker["file"],
                pointer=blocker["pointer"],
                expected=blocker["expected"],
                hint=f"fill it with: {blocker['command']}",
            )
            for blocker in result.blockers
        )
    inputs = result.inputs
    if inputs is None or inputs.suite is None or inputs.workload is None or inputs.capture is None:
        raise PreconditionError.of("AKF-P101", "the Campaign's inputs are not complete")
    return inputs.suite, inputs.campaign, inputs.workload, inputs.capture


def _supervisor(campaign: Document, keys: Path) -> Signer | None:
    if campaign.value["trust"]["mode"] == "unsigned":
        return None
    signer = load_signer(keys, "supervisor")
    wanted = pinned(campaign.value["trust"]["keys"], campaign.file, "/trust/keys")["supervisor"].key_id
    if signer.key_id != wanted:
        message = f"the supervisor key in {keys} is not the one that the Campaign pins"
        hint = "name the right folder with --keys, or pin these keys: akf fill CAMPAIGN --keys FOLDER"
        raise PreconditionError.of("AKF-P102", message, file=str(keys), expected=wanted, found=signer.key_id, hint=hint)
    return signer
