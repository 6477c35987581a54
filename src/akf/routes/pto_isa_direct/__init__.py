"""Route `pto_isa_direct`: PTO instructions in C++ for the CPU simulator and, with CANN, for the device.

Invariants:
- The simulator's object and the device's are compiled from the same sources; only the macros differ.
- The simulator has on-chip memory of the SoC's size. What it shows of a kernel is `diagnostic`: it knows neither pipes
  nor their order, nor the machine's arithmetic.
- An illegal tile ends the simulating process, so it is run in one of its own (`emulator.py`).
"""

from __future__ import annotations

from pathlib import Path

from akf.routes.route import Job, Plan, Route, Step, plain_sources
from akf.routes.sandbox import Limits

NAME = "pto_isa_direct"
HERE = Path(__file__).parent
HEADERS = ("-isystem", "{headers}/tilelang/3rdparty/pto-isa/include", "-isystem", "{headers}/include")
SIMULATED = {"ascend910b": "A2A3", "ascend910_93": "A2A3", "ascend950": "A5"}
MEMORY = {"ascend910b": "MEMORY_BASE", "ascend910_93": "MEMORY_BASE", "ascend950": "REGISTER_BASE"}
OBJECT = "kernel.so"
AICORE = (
    "-mllvm", "-cce-aicore-stack-size=0x8000",
    "-mllvm", "-cce-aicore-function-stack-size=0x8000",
    "-mllvm", "-cce-aicore-record-overflow=true",
    "-mllvm", "-cce-aicore-addr-transform",
    "-mllvm", "-cce-aicore-dcci-insert-for-scalar=false",
)  # fmt: skip
"""What TileLang 0.1.4 and CATLASS DSL 2.1.0 tell the compiler of a core's stack, addresses and overflow."""
_COMPILE = Limits(wall_s=300.0)


class PtoIsaDirect(Route):
    """PTO instructions without a compiler of their own."""

    def plan(self, job: Job) -> Plan:
        """The simulator's object, then the device's."""
        sources = plain_sources(job.sources, self.data.suffixes, "C++")
        steps = (
            Step("clang++", (*_simulator(job.family), *sources, "-o", f"out/{OBJECT}"), (OBJECT,), (), _COMPILE),
            Step("bisheng", (*_device(job), *sources, "-o", "out/kernel.o"), ("kernel.o",), (), _COMPILE),
        )
        return Plan(steps, {"simulator.hpp": (HERE / "simulator.hpp").read_bytes()})


def _simulator(family: str | None) -> tuple[str, ...]:
    """The headers need C++20 and `cstdint` before them; their warnings are theirs."""
    define = f"-DAKF_SIMULATED={SIMULATED[str(family)]}"
    language = ("--driver-mode=g++", "-std=c++20", "-O2", "-fPIC", "-shared", "-Wl,-z,defs")
    return (*language, "-D__CPU_SIM", define, "-include", "cstdint", *HEADERS, "-include", "in/simulator.hpp")


def _device(job: Job) -> tuple[str, ...]:
    """As TileLang 0.1.4 and CATLASS DSL 2.1.0 call the compiler for kernels of this kind."""
    core = job.options.get("core", "vec")
    return (
        "-c", "-O2", "-std=gnu++17", "-x", "cce", "--cce-aicore-only", f"--cce-aicore-arch={job.target}-{core}",
        f"-D{MEMORY[str(job.family)]}",
        *AICORE,
        *(word.replace("-isystem", "-I") for word in HEADERS), "-I", "{toolkit}/include",
    )  # fmt: skip


ROUTE = PtoIsaDirect(NAME)
