"""Adapter, LaneResult and TrustRoot: the borders of the system."""

from typing import Literal

from akf.contracts.models.base import (
    Artifact,
    Count,
    Digest,
    Id,
    Lane,
    Name,
    Never,
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
from akf.contracts.models.common import RoleKeys


class Operation(Value):
    name: Id = about("Name of the operation.", "identity")
    takes: tuple[Name, ...] = about("What it is called with.", ["campaign"])
    returns: Text = about("What it returns.", "The machine's identity, field by field.")


class Fact(Value):
    name: Id = about("Fact that the adapter must prove.", "loaded-object")
    evidence: Text = about("Evidence that proves it.", "Digest of the object that the process maps.")


class Adapter(Artifact):
    kind: Literal["Adapter"] = about("Kind of this artifact.", "Adapter")
    boundary: Literal["framework", "tool"] = about("What it is a border to.", "framework")
    title: Text = about("Title for people.", "Reference operators on the host")
    entry: Name = about("Module that answers.", "akf.frameworks.host_reference")
    operations: tuple[Operation, ...] = about(
        "Operations that the adapter answers.",
        [sample(Operation)],
        min_length=1,
    )
    facts: tuple[Fact, ...] = about(
        "Facts that it must prove.",
        [sample(Fact)],
        min_length=1,
    )
    revisions: tuple[Name, ...] = about(
        "Framework revisions that it knows; any other is unmapped, not guessed.", ["0.1.0"], min_length=1
    )
    sources: tuple[RelPath, ...] = several("Files that belong to it.", ["src/rmsnorm.cpp"])


class LegBudget(Value):
    arm: Id = about("Arm that spent it.", "xllm")
    tuning_s: Count = about("Device time spent on tuning, in seconds.", 3600)
    configurations: Count = about("Configurations tried.", 12)


class LaneResult(Artifact):
    kind: Literal["LaneResult"] = about("Kind of this artifact.", "LaneResult")
    lane: Lane = about("Lane; lanes are never mixed.", "matched_policy")
    parents: tuple[Ref, ...] = about(
        "Runs that were compared.",
        refs("Run"),
        min_length=1,
    )
    policy_digest: Digest = about("Digest of the policy that all arms shared.", "sha256:" + "1" * 64)
    requests_digest: Digest = about("Digest of the request list that all arms replayed.", "sha256:" + "2" * 64)
    budgets: tuple[LegBudget, ...] = about(
        "Optimisation budget that every arm spent.",
        [sample(LegBudget)],
        min_length=1,
    )
    attributed_to_kernel: Never = about("A lane compares systems and attributes nothing to a kernel.", False)
    legs: Positive = about("Legs that every arm ran.", 6)


class TrustRoot(Artifact):
    kind: Literal["TrustRoot"] = about("Kind of this artifact.", "TrustRoot")
    keys: RoleKeys = about(
        "Public key of each role.",
        sample(RoleKeys),
    )
    note: Text | None = maybe("Where the keys live, for people.", "development keys")
