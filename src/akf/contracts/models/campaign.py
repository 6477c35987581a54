"""Campaign: one arm, frozen. Owner: supervisor.

Invariants:
- Thresholds, margins, workload and baseline are inside the frozen digest.
- No threshold or margin lies below the noise limit (checked by `akf.contracts.rules.campaign`).
- Trust keys are pinned per role; a Gate signed by any other key is not evidence.
- Paths are relative to the Suite's folder: the nearest folder at or above the Campaign file that holds `suite.path`.
"""

from typing import Annotated, Literal

from pydantic import Field

from akf.contracts.models.base import (
    Artifact,
    Better,
    Count,
    DataClass,
    Digest,
    Id,
    Isolation,
    Lane,
    Name,
    NonNegative,
    Platform,
    Positive,
    Ratio,
    RelPath,
    ShortId,
    Text,
    Value,
    about,
    fill,
    maybe,
    sample,
    several,
)
from akf.contracts.models.common import (
    ARM_FREEZE,
    AccuracySuite,
    CapabilityTuple,
    LoadedLibrary,
    ModelIdentity,
    NamedValue,
    Ranks,
    RoleKeys,
    ServingState,
    Soc,
    Toolkit,
)
from akf.contracts.models.triage import OpportunityPolicy

SET = "akf fill CAMPAIGN --set POINTER=VALUE"
CALIBRATE = "akf calibrate CAMPAIGN"
Confidence = Annotated[float, Field(gt=0.5, lt=1)]


class SuiteLink(Value):
    id: Id = about("Id of the Suite.", "qwen3-8b-a3-bf16")
    path: RelPath = about("Suite file, relative to the Suite's folder.", "suite.json")


class Framework(Value):
    name: Name = about("Framework or plugin.", "vllm-ascend")
    revision: Name | None = fill(ARM_FREEZE, "Exact revision: commit or released version.", "v0.23.0")
    digest: Digest | None = maybe("SHA-256 over the installed files, where it can be read.", "sha256:" + "1" * 64)


class AscendMachine(Value):
    """Facts of an Ascend host."""

    driver: Name | None = fill(ARM_FREEZE, "Driver version as read from version.info.", "25.5.1")
    firmware: Name | None = fill(ARM_FREEZE, "Firmware version as read from the machine.", "7.8.0.6.201")
    image_digest: Digest | None = fill(
        ARM_FREEZE, "Digest of the container image that runs the arm.", "sha256:" + "2" * 64
    )
    torch: Name | None = fill(ARM_FREEZE, "Version of torch in the arm's environment.", "2.10.0")
    torch_npu: Name | None = fill(ARM_FREEZE, "Version of torch_npu in the arm's environment.", "2.10.0.post4")
    toolkit_tree_digest: Digest | None = fill(
        ARM_FREEZE,
        "SHA-256 over the file list of the shared toolkit and OPP folders, to show them unmodified.",
        "sha256:" + "3" * 64,
    )


class HostMachine(Value):
    """Facts of the machine on the `host` reference platform."""

    architecture: Name | None = fill("akf fill CAMPAIGN --host", "Machine architecture.", "x86_64")
    cpu_model: Name | None = fill(
        "akf fill CAMPAIGN --host", "Processor model as the kernel prints it.", "Intel(R) Xeon(R)"
    )
    cpu_features_digest: Digest | None = fill(
        "akf fill CAMPAIGN --host", "SHA-256 of the sorted list of processor features.", "sha256:" + "4" * 64
    )
    cores: Positive | None = fill("akf fill CAMPAIGN --host", "Processors that this process may use.", 2)
    libc: Name | None = fill("akf fill CAMPAIGN --host", "C library and version.", "glibc 2.36")
    compiler_digest: Digest | None = fill(
        "akf fill CAMPAIGN --host", "SHA-256 over the compiler's programs.", "sha256:" + "5" * 64
    )
    toolkit_tree_digest: Digest | None = fill(
        "akf fill CAMPAIGN --host",
        "SHA-256 over the file list of the compiler's own folders and its library's headers, to show them unmodified.",
        "sha256:" + "6" * 64,
    )


