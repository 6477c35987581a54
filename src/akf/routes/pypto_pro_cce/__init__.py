"""Route `pypto_pro_cce`: a PyPTO program to its graph and, with CANN, through CCE sources to a device object.

Invariants:
- Its graph is that of `pypto_tensor_ptoas`, for one set of sizes; what holds there holds here.
- CCE sources are PyPTO's, written where CANN is; the object is made of them in a process of the compiler's own.
"""

from __future__ import annotations

from akf.routes.pypto_tensor_ptoas import cce, graph, sources
from akf.routes.route import Job, Plan, Route

NAME = "pypto_pro_cce"


class PyptoPro(Route):
    """PyPTO through CCE."""

    def plan(self, job: Job) -> Plan:
        """Graph, CCE sources, compiler."""
        step, files = graph(job, self.data.suffixes)
        return Plan((step, sources(step), cce(job)), files)


ROUTE = PyptoPro(NAME)
