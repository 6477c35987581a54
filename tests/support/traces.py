"""Small traces and folders of our own making, with the keys and quirks of the real tools and invented numbers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Self

Event = dict[str, Any]
EPOCH_NS = 1_736_408_883_700_000_000
"""A start at which a float would already lose nanoseconds."""


def us(time_ns: int) -> float | str:
    """A time as the profilers print it; a number that JSON writes exactly, or text."""
    return f"{time_ns // 1000}.{time_ns % 1000:03d}"


class Number(float):
    """A decimal that JSON prints as it was written."""

    def __new__(cls, text: str) -> Self:
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str

    def __repr__(self) -> str:
        return self.text


def dumped(value: Any) -> str:
    """JSON with decimals as they were written."""
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {dumped(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(dumped, value)) + "]"
    return json.dumps(value)


def spanned(category: str, name: str, start_ns: int, duration_ns: int, **more: Any) -> Event:
    return {"ph": "X", "cat": category, "name": name, "pid": 658, "tid": 658,
            "ts": Number(str(us(EPOCH_NS + start_ns))), "dur": Number(str(us(duration_ns))), **more}  # fmt: skip


def step(number: int, start_ns: int, duration_ns: int) -> Event:
    args = {"External id": 900 + number, "Record function id": 0, "Ev Idx": 0}
    return spanned("user_annotation", f"ProfilerStep#{number}", start_ns, duration_ns, args=args)


def launch(correlation: int, start_ns: int, name: str = "cudaLaunchKernel") -> Event:
    return spanned("cuda_runtime", name, start_ns, 4000, args={"cbid": 211, "correlation": correlation})


def kernel(
    name: str, start_ns: int, duration_ns: int, correlation: int, external: int | None = None, stream: int = 7,
    category: str = "kernel", **more: Any,
) -> Event:  # fmt: skip
    args: Event = {"queued": 0, "device": 0, "context": 1, "stream": stream, "correlation": correlation,
                   "blocks per SM": Number("0.121212")}  # fmt: skip
    if external is not None:
        args = {"External id": external, **args}
    if category == "kernel":
        args |= {"grid": [16, 2, 1], "block": [128, 1, 1], "est. achieved occupancy %": 0}
    return spanned(category, name, start_ns, duration_ns, args=args | more) | {"pid": 0, "tid": stream}


def collective(start_ns: int, duration_ns: int, correlation: int, external: int) -> Event:
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    made = kernel(name, start_ns, duration_ns, correlation, external)
    more = {"Collective name": "allreduce", "In msg nelems": 16384, "dtype": "BFloat16", "Group size": 2}
    return made | {"args": made["args"] | more}


def operator(external: int, name: str, start_ns: int, duration_ns: int, dims: Any = None, kinds: Any = None) -> Event:
    args: Event = {"External id": external, "Record function id": 0, "Ev Idx": external}
    if dims is not None:
        args |= {"Concrete Inputs": [""] * len(dims), "Input type": kinds, "Input Dims": dims}
    return spanned("cpu_op", name, start_ns, duration_ns, args=args)


NOISE: list[Event] = [
    {"name": "process_name", "ph": "M", "ts": Number("1736408883600000.000"), "pid": 658, "tid": 0,
     "args": {"name": "python3"}},
    {"ph": "X", "cat": "python_function", "name": "/srv/somebody/model.py(12): forward", "pid": 658, "tid": 658,
     "ts": Number("1736408883700000.500"), "dur": Number("9.25"), "args": {"Python id": 1}},
    {"ph": "f", "id": 2, "pid": 0, "tid": 7, "ts": Number("1736408883700012.000"), "cat": "ac2g", "name": "ac2g",
     "bp": "e"},
    {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#2", "pid": 0, "tid": 7,
     "ts": Number("1736408883700010.000"), "dur": Number("20.000"), "args": {"External id": 902}},
    {"ph": "X", "cat": "Trace", "ts": Number("1736408883700000.000"), "dur": Number("100.000"), "pid": "Spans",
     "tid": "PyTorch Profiler", "name": "PyTorch Profiler (0)", "args": {"Op count": 0}},
    {"name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g", "pid": "Traces", "tid": "Trace",
     "ts": Number("1736408883700000.000")},
]  # fmt: skip


def two_steps() -> list[Event]:
    """Two steps on a GPU: a copy, a product on each of two streams, a collective, and a gap that is the host's."""
    product = ([[64, 256], [256, 512]], ["c10::BFloat16", "c10::BFloat16"])
    return [
        *NOISE,
        step(2, 0, 40_000),
        step(3, 45_000, 50_000),
        operator(11, "aten::copy_", 1_000, 5_000, [[64, 256], []], ["float", "Scalar"]),
        operator(12, "aten::mm", 7_000, 5_000, *product),
        launch(1, 2_000),
        kernel("Memcpy HtoD (Pinned -> Device)", 10_000, 2_000, 1, 11, category="gpu_memcpy", bytes=65536),
        launch(2, 8_000),
        kernel("sm90_gemm_bf16", 12_000, 6_000, 2, 12),
        launch(3, 9_000),
        kernel("sm90_gemm_bf16", 14_000, 6_000, 3, 12, stream=14),
        launch(4, 30_000),
        collective(35_000, 15_000, 4, 13),
        operator(13, "record_param_comms", 29_000, 5_000),
        launch(5, 50_000, "cudaGraphLaunch"),
        kernel("sm90_gemm_bf16", 60_000, 5_000, 5),
        kernel("void at::native::rms<c10::BFloat16>(int)", 66_000, 4_000, 5),
    ]  # fmt: skip


