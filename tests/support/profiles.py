"""Profiler folders, written from a list of kernels in the layout of any year.

The headers, the quoting and the quirks are those of real files (TABs behind times, shapes quoted twice, `0.0` in the
counters of a core that did not run, `N/A` in every cell of a collective); kernels and figures are made up. What the
other tables say is computed from the kernels, as the profiler does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

EAGER = 4294967295
PIPES = {
    "aic": ("mac", "scalar", "mte1", "mte2", "fixpipe"),
    "aiv": ("vec", "scalar", "mte2", "mte3"),
}
CORES = {"AI_CORE": ("aic",), "AI_VECTOR_CORE": ("aiv",), "MIX_AIC": ("aic", "aiv"), "MIX_AIV": ("aic", "aiv")}


class Ran(NamedTuple):
    """One kernel that ran; times in nanoseconds, `pipes` what its pipes were busy."""

    name: str
    op_type: str
    core: str
    start: int
    duration: int
    step: int | None = 1
    shapes: tuple[str, str] | None = None
    dtypes: tuple[str, str] = ("DT_BF16", "DT_BF16")
    blocks: int = 20
    pipes: tuple[tuple[str, int], ...] = ()
    model: int = EAGER
    device: int = 0
    stream: int = 2
    task: int = 0

    @property
    def collective(self) -> bool:
        """Whether it communicates."""
        return self.core in {"HCCL", "COMMUNICATION"}


class Layout(NamedTuple):
    """Which columns a version writes, and how."""

    columns: tuple[str, ...]
    metrics: bool = True
    whole_times: bool = False


_OPERANDS = (
    "HF32 Eligible", "Input Shapes", "Input Data Types", "Input Formats", "Output Shapes", "Output Data Types",
    "Output Formats", "Context ID",
)  # fmt: skip
_TIMES = ("Start Time(us)", "Duration(us)", "Wait Time(us)")
_TASK_TIMES = tuple(f"Task {name}" for name in _TIMES)
_IDS = ("Model ID", "Task ID", "Stream ID")
KERNEL_DETAILS = {
    "level0": Layout(("Step Id", "Name", "Type", "Accelerator Core", *_TIMES, "Block Dim"), metrics=False),
    "2023": Layout(
        ("Step Id", *_IDS, "Name", "Type", "Accelerator Core", *_TIMES, "Block Dim", "Mix Block Dim", *_OPERANDS),
        whole_times=True,
    ),
    "2025": Layout(
        ("Step Id", *_IDS, "Name", "Type", "OP State", "Accelerator Core", *_TIMES, "Block Dim", "Mix Block Dim",
         *_OPERANDS)
    ),
    "8.3.RC1": Layout(
        ("Step Id", "Device_id", *_IDS, "Name", "Type", "OP State", "Accelerator Core", *_TIMES, "Block Dim",
         "Mix Block Dim", *_OPERANDS)
    ),
    "2026": Layout(
        ("Step Id", "Device_id", *_IDS, "Name", "Type", "OP State", "Accelerator Core", *_TIMES, "Block Num",
         "Mix Block Num", *_OPERANDS)
    ),
    "2026 without steps": Layout(
        ("Device_id", *_IDS, "Name", "Type", "OP State", "Accelerator Core", *_TIMES, "Block Num", "Mix Block Num",
         *_OPERANDS)
    ),
}  # fmt: skip
OP_SUMMARY = {
    "cann9": Layout(
        ("Device_id", *_IDS, "Op Name", "OP Type", "OP State", "Task Type", *_TASK_TIMES, "Block Num",
         "Mix Block Num", *_OPERANDS)
    ),
    "8.3": Layout(
        ("Device_id", *_IDS, "Op Name", "OP Type", "OP State", "Task Type", *_TASK_TIMES, "Block Dim",
         "Mix Block Dim", *_OPERANDS)
    ),
    "without device": Layout(
        (*_IDS, "Op Name", "OP Type", "Task Type", *_TASK_TIMES, "Block Dim", "Mix Block Dim", *_OPERANDS)
    ),
    "mixed words": Layout(
        ("Step Id", *_IDS, "Op Name", "OP Type", "Task Type", "Start Time(us)", "Task Duration(us)",
         "Task Wait Time(us)", "Block Dim", "Mix Block Dim", *_OPERANDS),
        whole_times=True,
    ),
    "task-time l0": Layout(
        ("Device_id", *_IDS, "Op Name", "OP Type", "OP State", "Task Type", *_TASK_TIMES, "Block Num",
         "Mix Block Num", *_OPERANDS),
        metrics=False,
    ),
}  # fmt: skip


def us(time: int, *, tab: bool = False, whole: bool = False) -> str:
    """Microseconds as profilers write them."""
    text = str(time // 1000) if whole and time % 1000 == 0 else f"{time // 1000}.{time % 1000:03d}"
    return text + ("\t" if tab else "")


def metric_columns() -> list[str]:
    """The tail of a header with the metrics PipeUtilization."""
    found = []
    for core, whole in (("aic", "aicore"), ("aiv", "aiv")):
        found += [f"{whole}_time(us)", f"{core}_total_cycles"]
        found += [f"{core}_{pipe}_{what}" for pipe in PIPES[core] for what in ("time(us)", "ratio")]
        found.append(f"{core}_icache_miss_rate")
    return [*found, "cube_utilization(%)"]


def _metrics(ran: Ran) -> list[str]:
    if ran.collective:
        return ["N/A"] * len(metric_columns())
    held, found = dict(ran.pipes), []
    for core in ("aic", "aiv"):
        runs = core in CORES.get(ran.core, ())
        found += [us(held.get(core, ran.duration)) if runs else "0.0", "1000" if runs else "0"]
        for pipe in PIPES[core]:
            found += [us(held.get(f"{core}_{pipe}", 0)) if runs else "0.0", "0.1" if runs else "0.0"]
        found.append("0.0")
    return [*found, "0"]


def _cells(ran: Ran, layout: Layout) -> dict[str, str]:
    """Every cell that some version writes, by the name of its column."""
    bare, collective = not layout.metrics, ran.collective
    start = us(ran.start, tab=not layout.whole_times, whole=layout.whole_times)
    duration = us(ran.duration, whole=layout.whole_times)
    blocks = "0" if bare or collective else str(ran.blocks)
    cells = {
        "Step Id": "" if ran.step is None else str(ran.step),
        "Device_id": str(ran.device),
        "Model ID": str(ran.model),
        "Task ID": "N/A" if collective else str(ran.task),
        "Stream ID": "N/A" if collective else str(ran.stream),
        "OP State": "N/A" if collective or bare else "dynamic",
        "Accelerator Core": "N/A" if bare and not collective else ran.core,
        "Task Type": "N/A" if bare else ran.core,
        **dict.fromkeys(("Name", "Op Name"), ran.name),
        **dict.fromkeys(("Type", "OP Type"), "N/A" if bare else ran.op_type),
        **dict.fromkeys(("Start Time(us)", "Task Start Time(us)"), start),
        **dict.fromkeys(("Duration(us)", "Task Duration(us)"), duration),
        **dict.fromkeys(("Wait Time(us)", "Task Wait Time(us)"), "0"),
        **dict.fromkeys(("Block Dim", "Block Num"), blocks),
        **dict.fromkeys(("Mix Block Dim", "Mix Block Num"), "N/A" if collective else "0"),
        **dict.fromkeys(_OPERANDS, "N/A"),
    }
    if ran.shapes is not None and not bare:
        cells["HF32 Eligible"] = "NO"
        for side, shapes, dtypes in zip(("Input", "Output"), ran.shapes, ran.dtypes, strict=True):
            cells[f"{side} Shapes"] = f'"""{shapes}"""'
            cells[f"{side} Data Types"] = dtypes
            cells[f"{side} Formats"] = ";".join(["ND"] * (dtypes.count(";") + 1))
    return cells


def kernel_table(rows: Iterable[Ran], layout: Layout) -> str:
    """A list of kernels."""
    head = [*layout.columns, *(metric_columns() if layout.metrics else ())]
    lines = [
        [*map(_cells(ran, layout).__getitem__, layout.columns), *(_metrics(ran) if layout.metrics else ())]
        for ran in rows
    ]
    return "".join(",".join(line) + "\n" for line in [head, *lines])


def op_statistic(rows: Sequence[Ran], *, device: bool) -> str:
    """Count and time by operator; communication is not in it."""
    sums: dict[tuple[int, str, str], list[int]] = {}
    for ran in rows:
        if not ran.collective:
            sums.setdefault((ran.device, ran.op_type, ran.core), []).append(ran.duration)
    head = (
        "Device_id," * device + "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
    )
    lines = [
        f"{where}," * device
        + f"{op_type},{core},{len(times)},{us(sum(times))},{us(min(times))},{us(sum(times) // len(times))}"
        + f",{us(max(times))},1.0"
        for (where, op_type, core), times in sums.items()
    ]
    return "\n".join([head, *lines]) + "\n"


def step_trace_time(rows: Sequence[Ran], stages: dict[int, int], *, device: bool, end: str = "\r\n") -> str:
    """The steps' lines, each a nanosecond at a time."""
    lines = []
    for step, stage in stages.items():
        busy = {True: set[int](), False: set[int]()}
        for ran in rows:
            if ran.step == step:
                busy[ran.collective] |= set(range(ran.start, ran.start + ran.duration))
        own, all_communication = len(busy[False]), len(busy[True])
        bare = len(busy[True] - busy[False])
        free = stage - own - bare
        cells = (own, bare, all_communication - bare, all_communication, free, stage, 0, bare, 0)
        lines.append("0," * device + f"{step}," + ",".join(f"{cell / 1000!r}" for cell in cells))
    head = (
        "Device_id," * device
        + "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
        + "Communication(Not Overlapped and Exclude Receive),Preparing"
    )
    return end.join([head, *lines]) + end


