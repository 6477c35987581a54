"""Workload: what the service is asked to do. Owner: supervisor.

Invariants:
- Figures of a trace are of the requests inside the stages, which are the ones that legs replay; what lies outside every
  stage and what failed is counted apart and never put elsewhere.
- Times are offsets from the first of these requests; a rate is the number of gaps over the span.
- A trace says when requests come and how long they are. It does not say how many are in flight, nor the sizes of a
  step: the first stays declared, the second comes from a Capture.
"""

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
    StageName,
    Symbol,
    Text,
    Value,
    about,
    fill,
    maybe,
    sample,
    several,
    stated,
)
from akf.contracts.models.common import Attribute, Graph, NamedDigest, Operand

INGEST = "akf ingest trace TRACE --onto WORKLOAD --out FILE"
SIZES = "akf ingest trace TRACE --onto WORKLOAD --capture CAPTURE --out FILE"


TraceLayout = Literal["bailian", "mooncake", "azure", "burstgpt", "timed_trace"]


class Source(Value):
    kind: Literal["trace", "declared"] = about(
        "Whether the stages come from a real trace or were declared by hand.", "trace"
    )
    description: Text = about("Where it comes from, in a sentence.", "Bailian traceA, first hour")
    files: tuple[NamedDigest, ...] = about(
        "Digests of the files that were read; empty when it was declared by hand.",
        [sample(NamedDigest)],
    )
    layout: TraceLayout | None = maybe("Layout of the trace's files.", "bailian")
    time_unit_ns: Positive | None = maybe(
        "One unit of the files' time stamps, in nanoseconds; absent where they are dates.", 1000000000
    )
    tokenizer: Name | None = maybe("Tokenizer that the token counts belong to.", "Qwen")
    tokenizer_matches: bool | None = maybe(
        "Whether that is the served model's tokenizer; absent when it is not known.", True
    )


class TokenBounds(Value):
    input_min_tokens: Count = about("Smallest prompt of the stage, in tokens.", 1)
    input_max_tokens: Count = about("Largest prompt of the stage, in tokens.", 2048)
    output_min_tokens: Count = about("Smallest answer of the stage, in tokens.", 1)
    output_max_tokens: Count = about("Largest answer of the stage, in tokens.", 512)


class Busiest(Value):
    window_s: Positive = about("Length of the window, in seconds.", 10)
    requests: Positive = about("Most requests that arrive in any window of this length.", 96)


class Arrivals(Value):
    process: Literal["closed_loop", "poisson", "trace"] = about("How requests arrive.", "poisson")
    rate_per_s: NonNegative | None = maybe("Mean arrival rate, requests per second.", 4.0)
    gap_cv_ratio: NonNegative | None = maybe(
        "Spread of the time between arrivals over its mean: 1 for a Poisson process, more for bursts.", 1.7
    )
    instants: Positive | None = maybe(
        "Different times of arrival; far fewer than requests means a trace that rounds its clock.", 5000
    )
    busiest: tuple[Busiest, ...] = several("Busiest windows of 1, 10 and 60 seconds.", [sample(Busiest)])


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
    id: StageName = about("Which stage of serving this is.", "decode")
    bounds: TokenBounds = about(
        "Token bounds that cut the stage.",
        sample(TokenBounds),
    )
    concurrency: Positive = about("Requests in flight.", 16)
    concurrency_source: Literal["declared", "measured"] | None = maybe(
        "Where the concurrency comes from; arrivals alone cannot tell it.", "declared"
    )
    requests: Count | None = maybe("Requests of the trace that fall into the stage.", 2600)
    arrivals: Arrivals = about("How requests arrive in the stage.", sample(Arrivals))
    weight_ratio: Ratio | None = fill(INGEST, "Share of the requests that fall into the stage.", 0.5)
    shapes: tuple[ShapeWeight, ...] | None = fill(
        SIZES,
        "Sizes seen per callsite with their weights.",
        [sample(ShapeWeight)],
    )


