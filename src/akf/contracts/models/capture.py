"""Capture: where device time goes, from profiler files. Owner: supervisor."""

from typing import Literal

from akf.contracts.models.base import (
    Artifact,
    Count,
    DataClass,
    Digest,
    Id,
    Name,
    NonNegative,
    Platform,
    Positive,
    Symbol,
    Text,
    Value,
    about,
    maybe,
    sample,
    several,
)
from akf.contracts.models.common import NamedDigest, Setting


class Tool(Value):
    name: Name = about("Tool that measured.", "torch_npu.profiler")
    version: Name = about("Version of the tool.", "2.10.0")
    settings: tuple[Setting, ...] = several(
        "Settings that change what is recorded.", [{"name": "profiler_level", "value": "Level1"}]
    )


class Entry(Value):
    rank: Count | None = maybe("Rank that launched it; absent when there is one rank.", 0)
    callsite: Id = about("Callsite in the Workload.", "rms-norm")
    symbols: dict[Symbol, Positive] = about("Sizes of the symbols.", {"T": 4})
    core_type: Name = about("Kind of core that ran it.", "AI_VECTOR_CORE")
    calls: Positive = about("Launches measured.", 2000)
    time_ns: Count = about("Device time of all launches, in nanoseconds.", 4000000)


class Breakdown(Value):
    """Lines of one rank's step time; they are checked to add up."""

    rank: Count = about("Rank whose steps were measured.", 0)
    steps: Positive = about("Number of steps measured.", 32)
    step_ns: Count = about("Wall time of the steps, in nanoseconds.", 136581000)
    computing_ns: Count = about("Union of compute intervals, in nanoseconds.", 8873756)
    communication_ns: Count = about("Communication that computing does not cover, in nanoseconds.", 101963203)
    waiting_ns: Count = about("Waiting for a slower rank, in nanoseconds.", 0)
    host_gap_ns: Count = about("Device idle because the host did not launch, in nanoseconds.", 25744050)
    idle_ns: Count = about("Device idle for any other reason, in nanoseconds.", 0)


class AaNoise(Value):
    metric: Name = about("Metric of the A/A runs.", "latency")
    pairs: Positive = about("Pairs of legs measured.", 12)
    low_ratio: NonNegative = about("Lower end of the A/A interval.", 0.995)
    high_ratio: NonNegative = about("Upper end of the A/A interval.", 1.005)


class Completeness(Value):
    rank: Count | None = maybe("Rank; absent when there is one rank.", 0)
    callsite: Id = about("Callsite whose calls were counted.", "rms-norm")
    expected_calls: Count = about("Calls expected from the model's config.", 73)
    seen_calls: Count = about("Calls found in the profiler files.", 73)


class Capture(Artifact):
    kind: Literal["Capture"] = about("Kind of this artifact.", "Capture")
    title: Text = about("Title for people.", "Baseline RMSNorm on this machine")
    platform: Platform = about("Platform that was measured.", "host")
    data_class: DataClass = about("How the data may travel.", "internal")
    tool: Tool = about("Tool that measured.", sample(Tool))
    sources: tuple[NamedDigest, ...] = about("Digests of the profiler files.", [sample(NamedDigest)])
    entries: tuple[Entry, ...] = about(
        "Device time by callsite and shape.",
        [sample(Entry)],
        min_length=1,
    )
    breakdown: tuple[Breakdown, ...] = several(
        "Step time per rank; empty where no step was captured.",
        [sample(Breakdown)],
    )
    noise: tuple[AaNoise, ...] = several(
        "A/A intervals measured with the capture.",
        [sample(AaNoise)],
    )
    completeness: tuple[Completeness, ...] = several(
        "Calls expected against calls seen.",
        [sample(Completeness)],
    )
    clock: Literal["steady", "changed", "unknown"] = about(
        "Whether the core clock changed inside the capture.", "unknown"
    )
    graph_digest: Digest | None = maybe("Digest of the graph dump, where one was taken.", "sha256:" + "1" * 64)
