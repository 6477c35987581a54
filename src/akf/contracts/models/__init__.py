"""Typed models of every artifact; `MODELS` maps a kind to its model."""

from akf.contracts.models.base import Artifact, Kind, Ref, Value
from akf.contracts.models.benchmark import ServingBenchmark
from akf.contracts.models.build import Build, LaunchSpec, Toolchain
from akf.contracts.models.campaign import Campaign
from akf.contracts.models.candidate import Candidate, CandidateManifest
from akf.contracts.models.capture import Capture
from akf.contracts.models.decision import Decision, Portability
from akf.contracts.models.edges import Adapter, LaneResult, TrustRoot
from akf.contracts.models.gate import Gate
from akf.contracts.models.plan import Plan
from akf.contracts.models.release import Deployment, KnowledgeEntry, ReleaseRecord, Revocation, RollbackPlan
from akf.contracts.models.run import Run
from akf.contracts.models.suite import OptimizationSuite
from akf.contracts.models.task import Task
from akf.contracts.models.triage import Triage
from akf.contracts.models.workload import Workload

MODELS: dict[str, type[Value]] = {
    model.__name__: model
    for model in (
        OptimizationSuite, Campaign, Workload, Capture, Run, Task, CandidateManifest, Candidate, Build, Plan, Gate,
        Decision, Portability, ReleaseRecord, KnowledgeEntry, Adapter, Triage, Toolchain, LaneResult, Deployment,
        RollbackPlan, Revocation, TrustRoot, ServingBenchmark,
    )
}  # fmt: skip

__all__ = [
    "MODELS", "Adapter", "Artifact", "Build", "Campaign", "Candidate", "CandidateManifest", "Capture", "Decision",
    "Deployment", "Gate", "Kind", "KnowledgeEntry", "LaneResult", "LaunchSpec", "OptimizationSuite", "Plan",
    "Portability", "Ref", "ReleaseRecord", "Revocation", "RollbackPlan", "Run", "ServingBenchmark", "Task", "Toolchain", "Triage",
    "TrustRoot", "Value", "Workload",
]  # fmt: skip
