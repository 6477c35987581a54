"""Runs under the environment's own interpreter, inside the sandbox: a PyPTO kernel to its graph, or to CCE sources.

Of AKF it imports `source_module` only. `in/request.json` names the kernel, its tensors and its numbers. PyPTO 0.2.0
builds the graph when the kernel is called, so it is called, with tensors of ones. Its mode SIM computes no result; that
is seen and said here, so that nobody takes the call for a run. `sources` takes the CCE sources that PyPTO writes where
CANN is; `.pto` is taken where a release of PyPTO writes it, which 0.2.0 does not.
"""

from __future__ import annotations

import inspect
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from akf.routes.source_module import kernel_of, values_of

GRAPH, REPORT, ASSEMBLY, SOURCE = "program.json", "cost_model.txt", "program.pto", "kernel.cpp"
FOUND = {GRAPH: GRAPH, "*.pto": ASSEMBLY, "CostModelSimulationOutput/_simulate.stat.report.txt": REPORT}


def call(request: dict[str, Any]) -> None:
    """Call the kernel once for one set of sizes."""
    import torch  # noqa: PLC0415

    kernel = kernel_of(request["source"], request["kernel"], "function")
    tensors = [torch.ones(each["shape"], dtype=getattr(torch, each["dtype"])) for each in request["tensors"]]
    names = list(inspect.signature(getattr(kernel, "_original_func", kernel)).parameters)[len(tensors) :]
    values = values_of(names, request["symbols"])
    before = [tensor.clone() for tensor in tensors]
    kernel(*tensors, *values)
    if all(torch.equal(old, new) for old, new in zip(before, tensors, strict=True)):
        print("[NOTE] the call wrote no tensor: this run mode computes no results")


def main(word: str) -> None:
    """`graph` or `sources`."""
    call(json.loads(Path("in/request.json").read_text(encoding="utf-8")))
    folders = sorted(Path(os.environ["TILE_FWK_OUTPUT_DIR"]).glob("output_*"))
    if len(folders) != 1:
        sys.exit(f"error: the call left {len(folders)} folders of output")
    if word == "graph":
        for pattern, name in FOUND.items():
            for path in sorted(folders[0].glob(pattern))[:1]:
                shutil.copyfile(path, Path("out", name))
        return
    made = sorted(folders[0].glob("kernel_aicore/**/*.cpp"))
    if len(made) != 1:
        sys.exit(f"error: the call left {len(made)} CCE sources, not one")
    shutil.copyfile(made[0], Path("out", SOURCE))


if __name__ == "__main__":
    main(sys.argv[1])
