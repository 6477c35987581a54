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
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

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
SOURCES = {"pypto_pro_cce": "pypto_tensor_ptoas"}
"""Routes that take another route's sources."""
KEPT = ("route", "soc", "kernel", "options", "outcome", "stage", "stopped")


def run(route: str, soc: str, kernel: str, options: list[str], scratch: Path) -> dict[str, Any]:
    """One build as the record holds it."""
    source = ROOT / "examples" / "kernels" / SOURCES.get(route, route) / kernel
    out = scratch / f"{route}-{soc}-{kernel}-{len(list(scratch.iterdir()))}"
    words = [word for each in options for word in ("--option", each)]
    command = [sys.executable, "-m", "akf", "build", str(source), "--route", route, "--soc", soc, "--out", str(out)]
    start = time.monotonic()
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False, cwd=ROOT)
    seconds = round(time.monotonic() - start, 1)
    answer = json.loads(done.stdout)
    entry: dict[str, Any] = {"route": route, "soc": soc, "kernel": kernel, "options": options, "seconds_s": seconds}
    if done.returncode:
        problem = answer["problems"][0]
        return {
            **entry,
            "outcome": "blocked",
            "stage": None,
            "stopped": problem["message"],
            "reproducible": None,
            "tools": [],
        }
    build = json.loads((out / "build.json").read_bytes())
    stopped = answer["stopped"] and f"{answer['stopped']['code']} {answer['stopped'].get('tool') or ''}".strip()
    tools = [
        f"{tool['name']}: {tool['version_text'].splitlines()[0]}" for tool in build["tools"] if tool.get("version_text")
    ]
    return {
        **entry, "outcome": answer["outcome"], "stage": answer["stage"], "stopped": stopped,
        "reproducible": answer["reproducible"], "tools": sorted(tools),
    }  # fmt: skip


def measured() -> dict[str, Any]:
    """Every route, on every kernel."""
    with tempfile.TemporaryDirectory() as folder:
        entries = [
            run(
                route,
                soc,
                kernel,
                [f"{option}={word}" if option == "compiler" else f"{option}.{word}" for word in words[kernel]],
                Path(folder),
            )
            for route, soc, option, words in RUNS
            for kernel in KERNELS
        ]
    machine = f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores, Linux, no device, no CANN"
    return {"machine": machine, "python": platform.python_version(), "builds": entries}


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
        "The other routes end before their first tool, which comes with CANN or with the framework's own package:",
        "`ascendc_direct`, `catlass_cpp`, `tilelang_ascend_ascendc`, `tilelang_ascend_pto_headers`,",
        "`tilelang_ascend_npuir`. `akf capability explain ROUTE` names each tool and how to get it.",
        "Only `shared_object`, `cubin` and `device_object` are binaries; no gate takes anything before them.",
        "",
        "## Tools",
        "",
    ]
    tools = sorted({(each["route"], tool) for each in record["builds"] for tool in each["tools"]})
    lines += [f"- `{route}`: {tool}" for route, tool in tools]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Write the record and its page, or hold a run against the record."""
    found = measured()
    if arguments == ["--check"]:
        wanted = json.loads(RECORD.read_text(encoding="utf-8"))
        pairs = zip(wanted["builds"], found["builds"], strict=True)
        differing = [(a, b) for a, b in pairs if any(a[name] != b[name] for name in KEPT)]
        for a, b in differing:
            print("recorded", {name: a[name] for name in KEPT}, "\nfound   ", {name: b[name] for name in KEPT})
        return 1 if differing else 0
    RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
