"""ServingBenchmark: what a client of a serving framework measured, in one meaning. Owner: supervisor.

Invariants:
- A metric has a concept, a statistic, a quantile rule, a population and a weight: two of them are compared only where
  all five agree. A guidellm time per output token, which counts the first token, is a concept of its own.
- Times are whole nanoseconds, converted from the decimal text of the file.
- A figure that too few samples support is listed as refused, with what was printed; it is never dropped.
- No prompt, no answer, no host, address, folder or user name has a field here.
"""

from typing import Annotated, Literal

from pydantic import Field

from akf.contracts.models.base import (
    Artifact,
    Count,
    DataClass,
    Id,
    Name,
    NonNegative,
    Positive,
    Ratio,
    Text,
    Value,
    Whole,
    about,
    maybe,
    sample,
    several,
    stated,
)
from akf.contracts.models.common import NamedDigest

Statistic = Annotated[str, Field(pattern=r"^(?:mean|std|min|max|p(?:[1-9][0-9]?|0)(?:\.[0-9]{0,5}[1-9])?)$")]
Concept = Literal["ttft", "tpot", "itl", "itl_per_token", "e2e", "e2e_per_output_token", "batch_e2e"]
Method = Literal["nearest_rank", "linear", "as_printed"]
Weight = Literal["request", "token", "gap", "batch"]
BenchTool = Literal["vllm", "vllm_latency", "vllm_throughput", "sglang", "evalscope", "aiperf", "guidellm", "aisbench"]


class Harness(Value):
    name: BenchTool = about("Tool that measured.", "vllm")
    version: Name | None = stated("The file does not say it.", "Version of the tool.", "0.33.0")
    layout: Name = about("Layout of the file, as AKF recognised it.", "serve")


class IdentityFact(Value):
    """What the file says about what was measured. Nothing here is checked against the server."""

    name: Id = about("Which fact this is.", "model")
    value: Name = about("Its value; of a folder or file only the last part.", "Qwen/Qwen3-8B")
    stated_by: Literal["harness", "replaceable"] = about(
        "Whether the tool itself wrote it, or a free remark of the user may have replaced it.", "replaceable"
    )


class Load(Value):
    process: Literal["closed_loop", "rate", "all_at_once", "trace", "ramp", "unknown"] = about(
        "How requests were sent.", "rate"
    )
    rate_per_s: NonNegative | None = stated("No rate was set.", "Rate that was asked for, requests per second.", 4.0)
    concurrency: Positive | None = stated("No limit was set, or none is known.", "Requests in flight at most.", 16)
    burstiness: NonNegative | None = maybe("Shape of the arrival gaps; 1 is a Poisson process.", 1.0)


class Requests(Value):
    sent: Count | None = stated("The file does not say it.", "Requests that were sent and ended.", 1000)
    completed: Count = about("Requests that were answered.", 998)
    failed: Count | None = stated(
        "The file does not say it, and nothing it holds shows it.", "Requests that failed.", 2
    )
    failed_from: Literal["printed", "errors", "difference"] | None = stated(
        "The failures are not known.",
        "Whether they were printed, counted by their error texts, or subtracted.",
        "printed",
    )
    incomplete: Count | None = maybe("Requests that the end of the run cut off.", 0)


class TokenCounts(Value):
    """Tokens of the completed requests."""

    input_tokens: Count | None = stated("The file does not say it.", "Tokens of the prompts.", 511000)
    output_tokens: Count | None = stated("The file does not say it.", "Tokens that were generated.", 127744)
    total_tokens: Count | None = maybe("Both together, where the file does not part them.", 638744)
    input_mean_tokens: NonNegative | None = maybe("Prompt tokens per completed request.", 512.0)
    output_mean_tokens: NonNegative | None = maybe("Generated tokens per completed request.", 128.0)


class Throughput(Value):
    """As printed; every one divides by the duration."""

    requests_per_s: NonNegative | None = maybe("Completed requests per second.", 3.9)
    input_tokens_per_s: NonNegative | None = maybe("Prompt tokens per second.", 1996.0)
    output_tokens_per_s: NonNegative | None = maybe("Generated tokens per second.", 499.0)
    total_tokens_per_s: NonNegative | None = maybe("Prompt and generated tokens per second.", 2495.0)


