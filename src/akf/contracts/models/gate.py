"""Gate: evidence of one layer. Owner: evaluator.

Invariants:
- Identity is read where the work runs; the judge compares it with the Campaign's.
- `status` is the mechanical fold of the checks' outcomes; the judge recomputes what samples allow and trusts no summary.
- Environment checks never say `fail`: the machine's fault is never the candidate's.
"""

from typing import Literal

from akf.contracts.models.base import (
    AnyRoute,
    Artifact,
    Code,
    Count,
    DataClass,
    Digest,
    GateName,
    GraphMode,
    Hex256,
    Id,
    Isolation,
    Lane,
    Name,
    NonNegative,
    Platform,
    Positive,
    Ref,
    RelPath,
    Scalar,
    Text,
    Value,
    about,
    maybe,
    refs,
    sample,
    several,
)
from akf.contracts.models.common import ExactToolkit

Outcome = Literal["pass", "fail", "no_gain", "inconclusive", "blocked", "incomparable", "not_run"]


class FrameworkRevision(Value):
    name: Name = about("Framework or plugin.", "host_reference")
    revision: Name = about("Revision as read from the running process.", "0.1.0")


class Identity(Value):
    """What the evidence is about; any difference from the Campaign makes the gate's checks incomparable."""

    platform: Platform = about("Platform that was measured.", "host")
    arm: Id = about("Arm that was measured.", "host_reference")
    lane: Lane = about("Lane that the evidence belongs to.", "per_framework_native_ab")
    soc: Name = about("Full SoC name, or the architecture of a host.", "x86_64")
    toolkit: ExactToolkit = about("Toolkit as read where the work ran.", sample(ExactToolkit))
    route: AnyRoute = about("Route of the candidate.", "host_cpp")
    graph: GraphMode = about("Whether launches were eager or replayed from a graph.", "eager")
    frameworks: tuple[FrameworkRevision, ...] = about(
        "Framework and plugins.", [sample(FrameworkRevision)], min_length=1
    )
    model_digest: Digest = about("Digest of the model's weights.", "sha256:" + "0" * 64)
    workload_digest: Digest = about("Digest of the Workload.", "sha256:" + "1" * 64)
    policy_digest: Digest = about("Digest of the Campaign's serving state and acceptance.", "sha256:" + "2" * 64)
    machine_digest: Digest = about("Digest of the machine facts.", "sha256:" + "3" * 64)
    incumbent_digest: Digest = about(
        "Digest of the object that would be replaced, read again now.", "sha256:" + "4" * 64
    )


class Interval(Value):
    estimate: float = about("Hodges-Lehmann estimate of the ratio; above 1 the candidate is better.", 1.25, ge=0)
    low: float = about("Lower end of the interval of the ratio.", 1.22, ge=0)
    high: float = about("Upper end of the interval of the ratio.", 1.28, ge=0)
    pairs: Positive = about("Pairs behind the interval.", 12)
    confidence: NonNegative = about("Two-sided confidence.", 0.95)


class Figure(Value):
    """A named number with its unit in the name."""

    name: Name = about("What the figure is, with its unit in the name.", "max_ulp")
    value: Scalar = about("Value in the unit that the name says.", 3)


class Check(Value):
    name: Name = about("Check, or `gain:RULE`, `guard:RULE`, `row:ROW`, `accuracy:SUITE`.", "correctness")
    category: Literal["evidence", "gain", "guard", "environment"] = about(
        "Which rules its outcome follows.", "evidence"
    )
    outcome: Outcome = about("What the check found.", "pass")
    reasons: tuple[Code, ...] = several("Reason codes; `akf explain CODE` tells more.", ["WRONG_RESULT"])
    note: Text | None = maybe("One sentence for people.", "max error 3 ULP in row decode-8")
    rank: Count | None = maybe("Rank, for checks that hold per rank.", 0)
    bucket_tokens: Positive | None = maybe("Graph bucket, for checks that hold per bucket, in tokens.", 16)
    measurement: Id | None = maybe("Measurement in the Plan that it is computed from.", "op-latency")
    interval: Interval | None = maybe(
        "Interval, where one was computed.",
        sample(Interval),
    )
    figures: tuple[Figure, ...] = several("Figures behind the outcome.", [sample(Figure)])
    profiler: Literal["off", "on"] = about("Whether a profiler was attached; gain and guard checks need `off`.", "off")


class SampleFile(Value):
    measurement: Id | None = maybe("Measurement that it holds; absent for correctness records.", "op-latency")
    path: RelPath = about("File, relative to the run folder.", "attempts/example-candidate/samples/operator/ab.jsonl")
    digest: Digest = about("SHA-256 of its bytes.", "sha256:" + "0" * 64)
    bytes: Count = about("Its size, in bytes.", 60000)
    data_class: DataClass | None = maybe("How the samples may travel; absent for the Campaign's own class.", "internal")


class Gate(Artifact):
    kind: Literal["Gate"] = about("Kind of this artifact.", "Gate")
    gate: GateName = about("Which gate this is evidence of.", "operator")
    parents: tuple[Ref, ...] = about(
        "Run, Task, Candidate, Build and Plan.",
        refs("Run", "Task", "Candidate", "Build", "Plan"),
        min_length=5,
        max_length=5,
    )
    identity: Identity = about("What the evidence is about, read where the work ran.", sample(Identity))
    isolation: Isolation = about("Isolation of the candidate's process.", "userns")
    evidence: Literal["measured", "simulated", "modelled"] = about(
        "Only measured evidence satisfies a gate; the rest may rank candidates.", "measured"
    )
    status: Outcome = about("Fold of the checks.", "pass")
    checks: tuple[Check, ...] = about(
        "Checks in the order of the gate.",
        [sample(Check)],
        min_length=1,
    )
    samples: tuple[SampleFile, ...] = several(
        "Raw sample files by digest.",
        [sample(SampleFile)],
    )
    secret: Hex256 = about("The gate's secret, revealed; its SHA-256 stands in the Plan.", "0" * 64)
    harness_digest: Digest = about("SHA-256 of the harness that ran.", "sha256:" + "0" * 64)
    hypothesis: Literal["confirmed", "falsified", "unobserved"] = about(
        "What a profiler session said of the hypothesis; never changes the verdict.", "unobserved"
    )
    resumes: Count = about("Times that this evaluation was started again after a crash.", 0)
