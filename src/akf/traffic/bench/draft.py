"""What one run of one tool says, while it is read.

Invariants:
1. A value of the wrong type is a problem with its line; what is absent stays unknown.
2. A printed time is kept with the unit that the file states; a unit that does not fit is a problem.
3. Of free text only facts of identity are kept, without the folders in front; the rest is never looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from akf.contracts.problems import Problem
from akf.contracts.text import printable, show
from akf.traffic.bench.meaning import tools
from akf.traffic.bench.units import UNITS, UnitError, cell, nanoseconds
from akf.traffic.foreign import File, Foreign

Path_ = Sequence[str]
_HUB = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|[\w.-]:\d{2,5}\b|[0-9a-fA-F]*:[0-9a-fA-F]*:")
_LONGEST = 256
_UNKNOWN_LOAD = {"process": "unknown", "rate_per_s": None, "concurrency": None}
_LONGEST_VERSION = 64
MOST = 10**11  # of requests or tokens in one figure; sums of a file's figures stay whole numbers of JSON


@dataclass(frozen=True)
class Printed:
    """A figure as the tool printed it."""

    concept: str
    statistic: str
    value_ns: int
    method: str | None
    population: str = "completed"
    weight: str = "request"
    samples: int | None = None
    at_most: int | None = None
    unmeasured: bool = False  # requests without this time are among them, as zeros


@dataclass
class Draft:
    """One run; `detail` holds the times of its completed requests, by concept."""

    tool: str
    layout: str
    sources: list[File]
    position: int
    version: str | None = None
    identity: list[dict[str, str]] = field(default_factory=list)
    load: dict[str, Any] = field(default_factory=lambda: dict(_UNKNOWN_LOAD))
    fields: dict[str, Any] = field(default_factory=dict)
    failed_from: str | None = None
    objectives: list[dict[str, Any]] | None = None
    attainment_over: str | None = None
    printed: list[Printed] = field(default_factory=list)
    detail: dict[str, list[int]] = field(default_factory=dict)
    remarks: list[dict[str, str]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def table(self) -> dict[str, Any]:
        """What the keys of this tool mean."""
        return tools()[self.tool]

    def remark(self, name: str, text: str) -> None:
        """Say what does not fit together."""
        self.remarks.append({"name": name, "text": text})

    def fault(
        self, where: Foreign, path: Iterable[str | int], message: str, code: str = "AKF-F201", **more: Any
    ) -> None:
        """Say what is wrong with a value."""
        self.problems.append(where.problem(code, message, tuple(path), **more))

    # values

    def need(self, where: Foreign, path: Path_) -> None:
        """Say so if nothing stands at a path."""
        if at(where.value, path) is None:
            self.fault(where, path, f"{' of '.join(reversed(path))} is missing", expected="a number")

    def number(self, where: Foreign, path: Path_) -> Decimal | None:
        """The finite number at a path, or None."""
        value = at(where.value, path)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | Decimal) or not Decimal(value).is_finite():
            hint = _comma(value)
            self.fault(
                where, path, f"{_named(path)} is {show(_plain(value))}, not a number", expected="a number", hint=hint
            )
            return None
        if Decimal(value).copy_abs() > MOST:
            self.fault(where, path, f"{_named(path)} is larger than any count or rate", expected=f"at most {MOST}")
            return None
        return Decimal(value)

    def count(self, where: Foreign, path: Path_) -> int | None:
        """The whole number, not negative, at a path, or None."""
        value = self.number(where, path)
        if value is None:
            return None
        if value < 0 or value != value.to_integral_value():
            self.fault(
                where,
                path,
                f"{_named(path)} is {show(str(value))}, not a count",
                expected="a whole number, not negative",
            )
            return None
        return int(value)

    def rate(self, where: Foreign, path: Path_) -> float | None:
        """The number, not negative, at a path, or None."""
        value = self.number(where, path)
        if value is not None and value < 0:
            self.fault(where, path, f"{_named(path)} is {show(str(value))}", expected="not negative")
            return None
        return None if value is None else float(value)

    def time(self, where: Foreign, path: Path_, value: Any, unit: str) -> int | None:
        """A time in nanoseconds, or None with a problem."""
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            text = f"{_named(path)} is {show(_plain(value))}, not a time"
            self.fault(where, path, text, expected=f"a number of {unit}", hint=_comma(value))
            return None
        try:
            return nanoseconds(value, unit)
        except UnitError as error:
            self.fault(where, path, f"{_named(path)}: {error}", expected="a duration")
            return None

    def cell(self, where: Foreign, path: Path_, value: Any, wanted: str) -> Any:
        """A cell with a unit behind its number: nanoseconds for `time`, else the number."""
        try:
            number, unit = cell(str(value))
        except UnitError as error:
            self.fault(where, path, f"{_named(path)}: {error}", expected="a number and its unit, as in 95.6 ms")
            return None
        if unit is None or (unit not in UNITS if wanted == "time" else unit != wanted):
            says = "has no unit" if unit is None else f"is in {show(unit)}"
            expected = "ns, us, ms or s" if wanted == "time" else wanted
            hint = "a converter that strips units leaves ms and s alike: ingest the file that the tool itself wrote"
            code = "AKF-F202" if unit is None else "AKF-F203"
            self.fault(where, path, f"{_named(path)}: {show(str(value))} {says}", code, expected=expected, hint=hint)
            return None
        return self.time(where, path, number, unit) if wanted == "time" else float(number)

    # what the table lists

    def read_identity(self, where: Foreign) -> None:
        """Take the facts of identity."""
        stated_by = "replaceable" if self.table.get("replaceable") else "harness"
        for name, paths in self.table["identity"].items():
            value = next((value for path in paths if isinstance(value := at(where.value, path), str) and value), None)
            text = fact(value) if value is not None else None
            if text and all(entry["name"] != name for entry in self.identity):
                self.identity.append({"name": name, "value": text, "stated_by": stated_by})

    def read_version(self, where: Foreign, path: Path_) -> None:
        """Take the tool's version."""
        version = at(where.value, path)
        self.version = version[:_LONGEST_VERSION] if isinstance(version, str) and version else None

    def check_counts(self, where: Foreign, path: Path_) -> None:
        """Say so if completed and failed requests are not all that were sent."""
        completed, failed, sent = (self.fields[name] for name in ("completed", "failed", "sent"))
        if failed < 0 or completed + failed != sent:
            text = f"{completed} requests completed and {failed} failed of {sent}"
            self.fault(where, path, text, "AKF-F205", expected=sent, found=completed + failed)

    def read_fields(self, where: Foreign) -> None:
        """Take the figures of the whole run; the first path that is there counts."""
        for name, row in self.table.get("fields", {}).items():
            path = next((path for path in row["paths"] if at(where.value, path) is not None), None)
            if path is None:
                continue
            if name.endswith("_ns"):
                unit = row.get("unit") or self._unit_beside(where, path, row["beside"])
                value: Any = self.time(where, path, at(where.value, path), unit) if unit else None
            else:
                if "beside" in row and self._unit_beside(where, path, row["beside"]) is None:
                    continue
                rate = name.endswith(("_per_s", "_mean_tokens")) or name == "attainment"
                value = self.rate(where, path) if rate else self.count(where, path)
            if name == "attainment" and value is not None and value > 1:
                self.fault(where, path, f"{_named(path)} is {value}", expected="a share, at most 1")
            elif value is not None:
                self.fields[name] = value

    def _unit_beside(self, where: Foreign, path: Path_, wanted: str) -> str | None:
        beside = (*path[:-1], "unit")
        unit = at(where.value, beside)
        if isinstance(unit, str) and (unit in UNITS if wanted == "time" else unit == wanted):
            return unit
        expected = sorted(UNITS) if wanted == "time" else wanted
        code = "AKF-F202" if unit is None else "AKF-F203"
        self.fault(where, beside, f"{path[0]} is in {show(_plain(unit))}", code, expected=expected)
        return None

    def objective(self, where: Foreign, path: Path_, value: Any) -> None:
        """Take one objective of goodput."""
        row = self.table["slo"].get(path[-1])
        bound = self.time(where, path, value, row["unit"]) if row else None
        if bound is not None:
            self.objectives = [*(self.objectives or []), {"concept": row["concept"], "at_most_ns": bound}]

    def print(self, name: str, statistic: str, value_ns: int | None, **more: Any) -> None:
        """Keep a figure as the tool printed it under `name`."""
        row = self.table["metrics"].get(name)
        if row is None or value_ns is None:
            return
        method = row.get("method", self.table["method"]) if statistic[0] == "p" else None
        given = {"population": row.get("population", "completed"), "weight": row.get("weight", "request")} | more
        entry = Printed(given.pop("concept", row["concept"]), statistic, value_ns, method, **given)
        same = next((old for old in self.printed if replace(old, value_ns=0) == replace(entry, value_ns=0)), None)
        if same is None:
            self.printed.append(entry)
        elif same.value_ns != value_ns:
            text = f"{entry.concept} {statistic} is printed twice: {same.value_ns} ns and {value_ns} ns"
            self.remark("printed-twice", text)


def at(value: Any, path: Path_) -> Any:
    """What stands at a path, or None."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _named(path: Path_) -> str:
    """How a value is called: its key, and where it stands in a list its place there."""
    known = [str(step) for step in path]
    start = next((place for place in range(len(known) - 1, 0, -1) if not known[place].isdigit()), 0)
    return "/".join(known[start:])


def fact(text: str) -> str | None:
    """A fact of identity: a name as it is, of a path the last part only, of an address nothing."""
    name = text.strip()
    if "://" in name or "@" in name or _ADDRESS.search(name):
        return None
    if not _HUB.fullmatch(name):
        name = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    return printable(name)[:_LONGEST] or None


def _comma(value: Any) -> str | None:
    return "the decimal mark of JSON is a point" if isinstance(value, str) and "," in value else None


def _plain(value: Any) -> Any:
    """A value that `show` can show."""
    return str(value) if isinstance(value, Decimal) else value
