"""From folders of `msprof op` to a Capture of single kernels.

Invariants:
1. Launches of one kernel with as many blocks are one entry; what is summed there can be added up again. What one of
   them lacks is dropped.
2. Nothing else ran beside a kernel, so all of its time is exposed. There are no steps, so nothing is triaged from such
   a Capture alone, and calls are not compared with those that a step should make.
3. A frequency other than the rated one, or two frequencies, is a clock that changed; without both figures in every
   launch nothing is known of it.
4. No block may take longer than its task; a check says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from akf.contracts.problems import Problem, UsageError
from akf.contracts.text import counted
from akf.traffic.kernels import named
from akf.traffic.op_files import table_of
from akf.traffic.op_launch import Blocks, Launch, folders, read
from akf.traffic.profiles import CallsiteOf, Complaints, Options, Shown, Sources, callsite_of, tool
from akf.traffic.watched import over

TOOL = "msprof op"


def ingest(paths: Sequence[Path], options: Options, shown: Shown = lambda _done, _all: None) -> dict[str, Any]:
    """Make a Capture of all launches under these paths.

    Raises:
        InvalidError: With the problems of all files.
        StorageError: A file cannot be read.
    """
    options.expect("ascend")
    if options.step_kernel is not None:
        message = "--step-kernel: msprof op runs one kernel by itself, so there are no steps"
        raise UsageError.of("AKF-F135", message, found=options.step_kernel)
    launches = _launches(paths, shown)
    sources = Sources()
    for launch in launches:
        for kind, digest in launch.sources:
            sources.add(0, f"{kind}.csv", digest)
    capture = {
        "schema_version": 1,
        "kind": "Capture",
        "id": options.id,
        "title": options.title or f"{TOOL}, {counted(len(launches), 'launch', 'launches')}",
        "platform": "ascend",
        "data_class": options.data_class,
        "tool": tool(TOOL, ["unknown"], [{}]),
        "sources": sources.named(),
        "entries": _entries(launches, callsite_of(options)),
        "breakdown": [],
        "checks": _checks(launches),
        "clocks_mhz": sorted({launch.mhz[0] for launch in launches if launch.mhz[0]}),
        "clock": _clock([launch.mhz for launch in launches]),
    }
    return capture if options.stage is None else capture | {"stage": options.stage}


def recorded(_path: Path) -> dict[str, str]:
    """How launches were recorded: nothing in these folders says so."""
    return {"tool": TOOL}


def _launches(paths: Sequence[Path], shown: Shown) -> list[Launch]:
    complaints = Complaints()
    found = []
    for path in paths:
        if path.is_dir():
            found += folders(path)
            continue
        text, hint = f"{path.name} is one table of a launch", "name the folder that it is in"
        complaints.add(Problem("AKF-F163", text, str(path), hint=hint))
    progress = over([file for folder in found for file in sorted(folder.iterdir()) if table_of(file.name)], shown)
    launches = []
    for folder in found:
        with complaints.noted():
            launches.append(read(folder, str(folder), progress))
    complaints.refuse()
    return launches


def _checks(launches: list[Launch]) -> list[dict[str, Any]]:
    times = [
        (launch.duration_ns, max(blocks.longest_ns for blocks in launch.balance.values()))
        for launch in launches
        if launch.balance
    ]
    if not times:
        return []
    tasks, longest = map(sum, zip(*times, strict=True))
    holds = all(block <= task + 1 for task, block in times)
    return [{"name": "blocks-within-task", "rank": 0, "expected_ns": tasks, "found_ns": longest, "holds": holds}]


def _entries(launches: list[Launch], find: CallsiteOf) -> list[dict[str, Any]]:
    alike: dict[tuple[str, str, int | None], list[Launch]] = {}
    for launch in launches:
        alike.setdefault((named(launch.kernel), launch.core_type, launch.blocks), []).append(launch)
    found = []
    for (kernel, core_type, blocks), own in alike.items():
        callsite, symbols = find(kernel, None, [], [], None)
        time = sum(launch.duration_ns for launch in own)
        found.append(
            {
                "rank": 0,
                "callsite": callsite,
                "kernel": kernel,
                "symbols": symbols,
                "core_type": core_type,
                **({} if blocks is None else {"blocks": blocks}),
                "calls": len(own),
                "time_ns": time,
                "exposed_ns": time,
                "longest_ns": max(launch.duration_ns for launch in own),
                "counters": [
                    {"name": name, "time_ns": sum(launch.counters[name] for launch in own)}
                    for name in _shared(launch.counters for launch in own)
                ],
                "amounts": [
                    {"name": name, "unit": own[0].amounts[name][0], "value": sum(one.amounts[name][1] for one in own)}
                    for name in _shared(launch.amounts for launch in own)
                ],
                "balance": [
                    {"unit": unit, "launches": len(own), **_summed([launch.balance[unit] for launch in own])}
                    for unit in _shared(launch.balance for launch in own)
                ],
            }
        )
    return sorted(found, key=_order)


def _order(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return -entry["time_ns"], entry["kernel"], entry["core_type"], entry.get("blocks", 0)


def _shared(tables: Iterable[Mapping[str, object]]) -> list[str]:
    return sorted(set.intersection(*(set(table) for table in tables)))


def _summed(blocks: list[Blocks]) -> dict[str, int]:
    return dict(zip(Blocks._fields, map(sum, zip(*blocks, strict=True)), strict=True))


def _clock(pairs: list[tuple[int | None, int | None]]) -> str:
    known = [(current, rated) for current, rated in pairs if current and rated]
    if len({current for current, _ in known}) > 1 or any(current != rated for current, rated in known):
        return "changed"
    return "steady" if len(known) == len(pairs) else "unknown"
