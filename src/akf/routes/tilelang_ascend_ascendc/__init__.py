"""Route `tilelang_ascend_ascendc`: a TileLang program to Ascend C source and, with CANN, to a shared object.

Invariants:
- The source is for one set of sizes (`akf.routes.specialised`); its kernel is the function that makes the program.
- The compiler's command line is that of TileLang-Ascend 0.1.4's own library generator, with a fixed name for its random
  one. It names `dav-2201` whatever the platform.
- What it makes holds the launcher beside the kernel: it is loaded into the engine.
"""

from __future__ import annotations

from pathlib import Path

from akf.routes.frontends import front_end, front_end_files
from akf.routes.route import Job, Plan, Route, Step
from akf.routes.sandbox import Limits
from akf.routes.specialised import specialised

NAME = "tilelang_ascend_ascendc"
FRONTEND = Path(__file__).with_name("frontend.py")
SOURCE, OBJECT = "kernel.cpp", "kernel.so"
TYPES = {each: each for each in ("float16", "bfloat16", "float32", "int8", "int32", "int64")}
TILELANG = "{packages}/tilelang"
CANN = (
    "-I", "{toolkit}/include", "-I", "{toolkit}/include/experiment/msprof",
    "-I", "{toolkit}/include/experiment/runtime", "-I", "{toolkit}/pkg_inc", "-I", "{toolkit}/pkg_inc/runtime",
    "-I", "{toolkit}/pkg_inc/profiling",
)  # fmt: skip
LIBRARIES = ("-lruntime", "-lascendcl", "-lm", "-ltiling_api", "-lplatform", "-lc_sec", "-ldl", "-fPIC", "--shared")
_LOWER = Limits(wall_s=600.0)
_COMPILE = Limits(wall_s=600.0)


def lowering(job: Job, suffixes: tuple[str, ...], file: str, lower: dict[str, str]) -> tuple[Step, dict[str, bytes]]:
    """The step in which TileLang lowers a program, and the files that it reads."""
    request = {**specialised(job, suffixes, TYPES), "file": file, "lower": lower}
    return front_end((), (file,), _LOWER), front_end_files(FRONTEND, request)


def compiling(*words: str) -> Step:
    """The compiler's call."""
    return Step("bisheng", (*words, f"out/{SOURCE}", "-o", f"out/{OBJECT}"), (OBJECT,), (), _COMPILE)


class TileLangAscendC(Route):
    """TileLang through Ascend C."""

    def plan(self, job: Job) -> Plan:
        """Lowering, compiler."""
        step, files = lowering(job, self.data.suffixes, SOURCE, {"target": "ascendc", "platform": job.target})
        third = f"{TILELANG}/3rdparty"
        words = (
            "--npu-arch=dav-2201", "-O2", "-std=c++17", "-xasc", *CANN, "-I", f"{third}/catlass/include",
            "-I", f"{third}/shmem/include", "-I", f"{third}/shmem/src/device", "-DBACKEND_HYBM",
            "-I", f"{TILELANG}/src", "-L", "{toolkit}/lib64", "-Wno-macro-redefined", "-Wno-ignored-attributes",
            "-Wno-non-c-typedef-for-linkage", *LIBRARIES,
        )  # fmt: skip
        return Plan((step, compiling(*words)), files)


ROUTE = TileLangAscendC(NAME)