API_STATISTIC = (
    "Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\n"
    "acl,RmsNorm_Tiling,57.61,6,9.602,0.36,24.5,92.72\n"
    "node,launch,4014.44,191,21.018,2.83,840.78,9619.149\n"
)


def profiler_info(rank: int | str = 0, *, level: str = "Level1", **more: Any) -> dict[str, Any]:
    """What says how a profile was recorded, and more than that."""
    return {
        "config": {
            "common_config": {
                "activities": ["ProfilerActivity.CPU", "ProfilerActivity.NPU"],
                "schedule": {"wait": 0, "active": 1, "warmup": 10, "repeat": 1, "skip_first": 40},
                "record_shapes": True,
                "profile_memory": False,
                "with_stack": False,
                "with_modules": False,
            },
            "experimental_config": {
                "_profiler_level": level,
                "_aic_metrics": "ACL_AICORE_PIPE_UTILIZATION",
                "_l2_cache": False,
                "_data_simplification": True,
                "_export_type": ["text"],
                "_op_attr": False,
            },
        },
        "start_info": {"syscnt_enable": True, "freq": 100, "start_cnt": 17238197612056},
        "end_info": {"collectionTimeEnd": 1736408884023552840, "MonotonicTimeEnd": 172164265133640},
        "rank_id": rank,
        **more,
    }


