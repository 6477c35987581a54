"""Traces of torch's own profiler (Kineto), for the reference platforms `cuda` and `host`.

Invariants:
1. Where the trace has device tasks (`kernel`, `gpu_memcpy`, `gpu_memset`), they are the tasks and the platform is
   `cuda`; where it has none, the operators on the CPU are, each with the time of its own (`akf.traffic.selftime`), and
   the platform is `host`. A trace of another device is refused, never taken for one of these.
2. A task's launch is the runtime's or driver's call with its correlation. A call that launches a graph makes its tasks
   replayed ones. No call, two calls, or one later than its task is no evidence, and nothing is concluded from it.
3. A task's operator, shapes and element types are those of the CPU operator with its external id. Two operators with
   one id are no evidence either.
4. Steps (`ProfilerStep#N`) are the host's spans; on a device they last as `akf.traffic.steps` says, because it lags
   behind the host. On the CPU a step is the span itself.
5. Copies and fills are tasks like others: the device is busy. Collectives are communication.
6. No path, host name, process or thread id leaves this module.

The categories and arguments are those of traces that torch 2.11 wrote on CUDA 13 and on a CPU, and the capitalised
ones of torch 1.8 and before 1.11.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import polars as pl

from akf.contracts.limits import MAX_SAFE_INTEGER
from akf.contracts.problems import InvalidError, Problem
from akf.contracts.text import show
from akf.traffic.columns import Rows
from akf.traffic.events import Event, Trace
from akf.traffic.kernels import named
from akf.traffic.kineto_fields import number_of, operands_of, rank_of, settings_of, whole_of
from akf.traffic.selftime import segments
from akf.traffic.spans import EventTrouble, span
from akf.traffic.steps import STEPS, device_steps

Role = Literal["task", "launch", "operator", "note"]
ROLES: dict[str, tuple[Role, str]] = {
    "kernel": ("task", "SM"),
    "gpu_memcpy": ("task", "MEMCPY"),
    "gpu_memset": ("task", "MEMSET"),
    "memcpy": ("task", "MEMCPY"),
    "memset": ("task", "MEMSET"),
    "cuda_runtime": ("launch", ""),
    "cuda_driver": ("launch", ""),
    "runtime": ("launch", ""),
    "cpu_op": ("operator", ""),
    "operator": ("operator", ""),
    "user_annotation": ("note", ""),
}
"""What an event of a category is, and the kind of core that runs it; categories in lower case."""

_COLLECTIVE = re.compile(r"nccl|cross_device_reduce|Memcpy PtoP", re.IGNORECASE)
_STEP = re.compile(r"ProfilerStep#(\d{1,9})")
_FOREIGN = re.compile(r"hip[A-Z]|xpu|mtia|privateuse1", re.IGNORECASE)
_ONE = "profile one process in one trace"
_COLLECTIVE_OP = "record_param_comms"


@dataclass(frozen=True)
class Read:
    """What one trace says."""

    platform: Literal["cuda", "host"]
    rank: int | None
    tasks: pl.DataFrame
    """As `akf.traffic.kernels` wants them, but for rank and step; with `launch_ns`, and the call's number as `task`."""
    steps: pl.DataFrame
    """`akf.traffic.steps.STEPS`; empty where the profiler marked none."""
    settings: tuple[tuple[str, str], ...]


def read(trace: Trace) -> Read:
    """Read one trace from front to back.

    Raises:
        InvalidError: It is malformed, or its events contradict each other.
        StorageError: It cannot be read.
    """
    found = _Found(trace)
    for event in trace:
        found.take(event)
    if trace.layout == "array":
        text = "this trace is an array of events, as torch_npu writes it: its kernels are in the tables beside it"
        raise InvalidError.of(
            "AKF-F157", text, file=trace.name, line=1, hint="name the *_ascend_pt folder that it is in"
        )
    found.refuse()
    rank = rank_of(trace.head)
    if found.tasks_seen:
        tasks, steps = _on_device(found)
    else:
        tasks, steps = _on_cpu(found)
    return Read("cuda" if found.tasks_seen else "host", rank, tasks, steps, settings_of(trace.head, found.tasks_seen))