def kineto(events: list[Event], rank: int | None = 0, **head: Any) -> str:
    """A whole trace as torch writes it."""
    top: Event = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132}, {"id": 1, "name": "NVIDIA H200"}],
        "trace_id": "5940778FE33B4C18AF1633CEF366234F",
        "record_shapes": 1,
    }
    if rank is not None:
        top["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
    top |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": 1790857026000000000, **head}
    listed = ",\n  ".join(map(dumped, events))
    return dumped(top)[:-1] + f',\n  "traceEvents": [\n  {listed}\n  ],\n  "traceName": "/tmp/tmpt608zfnw.json"\n}}\n'


def write(folder: Path, text: str, name: str = "trace.json") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0) if name.endswith(".gz") else text.encode())
    return path


LAYERS = {3096504: "Python", 3170820320: "CANN", 3170820512: "Ascend Hardware", 3170820576: "HCCL",
          3170820832: "Overlap Analysis", 3170820544: "AI Core Freq"}  # fmt: skip
PYTHON, CANN, HARDWARE, HCCL, OVERLAP, CLOCK = LAYERS


def layers() -> list[Event]:
    return [
        {"name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}, "ph": "M"}
        for pid, name in LAYERS.items()
    ]


def npu_task(name: str, start_ns: int, duration: str, stream: int = 2, task: int = 11051) -> Event:
    args = {"Model Id": 4294967295, "Task Type": "AI_CORE", "Physic Stream Id": stream, "Task Id": task,
            "Batch Id": 0, "Subtask Id": 4294967295, "connection_id": task}  # fmt: skip
    return {"name": name, "pid": HARDWARE, "tid": stream, "ts": us(EPOCH_NS + start_ns), "dur": Number(duration),
            "args": args, "ph": "X"}  # fmt: skip


def flow(number: int, from_ns: int, to_ns: int, stream: int = 2) -> list[Event]:
    shared = {"name": f"HostToDevice{number}", "cat": "HostToDevice", "id": str(number)}
    return [
        {**shared, "ph": "s", "pid": CANN, "tid": 3105075, "ts": us(EPOCH_NS + from_ns)},
        {**shared, "ph": "f", "bp": "e", "pid": HARDWARE, "tid": stream, "ts": us(EPOCH_NS + to_ns)},
    ]


def clock(at_ns: int, mhz: object) -> Event:
    return {"name": "AI Core Freq", "pid": CLOCK, "tid": 0, "ts": us(EPOCH_NS + at_ns), "args": {"MHz": mhz}, "ph": "C"}


def overlap(name: str, start_ns: int, duration: str) -> Event:
    return {"name": name, "pid": OVERLAP, "tid": 0, "ts": us(EPOCH_NS + start_ns), "dur": Number(duration), "ph": "X"}


def array(events: list[Event]) -> str:
    """A whole trace as torch_npu writes it: one line, no object around it."""
    return dumped(events)