def torch_npu(
    folder: Path,
    rows: Sequence[Ran],
    layout: str = "2026",
    rank: int = 0,
    stages: dict[int, int] | None = None,
    info: dict[str, Any] | None = None,
    name: str = "worker_4711_20260823101500123_ascend_pt",
) -> Path:
    """Write a `*_ascend_pt` folder; returns it."""
    own = folder / name
    out = own / "ASCEND_PROFILER_OUTPUT"
    out.mkdir(parents=True)
    (out / "kernel_details.csv").write_text(kernel_table(rows, KERNEL_DETAILS[layout]))
    device = layout in {"8.3.RC1", "2026", "2026 without steps"}
    if layout != "level0":
        (out / "op_statistic.csv").write_text(op_statistic(rows, device=device))
        host = API_STATISTIC
        if device:
            host = "".join(f"{'host' if n else 'Device_id'},{x}" for n, x in enumerate(host.splitlines(keepends=True)))
        (out / "api_statistic.csv").write_text(host)
    if stages is not None:
        (out / "step_trace_time.csv").write_text(step_trace_time(rows, stages, device=device), newline="")
    level = "Level0" if layout == "level0" else "Level1"
    said = json.dumps(profiler_info(rank, level=level) if info is None else info, indent=4)
    (own / f"profiler_info_{rank}.json").write_text(said)
    return own


