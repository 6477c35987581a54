"""The tables that torch_npu's profiler and msprof write, and what is read of them.

The names are those of files from 2023 to 2026 and of the sources of torch_npu 2.14 and mindstudio-profiler 26.0.0.
torch_npu makes `kernel_details.csv` of msprof's `op_summary` by renaming columns, so both are one table here.
`Block Dim` became `Block Num` in 2026; `Device_id` and `OP State` came in 2025; `Step Id` is there only if the profiler
found steps. `--task-time=l0` and Level0 write `N/A` for types and operands, and 0 for blocks.
"""

from __future__ import annotations

import re

from akf.traffic.cells import CellKind
from akf.traffic.tables import Column, Table

STEP_ID = "Step Id"
HCCL = ("HCCL", "COMMUNICATION")
"""Kinds of core that are none: the tasks of collectives."""
EAGER = 2**32 - 1
"""The model id of an operator that no graph launched: -1 as 32 bits."""

_TIME = re.compile(r"(?:(aic|aiv)_([a-z0-9_]{1,24})|(aicore|aiv))_time\(us\)")
_KNOWN = re.compile(
    r"(?:Task|Stream|Context|Infer) ID|Model Name|OP State|HF32 Eligible|Mix Block (?:Dim|Num)"
    r"|(?:Task )?Wait Time\(us\)|(?:aic|aiv)_[a-z0-9_]+(?:\([A-Za-z/%]+\))?|cube_utilization\(%\)|memory_bound"
)

_METRICS = (
    ("aic_mac_fp16_ratio", "ArithmeticUtilization"), ("aic_cube_fops", "ArithmeticUtilization"),
    ("aic_l0a_read_bw(GB/s)", "MemoryL0"), ("aiv_ub_read_bw_vector(GB/s)", "MemoryUB"),
    ("aic_read_main_memory_datas(KB)", "MemoryAccess"), ("aiv_read_main_memory_datas(KB)", "MemoryAccess"),
    ("aic_main_mem_read_bw(GB/s)", "Memory"), ("aiv_main_mem_read_bw(GB/s)", "Memory"),
    ("aiv_vec_bankgroup_cflt_ratio", "ResourceConflictRatio"), ("aic_write_cache_hit", "L2Cache"),
    ("aic_mac_time(us)", "PipeUtilization"), ("aiv_vec_time(us)", "PipeUtilization"),
)  # fmt: skip
"""A column that only one set of metrics has, and that set."""


def _column(name: str, kind: CellKind, *spellings: str, needed: bool = False, filled: bool = False) -> Column:
    return Column(name, spellings, kind, needed, filled)


def _counter(name: str) -> Column | None:
    """A pipe's time: `aiv_mte2_time(us)` is `aiv_mte2`; the core's own is `aic` or `aiv`."""
    found = _TIME.fullmatch(name)
    if found is None:
        return None
    core, pipe, whole = found.groups()
    return Column(f"{core}_{pipe}" if core else "aic" if whole == "aicore" else "aiv", (name,), "pipe")


_TASKS = (
    _column("step_id", "whole", STEP_ID),
    _column("device", "whole", "Device_id"),
    _column("model", "whole", "Model ID"),
    _column("kernel", "text", "Name", "Op Name", needed=True, filled=True),
    _column("op_type", "text", "Type", "OP Type", needed=True),
    _column("core_type", "text", "Accelerator Core", "Task Type", needed=True),
    _column("start_ns", "moment", "Start Time(us)", "Task Start Time(us)", needed=True, filled=True),
    _column("duration_ns", "span", "Duration(us)", "Task Duration(us)", needed=True, filled=True),
    _column("blocks", "whole", "Block Dim", "Block Num"),
    *(
        _column(f"{side.lower()}_{what}", "text", f"{side} {title}")
        for side in ("Input", "Output")
        for what, title in (("shapes", "Shapes"), ("dtypes", "Data Types"), ("formats", "Formats"))
    ),
)
_TASK_ID = (_column("stream", "whole", "Stream ID"), _column("task", "whole", "Task ID"))

KERNELS = Table("the list of kernels", _TASKS, _counter)
KERNELS_WITH_IDS = Table(KERNELS.name, _TASKS + _TASK_ID, _counter)

TASK_TIME = Table(
    "the list of tasks",
    (
        _column("device", "whole", "Device_id"),
        _column("symbol", "text", "kernel_name", needed=True),
        _column("stream", "whole", "stream_id", needed=True, filled=True),
        _column("task", "whole", "task_id", needed=True, filled=True),
        _column("start_ns", "moment", "task_start(us)", needed=True, filled=True),
        _column("stop_ns", "moment", "task_stop(us)", needed=True, filled=True),
    ),
)

OP_STATISTIC = Table(
    "the statistic by operator",
    (
        _column("device", "whole", "Device_id"),
        _column("op_type", "text", "OP Type", needed=True),
        _column("core_type", "text", "Core Type", needed=True),
        _column("calls", "whole", "Count", needed=True, filled=True),
        _column("time_ns", "pipe", "Total Time(us)", needed=True, filled=True),
    ),
)

STEP_TRACE_TIME = Table(
    "the times of the steps",
    (
        _column("step", "whole", "Step", needed=True),
        _column("computing_ns", "pipe", "Computing", needed=True, filled=True),
        _column("communication_ns", "pipe", "Communication(Not Overlapped)", needed=True, filled=True),
        _column("free_ns", "pipe", "Free", needed=True, filled=True),
        _column("stage_ns", "pipe", "Stage", needed=True, filled=True),
    ),
)

STEP_TRACE = Table(
    "the times of the iterations",
    (
        _column("device", "whole", "Device_id"),
        _column("step", "whole", "Iteration ID", needed=True, filled=True),
        _column("end_ns", "moment", "Iteration End(us)", needed=True, filled=True),
        _column("length_ns", "span", "Iteration Time(us)", needed=True, filled=True),
    ),
)

API_STATISTIC = Table(
    "the host's time by interface",
    (
        _column("level", "text", "Level", needed=True, filled=True),
        _column("api", "text", "API Name", needed=True, filled=True),
        _column("time_ns", "pipe", "Time(us)", needed=True, filled=True),
        _column("calls", "whole", "Count", needed=True, filled=True),
    ),
)

MEMORY_RECORD = Table(
    "the record of memory", (_column("moment", "moment", "Timestamp(us)", "Timestamp(ms)", needed=True, filled=True),)
)
OPERATOR_MEMORY = Table(
    "the memory of operators",
    (
        _column("allocated", "moment", "Allocation Time(us)", "Allocation Time(ms)", needed=True),
        _column("released", "moment", "Release Time(us)", "Release Time(ms)"),
        _column("released_active", "moment", "Active Release Time(us)", "Active Release Time(ms)"),
    ),
)


def metrics(header: tuple[str, ...]) -> str | None:
    """The set of metrics that a header of `KERNELS` speaks of."""
    return next((name for column, name in _METRICS if column in header), None)


def new_columns(unread: tuple[str, ...]) -> list[str]:
    """Of the columns that nobody read, those that no version known here has."""
    return sorted(name for name in unread if not _KNOWN.fullmatch(name))