class Binding(Value):
    rank: Count = about("Rank of the process.", 0)
    numa_nodes: tuple[Count, ...] = about("NUMA nodes that the process is bound to.", [0])
    cpus: tuple[Count, ...] = about("Processors that the process is bound to.", [0, 1])


class Environment(Value):
    soc: Soc = about("SoC that the arm runs on.", sample(Soc))
    toolkit: Toolkit = about("Toolkit that the arm runs on.", sample(Toolkit))
    python: Name | None = fill(ARM_FREEZE, "Python version of the arm's interpreter.", "3.12.11")
    frameworks: tuple[Framework, ...] = about(
        "Framework first, then its plugins and kernel packages.",
        [sample(Framework)],
        min_length=1,
    )
    model_runner: Name | None = maybe("Model runner, where the framework has several.", "v1")
    libraries: tuple[LoadedLibrary, ...] | None = fill(
        ARM_FREEZE,
        "Digests of the kernel libraries that the arm's process really loads.",
        [sample(LoadedLibrary)],
    )
    variables: tuple[NamedValue, ...] = several("Environment variables, in order.", [sample(NamedValue)])
    binding: tuple[Binding, ...] = several(
        "NUMA and processor binding of every rank; empty for unbound.", [sample(Binding)]
    )
    ascend: AscendMachine | None = maybe(
        "Facts of an Ascend host; required on platform `ascend`.",
        sample(AscendMachine),
    )
    host: HostMachine | None = maybe(
        "Facts of the machine; required on platform `host`.",
        sample(HostMachine),
    )


class Baseline(Value):
    provider: Name = about("What provides the operator today.", "torch_npu.npu_add_rms_norm")
    callsites: tuple[Text, ...] = about(
        "Where the framework calls it.", ["vllm_ascend/ops/layernorm.py AscendRMSNorm.forward_oot"]
    )
    incumbent_digest: Digest | None = fill(
        ARM_FREEZE,
        "Digest of the object that would be replaced; read again at release.",
        "sha256:" + "7" * 64,
    )


class InputLink(Value):
    id: Id = about("Id of the artifact.", "qwen3-8b-public")
    path: RelPath | None = fill(
        "akf ingest trace TRACE --onto WORKLOAD --out FILE",
        "Its file, relative to the Suite's folder.",
        "workload.json",
    )


class CaptureLink(Value):
    id: Id = about("Id of the Capture.", "xllm-capture")
    path: RelPath | None = fill(
        "akf ingest profile PATH --workload WORKLOAD --arm ARM --out CAPTURE",
        "Its file, relative to the Suite's folder.",
        "captures/xllm.json",
    )


class Rule(Value):
    id: Id = about("Name of the rule.", "tpot-median")
    gate: Literal["operator", "model", "serving"] = about("Gate whose data it is judged on.", "serving")
    metric: Name = about("Metric in the field's standard terms.", "tpot")
    unit: Name = about("Unit of the raw samples.", "ns")
    better: Better = about("Which direction is an improvement.", "lower")
    statistic: Literal["median", "quantile"] = about("Statistic of one leg or segment.", "median")
    quantile: Ratio | None = maybe("Quantile, when the statistic is one.", 0.99)


class GainRule(Rule):
    threshold_ratio: NonNegative | None = fill(
        SET, "Smallest gain worth a release; the interval's lower end must exceed it.", 0.02
    )


class GuardRule(Rule):
    margin_ratio: NonNegative | None = fill(SET, "Largest regression that still counts as equal.", 0.02)


class Pairs(Value):
    operator: Positive = about("Pairs of fresh processes in the operator gate.", 12)
    model: Positive = about("Pairs of legs in the model gate.", 12)
    serving: Positive = about("Pairs of legs in the serving gate.", 12)
    reproduction: Positive = about("Pairs in the reproduction gate.", 12)
    blocks: Positive = about("ABBA blocks in a pair; odd.", 3)


