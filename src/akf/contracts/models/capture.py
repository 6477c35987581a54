"""Capture: where device time goes, from profiler files. Owner: supervisor."""

from typing import Literal

from akf.contracts.models.base import (
    Artifact,
    Count,
    DataClass,
    Digest,
    GraphMode,
    Id,
    Name,
    NonNegative,
    Platform,
    Positive,
    Ratio,
    StageName,
    Symbol,
    Text,
    Value,
    about,
    maybe,
    sample,
    several,
    stated,
)
from akf.contracts.models.common import GraphBucket, NamedDigest, Setting


class Tool(Value):
    name: Name = about("Tool that measured.", "torch_npu.profiler")
    version: Name = about("Version of the tool.", "2.10.0")
    settings: tuple[Setting, ...] = several(
        "Settings that change what is recorded.", [{"name": "profiler_level", "value": "Level1"}]
    )


class Seen(Value):
    """An operand as the profiler recorded it."""

    shape: tuple[Count, ...] | None = stated(
        "The profiler recorded no shape.", "Sizes; empty for a scalar or an absent optional operand.", [16, 4096]
    )
    dtype: Name | None = stated(
        "The profiler recorded no element type.", "Element type, in AKF's spelling where it is known.", "bfloat16"
    )
    layout: Name | None = maybe("Memory format as the profiler spells it.", "ND")


class Counter(Value):
    name: Symbol = about("Pipe or unit that was busy, as the profiler names it.", "aiv_mte2")
    time_ns: Count = about("Busy time of an average block, summed over the launches, in nanoseconds.", 1200000)


class Amount(Value):
    """Something that was counted, summed over blocks and launches."""

    name: Symbol = about("What was counted, as the profiler names it, without its unit.", "read_main_memory")
    unit: Literal["bytes", "operations", "instructions", "accesses"] = about("What one of it is.", "bytes")
    value: Count = about("How many there were, in all blocks and launches.", 4194816)


class Balance(Value):
    """How evenly one kind of core shared the work; what is summed over launches can be added up."""

    unit: Symbol = about("Kind of core, as the profiler prefixes its counters.", "aiv")
    launches: Positive = about("Launches whose blocks were measured one by one.", 1)
    blocks: Positive = about("Blocks measured, summed over these launches.", 40)
    mean_ns: Count = about("Time of an average block, summed over these launches, in nanoseconds.", 20900)
    longest_ns: Count = about("Time of the longest block, summed over these launches, in nanoseconds.", 23800)
    last_ns: Count = about(
        "Time of the block with the highest number, summed over these launches, in nanoseconds: the tail, if it is short.",
        10600,
    )


class Entry(Value):
    """Device time of one kernel at one set of shapes on one rank."""

    rank: Count | None = maybe("Rank that launched it; absent when there is one rank.", 0)
    callsite: Id | None = stated(
        "No callsite of the Workload is known to launch this kernel.", "Callsite in the Workload.", "rms-norm"
    )
    kernel: Name | None = maybe("Kernel as the profiler names it, without what counts its launches.", "RmsNorm")
    op_type: Name | None = maybe("Operator type as the profiler names it.", "RmsNorm")
    symbols: dict[Symbol, Positive] = about("Sizes of the callsite's symbols; empty without a callsite.", {"T": 4})
    inputs: tuple[Seen, ...] = several("Input operands, in order.", [sample(Seen)])
    outputs: tuple[Seen, ...] = several("Output operands, in order.", [sample(Seen)])
    graph: GraphMode | None = maybe("Whether the launches were part of a replayed graph.", "eager")
    core_type: Name = about("Kind of core that ran it.", "AI_VECTOR_CORE")
    communicates: bool | None = maybe(
        "Whether it is communication between ranks, which is no hotspot; absent for a kernel that computes.", False
    )
    blocks: Count | None = maybe("Blocks (cores) of one launch.", 32)
    calls: Positive = about("Launches measured.", 2000)
    time_ns: Count = about("Device time of all launches, in nanoseconds.", 4000000)
    exposed_ns: Count | None = maybe(
        "Part of the time in which nothing else was running on the device, in nanoseconds: what would go with it.",
        3900000,
    )
    longest_ns: Count | None = maybe("Longest launch, in nanoseconds.", 2600)
    steps_exposed_ns: tuple[Count, ...] = several(
        "The exposed time by step, in the order of the breakdown's `steps_ns`.", [120000, 118000]
    )
    counters: tuple[Counter, ...] = several(
        "Busy time by pipe; empty where no counters were recorded.", [sample(Counter)]
    )
    amounts: tuple[Amount, ...] = several("What was counted besides time; empty where nothing was.", [sample(Amount)])
    balance: tuple[Balance, ...] = several(
        "Times of single blocks by kind of core; empty where no block was timed by itself.", [sample(Balance)]
    )


