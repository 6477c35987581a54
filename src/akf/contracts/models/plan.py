"""Plan: what a gate will measure, written and chained in the ledger before the first launch. Owner: evaluator."""

from typing import Literal

from akf.contracts.models.base import (
    Artifact,
    Better,
    Count,
    Digest,
    GateName,
    Id,
    Name,
    NonNegative,
    Positive,
    Ratio,
    Ref,
    RelPath,
    Scalar,
    Symbol,
    Value,
    about,
    maybe,
    refs,
    sample,
    several,
)


class PlannedRow(Value):
    id: Id = about("Row of the Task, or a name for a serving mix.", "decode-1")
    weight: NonNegative = about("Weight of the row in the total.", 0.5)
    launches: Positive = about("Launches in one timed batch.", 2000)


class Measurement(Value):
    id: Id = about("Name of the measurement.", "op-latency")
    purpose: Literal["gain", "guard", "aa"] = about(
        "Whether it serves a gain, a guard, or the A/A bound of one of them.", "gain"
    )
    rule: Id = about("Gain or guard rule of the Campaign; for A/A the rule whose noise it bounds.", "op-latency")
    metric: Name = about("Metric in the field's standard terms.", "latency")
    unit: Name = about("Unit of the raw integers.", "ns")
    better: Better = about("Which direction is an improvement.", "lower")
    design: Literal["abba", "legs"] = about(
        "Interleaved blocks of two live processes, or adjacent legs that run alone.", "abba"
    )
    statistic: Literal["median", "quantile"] = about("Statistic of a segment or leg.", "median")
    quantile: Ratio | None = maybe("Quantile, when the statistic is one.", 0.99)
    rows: tuple[PlannedRow, ...] = about(
        "Rows that are timed in every block or leg.", [sample(PlannedRow)], min_length=1
    )
    pairs: Positive = about("Number of pairs that will be measured.", 12)
    blocks: Positive = about("Blocks in a pair; 1 for legs.", 3)
    batches: Positive | None = maybe(
        "Timed batches in a segment: how many raw values each sample has. Legs have as many as come.", 3
    )
    round_trip_ns: Count | None = maybe("Calibrated round trip of an empty batch, in nanoseconds.", 25000)
    path: RelPath = about(
        "Raw samples, relative to the run folder.", "attempts/example-candidate/samples/operator/ab.jsonl"
    )
    samples: tuple[Name, ...] = about(
        "Every sample id, in order; each must be present exactly once afterwards.",
        ["p00.b0.s0.decode-1"],
        min_length=1,
    )


class PlannedCase(Value):
    id: Id = about("Name of the correctness case.", "tail-3")
    symbols: dict[Symbol, Positive] = about("Sizes of the symbols.", {"T": 3})
    attributes: dict[Symbol, Scalar] = about("Values of the attributes.", {"eps": 1e-5})
    inputs: Name = about("Distribution of the inputs.", "normal")


class Estimate(Value):
    wall_s: NonNegative = about("Expected wall time, in seconds.", 12)
    device_s: NonNegative | None = maybe("Time of it in which the device is used, in seconds.", 9)
    spread_ratio: NonNegative | None = maybe("Standard deviation of one pair's ratio that the estimate takes.", 0.008)
    spread_from: Literal["aa_samples", "capture", "noise_limit"] | None = maybe(
        "Where the spread comes from: A/A of this Task on this machine, the Capture's A/A, or the noise limit.",
        "capture",
    )
    detectable_gain_ratio: NonNegative | None = maybe(
        "Smallest true gain that 80 % of runs show to exceed the threshold.", 0.01
    )
    rows_power_ratio: Ratio | None = maybe(
        "Chance that every row is shown to hold its margin, were none of them slower.", 0.93
    )
    pairs_for_rows: Positive | None = maybe("Fewest pairs with which that chance is 80 %.", 10)


class Plan(Artifact):
    kind: Literal["Plan"] = about("Kind of this artifact.", "Plan")
    gate: GateName = about("Gate that it plans.", "operator")
    parents: tuple[Ref, ...] = about(
        "Run, Task, Candidate and Build.",
        refs("Run", "Task", "Candidate", "Build"),
        min_length=4,
        max_length=4,
    )
    secret_digest: Digest = about(
        "SHA-256 of the gate's secret, which is revealed in the gate only.", "sha256:" + "0" * 64
    )
    harness_digest: Digest = about("SHA-256 of the harness that will run.", "sha256:" + "0" * 64)
    measurements: tuple[Measurement, ...] = several(
        "Timed measurements.",
        [sample(Measurement)],
    )
    cases: tuple[PlannedCase, ...] = several(
        "Correctness cases.",
        [sample(PlannedCase)],
    )
    tries_before: Count = about("Evaluations of this Task that the ledger held when the plan was made.", 0)
    estimate: Estimate = about("Time and power, stated beforehand.", sample(Estimate))