class _Found:
    """Everything that counts, as it is met."""

    def __init__(self, trace: Trace) -> None:
        self.tasks_seen = False
        self.spans: dict[int, tuple[int, int]] = {}
        self._trace = trace
        self._trouble = EventTrouble(trace)
        self._devices: set[int] = set()
        whole = pl.Int64
        self.tasks = Rows(
            {"kernel": pl.String, "core_type": pl.String, "start_ns": whole,
             "duration_ns": whole, "blocks": whole, "correlation": whole, "external": whole, "collective": pl.String,
             "shapes": pl.String, "dtypes": pl.String}
        )  # fmt: skip
        self.launches = Rows({"correlation": whole, "launch_ns": whole, "graph": pl.Boolean})
        self.operators = Rows(
            {"external": whole, "op_type": pl.String, "shapes": pl.String, "dtypes": pl.String, "thread": pl.String,
             "start_ns": whole, "end_ns": whole}
        )  # fmt: skip
        self._operators_seen = False

    def take(self, event: Event) -> None:
        """Look at one event."""
        category = event.get("cat")
        role, core = ROLES.get(category.lower(), (None, "")) if isinstance(category, str) else (None, "")
        if role is None:
            if isinstance(category, str) and _FOREIGN.match(category):
                self._foreign(f"the category {show(category)}")
            return
        phase = event.get("ph")
        if phase != "X" and phase != "B":  # noqa: PLR1714 - what is no text has no hash
            return
        name = event.get("name")
        if role == "note" and not (isinstance(name, str) and name.startswith("ProfilerStep#")):
            return
        try:
            self._event(role, core, event)
        except ValueError as error:
            self._trouble.event(name, error)

    def _event(self, role: Role, core: str, event: Event) -> None:
        name = event.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError(f"its name is {show(name)}, not a text")
        start, duration = span(event)
        args = event.get("args", {})
        if not isinstance(args, dict):
            raise ValueError(f"its args are {show(args)}, not an object")  # noqa: TRY004 - one problem with a place
        if role == "task":
            self.tasks_seen = True
            self._devices.add(whole_of(args, "device", event.get("pid")))
            self._task(name, core, start, duration, args)
        elif role == "launch":
            if _FOREIGN.match(name):
                self._foreign(show(name))
            self.launches.add(number_of(args, "correlation"), start, "GraphLaunch" in name)
        elif (step := _STEP.fullmatch(name)) is not None:
            number = int(step[1])
            if number in self.spans:
                self._trouble.add(self._trace.problem("AKF-F156", f"{name} stands twice", _ONE))
            self.spans[number] = (start, start + duration)
        elif role == "operator":
            shapes, dtypes = operands_of(args)
            self._operators_seen = True
            external = number_of(args, "External id", "external id")
            thread = f"{event.get('pid')}/{event.get('tid')}"
            self.operators.add(external, named(name), shapes, dtypes, thread, start, start + duration)

    def _task(self, name: str, core: str, start: int, duration: int, args: Event) -> None:
        grid = args.get("grid")
        blocks = None
        if isinstance(grid, list) and grid and all(type(size) is int and 0 < size < 2**31 for size in grid):
            blocks = 1
            for size in grid:
                blocks *= size
        collective = args.get("Collective name")
        if not isinstance(collective, str):
            collective = "" if _COLLECTIVE.search(name) else None
        elements = args.get("In msg nelems") if collective else None
        dtype = args.get("dtype") if collective else None
        self.tasks.add(
            named(name),
            core,
            start,
            duration,
            blocks if blocks is not None and blocks <= MAX_SAFE_INTEGER else None,
            number_of(args, "correlation"),
            number_of(args, "External id", "external id"),
            None if collective is None else named(collective),
            str(elements) if type(elements) is int else None,
            named(dtype).lower() if isinstance(dtype, str) else None,
        )

    def _foreign(self, what: str) -> None:
        text = f"{what} belongs to a device that this reader does not know"
        hint = "traces of CUDA devices and of the CPU are read; Ascend profiles as torch_npu or msprof writes them"
        self._trouble.add(self._trace.problem("AKF-F157", text, hint))

    def refuse(self) -> None:
        """Raise what is wrong with the whole trace."""
        if len(self._devices) > 1:
            listed = ", ".join(map(str, sorted(self._devices)))
            text = f"the trace has tasks of {len(self._devices)} devices ({listed})"
            hint = "profile one process for each device, and give all their traces"
            self._trouble.add(Problem("AKF-F157", text, self._trace.name, hint=hint))
        spans = sorted(self.spans.items(), key=lambda item: item[1])
        for (before, (_, end)), (after, (start, _)) in pairwise(spans):
            if start < end:
                text = f"ProfilerStep#{before} and ProfilerStep#{after} overlap"
                self._trouble.add(Problem("AKF-F156", text, self._trace.name, hint=_ONE))
        if not self._trouble and not self.tasks_seen and not self._operators_seen:
            text = "the trace holds no task and no operator"
            hint = "profile with ProfilerActivity.CUDA on a GPU, or with ProfilerActivity.CPU without one"
            self._trouble.add(Problem("AKF-F155", text, self._trace.name, hint=hint))
        self._trouble.refuse()


