# ruff: noqa: INP001
"""Run every route on the same three kernels, and write what was reached: `docs/routes.json`, `docs/routes.md` from it.

    AKF_TOOLCHAINS=FOLDER python docs/generate_routes.py          # every route; needs the toolchains of `.ci/run`
    AKF_TOOLCHAINS=FOLDER python docs/generate_routes.py --check  # what is reached, held against the record

Times are of one run of `akf build` each, which builds twice, on the machine that the page names.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, get_args

from akf.contracts.models.base import Route
from akf.routes.declaration import declaration

ROOT = Path(__file__).resolve().parents[1]
RECORD, PAGE = ROOT / "docs" / "routes.json", ROOT / "docs" / "routes.md"
KERNELS = ("rmsnorm", "softmax", "matmul")
TRITON = {"rmsnorm": ("BLOCK=4096",), "softmax": ("BLOCK=1024",), "matmul": ("BM=64", "BN=64", "BK=64")}
SIZES = {
    "rmsnorm": ("T=8", "H=4096", "eps=1e-06"), "softmax": ("M=16", "N=1024"), "matmul": ("M=128", "N=128", "K=128"),
}  # fmt: skip
RUNS: tuple[tuple[str, str, str, dict[str, tuple[str, ...]]], ...] = (
    ("host_cpp", "native", "compiler", dict.fromkeys(KERNELS, ("g++",))),
    ("host_cpp", "native", "compiler", dict.fromkeys(KERNELS, ("clang++",))),
    ("triton_cuda", "sm_80", "constexpr", TRITON),
    ("triton_cuda", "sm_90", "constexpr", TRITON),
    ("triton_ascend", "ascend910b4", "constexpr", TRITON),
    ("triton_ascend", "ascend910_9391", "constexpr", TRITON),
    ("triton_ascend", "ascend950pr_9599", "constexpr", TRITON),
    ("pto_isa_direct", "ascend910b4", "", dict.fromkeys(KERNELS, ())),
    ("catlass_dsl", "ascend950pr_9599", "symbol", SIZES),
    ("pypto_tensor_ptoas", "ascend950pr_9599", "symbol", SIZES),
    ("pypto_pro_cce", "ascend950pr_9599", "symbol", SIZES),
)
"""Route, SoC, the option that the words belong to, and the words by kernel."""
SOURCES = {
    **{("host_cpp", name): ROOT / "examples" / "tasks" / name / "plain" / "host_cpp" for name in KERNELS},
    **{("pypto_pro_cce", name): ROOT / "examples" / "kernels" / "pypto_tensor_ptoas" / name for name in KERNELS},
}
"""Sources that stand elsewhere than below `examples/kernels/ROUTE`."""
SOC = "ascend910_9391"
"""What is asked of a route that has no kernels here, since its first tool is missing."""
KEPT = ("route", "soc", "kernel", "options", "outcome", "stage", "stopped", "reproducible")
OURS = ("python: ", "g++: ", "clang++: ")
"""Tools that are each machine's own; the others come from pinned packages and are held against the record."""


def run(route: str, soc: str, kernel: str, options: list[str], scratch: Path) -> dict[str, Any]:
    """One build as the record holds it."""
    source = SOURCES.get((route, kernel), ROOT / "examples" / "kernels" / route / kernel)
    entry: dict[str, Any] = {"route": route, "soc": soc, "kernel": kernel, "options": options}
    start = time.monotonic()
    answer, build = built(source, route, soc, options, scratch)
    entry["seconds_s"] = round(time.monotonic() - start, 1)
    stopped = answer["stopped"] and f"{answer['stopped']['code']} {answer['stopped'].get('tool') or ''}".strip()
    tools = [f"{tool['name']}: {version(tool['version_text'])}" for tool in build["tools"] if tool.get("version_text")]
    return {
        **entry, "outcome": answer["outcome"], "stage": answer["stage"], "stopped": stopped,
        "reproducible": answer["reproducible"], "tools": sorted(tools),
    }  # fmt: skip


