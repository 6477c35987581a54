"""The four roles, and the kinds of artifact that each may write and sign.

Invariants:
- Every kind has exactly one owner; a signature by any other role is no evidence.
- Agents have no role: they hold no key and write into a run's inbox only.
"""

from types import MappingProxyType

ROLES = ("supervisor", "builder", "evaluator", "judge")

_OWNED = {
    "supervisor": (
        "OptimizationSuite", "Campaign", "Workload", "Capture", "Run", "Task", "Candidate", "KnowledgeEntry",
        "Adapter", "Triage", "Deployment", "RollbackPlan", "Revocation", "ServingBenchmark",
    ),
    "builder": ("Build", "Toolchain"),
    "evaluator": ("Plan", "Gate", "LaneResult"),
    "judge": ("Decision", "Portability", "ReleaseRecord"),
}  # fmt: skip

OWNERS = MappingProxyType({kind: role for role, kinds in _OWNED.items() for kind in kinds})
"""Kind of artifact to the role that writes and signs it."""
