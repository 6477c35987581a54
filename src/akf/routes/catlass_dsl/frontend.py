"""Runs under the environment's own interpreter, inside the sandbox: CATLASS DSL to lowered MLIR, and to an object.

Of AKF it imports `source_module` only. `lower REQUEST` runs the source and writes `out/lowered.mlir`: the package
lowers only where some `hivmc-a5` answers for its version, so `in/bin`, where a stand-in lies, comes first on the path,
and what fails after the lowering is expected. `finish` runs nothing of the source: it has the real `hivmc-a5`, `ccec`
and `llvm-link` and makes `out/kernel.o` of the MLIR, as catlass 2.1.0 does.
"""

from __future__ import annotations

import inspect
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from akf.routes.source_module import kernel_of, values_of

LOWERED, OBJECT = "lowered.mlir", "kernel.o"
TARGET = "Ascend950PR_9589"
"""What catlass 2.1.0 names to `hivmc-a5`, whatever the SoC."""
_CORES = ("AIC", "AIV")


def lower(request: dict[str, Any]) -> None:
    """Lower one kernel for one set of sizes."""
    from catlass import tla  # noqa: PLC0415

    kernel = kernel_of(request["source"], request["kernel"], "@tla.kernel function")
    tensors = [
        tla.make_fake_tensor(getattr(tla, each["dtype"]), tuple(each["shape"]), tuple(each["strides"]))
        for each in request["tensors"]
    ]
    names = list(inspect.signature(kernel).parameters)[len(tensors) :]
    values = values_of(names, request["symbols"])
    os.environ["PATH"] = f"{Path('in/bin').absolute()}:{os.environ['PATH']}"
    raised: Exception | None = None
    try:
        tla.compile(kernel, *tensors, *values, options=f"--npu-arch {request['target']}")
    except Exception as error:  # noqa: BLE001 - whatever it is, what was made before it decides
        raised = error
    made = sorted(Path(os.environ["CATLASS_DSL_CACHE_DIR"]).glob(f"*/{LOWERED}"))
    if len(made) != 1:
        sys.exit(f"error: {type(raised).__name__}: {raised}" if raised else f"error: there is no {LOWERED}")
    print(f"after {LOWERED}: {type(raised).__name__}: {raised}")
    shutil.copyfile(made[0], Path("out", LOWERED))


def finish() -> None:
    """Link the package's own device code, compiled by this toolkit, and make the object."""
    from catlass.bc_compile import get_bc_paths, init  # noqa: PLC0415

    init()
    text = Path("out", LOWERED).read_text(encoding="utf-8")
    cube, vector = (f"hivm.module_core_type<{core}>" in text or f"func_core_type<{core}>" in text for core in _CORES)
    mode = "mix" if cube and vector else "aic" if cube else "aiv"
    command = ["hivmc-a5", f"out/{LOWERED}", f"--target={TARGET}", "--mlir-print-op-on-diagnostic", "--disable-ffts"]
    command += [] if mode == "mix" else ["--enable-hivm-compile=False"]
    command += [f"--link-aicore-bitcode={get_bc_paths(mode)}", "-o", f"out/{OBJECT}"]
    print(f"$ {shlex.join(command)}", flush=True)
    sys.exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    if sys.argv[1] == "lower":
        lower(json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
    else:
        finish()