class StepLines(Value):
    """The lines of every step of a rank, in the order of the breakdown's `steps_ns`, to which they add up one by one."""

    computing_ns: tuple[Count, ...] = about("Union of compute intervals by step, in nanoseconds.", [277300, 277310])
    communication_ns: tuple[Count, ...] = about(
        "Communication that computing does not cover, by step, in nanoseconds.", [3186350, 3188300]
    )
    waiting_ns: tuple[Count, ...] = about("Waiting for a slower rank by step, in nanoseconds.", [0, 0])
    host_gap_ns: tuple[Count, ...] = about(
        "Device idle because the host did not launch, by step, in nanoseconds.", [804506, 804502]
    )
    idle_ns: tuple[Count, ...] = about("Device idle for another or an unknown reason, by step, in nanoseconds.", [0, 0])


class Breakdown(Value):
    """Lines of one rank's step time; they are checked to add up."""

    rank: Count = about("Rank whose steps were measured.", 0)
    steps: Positive = about("Number of steps measured.", 32)
    step_ns: Count = about("Wall time of the steps, in nanoseconds.", 136581000)
    steps_ns: tuple[Count, ...] = several(
        "Wall time of each step, or of each of 512 runs of neighbouring steps where there are more.", [4268156, 4270112]
    )
    bounds: Literal["profiler", "marker", "window"] | None = maybe(
        "What cuts the steps: the profiler's own, a kernel that runs once a step, or nothing (first start to last end).",
        "profiler",
    )
    computing_ns: Count = about("Union of compute intervals, in nanoseconds.", 8873756)
    communication_ns: Count = about("Communication that computing does not cover, in nanoseconds.", 101963203)
    waiting_ns: Count = about("Waiting for a slower rank, in nanoseconds.", 0)
    host_gap_ns: Count = about("Device idle because the host did not launch, in nanoseconds.", 25744050)
    idle_ns: Count = about("Device idle for any other or an unknown reason, in nanoseconds.", 0)
    launches: Count | None = maybe(
        "Tasks whose launch by the host is known; where it is not, the gap before them counts as idle.", 5120
    )
    overlapped_ns: Count | None = maybe(
        "Communication that computing covers, in nanoseconds; no line of the sum.", 4028675
    )
    steps_lines: StepLines | None = maybe(
        "The lines by step, in the order of `steps_ns`; absent where they are known as totals only.", sample(StepLines)
    )


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


class SourceCheck(Value):
    """One figure that two of the profiler's files must agree on."""

    name: Id = about("Name of the check.", "op-statistic-against-computing")
    rank: Count | None = maybe("Rank; absent when there is one rank.", 0)
    expected_ns: Count = about("Figure of the one file, in nanoseconds.", 8873756)
    found_ns: Count = about("Figure of the other file, in nanoseconds.", 8873751)
    holds: bool = about("Whether the two agree within the rounding of their files.", True)


class HostCost(Value):
    """Host time that the profiler recorded by interface."""

    rank: Count | None = maybe("Rank; absent when there is one rank.", 0)
    level: Name = about("Layer of the interface, as the profiler names it.", "acl")
    api: Name = about("Interface that was called.", "RmsNorm_Tiling")
    calls: Positive = about("Calls that were measured.", 2000)
    time_ns: Count = about("Host time of all calls, in nanoseconds.", 9000000)


class Health(Value):
    """State of the baseline while it was captured; what is not stated was not seen."""

    eager_share_ratio: Ratio | None = maybe("Share of launches or steps that ran outside a graph.", 0.02)
    buckets: tuple[GraphBucket, ...] = several("Replays and padding by graph bucket.", [sample(GraphBucket)])
    recompiles: Count | None = maybe("Graph recompilations seen.", 0)
    jit_compiles: Count | None = maybe("Just-in-time kernel compilations seen.", 0)
    custom_operators: bool | None = maybe("Whether the framework's custom operators were loaded.", True)
    remarks: tuple[Text, ...] = several("Lines of the framework's log that speak of a fallback, redacted.", ["..."])


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
    checks: tuple[SourceCheck, ...] = several("Cross-checks between the profiler's files.", [sample(SourceCheck)])
    host: tuple[HostCost, ...] = several("Host time by interface.", [sample(HostCost)])
    health: Health | None = maybe("State of the baseline, where it is known.", sample(Health))
    stage: StageName | None = maybe("Stage of the Workload that was captured; absent for all of them.", "decode")
    clocks_mhz: tuple[Positive, ...] = several("Core clocks seen, in MHz, ascending.", [1800])
    clock: Literal["steady", "changed", "unknown"] = about(
        "Whether the core clock changed inside the capture, or was not its rated value.", "unknown"
    )
    graph_digest: Digest | None = maybe("Digest of the graph dump, where one was taken.", "sha256:" + "1" * 64)
