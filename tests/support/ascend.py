"""Runs of an Ascend Campaign on a machine without a board, up to the Build: the story of `examples/traffic`."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support import traffic
from tests.support.cli import Answer, inside
from tests.support.installations import install
from tests.support.recorded import recorder

Value = dict[str, Any]
TASK = traffic.EXAMPLE / "campaign" / "task"
ROUTE = "triton_ascend"
BUILD = "V100R001C25SPC000B000"
SOURCE = '''"""One row a program; `t` is there to be specialised."""

import triton
import triton.language as tl


@triton.jit
def add_rms_norm(x1, x2, gamma, y, rstd, x, eps, t, HIDDEN: tl.constexpr):
    """Residual add and RMSNorm of one row."""
    row = tl.program_id(0)
    at = row * HIDDEN + tl.arange(0, HIDDEN)
    inside = row < t
    total = tl.load(x1 + at, mask=inside).to(tl.float32) + tl.load(x2 + at, mask=inside).to(tl.float32)
    scale = FACTOR / tl.sqrt(tl.sum(total * total, axis=0) / HIDDEN + eps)
    weight = tl.load(gamma + tl.arange(0, HIDDEN)).to(tl.float32)
    tl.store(y + at, (total * scale * weight).to(tl.bfloat16), mask=inside)
    tl.store(rstd + row, scale, mask=inside)
    tl.store(x + at, total.to(tl.bfloat16), mask=inside)
'''
RULES = '{"rules": [{"constexprs": {"HIDDEN": 1024}}]}\n'


def launch() -> Value:
    """The example's launch spec, with the number of rows as a further argument."""
    value: Value = json.loads((TASK / "perturbed" / ROUTE / "launch.json").read_bytes())
    value["args"].append({"name": "t", "kind": "scalar", "dtype": "int32", "value": "T"})
    return value


def triton(factor: str) -> dict[str, str]:
    """The sources of a kernel."""
    spec = json.dumps(launch())
    return {"kernel.py": SOURCE.replace("FACTOR", factor), "launch.json": spec, "specialisations.json": RULES}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Text files in a new folder."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def opened(
    folder: Path,
    route: str,
    wrong: Mapping[str, str],
    edit: Callable[[Value], object] = lambda _: None,
    soc: str = "ascend910_9391",
    task_edit: Callable[[Value], object] = lambda _: None,
) -> Path:
    """A run whose Task takes one route.

    Args:
        folder: where everything is written.
        route: the route.
        wrong: the Task's deliberately wrong kernel.
        edit: changes the Campaign.
        soc: the arm's SoC.
        task_edit: changes the Task.
    """
    case, files, _ = traffic.variants()["kernel"]
    inputs = traffic.written(folder / "in", case, **files)
    traffic.survey(inputs, "--model", "tiny-qwen3", "--out", folder / "out").accepted()
    campaign = Path(shutil.copytree(traffic.EXAMPLE / "campaign", folder / "campaign"))
    for name in ("workload.json", "capture.json"):
        shutil.copy(folder / "out" / name, campaign / name)
    arm = campaign / "vllm_ascend.json"
    value = json.loads(arm.read_bytes())
    value["capabilities"][0] |= {"backend": route, "soc": soc}
    value["environment"]["soc"]["name"] = soc
    edit(value)
    arm.write_text(json.dumps(value), encoding="utf-8")
    task = campaign / "task"
    shutil.rmtree(task / "perturbed")
    write(task / "perturbed" / route, wrong)
    stated = json.loads((task / "task.json").read_bytes())
    stated |= {"routes": [route], "perturbed": [{"route": route, "path": f"perturbed/{route}", "files": None}]}
    task_edit(stated)
    (task / "task.json").write_text(json.dumps(stated), encoding="utf-8")
    inside("init-run", arm, "--runs-root", folder / "runs", "--run-id", "tiny").accepted()
    run = folder / "runs" / "tiny"
    inside("triage", run, "--out", folder / "triage.json").accepted()
    inside("open-task", run, folder / "triage.json", "--from", task / "task.json").accepted()
    return run


def submit(run: Path, folder: Path, route: str, files: Mapping[str, str], name: str = "mine", **claim: Any) -> Answer:
    """Submit a candidate."""
    write(folder / "src", files)
    hypothesis = {
        "active_bound": "transfer", "metric": "latency", "direction": "lower", "size_low_ratio": 0.1,
        "size_high_ratio": 0.3, "falsified_by": "The latency of decode-16 does not fall.",
    }  # fmt: skip
    manifest = {
        "kind": "CandidateManifest", "schema_version": 1, "id": name, "task": "add-rms-norm", "route": route,
        "abi": "binary", "hypothesis": hypothesis, "data_flow_change": "Reads each operand once.",
        "failure_boundary": "A hidden size of 1024.", "launch": "launch.json", "license": "Apache-2.0", "owner": "me",
        **claim,
    }  # fmt: skip
    (folder / "candidate.json").write_text(json.dumps(manifest), encoding="utf-8")
    return inside("submit", run, folder)


def cann(folder: Path, *tools: str, version: str = "9.1.0", inner: str = BUILD) -> Path:
    """An installation of CANN with recorded tools and the header that Ascend C includes."""
    root = install(folder, version, inner)
    for tool in tools:
        recorder(root / "bin" / tool)
    header = root / "compiler" / "tikcpp" / "tikcfw" / "kernel_operator.h"
    header.parent.mkdir(parents=True)
    header.write_text("")
    return root


def arm(value: Value) -> None:
    """Make the Campaign's arm one that compiles with the pinned packages of `triton_ascend`."""
    environment = value["environment"]
    environment["python"] = "3.11.7"
    environment["frameworks"].append({"name": "ascendnpu-ir", "revision": "1.2.0"})


def environment(env: Path) -> Path:
    """An environment with what looks like triton-ascend and AscendNPU-IR in it."""
    site = env / "lib" / "python3.11" / "site-packages"
    for name, version in (("triton_ascend", "3.2.0"), ("ascendnpu_ir", "1.2.0")):
        info = site / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n")
    (env / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.7\n")
    (env / "bin").mkdir()
    (env / "bin" / "python").symlink_to(sys.executable)
    tools = ["triton/_C/libtriton.so", "triton/backends/ascend/triton-adapter-opt"]
    tools += [f"ascendnpuir/bin/bishengir-{each}" for each in ("compile", "compile-a5", "opt", "opt-a5")]
    for tool in tools:
        recorder(site / tool)
    return env


_HIVMC = """#!/bin/sh
if [ "$1" = --version ]; then
    echo 'hivmc 9.1.0: a stand-in of the tests'
    exit 0
fi
previous=
for word in "$@"; do
    case $word in *.mlir) in=$word ;; esac
    [ "$previous" = -o ] && out=$word
    previous=$word
done
/bin/cat "$in" >"$out.o"
"""


def hivmc(root: Path) -> Path:
    """A stand-in of the last compiler: its object is the IR that it was given."""
    tool = root / "bin" / "hivmc"
    tool.parent.mkdir(parents=True, exist_ok=True)
    tool.write_text(_HIVMC)
    tool.chmod(0o755)
    return root