class Acceptance(Value):
    confidence: Confidence = about("Two-sided confidence of every interval.", 0.95)
    gains: tuple[GainRule, ...] = about(
        "Primary gains; promotion needs every one of them.",
        [sample(GainRule)],
        min_length=1,
    )
    guards: tuple[GuardRule, ...] = several(
        "Non-inferiority guards.",
        [sample(GuardRule)],
    )
    row_margin_ratio: NonNegative | None = fill(SET, "Largest regression of any single row.", 0.02)
    error_factor: NonNegative = about("How much worse than the baseline's error the candidate's may be.", 2.0)
    accuracy: tuple[AccuracySuite, ...] = several(
        "Accuracy suites of the model gate.",
        [sample(AccuracySuite)],
    )
    pairs: Pairs = about(
        "Sizes of the experiments.",
        sample(Pairs),
    )


class NoisePolicy(Value):
    noise_limit_ratio: NonNegative | None = fill(
        CALIBRATE, "Bound of the A/A interval around 1; no threshold or margin may lie below it.", 0.01
    )
    idle_before_ms: Count = about("Idle time before a leg, in milliseconds.", 0)


class Budget(Value):
    board_s: Count = about("Device time that the campaign may spend, in seconds.", 36000)
    attempts: Count = about("Candidates that may be evaluated.", 100)
    tokens: Count = about("Model tokens that agents may spend; 0 for none.", 2000000)
    wall_s: Count = about("Wall time, in seconds.", 604800)


class Trust(Value):
    mode: Literal["signed", "unsigned"] = about(
        "`signed` needs a signature of the owning role on every artifact; an `unsigned` run cannot lead past inventory.",
        "signed",
    )
    keys: RoleKeys | None = fill(
        "akf keys init, then akf fill CAMPAIGN --keys FOLDER",
        "Public key of each role; `null` in a draft and in an unsigned Campaign.",
        sample(RoleKeys),
    )


class Promotion(Value):
    python_abi: bool = about("Whether a candidate of the `python` ABI may be promoted.", False)
    min_isolation: Isolation = about("Weakest isolation of an evaluation that may lead to promotion.", "userns")


class Campaign(Artifact):
    kind: Literal["Campaign"] = about("Kind of this artifact.", "Campaign")
    id: ShortId = about("Name of the Campaign, at most 48 characters: run ids are made from it.", "qwen3-8b-a3-xllm")
    suite: SuiteLink = about("Suite that the Campaign belongs to.", sample(SuiteLink))
    platform: Platform = about("Platform that is measured; evidence never crosses platforms.", "ascend")
    arm: Id = about("Framework arm that the Campaign is about.", "xllm")
    lane: Lane = about("Comparison lane that its evidence belongs to.", "per_framework_native_ab")
    data_class: DataClass = about("How the Campaign's data may travel.", "internal")
    capabilities: tuple[CapabilityTuple, ...] = about(
        "Executable combinations that the Campaign allows; any other fails closed.",
        [sample(CapabilityTuple)],
        min_length=1,
    )
    environment: Environment = about(
        "Identity of machine, toolkit and framework.",
        sample(Environment),
    )
    model: ModelIdentity = about(
        "Model as this arm deploys it.",
        sample(ModelIdentity),
    )
    ranks: Ranks = about("Parallel sizes and the device of every rank.", sample(Ranks))
    baseline: Baseline = about(
        "What a candidate is compared with and would replace.",
        sample(Baseline),
    )
    workload: InputLink = about("Workload of the Campaign.", sample(InputLink))
    capture: CaptureLink = about("Capture of the Campaign.", sample(CaptureLink))
    serving: ServingState = about("State that every leg starts from.", sample(ServingState))
    acceptance: Acceptance = about(
        "What must be shown.",
        sample(Acceptance),
    )
    noise: NoisePolicy = about("Noise that the Campaign accepts, and how it keeps it low.", sample(NoisePolicy))
    budget: Budget = about(
        "What the Campaign may spend.",
        sample(Budget),
    )
    write_paths: tuple[RelPath, ...] = about(
        "Where agents may write, relative to the run folder.", ["inbox"], min_length=1
    )
    trust: Trust = about("Signing mode and pinned keys.", sample(Trust))
    promotion: Promotion = about("What may be promoted.", sample(Promotion))
    opportunity: OpportunityPolicy | None = maybe(
        "What a triage goes by; what is not stated is assumed.", {"target_ratio": 1.02, "leg_s": 300}
    )
