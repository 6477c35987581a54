"""Route `ascendc_direct`: Ascend C to a device object by CANN's compiler, and an operator's host parts beside it.

Invariants:
- Without CANN there is no device code: the build of a kernel is blocked at the missing `bisheng`, which is named. Of an
  operator what can be made is made (`operator.py`), and the Build says `host_parts`.
- The compiler's command line is the one that CANNBot DSL 0.7.1 uses for Ascend C. Nobody here has seen it take one.
- A Build without CANN carries the name of the compiler that made it, never CANN's.
"""

from __future__ import annotations

from collections.abc import Sequence

from akf.routes.ascendc_direct import operator
from akf.routes.ascendc_direct.operator import DEVICE, is_operator
from akf.routes.route import Job, Plan, Route, SourceRefused, Step, plain_sources, toolkit_of
from akf.routes.sandbox import Limits
from akf.routes.tools import Found, Place, find, need

NAME = "ascendc_direct"
OBJECT = "kernel.o"
_COMPILE = Limits(wall_s=600.0)


def ascendc(job: Job, suffixes: tuple[str, ...], *includes: str) -> Step:
    """The compiler's call for one Ascend C source.

    Raises:
        SourceRefused: there is none, or more than one.
    """
    device = [each for each in job.sources if each.startswith(DEVICE)] if is_operator(job) else job.sources
    sources = plain_sources(device, suffixes, "Ascend C")
    if len(sources) > 1:
        raise SourceRefused(f"one object is made of one source, not of {', '.join(sources)}; include the others")
    folders = [word for folder in (*includes, "{toolkit}/include") for word in ("-I", folder)]
    words = ("-fPIC", f"--npu-arch={job.target}", "-c", "-O3", "-std=c++17", "-x", "asc", *folders)
    return Step("bisheng", (*words, *sources, "-o", f"out/{OBJECT}"), (OBJECT,), (), _COMPILE)


class AscendC(Route):
    """Ascend C."""

    includes: tuple[str, ...] = ()
    """Folders of headers that come before CANN's."""

    def plan(self, job: Job) -> Plan:
        """One command for a kernel; for an operator its host parts too."""
        device = ascendc(job, self.data.suffixes, *self.includes)
        return operator.plan(job, device) if is_operator(job) else Plan((device,))

    def identity(self, place: Place, job: Job) -> tuple[Found, ...]:
        """Of an operator every tool that is there, where one of its parts can be made."""
        if is_operator(job):
            there = {each.name: each for each in self.data.programs(job.family) if find(each, place) is not None}
            if any(set(part.needs) <= there.keys() for part in self.data.parts):
                return tuple(need(each, place) for each in there.values())
        return super().identity(place, job)

    def toolkit(self, found: Sequence[Found]) -> dict[str, str]:
        """CANN where its compiler is among the tools; else what there is."""
        named = {each.program.name: each for each in found}
        for tool, name in (("bisheng", self.data.toolkit.name), ("g++", "gcc"), ("torch_npu", "torch_npu")):
            if tool in named:
                return toolkit_of(name, named[tool].record)
        return super().toolkit(found)


ROUTE = AscendC(NAME)