class PrefixReuse(Value):
    """Blocks that a cache without limit would know; the last block of a prompt is rarely full and counts as one."""

    block_size_tokens: Positive = about("Tokens in one hashed block.", 16)
    reuse_ratio: Ratio | None = fill(INGEST, "Share of prompt blocks that an earlier request had.", 0.3)
    leading_ratio: Ratio | None = maybe(
        "Share of prompt blocks in a prompt's unbroken start of such blocks: what a prefix cache can use.", 0.29
    )
    session_ratio: Ratio | None = maybe("Share of prompt blocks that an earlier request of the same session had.", 0.2)
    prompt_blocks: Count | None = maybe("Blocks of all prompts.", 480000)
    reused_blocks: Count | None = maybe("Prompt blocks that an earlier request had.", 144000)
    partial_prompts: Count | None = maybe(
        "Prompts whose last block is not full; it may come back under another id when the session goes on.", 4700
    )


class TokenSpread(Value):
    """Order statistics by nearest rank."""

    p50_tokens: Count = about("Half of the requests have at most this many, in tokens.", 480)
    p90_tokens: Count = about("Nine of ten requests have at most this many, in tokens.", 2900)
    p99_tokens: Count = about("All but one of a hundred have at most this many, in tokens.", 12000)
    max_tokens: Count = about("The largest of all, in tokens.", 31000)
    total_tokens: Count = about("Sum over all requests, in tokens.", 4400000)


class Sessions(Value):
    sessions: Positive = about("Sessions that the requests belong to.", 3100)
    follow_ups: Count = about("Requests that are not the first of their session.", 2100)
    longest_turns: Positive = about("Requests of the longest session, in turns.", 14)


class RequestKind(Value):
    name: Name = about("Kind of request, as the trace names it.", "text")
    requests: Positive = about("Requests of this kind.", 4800)


class Traffic(Value):
    """What the trace says as a whole."""

    requests: Positive = about("Requests inside the stages.", 5200)
    outside: Count = about("Requests outside the bounds of every stage; they are in no other figure.", 31)
    outside_ratio: Ratio = about("Their share of the requests that were answered.", 0.00593)
    failures: Count = about("Requests without an answer, where the trace marks them; in no other figure.", 12)
    span_ns: Count = about("From the first arrival to the last, in nanoseconds.", 3600000000000)
    arrivals: Arrivals = about("How all requests arrive.", {"process": "trace", "rate_per_s": 1.44})
    input: TokenSpread = about("Lengths of the prompts.", sample(TokenSpread))
    output: TokenSpread = about("Lengths of the answers.", sample(TokenSpread))
    sessions: Sessions | None = maybe("Sessions, where the trace names them.", sample(Sessions))
    kinds: tuple[RequestKind, ...] = several("Requests by kind, where the trace names kinds.", [sample(RequestKind)])


class Fraction(Value):
    numerator: Count = about("Number above the line.", 3)
    denominator: Positive = about("Number below the line; the two have no common factor.", 250)


class SampleError(Value):
    statistic: Id = about("Statistic that is compared.", "rate-per-s")
    whole_value: NonNegative = about("Its value over the whole trace.", 1.44)
    sample_value: NonNegative | None = stated("The sample does not have it.", "Its value over the sample.", 1.4)
    error_ratio: NonNegative | None = stated(
        "The sample does not have it, or the whole trace has 0: there is nothing to compare with.",
        "Difference of the two: of shares as it is, of anything else over the whole trace's value.",
        0.027778,
    )


class Sample(Value):
    """The part of the trace that legs replay, and how far it is from the whole."""

    method: Literal["window"] = about("How it was chosen: requests that follow one another.", "window")
    requests: Positive = about("Requests of the sample.", 1000)
    windows: Positive = about("Windows that were compared; the one with the smallest worst error was taken.", 256)
    start_ns: Count = about("Offset of its first request in the trace, in nanoseconds.", 412000000000)
    worst_ratio: NonNegative | None = stated(
        "An error is not known, so the worst is not.", "Worst error of all that are listed.", 0.031
    )
    input_distance: Fraction = about("Kolmogorov-Smirnov distance of the prompts' lengths, exact.", sample(Fraction))
    output_distance: Fraction = about("Kolmogorov-Smirnov distance of the answers' lengths, exact.", sample(Fraction))
    errors: tuple[SampleError, ...] = about("Error of each statistic.", [sample(SampleError)], min_length=1)


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
    traffic: Traffic | None = maybe("What the trace says as a whole.", sample(Traffic))
    sample: Sample | None = maybe("Part of the trace that legs replay; absent when it is all of it.", sample(Sample))
    digest_of_requests: Digest | None = maybe("SHA-256 of the request list that legs replay.", "sha256:" + "1" * 64)
