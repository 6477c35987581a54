"""aiperf: `profile_export_aiperf.json` with the figures, `profile_export.jsonl` with one line per request.

Invariants:
1. Every figure carries its unit beside it; one without, or in another dimension, is a problem.
2. Of the lines, only those of the profiling phase count; one with an error is a failed request, a cancelled one is
   incomplete, and neither gives a latency.
3. `adj_*` figures, which include failed requests, are a population of their own.
"""

from __future__ import annotations

import re
from typing import Any

from akf.traffic.bench.draft import Draft, at
from akf.traffic.bench.units import UNITS
from akf.traffic.foreign import Foreign

_STATISTIC = re.compile(r"(?:adj_)?(avg|std|min|max|p[0-9]{1,2}(?:\.[0-9]{1,6})?)")


def read(draft: Draft, summary: Foreign | None, records: list[Foreign]) -> None:
    """Read one run of its summary, its lines, or both."""
    if summary is not None:
        _summary(draft, summary)
    if records:
        _records(draft, records)
    fields = draft.fields
    if draft.problems:
        return
    if "completed" not in fields and summary is not None:
        draft.need(summary, ("request_count", "avg"))
    elif "failed" in fields or "sent" in fields:
        fields.setdefault("failed", fields.get("sent", 0) - fields["completed"])
        fields.setdefault("sent", fields["completed"] + fields["failed"])
        draft.failed_from = draft.failed_from or "printed"
        draft.check_counts(summary or records[0], ("request_count",))


def _summary(draft: Draft, where: Foreign) -> None:
    draft.read_version(where, ("aiperf_version",))
    draft.read_identity(where)
    draft.read_fields(where)
    _load(draft, where)
    slos = at(where.value, ("input_config", "slos"))
    for name, value in slos.items() if isinstance(slos, dict) else ():
        draft.objective(where, ("input_config", "slos", name), value)
    draft.attainment_over = "sent"
    if where.value.get("was_cancelled") is True:
        draft.remark("cancelled", "the run was cancelled before its end")
    for name in draft.table["metrics"]:
        entry = where.value.get(name)
        if isinstance(entry, dict):
            _metric(draft, where, name, entry)


def _metric(draft: Draft, where: Foreign, name: str, entry: dict[str, Any]) -> None:
    unit = entry.get("unit")
    if not isinstance(unit, str) or unit not in UNITS:
        code = "AKF-F202" if unit is None else "AKF-F203"
        text = f"{name} is not in a unit of time" if unit is not None else f"{name} has no unit"
        draft.fault(where, (name, "unit"), text, code, expected="ns, us, ms or sec")
        return
    samples = draft.count(where, (name, "count"))
    for key, number in entry.items():
        match = _STATISTIC.fullmatch(key)
        if match and number is not None:
            statistic = "mean" if match[1] == "avg" else match[1]
            draft.print(name, statistic, draft.time(where, (name, key), number, unit), samples=samples)


def _load(draft: Draft, where: Foreign) -> None:
    phases = at(where.value, ("input_config", "phases"))
    for index, phase in enumerate(phases if isinstance(phases, list) else []):
        if not isinstance(phase, dict) or phase.get("name") == "warmup" or phase.get("kind") == "warmup":
            continue
        path = ("input_config", "phases", str(index))
        limit = draft.count(where, (*path, "concurrency")) or None
        rate = draft.rate(where, (*path, "rate"))
        kind = phase.get("type")
        process = "trace" if kind == "fixed_schedule" else "rate" if rate is not None else "unknown"
        if kind == "concurrency" and rate is None and limit is not None:
            process = "closed_loop"
        draft.load = {"process": process, "rate_per_s": rate, "concurrency": limit}
        return


def _records(draft: Draft, records: list[Foreign]) -> None:
    names = {row: table["concept"] for row, table in draft.table["metrics"].items() if not row.startswith("adj_")}
    found: dict[str, list[int]] = {}
    completed = failed = incomplete = 0
    for where in records:
        value = where.value
        if not isinstance(value, dict) or not isinstance(value.get("metrics"), dict):
            draft.fault(where, ("metrics",), "this line is no record of a request", expected="metadata, metrics, error")
            continue
        if at(value, ("metadata", "benchmark_phase")) not in (None, "profiling"):
            continue
        if at(value, ("metadata", "was_cancelled")) is True:
            incomplete += 1
            continue
        if value.get("error") is not None:
            failed += 1
            continue
        completed += 1
        for name, concept in names.items():
            if name in value["metrics"]:
                found.setdefault(concept, []).extend(_times(draft, where, name))
    if not draft.problems:
        _counted(draft, records[0], completed, failed)
        draft.fields |= {"completed": completed, "failed": failed, "sent": completed + failed, "incomplete": incomplete}
        draft.failed_from = "errors"
        draft.detail = found


def _counted(draft: Draft, where: Foreign, completed: int, failed: int) -> None:
    """The lines must be those of the summary, where both are there."""
    fields = draft.fields
    good = fields.get("completed", completed)
    bad = fields.get("failed", fields.get("sent", good + failed) - good)
    if (completed, failed) != (good, bad):
        text = f"the lines hold {completed} completed and {failed} failed requests, the summary {good} and {bad}"
        draft.fault(where, (), text, "AKF-F205", expected=[good, bad], found=[completed, failed])


def _times(draft: Draft, where: Foreign, name: str) -> list[int]:
    entry = where.value["metrics"][name]
    unit, value = at(entry, ("unit",)), at(entry, ("value",))
    if not isinstance(unit, str) or unit not in UNITS:
        draft.fault(
            where, ("metrics", name), f"{name} is not in a unit of time", "AKF-F203", expected="ns, us, ms or sec"
        )
        return []
    path = ("metrics", name, "value")
    values = value if isinstance(value, list) else [value]
    times = (draft.time(where, path, one, unit) for one in values)
    return [time for time in times if time is not None]
