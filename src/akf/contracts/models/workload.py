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
        [{"name": "qwen_traceA.jsonl", "digest": "sha256:" + "0" * 64}],
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
    site: Text = about(
        "File and function in the framework.", "vllm_ascend/ops/layernorm.py AscendRMSNorm.forward_oot"
    )
    provider: Name = about("What answers the call.", "torch_npu.npu_add_rms_norm")
    op: Id = about("Operator.", "add_rms_norm")
    operands: tuple[Operand, ...] = about(
        "Operands with shapes, dtypes and layout.",
        [{"name": "x", "access": "in", "dtype": "bfloat16", "shape": [16, 4096], "layout": "ND"}],
        min_length=1,
    )
    attributes: tuple[Attribute, ...] = several(
        "Attributes of the operator.", [{"name": "eps", "value": 1e-6}]
    )
    graph: Graph = about("Graph mode of the callsite.", {"mode": "graph"})
    calls_per_step: Positive = about("Calls in one forward step.", 72)


class ShapeWeight(Value):
    callsite: Id = about("Callsite.", "add-rms-norm")
    symbols: dict[Symbol, Positive] = about("Sizes of the symbols.", {"T": 16})
    calls: Count = about("Calls seen with these sizes.", 1152)
    weight_ratio: Ratio = about("Share of this callsite's calls.", 0.4)


class Stage(Value):
    id: Literal["short_prefill", "long_prefill", "decode", "mixed"] = about("Stage of serving.", "decode")
    bounds: TokenBounds = about(
        "Token bounds that cut the stage.",
        {"input_min_tokens": 1, "input_max_tokens": 2048, "output_min_tokens": 1, "output_max_tokens": 512},
    )
    concurrency: Positive = about("Requests in flight.", 16)
    arrivals: Arrivals = about("Arrival process.", {"process": "closed_loop"})
    weight_ratio: Ratio | None = fill(INGEST, "Share of the requests that fall into the stage.", 0.5)
    shapes: tuple[ShapeWeight, ...] | None = fill(
        INGEST,
        "Sizes seen per callsite with their weights.",
        [{"callsite": "add-rms-norm", "symbols": {"T": 16}, "calls": 1152, "weight_ratio": 1.0}],
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
        {"kind": "declared", "description": "Stages declared by hand; weights open.", "files": []},
    )
    stages: tuple[Stage, ...] = about(
        "Stages with their weights.",
        [
            {
                "id": "decode",
                "bounds": {
                    "input_min_tokens": 1,
                    "input_max_tokens": 2048,
                    "output_min_tokens": 1,
                    "output_max_tokens": 512,
                },
                "concurrency": 16,
                "arrivals": {"process": "closed_loop"},
                "weight_ratio": None,
                "shapes": None,
            }
        ],
        min_length=1,
    )
    callsites: tuple[Callsite, ...] = about(
        "Callsites of the operators.",
        [
            {
                "id": "add-rms-norm",
                "site": "ops/layernorm.py",
                "provider": "torch_npu.npu_add_rms_norm",
                "op": "add_rms_norm",
                "operands": [
                    {"name": "x", "access": "in", "dtype": "bfloat16", "shape": [16, 4096], "layout": "ND"}
                ],
                "graph": {"mode": "graph"},
                "calls_per_step": 72,
            }
        ],
        min_length=1,
    )
    prefix: PrefixReuse | None = maybe(
        "Prefix reuse, where block ids exist.", {"block_size_tokens": 16, "reuse_ratio": 0.3}
    )
    digest_of_requests: Digest | None = maybe(
        "SHA-256 of the request list that legs replay.", "sha256:" + "1" * 64
    )