def _on_device(found: _Found) -> tuple[pl.DataFrame, pl.DataFrame]:
    launches = found.launches.frame().drop_nulls("correlation").filter(pl.len().over("correlation") == 1)
    operators = found.operators.frame().drop_nulls("external").select("external", "op_type", "shapes", "dtypes")
    operators = operators.unique().filter(pl.len().over("external") == 1)
    tasks = found.tasks.frame()
    tasks = tasks.join(launches, on="correlation", how="left").join(operators, on="external", how="left", suffix="_op")
    told = pl.col("launch_ns") <= pl.col("start_ns")
    named_so = pl.col("collective").is_not_null() | (pl.col("op_type") == _COLLECTIVE_OP).fill_null(value=False)
    tasks = tasks.with_columns(
        launch_ns=pl.when(told).then("launch_ns"),
        graph=pl.when(told).then("graph"),
        op_type=pl.when(pl.col("collective") != "").then("collective").otherwise("op_type"),
        input_shapes=pl.coalesce("shapes", "shapes_op"),
        input_dtypes=pl.when(pl.col("shapes").is_null()).then("dtypes_op").otherwise("dtypes"),
        kind=pl.when(named_so).then(pl.lit("communication")).otherwise(pl.lit("computing")),
        task=pl.int_range(pl.len()),
    )
    return _kept(tasks), device_steps(tasks, _spans(found))


def _on_cpu(found: _Found) -> tuple[pl.DataFrame, pl.DataFrame]:
    rows = Rows(
        {"kernel": pl.String, "input_shapes": pl.String, "input_dtypes": pl.String, "start_ns": pl.Int64,
         "duration_ns": pl.Int64, "task": pl.Int64}
    )  # fmt: skip
    columns = ("start_ns", "end_ns", "op_type", "shapes", "dtypes")
    before = 0
    for ops in found.operators.frame().partition_by("thread"):
        for start, end, number, op in segments(ops.select(columns).rows()):
            rows.add(*op[2:], start, end - start, before + number)
        before += ops.height
    tasks = rows.frame().with_columns(
        op_type=pl.col("kernel"),
        core_type=pl.lit("CPU"),
        kind=pl.lit("computing"),
        graph=pl.lit(value=False),
        blocks=pl.lit(None, pl.Int64),
        launch_ns=pl.col("start_ns"),
    )
    return _kept(tasks), _spans(found)


def _spans(found: _Found) -> pl.DataFrame:
    rows = [(step, start, end) for step, (start, end) in found.spans.items()]
    return pl.DataFrame(rows, schema=STEPS, orient="row").sort("start_ns", "step")


def _kept(tasks: pl.DataFrame) -> pl.DataFrame:
    unknown = ("input_formats", "output_shapes", "output_dtypes", "output_formats")
    return tasks.select(
        "kernel", "op_type", "core_type", "kind", "graph", "blocks", "input_shapes", "input_dtypes",
        *(pl.lit(None, pl.String).alias(name) for name in unknown),
        "start_ns", "duration_ns", "launch_ns", "task",
    )  # fmt: skip
