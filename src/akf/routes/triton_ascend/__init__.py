"""Route `triton_ascend`: a Triton source to HIVM IR for one exact SoC and, with CANN's `hivmc`, to a device object.

Invariants:
- Every specialisation is named: a parameter is an argument of the launch spec or a constexpr option; none is guessed.
- Each stage is a command of its own, so that each is recorded; nothing is taken from a cache of Triton.
- What is frozen (`jit.py`) is compiled by the package's own launch: its binder, its key, its cache.
- The compiler ends with 1 for a UB overflow, for a missing `hivmc` and for a syntax error. Whether its IR is there, and
  what it said, tell them apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from akf.routes import outcomes
from akf.routes.declaration import RouteOutput
from akf.routes.frontends import front_end, front_end_files
from akf.routes.outcomes import Outcome
from akf.routes.route import CACHED, KEYS, Job, Plan, Route, Step, error_lines
from akf.routes.sandbox import Ended, Limits
from akf.routes.specialised import values_named
from akf.routes.triton_ascend.linalg import to_object
from akf.routes.triton_source import constexprs, triton_request

NAME = "triton_ascend"
FRONTEND = Path(__file__).with_name("frontend.py")
JIT = Path(__file__).with_name("jit.py")
ARGUMENT = "argument."
ENTRY = {
    "ttir": ("ir", "data"),
    "ttadapter": ("ir", "data"),
    "npubin": ("kernel_object", "device_code"),
    "json": ("meta", "data"),
}  # fmt: skip
"""Files of an entry of triton-ascend's cache, by suffix, with role and trust class."""
NEWER = "ascend950"
HIVM = "module.hivm.opt.mlir"
_NUMBER = re.compile(r"-?[0-9]{1,18}|-?[0-9]{1,9}(?:\.[0-9]{1,18})?(?:e-?[0-9]{1,2})?")
_OVERFLOW = re.compile(
    r"\b(?:ub|cbuf|cc|l1|l0[abc]) overflow, requires [0-9]+ bits while [0-9]+ bits available", re.IGNORECASE
)
_NO_HIVMC = re.compile(r"Cannot find (hivmc(?:-a5)?) under")
_FRONT = Limits(wall_s=120.0)
_COMPILE = Limits(wall_s=600.0)


