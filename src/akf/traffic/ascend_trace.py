"""What torch_npu's `trace_view.json` adds to its tables: launches, clocks, and a second opinion.

Invariants:
1. The trace adds to the tables and replaces nothing: it names a task's kind of core wrongly and lacks shapes.
2. A layer is what the metadata call its process; numbers of processes mean something in one file only.
3. A task's launch is the start of the `HostToDevice` flow that ends at the task's stream and start. Two flows that end
   there, or one that starts later than its task, are no evidence.
4. Every value of the counter `AI Core Freq` is a clock that was seen; two values are a change.
5. Sums of the `Overlap Analysis` layer are kept by name, to be compared with what the tables give.
6. The order of events does not matter.

The layers, the text `ts` and the flows are those that torch_npu's exporter and its own parser know (`HostToDevice`
flows are paired there by process, thread and time as well).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from akf.contracts.problems import InvalidError
from akf.contracts.text import show
from akf.traffic.columns import Rows
from akf.traffic.events import Event, Trace
from akf.traffic.exact import nanoseconds
from akf.traffic.spans import EventTrouble, moment, span

FLOW = "HostToDevice"
HARDWARE = "Ascend Hardware"
OVERLAP = "Overlap Analysis"
CLOCK = "AI Core Freq"
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Seen:
    """What one trace says.

    Attributes:
        launches: Columns stream, start_ns, launch_ns: one row for each task whose launch is known.
        tasks: Columns stream, start_ns: the tasks on the hardware layer.
        clocks_mhz: Clocks seen, ascending; 0 is a core that slept.
        overlap_ns: Sums of the overlap layer by name.
        overlap_rows: Number of its rows, each of which is rounded by itself.
        steps: Numbers of the steps that the profiler marked.
    """

    launches: pl.DataFrame
    tasks: pl.DataFrame
    clocks_mhz: tuple[int, ...]
    overlap_ns: dict[str, int]
    overlap_rows: int
    steps: tuple[int, ...]


def read(trace: Trace) -> Seen:
    """Read one trace from front to back.

    Raises:
        InvalidError: It is malformed, or one of the events that count is.
        StorageError: It cannot be read.
    """
    found = _Found(trace)
    for event in trace:
        found.take(event)
    found.trouble.refuse()
    if trace.layout != "array":
        text = "this trace is an object, and torch_npu writes an array"
        hint = "a trace of torch's own profiler is given by itself"
        raise InvalidError.of("AKF-F152", text, file=trace.name, line=1, hint=hint)
    return found.seen()


class _Found:
    """Everything that counts, as it is met."""

    def __init__(self, trace: Trace) -> None:
        whole = pl.Int64
        self.trouble = EventTrouble(trace)
        self._layers: dict[Any, str] = {}
        self._tasks = Rows({"process": pl.String, "stream": whole, "start_ns": whole})
        self._begins = Rows({"flow": pl.String, "launch_ns": whole})
        self._ends = Rows({"flow": pl.String, "stream": whole, "start_ns": whole})
        self._clocks: set[tuple[str, int]] = set()
        self._overlap: dict[tuple[str, str], tuple[int, int]] = {}
        self._steps: set[int] = set()

    def take(self, event: Event) -> None:
        """Look at one event."""
        name, phase = event.get("name"), event.get("ph")
        try:
            if phase == "X" or phase == "B":  # noqa: PLR1714 - half the time of a set, and most events come here
                self._span(name, event)
            elif phase == "s" or phase == "f":  # noqa: PLR1714
                if event.get("cat") == FLOW:
                    self._flow(phase, event)
            elif phase == "M":
                if name == "process_name":
                    self._layer(event)
            elif phase == "C" and name == CLOCK:
                self._clock(event)
        except ValueError as error:
            self.trouble.event(name, error)

    def _span(self, name: Any, event: Event) -> None:
        args = event.get("args")
        if isinstance(args, dict) and "Task Type" in args:
            self._tasks.add(_process(event), _stream(event), span(event)[0])
        elif isinstance(name, str) and name.startswith("ProfilerStep#"):
            number = name.removeprefix("ProfilerStep#")
            span(event)
            if not number.isascii() or not number.isdigit():
                raise ValueError("its number is no number")
            self._steps.add(int(number))
        elif args is None and isinstance(name, str) and name.startswith(("Computing", "Communication", "Free")):
            key = (_process(event), name)
            rows, total = self._overlap.get(key, (0, 0))
            self._overlap[key] = (rows + 1, total + span(event)[1])

    def _flow(self, phase: str, event: Event) -> None:
        flow = event.get("id")
        if not isinstance(flow, str | int):
            raise ValueError(f"its id is {show(flow)}")  # noqa: TRY004 - one problem with a place
        time = moment(event)
        if phase == "s":
            self._begins.add(str(flow), time)
        else:
            self._ends.add(str(flow), _stream(event), time)

    def _layer(self, event: Event) -> None:
        args = event.get("args")
        layer = args.get("name") if isinstance(args, dict) else None
        if not isinstance(layer, str):
            raise ValueError(f"it names no layer: {show(layer)}")  # noqa: TRY004 - one problem with a place
        if self._layers.setdefault(_process(event), layer) != layer:
            raise ValueError(f"one process is two layers, {show(self._layers[_process(event)])} and {show(layer)}")

    def _clock(self, event: Event) -> None:
        args = event.get("args")
        value = args.get("MHz") if isinstance(args, dict) else None
        try:
            clock = nanoseconds(value, 0)  # as exactly as a time
        except ValueError as error:
            raise ValueError(f"its MHz {error}") from None
        self._clocks.add((_process(event), clock))

    def seen(self) -> Seen:
        """Put together what belongs together."""
        hardware = [process for process, layer in self._layers.items() if layer == HARDWARE]
        overlap = {
            name: part
            for (process, name), part in sorted(self._overlap.items())
            if self._layers.get(process) == OVERLAP
        }
        tasks = self._tasks.frame().filter(pl.col("process").is_in(hardware)).select("stream", "start_ns")
        begins = self._begins.frame().unique().filter(pl.len().over("flow") == 1)
        launches = (
            self._ends.frame()
            .join(begins, on="flow", how="left")
            .group_by("stream", "start_ns")
            .agg(pl.col("launch_ns").min(), ways=pl.len())
            .filter((pl.col("ways") == 1) & (pl.col("launch_ns") <= pl.col("start_ns")))
            .select("stream", "start_ns", "launch_ns")
        )
        return Seen(
            launches.sort("stream", "start_ns"),
            tasks.sort("stream", "start_ns"),
            tuple(sorted({clock for _, clock in self._clocks})),
            {name: total for name, (_, total) in overlap.items()},
            sum(rows for rows, _ in overlap.values()),
            tuple(sorted(self._steps)),
        )


def _process(event: Event) -> str:
    return str(event.get("pid"))


def _stream(event: Event) -> int:
    stream = event.get("tid")
    if type(stream) is not int or not 0 <= stream <= _LARGEST:
        raise ValueError(f"its tid is {show(stream)}, not the number of a stream")
    return stream
