"""Triage: is this worth a kernel, and which; with every number and the rule that decided. Owner: supervisor.

Invariants:
- Shares are parts of the steps' wall time, never of summed device time.
- Every policy value says where it comes from; one that nobody stated is marked `assumed`.
- An answer that cannot be given yet is `null`; no-go is a conclusion like the others.
- What was not observed is `null` or `unobserved`, never a guess.
"""

from typing import Annotated, Literal

from pydantic import Field

from akf.contracts.models.base import (
    Artifact,
    Code,
    Count,
    Id,
    Name,
    NonNegative,
    Platform,
    Positive,
    Ratio,
    Ref,
    Scalar,
    Speedup,
    StageName,
    Symbol,
    Text,
    Value,
    Whole,
    about,
    maybe,
    refs,
    sample,
    several,
    stated,
)

Verdict = Literal["kernel", "integration", "configuration", "pipeline", "no_go"]
_Many = Annotated[float, Field(ge=0, le=1_000_000)]
_Several = Annotated[int, Field(ge=1, le=1_000_000)]
_Times = Annotated[int, Field(ge=0, le=1_000_000)]
_Seconds = Annotated[int, Field(ge=1, le=31_536_000)]

_NOT_YET = "It cannot be told yet; the blockers say what is missing."


class OpportunityPolicy(Value):
    """What a triage goes by. A value that is absent is assumed, and the Triage says so."""

    target_ratio: Speedup | None = maybe(
        "Speed-up of the service that makes a Task worth while; else the least service gain of the acceptance, plus 1.",
        1.02,
    )
    local_speedup_ratio: Speedup | None = maybe("Local speed-up for which the bound is shown; 2 if absent.", 2.0)
    candidates: _Several | None = maybe("Candidates that are expected to be evaluated; 10 if absent.", 10)
    evaluation_s: _Seconds | None = maybe(
        "Device time of one operator gate, in seconds; 600 if absent.",
        600,
    )
    leg_s: _Seconds | None = maybe(
        "Device time of one leg of the model or serving gate, its start included, in seconds; 300 if absent.", 300
    )
    most_eager_ratio: Ratio | None = maybe(
        "Largest share outside graphs of a healthy baseline that replays graphs; 0.05 if absent.", 0.05
    )
    most_padding_ratio: Ratio | None = maybe(
        "Largest share of padding in a graph bucket of a healthy baseline; 0.25 if absent.", 0.25
    )
    most_recompiles: _Times | None = maybe("Most graph recompilations of a healthy baseline; 0 if absent.", 0)
    most_jit_compiles: _Times | None = maybe("Most just-in-time compilations of a healthy baseline; 0 if absent.", 0)
    most_unmapped_ratio: Ratio | None = maybe(
        "Largest share of computing time without a callsite in a complete Capture; 0.3 if absent.", 0.3
    )
    most_missing_calls_ratio: Ratio | None = maybe(
        "Largest difference between calls expected and seen in a complete Capture; 0.02 if absent.", 0.02
    )
    least_compute_ratio: Ratio | None = maybe(
        "Least busy share of the Cube or Vector unit for which `compute` is the active bound; 0.7 if absent.", 0.7
    )
    least_transfer_ratio: Ratio | None = maybe(
        "Least busy share of a transfer pipe for which `transfer` is the active bound; 0.7 if absent.", 0.7
    )
    least_balance_ratio: Ratio | None = maybe(
        "Least share of the longest block in which an average one has ended, for `balance`; 0.2 if absent.", 0.2
    )
    least_launch_ratio: _Many | None = maybe(
        "Least host time of an eager call as a ratio of its device time, for `launch_graph`; 1 if absent.", 1.0
    )
    least_provider_ratio: Speedup | None = maybe(
        "Least local speed-up with which another provider's kernel wins; 1.05 if absent.", 1.05
    )


class PolicyValue(Value):
    name: Symbol = about("Name of the value.", "target_ratio")
    value: Scalar = about("The value that was used.", 1.02)
    source: Literal["flag", "campaign", "capture", "default"] = about("Where the value comes from.", "campaign")
    assumed: bool = about("Whether nobody stated it, so that the default was taken.", False)


class TriageBlocker(Value):
    """What must be there before the answer can become a Task."""

    artifact: Literal["Campaign", "Workload", "Capture"] = about("Artifact that leaves it open.", "Capture")
    pointer: Text = about("JSON pointer to what is missing.", "/breakdown/0/steps_ns")
    expected: Text = about("What is expected there.", "At least 6 steps.")
    command: Text = about(
        "Command that produces it.", "akf ingest profile PATH --workload WORKLOAD --arm ARM --out CAPTURE"
    )