def blocked(route: str, scratch: Path) -> dict[str, Any]:
    """The tool that a route lacks here; it is asked for before a source is read, so that an empty one will do."""
    source = scratch / f"{route}{declaration(route).suffixes[0]}"
    source.touch()
    answer, _ = built(source, route, SOC, [], scratch, status=6)
    problem = answer["problems"][0]
    return {"route": route, "soc": SOC, "tool": problem["expected"], "get": problem["hint"]}


def built(
    source: Path, route: str, soc: str, options: list[str], scratch: Path, status: int = 0
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answer of `akf build` and the Build, which is empty where there is none."""
    out = scratch / f"out-{len(list(scratch.iterdir()))}"
    words = [word for each in options for word in ("--option", each)]
    command = [sys.executable, "-m", "akf", "build", str(source), "--route", route, "--soc", soc, "--out", str(out)]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != status:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    build = out / "build.json"
    return json.loads(done.stdout), json.loads(build.read_bytes()) if build.is_file() else {}


def version(text: str) -> str:
    """The line of a tool's version text that holds a version."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if re.search(r"\d+\.\d+", line)), lines[0])


def measured() -> dict[str, Any]:
    """Every route: what it reaches on every kernel, or the tool that it lacks."""
    runs = [
        (route, soc, kernel, [option + ("=" if option == "compiler" else ".") + word for word in words[kernel]])
        for route, soc, option, words in RUNS
        for kernel in KERNELS
    ]
    others = [route for route in get_args(Route) if route not in {each[0] for each in RUNS}]
    with tempfile.TemporaryDirectory() as folder:
        builds = [run(*each, Path(folder)) for each in runs]
        lacking = [blocked(route, Path(folder)) for route in others]
    machine = f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores, Linux, no device, no CANN"
    return {"machine": machine, "python": platform.python_version(), "builds": builds, "blocked": lacking}


def page(record: dict[str, Any]) -> str:
    """The record as a page."""
    lines = [
        "# What each route reaches without a board",
        "",
        "Written by `docs/generate_routes.py`, which runs `akf build` on the same three kernels by every route that",
        f"runs on such a machine ({record['machine']}). The record is [routes.json](routes.json).",
        "Seconds are of one run each, which builds twice; they are this machine's and no promise.",
        "",
        "| route | SoC | kernel | stage reached | stopped by | reproducible | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in record["builds"]:
        again = {True: "yes", False: "no", None: "-"}[each["reproducible"]]
        compiler = "".join(f" ({word.partition('=')[2]})" for word in each["options"] if word.startswith("compiler="))
        lines.append(
            f"| `{each['route']}`{compiler} | `{each['soc']}` | {each['kernel']} | `{each['stage'] or '-'}` "
            f"| {each['stopped'] or '-'} | {again} | {each['seconds_s']} |"
        )
    lines += [
        "",
        "Only `shared_object`, `cubin` and `device_object` are binaries; no gate takes anything before them.",
        "",
        "## Routes that cannot begin here",
        "",
        "| route | missing tool | how to get it |",
        "|---|---|---|",
        *(f"| `{each['route']}` | `{each['tool']}` | {each['get']} |" for each in record["blocked"]),
        "",
        "## Tools",
        "",
    ]
    tools = sorted({(each["route"], tool) for each in record["builds"] for tool in each["tools"]})
    lines += [f"- `{route}`: {tool}" for route, tool in tools]
    return "\n".join(lines) + "\n"


def held(build: dict[str, Any]) -> dict[str, Any]:
    """What of a build does not depend on the machine."""
    tools = [tool for tool in build["tools"] if not tool.startswith(OURS)]
    return {**{name: build[name] for name in KEPT}, "tools": tools}


def main(arguments: list[str]) -> int:
    """Write the record and its page, or hold a run against the record."""
    found = measured()
    if arguments == ["--check"]:
        wanted = json.loads(RECORD.read_text(encoding="utf-8"))
        pairs = zip(wanted["builds"], found["builds"], strict=True)
        differing = [(a, b) for a, b in ((held(a), held(b)) for a, b in pairs) if a != b]
        for a, b in differing:
            print("recorded", a, "\nfound   ", b)
        if wanted["blocked"] != found["blocked"]:
            print("recorded", wanted["blocked"], "\nfound   ", found["blocked"])
        return 1 if differing or wanted["blocked"] != found["blocked"] else 0
    RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
