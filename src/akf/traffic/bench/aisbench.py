"""AISBench: `<dataset>.json` with the figures of the run, `<dataset>.csv` with the latencies, units as suffixes.

Invariants:
1. Every time has its unit behind it (`95.6 ms`); a number without one is refused, because converters strip `ms` and `s`
   alike.
2. One result for each stage (`total` or `stable`); stages are never merged.
3. The column N counts requests: it is no count of the pooled gaps of ITL.
"""

from __future__ import annotations

import csv
import io
import re
from decimal import Decimal
from typing import Any

from akf.contracts.problems import Problem
from akf.contracts.text import show
from akf.traffic.bench.draft import Draft, at
from akf.traffic.foreign import File, Foreign

HEADER = ("Performance Parameters", "Stage")
_STATISTIC = re.compile(r"P0*([1-9][0-9]?)")
_COUNT = re.compile(r"[0-9]{1,11}")
_PLAIN = {"Average": "mean", "Min": "min", "Max": "max", "Median": "p50"}
_MOST_ROWS = 1_000


def stages(common: Foreign | None, table: list[dict[str, Any]]) -> list[str]:
    """The stages that a pair of files speaks of."""
    found = {row["Stage"] for row in table}
    if common is not None:
        found |= {stage for entry in common.value.values() if isinstance(entry, dict) for stage in entry}
    return sorted(found)


def read(draft: Draft, stage: str, common: Foreign | None, file: File | None, table: list[dict[str, Any]]) -> None:
    """Read one stage."""
    if common is None:
        message = "its .json with the counts of requests is missing beside it"
        name = file.name if file else None
        draft.problems.append(Problem("AKF-F206", message, name, hint="name the .json and the .csv, or their folder"))
        return
    _common(draft, stage, common)
    if draft.problems or file is None:
        return
    for row in table:
        if row["Stage"] == stage and row[HEADER[0]] in draft.table["metrics"]:
            _row(draft, file, row)


def _common(draft: Draft, stage: str, common: Foreign) -> None:
    for name, row in draft.table["fields"].items():
        path = next(((*path, stage) for path in row["paths"] if at(common.value, (*path, stage)) is not None), None)
        if path is None:
            continue
        if "beside" in row:
            value = draft.cell(common, path, at(common.value, path), row["beside"])
        else:
            value = draft.count(common, path)
        if value is not None:
            draft.fields[name] = value
    limit = draft.count(common, ("Max Concurrency", stage)) or None
    draft.load = {"process": "closed_loop" if limit else "unknown", "rate_per_s": None, "concurrency": limit}
    for name in ("Total Requests", "Success Requests", "Failed Requests"):
        draft.need(common, (name, stage))
    draft.failed_from = "printed"
    if not draft.problems:
        draft.check_counts(common, ("Total Requests", stage))


def _row(draft: Draft, file: File, row: dict[str, Any]) -> None:
    name = row[HEADER[0]]
    where = _Line(file, row["line"])
    samples: int | None = None
    if name != "ITL" and row.get("N", "") != "":
        if not _COUNT.fullmatch(row["N"]):
            draft.fault(where, ("N",), f"N is {show(row['N'])}, not a count", expected="a whole number, not negative")
            return
        samples = int(row["N"])
    for column, text in row.items():
        match = _STATISTIC.fullmatch(column)
        statistic = _PLAIN.get(column) or (f"p{match[1]}" if match else None)
        if statistic is not None and text != "":
            value = draft.cell(where, (column,), text, "time")
            more = {"samples": samples, "at_most": draft.fields.get("output_tokens") if name == "ITL" else None}
            draft.print(name, statistic, value, **more)


class _Line(Foreign):
    """One line of a table."""

    __slots__ = ("_line",)

    def __init__(self, file: File, line: int) -> None:
        self.value = {}
        self.file = file.name
        self.infinite = False
        self._line = line

    def problem(self, code: str, message: str, path: Any = (), **fields: Any) -> Problem:
        """At the line."""
        del path
        return Problem(code, message, self.file, None, self._line, None, **fields)


def rows(file: File) -> tuple[list[dict[str, Any]], list[Problem]] | None:
    """The rows of a table of latencies with their lines; None where the file is another table."""
    try:
        text = file.data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if not text[:64].replace('"', "").startswith(",".join(HEADER)):
        return None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    found: list[dict[str, Any]] = []
    problems: list[Problem] = []
    try:
        header = next(reader)
        if header[:2] != list(HEADER):
            return None
        if len(set(header)) != len(header):
            return [], [Problem("AKF-F207", "a column is named twice", file.name, None, 1)]
        for row in reader:
            if len(row) != len(header):
                text = f"the row has {len(row)} cells, the header {len(header)}"
                hint = "a comma as decimal mark parts a cell in two" if len(row) > len(header) else None
                problems.append(
                    Problem("AKF-F207", text, file.name, None, reader.line_num, None, len(header), len(row), hint)
                )
            elif len(found) == _MOST_ROWS:
                problems.append(Problem("AKF-F207", "the table has too many rows", file.name, None, reader.line_num))
                break
            else:
                found.append({**dict(zip(header, row, strict=True)), "line": reader.line_num})
    except csv.Error as error:
        problems.append(Problem("AKF-F207", f"the table cannot be read: {error}", file.name, None, reader.line_num))
    return found, problems


def stripped(where: Foreign) -> Problem:
    """The refusal of a nightly result, whose converter took the units away."""
    duration = at(where.value, ("metrics", "Benchmark_Duration"))
    path = ("metrics", "Benchmark_Duration") if isinstance(duration, int | Decimal | str) else ("metrics",)
    message = "this nightly result has lost its units: its converter strips ms and s alike"
    return where.problem("AKF-F202", message, path, hint="ingest the .json and .csv that AISBench wrote")
