"""Route `pypto_tensor_ptoas`: a PyPTO program to its graph and, with ptoas and CANN, to a device object.

Invariants:
- The graph is for one set of sizes (`akf.routes.specialised`).
- PyPTO's simulation computes no results, and its cycles are a model: a Build of this stage shows neither correctness
  nor time, and its notes say so.
"""

from __future__ import annotations

from pathlib import Path

from akf.routes.frontends import front_end, front_end_files
from akf.routes.route import Job, Plan, Route, Step
from akf.routes.sandbox import Limits
from akf.routes.specialised import specialised

NAME = "pypto_tensor_ptoas"
FRONTEND = Path(__file__).with_name("frontend.py")
GRAPH, REPORT, ASSEMBLY, SOURCE, OBJECT = "program.json", "cost_model.txt", "program.pto", "kernel.cpp", "kernel.o"
TYPES = {each: each for each in ("float16", "bfloat16", "float32", "int8", "int32", "int64")}
ARCHITECTURES = {"2201": ("a3", "dav-c220"), "3510": ("a5", "dav-c310")}
_GRAPH = Limits(wall_s=300.0)
_COMPILE = Limits(wall_s=600.0)


def graph(job: Job, suffixes: tuple[str, ...]) -> tuple[Step, dict[str, bytes]]:
    """The step that makes PyPTO's graph, and the files that it reads."""
    step = front_end(("graph",), (GRAPH,), _GRAPH)._replace(may_make=(REPORT, ASSEMBLY))
    return step, front_end_files(FRONTEND, specialised(job, suffixes, TYPES))


def sources(step: Step) -> Step:
    """The same call where CANN is: PyPTO writes CCE sources then."""
    variables = {**step.variables, "ASCEND_HOME_PATH": "{toolkit}"}
    made = front_end(("sources",), (SOURCE,), step.limits)
    return made._replace(variables=variables, needs=("bisheng",))


def cce(job: Job) -> Step:
    """PyPTO 0.2.0's own call of the compiler, for one core."""
    core = f"--cce-aicore-arch={ARCHITECTURES[job.target][1]}-{job.options.get('core', 'vec')}"
    words = ("-c", "-O3", "-g", "-x", "cce", "-std=c++17", core, f"out/{SOURCE}", "-o", f"out/{OBJECT}")
    return Step("bisheng", words, (OBJECT,), (), _COMPILE)


class PyptoTensor(Route):
    """PyPTO through PTOAS."""

    def plan(self, job: Job) -> Plan:
        """Graph, assembler, compiler."""
        step, files = graph(job, self.data.suffixes)
        architecture = f"--pto-arch={ARCHITECTURES[job.target][0]}"
        words = (f"out/{ASSEMBLY}", architecture, "--enable-insert-sync", "-o", f"out/{SOURCE}")
        return Plan((step, Step("ptoas", words, (SOURCE,), (), _COMPILE), cce(job)), files)


ROUTE = PyptoTensor(NAME)
