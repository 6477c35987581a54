"""Workload: what the service is asked to do. Owner: supervisor."""

from typing import Literal

from akf.contracts.models.base import (
    Artifact,
    Count,
    DataClass,
    Digest,
    DType,
    Id,
    Name,
    NonNegative,
    Positive,
    Ratio,
    Symbol,
    Text,
    Value,
    about,
    fill,
    maybe,
    sample,
    several,
)
from akf.contracts.models.common import Attribute, Graph, NamedDigest, Operand

INGEST = "akf ingest trace TRACE --out WORKLOAD"


class Source(Value):
    kind: Literal["trace", "declared"] = about(
        "Whether the stages come from a real trace or were declared by hand.", "trace"
    )
    description: Text = about("Where it comes from, in a sentence.", "Bailian traceA, first hour")
    files: tuple[NamedDigest, ...] = about(
        "Digests of the source files; empty when declared.",
        [sample(NamedDigest)],
    )
    tokenizer: Name | None = maybe("Tokenizer that the token counts belong to.", "Qwen3")
    tokenizer_matches: bool | None = maybe("Whether that is the served model's tokenizer.", True)


class TokenBounds(Value):
    input_min_tokens: Count = about("Smallest prompt of the stage, in tokens.", 1)
    input_max_tokens: Count = about("Largest prompt of the stage, in tokens.", 2048)
    output_min_tokens: Count = about("Smallest answer of the stage, in tokens.", 1)
    output_max_tokens: Count = about("Largest answer of the stage, in tokens.", 512)


class Arrivals(Value):
    process: Literal["closed_loop", "poisson", "trace"] = about("How requests arrive.", "poisson")
    rate_per_s: NonNegative | None = maybe("Mean arrival rate, requests per second.", 4.0)


class Callsite(Value):
    id: Id = about("Name of the callsite.", "add-rms-norm")
    arm: Id | None = maybe("Arm that the callsite belongs to; absent when it is every arm's.", "vllm_ascend")
    site: Text = about("File and function in the framework.", "vllm_ascend/ops/layernorm.py AscendRMSNorm.forward_oot")
    provider: Name = about("What answers the call.", "torch_npu.npu_add_rms_norm")
    op: Id = about("Operator that is called.", "add_rms_norm")
    operands: tuple[Operand, ...] = about(
        "Operands with shapes, dtypes and layout.",
        [sample(Operand)],
        min_length=1,
    )
    attributes: tuple[Attribute, ...] = several("Attributes of the operator.", [sample(Attribute)])
    graph: Graph = about("Graph mode of the callsite.", sample(Graph))
    calls_per_step: Positive = about("Calls in one forward step, as the model's config gives them.", 72)


class ShapeWeight(Value):
    callsite: Id = about("Callsite that the sizes belong to.", "add-rms-norm")
    symbols: dict[Symbol, Positive] = about("Sizes of the symbols.", {"T": 16})
    calls: Count = about("Calls seen with these sizes; 0 when they are declared, not seen.", 1152)
    weight_ratio: Ratio = about("Share of this callsite's calls.", 0.4)


class Stage(Value):
    id: Literal["short_prefill", "long_prefill", "decode", "mixed"] = about("Which stage of serving this is.", "decode")
    bounds: TokenBounds = about(
        "Token bounds that cut the stage.",
        sample(TokenBounds),
    )
    concurrency: Positive = about("Requests in flight.", 16)
    arrivals: Arrivals = about("How requests arrive in the stage.", sample(Arrivals))
    weight_ratio: Ratio | None = fill(INGEST, "Share of the requests that fall into the stage.", 0.5)
    shapes: tuple[ShapeWeight, ...] | None = fill(
        INGEST,
        "Sizes seen per callsite with their weights.",
        [sample(ShapeWeight)],
    )


class PrefixReuse(Value):
    block_size_tokens: Positive = about("Tokens in one hashed block.", 16)
    reuse_ratio: Ratio | None = fill(INGEST, "Share of prompt blocks seen before.", 0.3)


class Workload(Artifact):
    kind: Literal["Workload"] = about("Kind of this artifact.", "Workload")
    title: Text = about("Title for people.", "Qwen3-8B, chat")
    data_class: DataClass = about("How the data may travel.", "internal")
    model: Name = about("Model that the shapes belong to.", "Qwen3-8B")
    dtype: DType = about("Element type of activations.", "bfloat16")
    source: Source = about(
        "Source of the numbers.",
        sample(Source),
    )
    stages: tuple[Stage, ...] = about(
        "Stages with their weights.",
        [sample(Stage)],
        min_length=1,
    )
    callsites: tuple[Callsite, ...] = about(
        "Callsites of the operators.",
        [sample(Callsite)],
        min_length=1,
    )
    prefix: PrefixReuse | None = maybe("Prefix reuse, where block ids exist.", sample(PrefixReuse))
    digest_of_requests: Digest | None = maybe("SHA-256 of the request list that legs replay.", "sha256:" + "1" * 64)
