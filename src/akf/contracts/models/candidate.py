"""CandidateManifest (an agent's file) and Candidate (what the supervisor makes of it).

Invariants:
- One main hypothesis per Candidate: one active bound, one expected change, one thing that would falsify it.
- The Candidate names every source file by digest; `source_digest` covers names, contents and modes with framing.
"""

from typing import Literal

from akf.contracts.models.base import (
    AnyRoute,
    Artifact,
    Count,
    Digest,
    Id,
    Name,
    Positive,
    Ref,
    RelPath,
    ShortId,
    Symbol,
    Text,
    Value,
    Version,
    about,
    maybe,
    refs,
    sample,
)


class Hypothesis(Value):
    active_bound: Literal["compute", "transfer", "balance", "launch_graph"] = about(
        "The one bound that the candidate attacks.", "compute"
    )
    metric: Name = about("Metric that is expected to change.", "latency")
    direction: Literal["lower", "higher"] = about("Direction of the change.", "lower")
    size_low_ratio: float = about("Smallest expected relative change, 0.2 for 20 %.", 0.2, ge=0)
    size_high_ratio: float = about("Largest expected relative change.", 0.6, ge=0)
    falsified_by: Text = about(
        "Observation that would show the hypothesis wrong.",
        "The latency of row decode-8 does not fall below the baseline's.",
    )


class Claim(Value):
    route: AnyRoute = about("Route that builds it; `python` for the `python` ABI, which nothing compiles.", "host_cpp")
    abi: Literal["binary", "python"] = about("How it is called.", "binary")
    hypothesis: Hypothesis = about(
        "The one main hypothesis.",
        sample(Hypothesis),
    )
    data_flow_change: Text = about(
        "What moves differently, in a sentence or two.", "Eight independent accumulators instead of one."
    )
    failure_boundary: Text = about(
        "Where it would fail or must fall back.",
        "H must be a multiple of 8; other sizes fall back to the baseline.",
    )
    launch: RelPath | None = maybe("Launch spec among the sources; required for the `binary` ABI.", "launch.json")
    domain: dict[Symbol, tuple[Positive, Positive]] | None = maybe(
        "Declared support per symbol, smallest and largest; absent for the Task's own.", {"T": [1, 16]}
    )
    license: Name = about("SPDX licence of the sources.", "Apache-2.0")
    owner: Name = about("Who answers for the sources.", "kernel-team")


class CandidateManifest(Claim):
    """`candidate.json` as an agent writes it."""

    schema_uri: str | None = Artifact.model_fields["schema_uri"]  # type: ignore[assignment]
    kind: Literal["CandidateManifest"] = about("Kind of this file.", "CandidateManifest")
    schema_version: Version = about("Version of this file's schema.", 1)
    id: ShortId = about("Name of the candidate, at most 48 characters, not ending in `.rN`.", "example-candidate")
    task: Id = about("Task that it answers.", "rmsnorm")


class SourceFile(Value):
    path: RelPath = about("File, relative to the candidate's source folder.", "kernel.cpp")
    digest: Digest = about("SHA-256 of its bytes.", "sha256:" + "0" * 64)
    bytes: Count = about("Its size, in bytes.", 1200)
    executable: bool = about("Whether the owner may execute it.", False)


class Candidate(Artifact):
    kind: Literal["Candidate"] = about("Kind of this artifact.", "Candidate")
    id: Id = about("Name; a further try of the same source digest is NAME.rN.", "example-candidate")
    parents: tuple[Ref, ...] = about(
        "The Run and the Task, in this order.",
        refs("Run", "Task"),
        min_length=2,
        max_length=2,
    )
    try_number: Positive = about("1 for the first try of this source digest.", 1)
    claim: Claim = about(
        "What the agent claims.",
        sample(Claim),
    )
    sources: tuple[SourceFile, ...] = about(
        "Source files in order of path.",
        [sample(SourceFile)],
        min_length=1,
    )
    source_digest: Digest = about("SHA-256 over the framed list of names, modes and contents.", "sha256:" + "1" * 64)
    manifest_digest: Digest = about("SHA-256 of `candidate.json` as the agent wrote it.", "sha256:" + "2" * 64)