class StepInterval(Value):
    low_ratio: NonNegative = about("Lower end of the interval.", 0.1)
    high_ratio: NonNegative = about("Upper end of the interval.", 0.14)
    steps: Positive = about("Steps, or runs of neighbouring steps, behind it.", 32)
    confidence: NonNegative = about("Two-sided confidence; the exact coverage is at least this.", 0.95)


class Metric(Value):
    name: Name = about("What was observed.", "aiv_mte2")
    value: NonNegative = about("Its value: a share of the launches' device time unless the name says else.", 0.82)


class ActiveBound(Value):
    """What limits a kernel, from counters; never from its name."""

    bound: Literal["compute", "transfer", "balance", "launch_graph", "unobserved"] = about(
        "The active bound, or `unobserved` where no metric reaches its threshold.", "transfer"
    )
    metrics: tuple[Metric, ...] = several("What was observed.", [sample(Metric)])
    moves: tuple[Name, ...] = several("Family of moves that the bound permits.", ["tiling", "data reuse"])


class Elsewhere(Value):
    """The same operator at the same shapes, measured faster under another kernel."""

    kernel: Name = about("The faster kernel.", "AddRmsNormBias")
    capture: Ref | None = maybe("Capture in which it was measured; absent for this one.", refs("Capture")[0])
    speedup_ratio: NonNegative = about("How much faster it is at the shapes that both have.", 1.4)
    common_ratio: Ratio = about("Share of the hotspot's device time at those shapes.", 0.9)
    bound_ratio: NonNegative = about("Speed-up of the service if it were used at those shapes.", 1.03)


class Hotspot(Value):
    name: Name = about("Callsite, kernel family, or line of the step.", "add-rms-norm")
    what: Literal["callsite", "kernel", "line"] = about(
        "A callsite of the Workload, kernels without a callsite, or a line of the step that no kernel fills.",
        "callsite",
    )
    callsite: Id | None = stated("It is no callsite of the Workload.", "Callsite in the Workload.", "add-rms-norm")
    kernels: tuple[Name, ...] = several("Its kernels as the profiler names them.", ["AddRmsNormBias"])
    calls: Count = about("Launches measured.", 2304)
    time_ns: Count = about("Device time of all launches, or the line's time, in nanoseconds.", 17000000)
    exposed_ns: Count | None = stated(
        "The Capture does not tell it.", "Part of the time that would go with it, in nanoseconds.", 16389720
    )
    share_ratio: NonNegative | None = stated(
        "The exposed time is not known, so no share.",
        "Share h of the steps' wall time: Hodges-Lehmann over steps, or the ratio of totals without an interval.",
        0.12,
    )
    total_share_ratio: NonNegative | None = stated(
        "The exposed time is not known.", "The same share as ratio of totals.", 0.12
    )
    interval: StepInterval | None = stated(
        "Fewer than 6 steps, or a line that is recorded as a total only.",
        "Interval of h over steps.",
        sample(StepInterval),
    )
    note: Text | None = maybe("What to know about these numbers.", "The ratio of totals lies outside the interval.")
    ceiling_ratio: NonNegative | None = stated(
        "No share, or the whole step.", "Speed-up of the service if it cost nothing, 1/(1-h).", 1.13636
    )
    ceiling_high_ratio: NonNegative | None = stated(
        "No high end of the share is known, or it is the whole step.",
        "The ceiling at the high end of the interval; of a line that is a total, its ceiling.",
        1.1628,
    )
    bound_ratio: NonNegative | None = stated(
        "No share.", "Speed-up of the service at the policy's local speed-up.", 1.0638
    )
    needed_speedup_ratio: NonNegative | None = stated(
        "No local speed-up reaches the target.", "Local speed-up that the target needs.", 1.2
    )
    coverage_ratio: Ratio | None = stated(
        "There is no callsite whose domain could be compared.", "Share of calls inside the support domain.", 0.93
    )
    covered_time_ratio: Ratio | None = stated(
        "There is no callsite whose domain could be compared.", "Share of its device time inside it.", 0.95
    )
    active_bound: ActiveBound = about("What limits this part of the step.", sample(ActiveBound))
    elsewhere: Elsewhere | None = maybe("A provider that is faster already.", sample(Elsewhere))
    comparable: bool = about("Whether a gain on this baseline would mean anything.", True)
    answer: Verdict | None = stated(_NOT_YET, "Task type, or no-go.", "kernel")
    rule: Code = about("Rule that answered; `akf explain CODE` tells more.", "KERNEL_WORTHWHILE")
    text: Text = about("The comparison that decided, with its numbers.", "The ceiling 1.1628 exceeds the target 1.02.")


