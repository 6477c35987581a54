"""Value objects that several artifacts share: identities, operands, shapes, ranks, serving state.

Invariants:
- What version 1 reserves (ranks, quantisation, graph buckets, accuracy suites, serving state) has its fields here, so
  that the first artifacts already hold what real deployments run.
- A SoC has its full name as tools print it (`ascend910_9391`) and, apart from it, its family.
"""

from typing import Literal

from akf.contracts.models.base import (
    Count,
    Digest,
    DType,
    GraphMode,
    Id,
    MaybeEmpty,
    Name,
    NonNegative,
    Positive,
    PublicKeyText,
    Ratio,
    Scalar,
    Symbol,
    Value,
    Whole,
    about,
    fill,
    maybe,
    sample,
    several,
)

ARM_FREEZE = "akf arm freeze CAMPAIGN"


class Dimension(Value):
    """A dimension that varies within bounds."""

    sym: Symbol = about("Name of the symbol that stands for this dimension.", "T")
    min: Positive = about("Smallest size in the domain, in elements.", 1)
    max: Positive = about("Largest size in the domain, in elements.", 16)
    multiple_of: Positive = about("Every size is a multiple of this many elements.", 1)


Shape = tuple[Positive | Dimension, ...]


class Soc(Value):
    family: Name = about("SoC family; never enough for a claim by itself.", "ascend910_93")
    name: Name | None = fill(ARM_FREEZE, "Full SoC name as tools print it, normalised to lower case.", "ascend910_9391")


class Toolkit(Value):
    name: Literal["cann", "gcc", "cuda"] = about("Which toolkit compiles and runs kernels here.", "cann")
    version: Name | None = fill(
        ARM_FREEZE, "Released version, exact; a draft for Ascend names it, the host's is read.", "9.1.0"
    )
    build: Name | None = fill(
        ARM_FREEZE,
        "Exact inner build as read from the machine (`innerversion` of ascend_toolkit_install.info for CANN).",
        "V100R001C25SPC005B220",
    )


ToolkitName = Literal["cann", "gcc", "cuda", "clang", "bishengir", "catlass_dsl", "pypto", "torch_npu", "headers"]


class ExactToolkit(Value):
    name: ToolkitName = about(
        "Which toolkit compiled or ran the kernel; packages without CANN are named by their compiler.", "gcc"
    )
    version: Name = about("Released version, exact.", "12.2.0")
    build: Name = about("Exact inner build as read from the machine.", "Debian 12.2.0-14+deb12u1")


class Peak(Value):
    """What the hardware can do at most, for the roofline floor."""

    level: Name = about("Cache or memory level that the working set fits in.", "hbm")
    capacity_bytes: Positive = about("Size of that level, in bytes.", 1073741824)
    bytes_per_s: Positive = about("Peak traffic of that level, in bytes per second.", 1000000000000)
    operations_per_s: Positive | None = maybe(
        "Peak arithmetic of the element type, in operations per second.", 1000000000000
    )


class CapabilityTuple(Value):
    """One executable combination. What no tuple names is unknown, and unknown fails closed."""

    backend: Name = about("Route that produces the kernel; evidence of routes is never pooled.", "triton_ascend")
    soc: Name | None = fill(ARM_FREEZE, "Full SoC name as tools print it.", "ascend910_9391")
    soc_family: Name = about("Family of the SoC, a separate field on purpose.", "ascend910_93")
    toolkit: Toolkit = about("Toolkit of the combination.", sample(Toolkit))
    op: Id = about("Operator that the tuple is about.", "add_rms_norm")
    shape: Shape = about("Shape as sizes or bounded symbols.", [sample(Dimension), 4096])
    dtype: DType = about("Element type of the operator's main operand.", "bfloat16")
    graph: GraphMode = about("Whether the claim is about eager launches or graph replay.", "graph")
    peaks: tuple[Peak, ...] = several(
        "Peaks of the platform per cache level, against which no measured row may be faster.", [sample(Peak)]
    )


class Quantisation(Value):
    scheme: Name = about("Name of the quantisation scheme.", "w8a8_dynamic")
    scale_dtype: DType = about("Element type of the scales.", "float32")
    group_size: Count = about("Elements that share a scale; 0 for per tensor.", 128)


class KvLayout(Value):
    layout: Name = about("Name of the KV cache layout.", "paged_bsnd")
    block_size_tokens: Positive = about("Tokens in one KV block.", 128)
    dtype: DType = about("Element type of the cache.", "bfloat16")


class Operand(Value):
    name: Symbol = about("Name of the operand in the ABI.", "x")
    access: Literal["in", "out", "inout"] = about("Whether the kernel reads, writes or updates it.", "in")
    dtype: DType = about("Element type of the operand.", "bfloat16")
    shape: Shape = about("Logical shape, in elements.", [sample(Dimension), 4096])
    layout: Literal["ND", "NZ", "NCHW", "NHWC", "TND", "BSND"] = about("Memory format of the operand.", "ND")
    strides: tuple[Whole, ...] | None = maybe("Strides in elements; absent for contiguous.", [4096, 1])
    storage_shape: tuple[Positive, ...] | None = maybe("Shape as stored, where it differs.", [256, 1, 16, 16])
    quantisation: Quantisation | None = maybe(
        "Quantisation, where the operand is quantised.",
        sample(Quantisation),
    )
    kv: KvLayout | None = maybe("KV cache layout, where the operand is a part of the cache.", sample(KvLayout))
    residency: Literal["hot", "cold", "rotating"] | None = maybe(
        "Cache state that the workload gives this operand at launch.", "hot"
    )


class Attribute(Value):
    name: Symbol = about("Name of the operator's attribute.", "eps")
    value: Scalar = about("Value of the attribute.", 1e-6)


