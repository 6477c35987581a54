"""Route `ascendc_direct`: one Ascend C source to a device object, by CANN's compiler.

Invariants:
- Without CANN there is nothing to reach: the build is blocked at the missing `bisheng`, which is named.
- The command line is the one that CANNBot DSL 0.7.1 uses for Ascend C; nobody here has seen the compiler take it.
"""

from __future__ import annotations

from akf.routes.route import Job, Plan, Route, SourceRefused, Step, plain_sources
from akf.routes.sandbox import Limits

NAME = "ascendc_direct"
OBJECT = "kernel.o"
_COMPILE = Limits(wall_s=600.0)


def ascendc(job: Job, suffixes: tuple[str, ...], *includes: str) -> Step:
    """The compiler's call for one Ascend C source.

    Raises:
        SourceRefused: there is none, or more than one.
    """
    sources = plain_sources(job.sources, suffixes, "Ascend C")
    if len(sources) > 1:
        raise SourceRefused(f"one object is made of one source, not of {', '.join(sources)}; include the others")
    folders = [word for folder in (*includes, "{toolkit}/include") for word in ("-I", folder)]
    words = ("-fPIC", f"--npu-arch={job.target}", "-c", "-O3", "-std=c++17", "-x", "asc", *folders)
    return Step("bisheng", (*words, *sources, "-o", f"out/{OBJECT}"), (OBJECT,), (), _COMPILE)


class AscendC(Route):
    """Ascend C."""

    def plan(self, job: Job) -> Plan:
        """One command."""
        return Plan((ascendc(job, self.data.suffixes),))


ROUTE = AscendC(NAME)
