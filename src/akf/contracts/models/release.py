"""ReleaseRecord, Deployment, RollbackPlan, Revocation and KnowledgeEntry: what happens after a Decision."""

from typing import Literal

from akf.contracts.models.base import (
    Artifact,
    Code,
    Digest,
    Id,
    Kind,
    Name,
    Positive,
    Ref,
    RelPath,
    Text,
    Value,
    about,
    maybe,
    refs,
    sample,
    several,
)
from akf.contracts.models.decision import Envelope


class Step(Value):
    do: Text = about(
        "What is done in this step.", "Remove the overlay folder from ASCEND_CUSTOM_OPP_PATH and restart the engine."
    )
    check: Text = about("How it is seen to have worked.", "The process maps no longer name the overlay's library.")


class ArmFacts(Value):
    arm: Id = about("Arm that the facts are about.", "xllm")
    decision: Ref = about("Decision that the arm's claim stands on.", refs("Decision")[0])
    loaded_path: Name = about("Object as the engine loads it, relative to the overlay.", "op_api/lib/libcust_opapi.so")
    binary_digest: Digest = about("Digest of that object.", "sha256:" + "1" * 64)


class ReleaseRecord(Artifact):
    kind: Literal["ReleaseRecord"] = about("Kind of this artifact.", "ReleaseRecord")
    parents: tuple[Ref, ...] = about("Decisions that it stands on.", refs("Decision"), min_length=1)
    arms: tuple[ArmFacts, ...] = about(
        "Facts of every arm; one arm's never stand in for another's.",
        [sample(ArmFacts)],
        min_length=1,
    )
    envelope: Envelope = about("Where the claim holds.", sample(Envelope))
    owner: Name = about("Team that answers for it.", "kernel-team")
    license: Name = about("SPDX licence of what is released.", "Apache-2.0")
    incumbent_digest: Digest = about("Digest of what is replaced.", "sha256:" + "2" * 64)
    rollback: Ref = about("Plan that undoes the release.", refs("RollbackPlan")[0])
    cleanup: tuple[Step, ...] = about(
        "Steps that leave nothing behind.",
        [sample(Step)],
        min_length=1,
    )
    reproduction: Text = about("How a stranger repeats it.", "akf verify BUNDLE, then akf evaluate --gate reproduction")


class RollbackPlan(Artifact):
    kind: Literal["RollbackPlan"] = about("Kind of this artifact.", "RollbackPlan")
    parents: tuple[Ref, ...] = about("Decision or Deployment that it undoes.", refs("Decision"), min_length=1)
    steps: tuple[Step, ...] = about(
        "Steps in the order in which they are done.",
        [sample(Step)],
        min_length=1,
    )
    restores_digest: Digest = about("Digest of what is loaded afterwards.", "sha256:" + "2" * 64)
    expected_s: Positive = about("Expected time, in seconds.", 120)


class Deployment(Artifact):
    kind: Literal["Deployment"] = about("Kind of this artifact.", "Deployment")
    parents: tuple[Ref, ...] = about(
        "ReleaseRecord and RollbackPlan.",
        refs("ReleaseRecord", "RollbackPlan"),
        min_length=2,
    )
    means: Literal["private_opp", "overlay", "framework_binding"] = about(
        "How it is put in place; the shared toolkit is never modified.", "private_opp"
    )
    path: RelPath = about("Overlay folder, relative to the deployment root.", "overlays/example-candidate")
    arm: Id = about("Arm that it is deployed to.", "xllm")


class Revocation(Artifact):
    kind: Literal["Revocation"] = about("Kind of this artifact.", "Revocation")
    parents: tuple[Ref, ...] = about("Artifacts that are revoked.", refs("Decision"), min_length=1)
    code: Code = about("Reason code; `akf explain CODE` tells more.", "KEY_COMPROMISED")
    text: Text = about("Why, in a sentence.", "The evaluator's key was copied.")
    key_id: Digest | None = maybe("Key that is revoked, when it is a key.", "sha256:" + "3" * 64)


class KnowledgeEntry(Artifact):
    kind: Literal["KnowledgeEntry"] = about("Kind of this artifact.", "KnowledgeEntry")
    parents: tuple[Ref, ...] = about("Evidence behind the lesson.", refs("Decision"), min_length=1)
    lesson: Text = about("The lesson, in one or two sentences.", "Eight accumulators hide the add latency at H = 4096.")
    envelope: Envelope = about("Where the lesson holds.", sample(Envelope))
    hypothesis: Literal["confirmed", "falsified", "unobserved"] = about(
        "What the evidence said of the hypothesis.", "confirmed"
    )
    expires_when: tuple[Literal["identity_moved", "evidence_revoked"], ...] = about(
        "What ends it; never a date.", ["identity_moved", "evidence_revoked"], min_length=1
    )
    applies_to: tuple[Kind, ...] = several("Artifacts that may cite it.", ["Task"])