class GraphBucket(Value):
    size_tokens: Positive = about("Captured size, in tokens.", 16)
    replays: Count | None = maybe("Replays of this bucket seen.", 4096)
    padded_tokens: Count | None = maybe("Tokens added by padding to the bucket.", 120)


class Graph(Value):
    mode: GraphMode = about("Whether the callsite runs eagerly or inside a captured graph.", "graph")
    capture_sizes_tokens: tuple[Positive, ...] = several("Sizes that are captured.", [1, 2, 4, 8, 16])
    buckets: tuple[GraphBucket, ...] = several("What was seen per bucket.", [sample(GraphBucket)])
    eager_share_ratio: Ratio | None = maybe("Share of steps that ran eagerly.", 0.02)
    recompiles: Count | None = maybe("Graph recompilations seen.", 0)
    jit_compiles: Count | None = maybe("Just-in-time kernel compilations seen.", 0)


class RankDevice(Value):
    rank: Count = about("Global rank of the process.", 0)
    npu: Count = about("Physical NPU (or GPU, or socket).", 0)
    die: Count = about("Die on that package.", 0)


class Ranks(Value):
    tp: Positive = about("Tensor parallel size.", 1)
    pp: Positive = about("Pipeline parallel size.", 1)
    dp: Positive = about("Data parallel size.", 1)
    ep: Positive = about("Expert parallel size.", 1)
    devices: tuple[RankDevice, ...] | None = fill(ARM_FREEZE, "Physical device of every rank.", [sample(RankDevice)])


class ModelIdentity(Value):
    name: Name = about("Name of the model.", "Qwen3-8B")
    architecture: Name = about("Architecture class in the model's config.", "Qwen3ForCausalLM")
    dtype: DType = about("Element type of weights and activations.", "bfloat16")
    config_digest: Digest | None = fill(
        ARM_FREEZE, "SHA-256 of the model's config file as deployed.", "sha256:" + "1" * 64
    )
    weights_digest: Digest | None = fill(
        ARM_FREEZE, "SHA-256 over the sorted list of weight file digests as deployed.", "sha256:" + "2" * 64
    )


class SpeculativeDecoding(Value):
    method: Name = about("Method that drafts the tokens.", "eagle3")
    draft_tokens: Positive = about("Draft tokens per step.", 3)
    acceptance_length_tokens: NonNegative | None = maybe("Mean accepted tokens per step, a guard.", 2.4)


class ServingState(Value):
    """The state that every serving leg starts from."""

    prefix_cache: Literal["off", "cold", "warm"] = about("Prefix-cache policy of the legs.", "off")
    prefix_hits: Count | None = maybe("Prefix-cache hits read after the leg.", 0)
    prefix_queries: Count | None = maybe("Prefix-cache queries read after the leg.", 1000)
    scheduler: Name = about("Scheduler and batching policy, as the framework names it.", "chunked_prefill")
    max_batch_tokens: Positive | None = maybe("Token budget of one step.", 8192)
    max_batch_requests: Positive | None = maybe("Request budget of one step.", 256)
    kv: KvLayout | None = maybe("KV cache layout that the engine runs with.", sample(KvLayout))
    speculative: SpeculativeDecoding | None = maybe("Speculative decoding, where used.", sample(SpeculativeDecoding))
    routing: tuple[Ratio, ...] = several("Share of tokens per expert, for mixture-of-experts models.", [0.5, 0.5])


class PublicKey(Value):
    key_id: Digest = about("SHA-256 of the raw public key.", "sha256:" + "3" * 64)
    public_key: PublicKeyText = about("Raw Ed25519 public key, base64.", "A" * 43 + "=")


def _key(digit: str, letter: str) -> dict[str, str]:
    """An example key, visibly made up."""
    return {"key_id": "sha256:" + digit * 64, "public_key": letter * 42 + "A="}


class RoleKeys(Value):
    """The public key pinned for each role."""

    supervisor: PublicKey = about("Key of the supervisor.", _key("3", "A"))
    builder: PublicKey = about("Key of the Trusted Builder.", _key("4", "B"))
    evaluator: PublicKey = about("Key of the Trusted Evaluator.", _key("5", "C"))
    judge: PublicKey = about("Key of the judge.", _key("6", "D"))


class NamedDigest(Value):
    name: Name = about("Name of the file or object, without its folder on this machine.", "op_summary.csv")
    digest: Digest = about("SHA-256 of its bytes.", "sha256:" + "7" * 64)


class LoadedLibrary(NamedDigest):
    rank: Count | None = maybe("Rank of the process that loads it; absent when every rank does.", 0)


class Setting(Value):
    name: Name = about("Name of the setting or variable.", "LANG")
    value: MaybeEmpty = about("Its value, as it was in force; may be empty.", "C")


class NamedValue(Value):
    name: Name = about("Name of the variable.", "TASK_QUEUE_ENABLE")
    value: MaybeEmpty | None = fill(
        ARM_FREEZE, "Its value, as read where the work runs; a variable that is not set is left out.", "2"
    )


class AccuracySuite(Value):
    name: Id = about("Name of the accuracy suite.", "gsm8k")
    n: Positive = about("Number of questions.", 1319)
    metric: Name = about("Metric of the suite; more is better.", "exact_match_ratio")
    baseline: Ratio | None = fill("akf calibrate CAMPAIGN", "Baseline's score, measured on the arm.", 0.87)
    margin_ratio: Ratio | None = fill(
        "akf fill CAMPAIGN --set POINTER=VALUE", "Loss of score that still counts as equal.", 0.01
    )
    seeds: tuple[Count, ...] = about("Seeds of the sampled runs.", [1, 2, 3])
