"""Route `tilelang_ascend_npuir`: a TileLang program to HIVM IR by the branch `npuir` and, with CANN, to an object.

Invariants:
- The front end is in no package: it is what the registered environment holds. It lowers as `tilelang_ascend_ascendc`
  does and gives MLIR.
- The back end, its command line and its outcomes are those of `triton_ascend`.
"""

from __future__ import annotations

from akf.routes.outcomes import Outcome
from akf.routes.route import Job, Plan, Route, Step
from akf.routes.route import route as route_named
from akf.routes.sandbox import Ended
from akf.routes.tilelang_ascend_ascendc import lowering
from akf.routes.triton_ascend import hivm

NAME = "tilelang_ascend_npuir"
LINALG = "kernel.linalg.mlir"


class TileLangNpuIr(Route):
    """TileLang through NPU IR."""

    def plan(self, job: Job) -> Plan:
        """Lowering, compiler."""
        step, files = lowering(job, self.data.suffixes, LINALG, {})
        return Plan((step, hivm(job, LINALG)), files)

    def classify(self, step: Step, ran: Ended, made: frozenset[str]) -> Outcome | None:
        """As the same compiler's is told."""
        return route_named("triton_ascend").classify(step, ran, made)


ROUTE = TileLangNpuIr(NAME)
