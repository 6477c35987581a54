"""Route `triton_cuda`: a Triton source to a cubin for one exact compute capability, without a device or a driver.

Invariants:
- Every specialisation is named: a parameter is an argument of the launch spec or a constexpr option; none is guessed.
- Triton makes the PTX, and `ptxas` is a command of its own with the options that Triton gives it; no cache is used.
- A kernel that asks for more shared memory than the device has is an overflow of the source, found before it is loaded.
"""

from __future__ import annotations

import re
from pathlib import Path

from akf.routes import outcomes
from akf.routes.frontends import front_end, front_end_files
from akf.routes.outcomes import Outcome
from akf.routes.route import Job, Plan, Route, Step
from akf.routes.sandbox import Ended, Limits
from akf.routes.triton_source import triton_request

FRONTEND = Path(__file__).with_name("frontend.py")
PTXAS = ("-lineinfo", "-v", "--regAllocOptLevel=2")
"""What Triton 3.9.0 gives it beside the target."""
SHARED_BYTES = {"80": 166_912, "86": 101_376, "89": 101_376, "90": 232_448}
"""What a block may have, by NVIDIA's table of compute capabilities: 163, 99, 99 and 227 KiB."""
NEWER = frozenset({"90"})
"""Targets for which Triton 3.9.0 takes the assembler of CUDA 13, and PTX of the variant `a`."""
PTX_VERSION = {False: 88, True: 94}
"""PTX of the two assemblers, older and newer, by Triton's own rule; told, so that making PTX needs neither."""
_OVERFLOW = re.compile(r"shared memory overflow, requires [0-9]+ bits while [0-9]+ bits available")
_LIMITS = Limits(wall_s=300.0)


class TritonCuda(Route):
    """Triton for CUDA."""

    def plan(self, job: Job) -> Plan:
        """Triton's own stages up to PTX, then the assembler."""
        newer = job.target in NEWER
        limits = {"shared_bytes": SHARED_BYTES[job.target], "ptx_version": PTX_VERSION[newer]}
        request = triton_request(job, self.data.suffixes) | limits
        made = ("kernel.ttir.mlir", "kernel.ptx", "kernel.json")
        target = f"--gpu-name=sm_{job.target}{'a' if newer else ''}"
        words = (*PTXAS, target, "out/kernel.ptx", "-o", "out/kernel.cubin")
        steps = (
            front_end(("in/request.json",), made, _LIMITS),
            Step("ptxas-blackwell" if newer else "ptxas", words, ("kernel.cubin",), (), _LIMITS),
        )
        return Plan(steps, front_end_files(FRONTEND, request))

    def classify(self, step: Step, ran: Ended, made: frozenset[str]) -> Outcome | None:
        """An overflow of shared memory, or what every tool may do."""
        overflow = _OVERFLOW.search(ran.text) if "kernel.ptx" not in made else None
        if overflow is not None and not ran.timed_out:
            return Outcome(outcomes.OVERFLOW, overflow[0])
        return super().classify(step, ran, made)


ROUTE = TritonCuda("triton_cuda")
