"""Route `tilelang_ascend_pto_headers`: a TileLang program to PTO source and, with CANN, to a shared object.

Invariants:
- It lowers as `tilelang_ascend_ascendc` does, to another target; what holds there holds here.
- Architecture and memory model follow the platform, as in TileLang-Ascend 0.1.4's own library generator.
"""

from __future__ import annotations

from akf.routes.pto_isa_direct import AICORE
from akf.routes.route import Job, Plan, Route
from akf.routes.tilelang_ascend_ascendc import CANN, LIBRARIES, SOURCE, TILELANG, compiling, lowering

NAME = "tilelang_ascend_pto_headers"
NEWER = "A5"


class TileLangPto(Route):
    """TileLang through PTO headers."""

    def plan(self, job: Job) -> Plan:
        """Lowering, compiler."""
        step, files = lowering(job, self.data.suffixes, SOURCE, {"target": "pto", "platform": job.target})
        architecture, memory = ("dav-c310", "REGISTER_BASE") if job.target == NEWER else ("dav-c220", "MEMORY_BASE")
        words = (
            f"--cce-aicore-arch={architecture}", f"-D{memory}", "-O2", "-std=gnu++17", "-xcce",
            *AICORE,
            "-DL2_CACHE_HINT", "-I", f"{TILELANG}/3rdparty/pto-isa/include", *CANN, "-L", "{toolkit}/lib64",
            "-I", f"{TILELANG}/src", "-Wno-macro-redefined", "-Wno-ignored-attributes", "-lstdc++", *LIBRARIES,
        )  # fmt: skip
        return Plan((step, compiling(*words)), files)


ROUTE = TileLangPto(NAME)