class Line(Value):
    name: Name = about("Line of the step.", "communication")
    time_ns: Whole = about("Its time over all steps and ranks, in nanoseconds; a remainder may be negative.", 1000000)
    share_ratio: float = about("Its share of the steps' wall time; all lines add up to 1.", 0.2)


class Finding(Value):
    rule: Code = about("Rule that is broken; `akf explain CODE` tells more.", "BASELINE_EAGER")
    text: Text = about("What was found, with its numbers.", "A share of 0.4 ran outside graphs, at most 0.05 may.")


class HealthOfBaseline(Value):
    healthy: bool = about("Whether nothing that was seen is wrong.", True)
    findings: tuple[Finding, ...] = several("What is wrong with the baseline.", [sample(Finding)])
    unseen: tuple[Name, ...] = several("What the Capture does not tell, so that it was not checked.", ["recompiles"])


class CompletenessOfCapture(Value):
    calls: Literal["agree", "unknown"] = about("Whether calls expected and calls seen agree.", "agree")
    checks: Count = about("Cross-checks between the profiler's files that hold.", 3)
    unmapped_ratio: Ratio = about("Share of computing time without a callsite.", 0.04)


class Cost(Value):
    kernel_s: Count = about("Device time of a kernel Task through all gates, in seconds.", 27600)
    service_s: Count = about("Device time of a Task without operator gates, in seconds.", 21600)
    budget_s: Count = about("Device time that the budget holds, in seconds.", 36000)
    detectable_gain_ratio: NonNegative | None = stated(
        "Too few pairs for the confidence.",
        "Smallest true gain of the service that 80 % of runs show to exceed the target.",
        0.031,
    )


class TriageAnswer(Value):
    answer: Verdict | None = stated(_NOT_YET, "Task type, or no-go.", "kernel")
    rule: Code = about("Rule that answered.", "KERNEL_WORTHWHILE")
    hotspot: Name | None = stated("The answer is about the whole baseline.", "Hotspot it is about.", "add-rms-norm")
    text: Text = about("The comparison that decided, with its numbers.", "The ceiling 1.1628 exceeds the target 1.02.")


class Triage(Artifact):
    kind: Literal["Triage"] = about("Kind of this artifact.", "Triage")
    parents: tuple[Ref, ...] = about(
        "Campaign, Workload and Capture.",
        refs("Campaign", "Workload", "Capture"),
        min_length=3,
    )
    platform: Platform = about("Platform that was captured.", "ascend")
    stage: StageName | None = stated("The Capture is about all stages.", "Stage of the Workload.", "decode")
    others: tuple[Ref, ...] = several("Further Captures that were looked at for other providers.", refs("Capture"))
    policy: tuple[PolicyValue, ...] = about("Every value that the answer depends on.", [sample(PolicyValue)])
    completeness: CompletenessOfCapture = about("What was checked of the Capture.", sample(CompletenessOfCapture))
    health: HealthOfBaseline = about("State of the baseline.", sample(HealthOfBaseline))
    denominator: Literal["step_wall"] = about("What shares are parts of.", "step_wall")
    steps: Positive = about("Steps that were captured, on every rank.", 32)
    step_ns: Positive = about("Wall time of the steps of all ranks, in nanoseconds.", 136581000)
    lines: tuple[Line, ...] = about("Where the steps' wall time goes.", [sample(Line)], min_length=1)
    hotspots: tuple[Hotspot, ...] = about(
        "Hotspots and lines in order of their share.", [sample(Hotspot)], min_length=1
    )
    cost: Cost = about("What the campaign costs, and what it can detect.", sample(Cost))
    answer: TriageAnswer = about(
        "The answer about the whole, by the first hotspot that has a Task; no-go only when all are given up.",
        sample(TriageAnswer),
    )
    blockers: tuple[TriageBlocker, ...] = several("What is missing for a Task.", [sample(TriageBlocker)])
    ready: bool = about("Whether the answer can become a Task.", False)
    rules_version: Positive = about("Version of the rules of triage.", 1)