TASK_TIME_HEAD = "Device_id,kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),task_stop(us)"


def task_time(rows: Iterable[Ran], symbol: Callable[[Ran], str]) -> str:
    """The tasks, with what starts and ends the profiling among them."""
    lines = [TASK_TIME_HEAD, "0,N/A,PROFILING_ENABLE,2,1,0.02,1.000\t,1.020\t"]
    for ran in rows:
        if not ran.collective:
            times = f"{us(ran.duration)},{us(ran.start, tab=True)},{us(ran.start + ran.duration, tab=True)}"
            lines.append(f"{ran.device},{symbol(ran)},KERNEL_{ran.core},{ran.stream},{ran.task},{times}")
    return "\n".join([*lines, "0,N/A,PROFILING_DISABLE,2,9,0.02,9.000\t,9.020\t"]) + "\n"


def step_trace(ends: Sequence[tuple[int, int]]) -> str:
    """msprof's iterations, as (end, length)."""
    head = (
        "Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),FP to BP Time(us),"
        "Iteration Refresh(us),Data Aug Bound(us)"
    )
    lines = [f"{number},N/A,N/A,{us(end)}\t,{us(length)},N/A,N/A,N/A" for number, (end, length) in enumerate(ends, 1)]
    return "\n".join([head, *lines]) + "\n"


def msprof(
    folder: Path,
    rows: Sequence[Ran],
    layout: str = "cann9",
    symbol: Callable[[Ran], str] | None = None,
    iterations: Sequence[tuple[int, int]] = (),
    name: str = "PROF_000001_20260823101500123_AABBCC",
) -> Path:
    """Write a `PROF_*` folder; returns it."""
    own = folder / name
    out = own / "mindstudio_profiler_output"
    out.mkdir(parents=True)
    stamp = "20260823101530"
    (out / f"op_summary_{stamp}.csv").write_text(kernel_table(rows, OP_SUMMARY[layout]))
    (out / "README.txt").write_text("how to read these files")
    if OP_SUMMARY[layout].metrics:
        (out / f"op_statistic_{stamp}.csv").write_text(op_statistic(rows, device=True))
    (out / f"api_statistic_{stamp}.csv").write_text(API_STATISTIC)
    if symbol is not None:
        (out / f"task_time_{stamp}.csv").write_text(task_time(rows, symbol))
    if iterations:
        (out / f"step_trace_{stamp}.csv").write_text(step_trace(iterations))
    for device in sorted({ran.device for ran in rows}):
        where = own / f"device_{device}"
        where.mkdir()
        said = {
            "DeviceInfo": [{"id": device, "ai_core_num": 20, "aiv_num": 40, "aic_frequency": "1800"}],
            "hostname": "secret-host",
            "pid": "4711",
            "platform_version": "5",
        }
        (where / f"info.json.{device}").write_text(json.dumps(said))
    return own
