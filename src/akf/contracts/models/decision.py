"""Decision: the verdict and every rule that led to it. Owner: judge. Also Portability over the arms of a Suite."""

from typing import Literal

from akf.contracts.models.base import (
    AnyRoute,
    Artifact,
    Code,
    Count,
    Digest,
    DType,
    GateName,
    GraphMode,
    Id,
    Isolation,
    Lane,
    Name,
    Platform,
    Positive,
    Ref,
    Scalar,
    Symbol,
    Text,
    Value,
    about,
    maybe,
    refs,
    sample,
    several,
)
from akf.contracts.models.common import ExactToolkit
from akf.contracts.models.gate import Interval, Outcome

Verdict = Literal["promotable", "inventory", "rejected", "blocked", "incomplete", "incomparable"]


class Reason(Value):
    row: Count = about("Row of the decision table that fired.", 5)
    code: Code = about("Reason code; `akf explain CODE` tells more.", "GATE_MISSING")
    gate: GateName | None = maybe("Gate that it is about.", "model")
    check: Name | None = maybe("Check that it is about.", "gain:op-latency")
    text: Text = about("One sentence for people, with the numbers.", "The model gate is missing.")


class Judged(Value):
    """One check as the judge sees it, recomputed from samples where they exist."""

    gate: GateName = about("Gate that the check stands in.", "operator")
    check: Name = about("Name of the check in the gate.", "gain:op-latency")
    outcome: Outcome = about("Outcome after recomputation and comparison of identities.", "pass")
    recomputed: bool = about("Whether raw samples were recomputed.", True)
    interval: Interval | None = maybe(
        "Interval as recomputed.",
        sample(Interval),
    )
    lag1_correlation: float | None = maybe("Lag-1 correlation of the pairs' ratios, a known limit.", 0.1)


class Missing(Value):
    gate: GateName = about("Gate that is missing or incomplete.", "model")
    check: Name | None = maybe("Check; absent when the whole gate is missing.", "gain:tpot-median")
    pairs_to_decide: Positive | None = maybe("Estimate of the pairs that would decide.", 24)


class DomainRow(Value):
    id: Id = about("Name of the row in the Task.", "decode-1")
    symbols: dict[Symbol, Positive] = about("Sizes of the symbols.", {"T": 1})
    attributes: dict[Symbol, Scalar] = about("Values of the attributes.", {"eps": 1e-6})


class Envelope(Value):
    """Where the claim holds; everything else falls back."""

    op: Id = about("Operator that the claim is about.", "rms_norm")
    rows: tuple[DomainRow, ...] = about(
        "Shapes and attributes that passed; the largest sub-domain that would.",
        [sample(DomainRow)],
    )
    gain: Interval | None = maybe(
        "Interval of the operator's gain over these rows alone; absent where they are all of the Task's, or unmeasured.",
        sample(Interval),
    )
    dtypes: tuple[DType, ...] = about("Element types of the operands in order.", ["float32"])
    layouts: tuple[Name, ...] = about("Memory formats of the operands in order.", ["ND"])
    platform: Platform = about("Platform that was measured.", "host")
    soc: Name = about("Full name of the SoC that was measured, or the architecture of a host.", "x86_64")
    toolkit: ExactToolkit = about("Toolkit that was measured, exact.", sample(ExactToolkit))
    route: AnyRoute = about("Route that produced the kernel.", "host_cpp")
    graph: GraphMode = about("Whether the claim is about eager launches or graph replay.", "eager")
    arm: Id = about("Framework arm that was measured.", "host_reference")
    model: Name = about("Model that was served.", "Qwen3-8B")


class Decision(Artifact):
    kind: Literal["Decision"] = about("Kind of this artifact.", "Decision")
    verdict: Verdict = about(
        "The verdict. `promotable` means the machine gates hold, not that anything is released.", "incomplete"
    )
    row: Count = about("Row of the decision table that decided.", 5)
    reasons: tuple[Reason, ...] = about(
        "Every rule that fired, the deciding one first.",
        [sample(Reason)],
        min_length=1,
    )
    parents: tuple[Ref, ...] = about(
        "Run, Suite, Campaign, Workload, Capture, Task, Candidate, Build, Plans and Gates.",
        refs("Run", "OptimizationSuite", "Campaign", "Workload", "Capture", "Task", "Candidate", "Build"),
        min_length=7,
    )
    ledger_head: Digest = about(
        "Digest of the last gate line of this attempt, to which the ledger was read.", "sha256:" + "0" * 64
    )
    ledger_lines: Positive = about("Lines of the ledger up to there.", 9)
    tries: Count = about("Evaluations of this Task up to there (k); the promotable claim pays for them.", 3)
    checks: tuple[Judged, ...] = about(
        "Checks as judged, in the order of gates and checks.",
        [sample(Judged)],
    )
    missing: tuple[Missing, ...] = several("What is missing for a higher verdict.", [sample(Missing)])
    envelope: Envelope = about("Support envelope of the claim.", sample(Envelope))
    isolation: Isolation | None = maybe("Weakest isolation among the gates; absent without gates.", "userns")
    trust: Literal["signed", "unsigned"] = about("Signing mode of the Campaign.", "signed")
    rules_version: Positive = about("Version of the decision table.", 1)


class ArmVerdict(Value):
    arm: Id = about("Required arm of the Suite.", "xllm")
    verdict: Verdict = about("Verdict of its Decision.", "promotable")
    decision: Ref | None = maybe(
        "The Decision; absent when the arm has none.",
        refs("Decision")[0],
    )


class Portability(Artifact):
    kind: Literal["Portability"] = about("Kind of this artifact.", "Portability")
    suite: Ref = about("Suite whose required arms are judged.", refs("OptimizationSuite")[0])
    lane: Lane = about("Lane that the arms were measured in.", "per_framework_native_ab")
    verdict: Literal["portable", "not_portable", "inventory", "blocked", "incomplete", "incomparable"] = about(
        "Fold over the required arms.", "incomplete"
    )
    arms: tuple[ArmVerdict, ...] = about("Verdict of every required arm.", [sample(ArmVerdict)], min_length=1)
    reasons: tuple[Text, ...] = several("Why, one sentence for each rule that fired.", ["arm xllm: incomplete"])