class Objective(Value):
    concept: Concept = about("Latency that is bounded.", "ttft")
    at_most_ns: Count = about("Bound, in nanoseconds; a request on it is good.", 500000000)


class Goodput(Value):
    objectives: tuple[Objective, ...] | None = stated(
        "The file does not say which objectives were set.", "Objectives that a good request meets.", [sample(Objective)]
    )
    rate_per_s: NonNegative | None = maybe("Good requests per second of the run's duration.", 3.5)
    attainment_ratio: Ratio | None = maybe("Share of good requests.", 0.9)
    attainment_over: Literal["sent", "evaluated"] | None = maybe(
        "What that share divides by: requests sent, or those that could be judged (failed ones included).", "sent"
    )


class LatencyMetric(Value):
    concept: Concept = about("What was measured.", "ttft")
    statistic: Statistic = about("Which figure of its distribution.", "p99")
    value_ns: Count = about("Its value, in nanoseconds.", 61353111)
    method: Method | None = stated("It is no quantile.", "Rule of the quantile.", "nearest_rank")
    population: Literal["completed", "includes_failures", "unknown"] = about("Which requests it covers.", "completed")
    weight: Weight = about("What counts once in it.", "request")
    samples: Positive | None = stated("The file does not say how many.", "How many values stand behind it.", 1000)
    recomputed: bool = about("Whether AKF computed it from the detail, or the tool printed it.", True)
    printed_difference_ns: Whole | None = maybe(
        "What the tool printed for the same figure, less this value, in nanoseconds.", 0
    )


class RefusedMetric(Value):
    concept: Concept = about("What would have been measured.", "itl")
    statistic: Statistic = about("Which figure of its distribution.", "p99.9")
    reason: Literal["too_few_samples", "zero_is_no_measurement", "no_request_completed"] = about(
        "Why it is no figure to rely on.", "too_few_samples"
    )
    samples: Count | None = stated("Not known; but no more than are needed.", "How many values stand behind it.", 24)
    needed_samples: Positive | None = maybe("How many values the quantile needs.", 10000)
    printed_ns: Count | None = maybe("What the tool printed nevertheless, in nanoseconds.", 12824381)


class Remark(Value):
    name: Id = about("What the remark is about.", "printed-disagrees")
    text: Text = about("The remark, with its figures.", "ttft p99: printed 61353 us, its detail gives 60623 us")


class BenchmarkResult(Value):
    """One run of one tool."""

    id: Id = about("Name of the result in this artifact.", "run-1")
    harness: Harness = about("Tool that measured.", sample(Harness))
    sources: tuple[NamedDigest, ...] = about(
        "Digests of the files it was read from.", [sample(NamedDigest)], min_length=1
    )
    position: Positive = about("Which of the runs in its files it is, from 1.", 1)
    identity: tuple[IdentityFact, ...] = several("What the files say about what was measured.", [sample(IdentityFact)])
    load: Load = about("How requests were sent.", sample(Load))
    duration_ns: Positive | None = stated(
        "The file does not say it.", "Duration of the run, in nanoseconds.", 256000000000
    )
    requests: Requests = about("Requests by their outcome.", sample(Requests))
    tokens: TokenCounts = about("Tokens that were moved.", sample(TokenCounts))
    throughput: Throughput = about("Rates of the whole run.", sample(Throughput))
    goodput: Goodput | None = maybe("Goodput, where objectives were set.", sample(Goodput))
    metrics: tuple[LatencyMetric, ...] = about("Latency figures.", [sample(LatencyMetric)])
    refused: tuple[RefusedMetric, ...] = several("Figures that are not supported, and why.", [sample(RefusedMetric)])
    remarks: tuple[Remark, ...] = several("What does not fit together in the files.", [sample(Remark)])


class ServingBenchmark(Artifact):
    kind: Literal["ServingBenchmark"] = about("Kind of this artifact.", "ServingBenchmark")
    data_class: DataClass = about("How the data may travel.", "internal")
    results: tuple[BenchmarkResult, ...] = about(
        "Results, one for each run; runs are never merged.", [sample(BenchmarkResult)], min_length=1
    )
