"""The entries of a Capture: what ran, by what it is.

Invariants:
1. At most `MAX_ENTRIES` entries are kept, and half as many where each has over `MAX_STEPS` / 2 times: beyond, those
   with the least time are one entry per rank and kind of core, whose name says how many they are.
2. The same tasks give the same entries, whatever their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from akf.traffic.kernels import Figures, Key, Tasks
from akf.traffic.operands import Operand
from akf.traffic.profiles import CallsiteOf

MAX_STEPS = 512
"""As many times as a Capture keeps apart."""
MAX_ENTRIES = 4096


def entries_of(tasks: Tasks, runs: int, callsite_of: CallsiteOf) -> tuple[dict[int, dict[str, Any]], pl.Series]:
    """The entries by number, without exposed time; and the number of each key's entry."""
    numbers: dict[Any, int] = {}
    entries: dict[int, dict[str, Any]] = {}
    of_key = [0] * len(tasks.keys)
    limit = MAX_ENTRIES if runs <= MAX_STEPS // 2 else MAX_ENTRIES // 2
    by_time = sorted(
        ((tasks.figures(number), key, number) for number, key in enumerate(tasks.keys)),
        key=lambda found: (-found[0].time_ns, _plain(found[1])),
    )
    kept = len(by_time) if len(by_time) <= limit else limit - len({_kind(key) for key in tasks.keys})
    for place, (figures, key, number) in enumerate(by_time):
        entry = numbers.setdefault(key if place < kept else _kind(key), len(numbers))
        of_key[number] = entry
        if place < kept:
            entries[entry] = _entry(key, callsite_of) | figures._asdict()
            counters = tasks.counters(number).items()
            entries[entry]["counters"] = [{"name": name, "time_ns": spent} for name, spent in counters]
            continue
        rest = entries.setdefault(entry, _rest(key) | Figures(0, 0, 0)._asdict() | {"kernels": 0})
        rest["kernels"] += 1
        rest["calls"] += figures.calls
        rest["time_ns"] += figures.time_ns
        rest["longest_ns"] = max(rest["longest_ns"], figures.longest_ns)
    for found in entries.values():
        if "kernels" in found:
            found["kernel"] = f"{found.pop('kernels')} further kernels"
    return entries, pl.Series(of_key, dtype=pl.UInt32)


def _entry(key: Key, callsite_of: CallsiteOf) -> dict[str, Any]:
    inputs, outputs = [_seen(operand) for operand in key.inputs], [_seen(operand) for operand in key.outputs]
    callsite, symbols = callsite_of(key.kernel, key.op_type, inputs, outputs, key.graph)
    optional = {
        "op_type": key.op_type,
        "graph": None if key.graph is None else ("eager", "graph")[key.graph],
        "blocks": key.blocks,
        **_communicates(key),
    }
    return {
        "rank": key.rank,
        "callsite": callsite,
        "kernel": key.kernel,
        "symbols": symbols,
        "inputs": inputs,
        "outputs": outputs,
        "core_type": key.core_type,
        **{name: value for name, value in optional.items() if value is not None},
    }


def _rest(key: Key) -> dict[str, Any]:
    return {
        "rank": key.rank, "callsite": None, "symbols": {}, "inputs": [], "outputs": [], "core_type": key.core_type,
        "counters": [], **_communicates(key),
    }  # fmt: skip


def _communicates(key: Key) -> dict[str, bool]:
    return {"communicates": True} if key.kind == "communication" else {}


def _kind(key: Key) -> tuple[int, str, str]:
    """What kernels that are listed together have in common."""
    return key.rank, key.core_type, key.kind


def _seen(operand: Operand) -> dict[str, Any]:
    shape = None if operand.shape is None else list(operand.shape)
    found: dict[str, Any] = {"shape": shape, "dtype": operand.dtype}
    return found if operand.layout is None else found | {"layout": operand.layout}


def _plain(key: Key) -> str:
    return repr(tuple(key))


def order(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """What entries are sorted by."""
    return entry["rank"], -entry["time_ns"], entry["kernel"], repr(sorted(entry.items(), key=lambda item: item[0]))
