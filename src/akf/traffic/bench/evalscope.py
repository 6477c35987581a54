"""evalscope perf: a folder of `benchmark_summary.json`, `benchmark_percentile.json` and `benchmark_args.json`.

Invariants:
1. `benchmark_data.db` is never opened: one of its columns is a pickle.
2. -1 stands for "not measured" in the summary, and for a closed loop in the rate.
3. Averages carry `Avg` in front in this version and none in others; the unit is the one in the key.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from akf.traffic.bench.draft import Draft, at
from akf.traffic.bench.summary import trimmed
from akf.traffic.foreign import Foreign

_KEY = re.compile(r"(?:Avg )?(.+) \((ns|us|ms|s)\)")
_ROW = re.compile(r"([0-9]{1,2}(?:\.[0-9]{1,6})?)%")
_NOT_MEASURED = -1


def read(draft: Draft, parts: dict[str, Foreign]) -> None:
    """Read one run of its up to three files."""
    summary = parts.get("summary")
    if summary is None:
        where = next(iter(parts.values()))
        draft.fault(where, (), "benchmark_summary.json is missing beside it", "AKF-F206", hint="name the whole folder")
        return
    if (arguments := parts.get("arguments")) is not None:
        draft.read_identity(arguments)
    draft.read_fields(summary)
    for name in ("Total Requests", "Success Requests", "Failed Requests"):
        draft.need(summary, (name,))
    draft.failed_from = "printed"
    _load(draft, summary)
    if draft.problems:
        return
    draft.check_counts(summary, ("Total Requests",))
    counts = _counts(draft, parts)
    for key, number in summary.value.items():
        match = _KEY.fullmatch(key)
        if match and match[1] in draft.table["metrics"] and number != _NOT_MEASURED:
            value = draft.time(summary, (key,), number, match[2])
            draft.print(match[1], "mean", value, **counts.get(match[1], {}))
    if (rows := parts.get("percentiles")) is not None:
        _percentiles(draft, rows, counts)


def _load(draft: Draft, summary: Foreign) -> None:
    rate = draft.number(summary, ("Request Rate (req/s)",))
    limit = draft.count(summary, ("Concurrency",)) or None
    if rate is None:
        draft.load["concurrency"] = limit
    elif rate < 0:
        draft.load = {"process": "closed_loop", "rate_per_s": None, "concurrency": limit}
    else:
        draft.load = {"process": "rate", "rate_per_s": float(rate), "concurrency": limit}


def _counts(draft: Draft, parts: dict[str, Foreign]) -> dict[str, dict[str, int | None]]:
    """How many values stand behind each latency, as far as the files say."""
    summary, completed = parts["summary"], draft.fields["completed"]
    streamed = draft.count(summary, ("Stream Requests",))
    other = draft.count(summary, ("Non-Stream Requests",))
    first = completed if other == 0 or streamed == 0 else None
    rows = parts["percentiles"].value if "percentiles" in parts else []
    shortest = next((at(row, ("Output tokens",)) for row in rows if at(row, ("Percentiles",)) == "min"), None)
    several = first if isinstance(shortest, int | Decimal) and shortest > 1 else None
    mean = draft.fields.get("output_mean_tokens")
    return {
        "Latency": {"samples": completed},
        "TTFT": {"samples": first, "at_most": completed},
        "TPOT": {"samples": several, "at_most": completed},
        "ITL": {"at_most": None if mean is None else int(mean * completed)},
    }


def _percentiles(draft: Draft, rows: Foreign, counts: dict[str, dict[str, int | None]]) -> None:
    for index, row in enumerate(rows.value):
        label: Any = at(row, ("Percentiles",))
        match = _ROW.fullmatch(label) if isinstance(label, str) else None
        if match is None and label not in ("min", "max"):
            draft.fault(
                rows, (str(index), "Percentiles"), "a row without its percentile", expected="min, max or as in 99%"
            )
            continue
        statistic = label if match is None else trimmed(f"p{match[1]}")
        for key, number in row.items():
            name = _KEY.fullmatch(key)
            if name and name[1] in draft.table["metrics"]:
                value = draft.time(rows, (str(index), key), number, name[2])
                draft.print(name[1], statistic, value, **counts[name[1]])
