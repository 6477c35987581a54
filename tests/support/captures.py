"""Captures and Workloads for triage, as importers write them: whole steps, exposed times, lines that add up.

`capture` makes one in which each kernel takes a given share of every step and the lines the rest; a test changes what
it is about. Figures are invented; what a share is, is by construction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Value = dict[str, Any]

STEP_NS = 4_000_000
STEPS = 12
CALLS = 72
LINES = ("communication", "waiting", "host_gap", "idle")
SIZE = {"sym": "T", "min": 1, "max": 16, "multiple_of": 1}
BUSY = {"aiv_mte2": 0.8, "aiv_vec": 0.2}


def wobble(step: int) -> int:
    """How much a step is longer than `STEP_NS`, in nanoseconds: no two steps are alike."""
    return (step * 7919) % 1009


def walls(steps: int = STEPS) -> list[int]:
    """Wall time of each step."""
    return [STEP_NS + wobble(step) for step in range(steps)]


def kernel(
    share: float,
    callsite: str | None = "add-rms-norm",
    *,
    name: str = "AddRmsNorm",
    steps: int = STEPS,
    tokens: int = 16,
    jitter: float = 0.0,
    counters: Mapping[str, float] | None = None,
    **more: Any,
) -> Value:
    """A kernel that takes this share of every step, give or take `jitter` of it, none of it hidden."""
    exposed = [
        int(wall * share * (1 + jitter * (2 * (step % 2) - 1 if step else 0))) for step, wall in enumerate(walls(steps))
    ]
    time = sum(exposed)
    busy = BUSY if counters is None else counters
    entry = {
        "callsite": callsite,
        "kernel": name,
        "op_type": name,
        "symbols": {} if callsite is None else {"T": tokens},
        "inputs": [{"shape": [tokens, 4096], "dtype": "bfloat16"}],
        "outputs": [{"shape": [tokens, 4096], "dtype": "bfloat16"}],
        "graph": "graph",
        "core_type": "AI_VECTOR_CORE",
        "blocks": 40,
        "calls": CALLS * steps,
        "time_ns": time,
        "exposed_ns": time,
        "longest_ns": max(exposed),
        "steps_exposed_ns": exposed,
        "counters": [{"name": pipe, "time_ns": int(time * part)} for pipe, part in busy.items()],
    }
    return {name: item for name, item in (entry | more).items() if item is not None or name == "callsite"}


def capture(*kernels: Value, lines: Mapping[str, float] | None = None, steps: int = STEPS, **more: Any) -> Value:
    """A Capture of these kernels on one rank; `lines` gives the shares of the step that no kernel fills.

    What kernels and lines leave of the step is computing in which several kernels overlap.
    """
    wall = walls(steps)
    rest = {name: [int(time * (lines or {}).get(name, 0.0)) for time in wall] for name in LINES}
    taken = [sum(times) for times in zip(*rest.values(), strict=True)]
    split = {"computing": [time - other for time, other in zip(wall, taken, strict=True)], **rest}
    breakdown = {
        "rank": 0,
        "steps": steps,
        "step_ns": sum(wall),
        "steps_ns": wall,
        "bounds": "profiler",
        **{f"{name}_ns": sum(times) for name, times in split.items()},
        "steps_lines": {f"{name}_ns": times for name, times in split.items()},
    }
    value: Value = {
        "kind": "Capture",
        "schema_version": 1,
        "id": "capture",
        "title": "Decode steps, invented",
        "platform": "ascend",
        "data_class": "public",
        "tool": {"name": "torch_npu.profiler", "version": "2.14.0", "settings": [{"name": "level", "value": "Level1"}]},
        "sources": [{"name": "kernel_details.csv", "digest": "sha256:" + "0" * 64}],
        "entries": list(kernels),
        "breakdown": [breakdown],
        "checks": [{"name": "stage", "expected_ns": sum(wall), "found_ns": sum(wall), "holds": True}],
        "health": {
            "eager_share_ratio": 0.0,
            "buckets": [{"size_tokens": 16, "replays": steps, "padded_tokens": 0}],
            "recompiles": 0,
            "jit_compiles": 0,
            "custom_operators": True,
        },
        "stage": "decode",
        "clocks_mhz": [1800],
        "clock": "steady",
    }
    value |= more
    if "completeness" not in value and any(each["callsite"] for each in kernels):
        value["completeness"] = counted(kernels)
    return value


def counted(kernels: Sequence[Value]) -> list[Value]:
    """All calls that were expected were seen."""
    sites = sorted({each["callsite"] for each in kernels if each["callsite"]})
    seen = {site: sum(each["calls"] for each in kernels if each["callsite"] == site) for site in sites}
    return [{"callsite": site, "expected_calls": seen[site], "seen_calls": seen[site]} for site in sites]


def site(name: str = "add-rms-norm", op: str = "add_rms_norm", **more: Any) -> Value:
    """A callsite whose main operand is [T, 4096]."""
    operand = {"name": "x", "access": "in", "dtype": "bfloat16", "shape": [SIZE, 4096], "layout": "ND"}
    value = {
        "id": name,
        "arm": "vllm_ascend",
        "site": "vllm_ascend/ops/layernorm.py AscendRMSNorm.forward_oot",
        "provider": "torch_npu.npu_add_rms_norm",
        "op": op,
        "operands": [operand, {**operand, "name": "out", "access": "out"}],
        "graph": {"mode": "graph", "capture_sizes_tokens": [16]},
        "calls_per_step": CALLS,
    }
    return value | more


def workload(*sites: Value) -> Value:
    """A Workload of one decode stage with these callsites."""
    listed = list(sites) or [site()]
    return {
        "kind": "Workload",
        "schema_version": 1,
        "id": "workload",
        "title": "Decode, invented",
        "data_class": "public",
        "model": "Qwen3-8B",
        "dtype": "bfloat16",
        "source": {"kind": "declared", "description": "Invented for a test.", "files": []},
        "stages": [
            {
                "id": "decode",
                "bounds": {
                    "input_min_tokens": 1, "input_max_tokens": 2048, "output_min_tokens": 1, "output_max_tokens": 512,
                },
                "concurrency": 16,
                "arrivals": {"process": "closed_loop"},
                "weight_ratio": 1.0,
                "shapes": [
                    {"callsite": each["id"], "symbols": {"T": 16}, "calls": 0, "weight_ratio": 1.0} for each in listed
                ],
            }
        ],
        "callsites": listed,
    }  # fmt: skip


def capability(op: str = "add_rms_norm", **size: int) -> Value:
    """A capability tuple for [T, 4096] in graphs."""
    return {"op": op, "shape": [{**SIZE, **size}, 4096], "dtype": "bfloat16", "graph": "graph"}