class TritonAscend(Route):
    """Triton for Ascend."""

    def plan(self, job: Job) -> Plan:
        """Front end, adapter, compiler, and the compiler's IR without locations."""
        newer = job.family == NEWER
        suffix = "-a5" if newer else ""
        request = self._request(job, newer=newer)
        steps = (
            front_end(("compile", "in/request.json"), ("kernel.ttir.mlir",), _FRONT),
            Step("triton-adapter-opt", _adapter(newer=newer), ("kernel.linalg.mlir",), (), _FRONT),
            front_end(("prepare", "in/request.json"), ("kernel.nomix.mlir", "kernel.json"), _FRONT),
            hivm(job, "kernel.nomix.mlir"),
            Step(
                f"bishengir-opt{suffix}",
                (f"out/{HIVM}", "--strip-debuginfo", "-o", "out/module.hivm.normal.mlir"),
                ("module.hivm.normal.mlir",),
                (),
                _FRONT,
                normalises=True,
            ),
        )
        plan = Plan(steps, front_end_files(FRONTEND, request))
        return self._as_a_launch(job, plan) if _as_launched(job) else plan

    def ask(self, job: Job, calls: Sequence[Mapping[str, str]]) -> Plan:
        """One process that asks the package's own launch for the keys of all calls."""
        each = [_call(job._replace(options=options)) for options in calls]
        request = {**self._launched(job), "calls": each}
        return Plan((front_end(("keys", "in/request.json"), (KEYS,), _FRONT),), front_end_files(JIT, request))

    def collect(self, files: Sequence[str]) -> dict[str, RouteOutput]:
        """What is declared, and an entry of the cache."""
        found = super().collect(files)
        for name in files:
            kind = ENTRY.get(name.rsplit(".", 1)[-1]) if name.startswith(CACHED) else None
            if kind is not None:
                found[name] = RouteOutput.model_validate({"file": name, "role": kind[0], "trust": kind[1]})
        return found

    def _as_a_launch(self, job: Job, plan: Plan) -> Plan:
        """The same plan, but for the package's own launch at both ends."""
        request = {**self._launched(job), **_call(job)}
        entry = tuple(f"{CACHED}{str(request['kernel'])[:150]}.{suffix}" for suffix in ENTRY)
        suffix = "-a5" if job.family == NEWER else ""
        first = _jit("compile", ("kernel.ttir.mlir", "kernel.key.json"))
        last = _jit("freeze", entry)._replace(limits=_COMPILE, needs=(f"bishengir-compile{suffix}", f"hivmc{suffix}"))
        *middle, normal = plan.steps[1:]
        files = {"jit.py": JIT.read_bytes(), "jit.json": json.dumps(request, sort_keys=True).encode()}
        return plan._replace(steps=(first, *middle, last, normal), files={**plan.files, **files})

    def _launched(self, job: Job) -> dict[str, object]:
        """The request without a call: a launch gives an option only where it differs from the package's default."""
        newer = job.family == NEWER
        request = self._request(job._replace(options={}), newer=newer)
        return {**request, "options": request["options"] if newer else {}}

    def classify(self, step: Step, ran: Ended, made: frozenset[str]) -> Outcome | None:
        """Overflow, a missing `hivmc`, or what every tool may do."""
        if step.tool.startswith("bishengir-compile") and not ran.timed_out:
            overflow = _OVERFLOW.search(ran.text)
            if HIVM not in made and overflow is not None:
                return Outcome(outcomes.OVERFLOW, overflow[0])
            absent = _NO_HIVMC.search(ran.text)
            if HIVM in made and "kernel.o" not in made and absent is not None:
                get = self.data.program(absent[1]).get
                return Outcome(outcomes.MISSING, f"{absent[1]} is not installed: {get}", absent[1])
            if ran.status == 1:
                return Outcome(outcomes.REJECTED, self.errors(ran.text)[0])
        return super().classify(step, ran, made)

    def errors(self, text: str) -> list[str]:
        """The error lines but for those about `hivmc`, which is asked for its version before anything else."""
        return error_lines("\n".join(line for line in text.splitlines() if "hivmc" not in line))

    def emulated(self, data: bytes) -> Plan:
        """Linalg through MLIR to a shared object."""
        return to_object(data)

    def _request(self, job: Job, *, newer: bool) -> dict[str, object]:
        return triton_request(job, self.data.suffixes) | {"options": {"compile_on_910_95": newer}}


def _as_launched(job: Job) -> bool:
    return job.frozen or any(name.startswith(ARGUMENT) for name in job.options)


def _call(job: Job) -> dict[str, dict[str, str]]:
    """Arguments and constexprs of one call, by parameter."""
    return {
        "arguments": values_named(ARGUMENT, job, _NUMBER, "number"),
        "constexprs": constexprs(job),
    }


def _jit(word: str, makes: tuple[str, ...]) -> Step:
    step = front_end((word, "in/jit.json"), makes, _FRONT)
    return step._replace(argv=tuple("in/jit.py" if each == "in/frontend.py" else each for each in step.argv))


def _adapter(*, newer: bool) -> tuple[str, ...]:
    """The passes that triton-ascend 3.2.0 itself asks for, in its order."""
    line = f"compile-on-910-95={newer}"
    linalg = f"global-kernel=false named-ops=True enable-nd2nz-on-vector=False enable-select-analysis=False {line}"
    return (
        "out/kernel.ttir.mlir",
        f"--discrete-mask-access-conversion={line} force-simt-template=False",
        "--triton-to-annotation",
        f"--triton-to-unstructure={line} force-simt-template=False",
        "--triton-to-hivm",
        "--triton-to-hfusion",
        "--triton-to-llvm",
        "--bubble-up-operation",
        f"--triton-to-linalg={linalg}",
        "-o",
        "out/kernel.linalg.mlir",
    )


def hivm(job: Job, source: str) -> Step:
    """The compiler's call for the IR of one kernel in `out/`."""
    newer = job.family == NEWER
    older = ("--enable-auto-multi-buffer=True", "--enable-auto-bind-sub-block=True", "--enable-hivm-compile=true")
    words = (
        f"out/{source}",
        f"--target={job.target}",
        *(() if newer else older),
        "--enable-hfusion-compile=true",
        "--enable-triton-kernel-compile=true",
        "--save-temps=out",
        "-o",
        "out/kernel",
    )
    return Step(f"bishengir-compile{'-a5' if newer else ''}", words, (HIVM,), ("kernel.o",), _COMPILE)


ROUTE = TritonAscend(NAME)
