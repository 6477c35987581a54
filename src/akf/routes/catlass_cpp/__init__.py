"""Route `catlass_cpp`: one C++ source with CATLASS templates to a device object, by CANN's compiler.

Invariants:
- The CATLASS headers are those of the package, by digest, and come before CANN's.
- All else is as in `ascendc_direct`.
"""

from __future__ import annotations

from akf.routes.ascendc_direct import ascendc
from akf.routes.route import Job, Plan, Route

NAME = "catlass_cpp"


class CatlassCpp(Route):
    """CATLASS templates."""

    def plan(self, job: Job) -> Plan:
        """One command."""
        return Plan((ascendc(job, self.data.suffixes, "{headers}/catlass/include"),))


ROUTE = CatlassCpp(NAME)
