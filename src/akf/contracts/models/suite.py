"""OptimizationSuite: the goal over all arms. Owner: supervisor."""

from typing import Literal

from akf.contracts.models.base import (
    Artifact,
    Better,
    DataClass,
    Id,
    Lane,
    Name,
    NonNegative,
    Platform,
    Positive,
    Ratio,
    RelPath,
    Text,
    Value,
    about,
    fill,
    maybe,
    sample,
)
from akf.contracts.models.common import ModelIdentity, Soc, Toolkit

SET = "akf fill FILE --set POINTER=VALUE"


class ArmEntry(Value):
    id: Id = about("Name of the arm.", "xllm")
    path: RelPath = about("Campaign file of the arm, relative to the Suite's folder.", "arms/xllm.json")


class Parallel(Value):
    tp: Positive = about("Tensor parallel size.", 1)
    pp: Positive = about("Pipeline parallel size.", 1)
    dp: Positive = about("Data parallel size.", 1)
    ep: Positive = about("Expert parallel size.", 1)


class Kpi(Value):
    id: Id = about("Name of the key performance indicator, referred to by Campaigns.", "tpot-median")
    scope: Literal["operator", "model", "serving"] = about("Gate that measures it.", "serving")
    metric: Name = about("Metric in the field's standard terms.", "tpot")
    unit: Name = about("Unit of the metric's raw samples.", "ns")
    better: Better = about("Which direction is an improvement.", "lower")
    statistic: Literal["median", "quantile", "total"] = about("Statistic over the samples.", "median")
    quantile: Ratio | None = maybe("Quantile, when the statistic is one.", 0.99)
    stage: Id | None = maybe("Workload stage that it is measured on; absent for all.", "decode")
    primary: bool = about("Whether promotion claims a gain in it.", True)


class SlaLimit(Value):
    metric: Name = about("Metric that the service must hold.", "ttft")
    quantile: Ratio = about("Quantile at which it must hold.", 0.99)
    limit_ms: NonNegative | None = fill(SET, "Limit of the service-level agreement, in milliseconds.", 500)


class PublicWorkload(Value):
    id: Id = about("Id of the Workload that all arms share.", "qwen3-8b-public")
    path: RelPath | None = fill(
        "akf ingest trace TRACE --onto WORKLOAD --out FILE",
        "Workload file, relative to the Suite's folder.",
        "workload.json",
    )


class OptimizationSuite(Artifact):
    kind: Literal["OptimizationSuite"] = about("Kind of this artifact.", "OptimizationSuite")
    title: Text = about("Title for people.", "Qwen3-8B Dense, Ascend A3, BF16, TP1")
    goal: Text = about("What the service should gain, in one paragraph.", "Lower TPOT at the same SLA.")
    owner: Name | None = fill(SET, "Team that owns the goal and answers for it.", "serving-team")
    license: Name = about("SPDX licence of the Suite's own files.", "Apache-2.0")
    platform: Platform = about("Platform that claims are about; evidence never crosses platforms.", "ascend")
    model: ModelIdentity = about(
        "Model that is served.",
        sample(ModelIdentity),
    )
    soc: Soc = about("SoC that the Suite is about.", sample(Soc))
    toolkit: Toolkit = about("Toolkit that new Campaigns lock.", sample(Toolkit))
    toolkit_policy: Literal["exact_across_arms", "exact_per_arm"] = about(
        "Whether all arms share one exact toolkit build or each pins its own; the portability claim says which.",
        "exact_per_arm",
    )
    parallel: Parallel = about("Parallel sizes that every arm uses.", sample(Parallel))
    required_arms: tuple[ArmEntry, ...] = about(
        "Arms that must all hold before portability may be claimed.",
        [sample(ArmEntry)],
        min_length=1,
    )
    lanes: tuple[Lane, ...] = about(
        "Comparison lanes; lanes are never mixed.", ["per_framework_native_ab"], min_length=1
    )
    workload: PublicWorkload = about("Public workload of the Suite.", sample(PublicWorkload))
    kpis: tuple[Kpi, ...] = about(
        "Key performance indicators.",
        [sample(Kpi)],
        min_length=1,
    )
    sla: tuple[SlaLimit, ...] = about(
        "Service-level limits under which goodput counts.",
        [sample(SlaLimit)],
    )
    data_class: DataClass = about("How the Suite's data may travel.", "public")
