"""One launch as `msprof op` (`msopprof`) wrote it: a kernel by itself, block by block.

Invariants:
1. A folder with `OpBasicInfo.csv`, or with a number behind the name, is one launch; a folder may hold many such.
2. Columns are found by name and pattern, so the lists of A2/A3, of 950 and of 310P are one: what a platform lacks is
   absent. Without `sub_block_id` (310P) there are no single blocks, and no balance.
3. Times are kept and ratios are not read: versions divide by different times (a row's own, or the whole kernel's where
   cube and vector cores work together), so a ratio is recomputed from times or not used.
4. A counter is the mean over the rows of its kind of core, an amount the sum. What one of these rows lacks is dropped.

Amounts in KB are counts of 128 or 256 bytes divided by 1024, so they are whole bytes again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl

from akf.contracts.problems import InvalidError, Problem
from akf.contracts.text import show
from akf.traffic.exact import divided
from akf.traffic.op_files import BASIC_INFO, METRICS, table_of
from akf.traffic.reader import Progress, Reader
from akf.traffic.tables import Column, Table

BASIC = Table(
    BASIC_INFO,
    (
        Column("kernel", ("Op Name",), needed=True, filled=True),
        Column("kind", ("Op Type",), needed=True, filled=True),
        Column("duration_ns", ("Task Duration(us)",), "span", needed=True, filled=True),
        Column("blocks", ("Block Dim", "Block Num"), "whole"),
        Column("current_mhz", ("Current Freq",), "whole"),
        Column("rated_mhz", ("Rated Freq",), "whole"),
    ),
)
CORES = {"cube": "aic", "vector": "aiv"}
CORE_TYPES = {"vector": "AI_VECTOR_CORE", "cube": "AI_CORE", "mix": "MIX"}
_MIXED = {"_mix_aic": "MIX_AIC", "_mix_aiv": "MIX_AIV"}
_SUB_BLOCK = re.compile(r"(cube|vector)(\d{1,4})", re.ASCII)


class Measure(NamedTuple):
    """What a column of a metrics table holds: a time (no unit), or an amount."""

    pattern: re.Pattern[str]
    unit: str | None


MEASURES = (
    Measure(re.compile(r"(?P<name>ai[cv](?:_\w{1,28})?)_time\(us\)", re.ASCII), None),
    Measure(re.compile(r"(?P<name>\w{1,24})_datas\(KB\)(?:\(estimate\))?", re.ASCII), "bytes"),
    Measure(re.compile(r"(?P<name>ai[cv]_\w{1,24}_fops)", re.ASCII), "operations"),
    Measure(re.compile(r"(?P<name>ai[cv]_\w{1,20}_(?:instr_number|instructions))", re.ASCII), "instructions"),
    Measure(
        re.compile(
            r"(?P<name>ai[cv]_(?:(?:write|r\d_read)_cache_(?:hit|miss_allocate)|(?:read|write)_(?:close|far)_(?:hit|miss|victim)))",
            re.ASCII,
        ),
        "accesses",
    ),
)


class Blocks(NamedTuple):
    """Times of the single blocks of one kind of core in one launch."""

    blocks: int
    mean_ns: int
    longest_ns: int
    last_ns: int


@dataclass(frozen=True)
class Launch:
    """One launch of one kernel."""

    folder: str
    kernel: str
    core_type: str
    blocks: int | None
    duration_ns: int
    mhz: tuple[int | None, int | None]
    """The current and the rated frequency."""
    counters: dict[str, int]
    amounts: dict[str, tuple[str, int]]
    balance: dict[str, Blocks]
    sources: tuple[tuple[str, str], ...]
    """Table and digest."""


def folders(path: Path) -> list[Path]:
    """The folders at or below `path` that hold tables of one launch each, sorted."""
    found = {file.parent for file in path.rglob("*.csv") if table_of(file.name)}
    return sorted(found, key=lambda folder: folder.relative_to(path).parts)


def read(folder: Path, name: str, progress: Progress = lambda _: None) -> Launch:
    """Read one launch; `name` is what problems and artifacts call its folder, empty for the one that was given.

    Raises:
        InvalidError: A file is missing, twice, or malformed.
        StorageError: A file cannot be read.
    """
    files = _files(folder, name)
    digests = {}
    basic, reader = _whole_table(*files.pop(BASIC.name), BASIC, progress)
    digests[BASIC.name] = reader.digest
    if basic.height != 1:
        text = f"{BASIC.name} has {basic.height} rows, and one launch has one"
        raise InvalidError.of("AKF-F161", text, file=reader.name, line=3)
    facts = basic.row(0, named=True)
    core_type = CORE_TYPES.get(facts["kind"])
    if core_type is None:
        known = ", ".join(CORE_TYPES)
        text = f"the Op Type {show(facts['kind'])} is none of {known}"
        raise InvalidError.of("AKF-F161", text, file=reader.name, line=2)
    if core_type == "MIX":
        core_type = next((mixed for end, mixed in _MIXED.items() if facts["kernel"].endswith(end)), core_type)
    counters: dict[str, int] = {}
    amounts: dict[str, tuple[str, int]] = {}
    balance: dict[str, Blocks] = {}
    for table in METRICS:
        if table not in files:
            continue
        frame, reader = _whole_table(*files[table], _metrics(table), progress)
        digests[table] = reader.digest
        for core, rows in _by_core(frame, reader):
            _measure(core, rows, counters, amounts, balance)
    return Launch(
        name,
        facts["kernel"],
        core_type,
        facts["blocks"],
        facts["duration_ns"],
        (facts["current_mhz"], facts["rated_mhz"]),
        counters,
        amounts,
        balance,
        tuple(digests.items()),
    )


def _files(folder: Path, name: str) -> dict[str, tuple[Path, str]]:
    found: dict[str, tuple[Path, str]] = {}
    for path in sorted(folder.iterdir()):
        table = table_of(path.name)
        if table is None:
            continue
        shown = f"{name}/{path.name}" if name else path.name
        if table in found:
            text = f"the folder holds {table} twice: {found[table][0].name} and {path.name}"
            raise InvalidError.of("AKF-F163", text, file=shown, hint="give each launch a folder of its own")
        found[table] = (path, shown)
    if BASIC.name not in found:
        text = f"the folder has no {BASIC.name}.csv, which names the kernel"
        hint = "give the folder that msprof op wrote, as a whole"
        raise InvalidError.of("AKF-F163", text, file=name or folder.name, hint=hint)
    return found


def _whole_table(path: Path, name: str, table: Table, progress: Progress) -> tuple[pl.DataFrame, Reader]:
    reader = Reader(path, name, table, progress)
    frames = list(reader)
    return pl.concat(frames), reader


def _metrics(table: str) -> Table:
    def more(name: str) -> Column | None:
        for measure in MEASURES:
            found = measure.pattern.fullmatch(name)
            if found:
                return Column(f"{measure.unit or 'time'} {found['name']}", (name,), "pipe")
        return None

    return Table(table, (Column("block", ("block_id",), "whole"), Column("sub_block", ("sub_block_id",))), more)


def _by_core(frame: pl.DataFrame, reader: Reader) -> Iterator[tuple[str | None, list[dict[str, object]]]]:
    """The rows of each kind of core, in the order of their blocks; None where rows are no blocks."""
    rows = frame.to_dicts()
    if all(row["sub_block"] is None for row in rows):
        yield None, rows
        return
    problems = []
    placed: dict[tuple[int, str, int], dict[str, object]] = {}
    for row in rows:
        found = _SUB_BLOCK.fullmatch(row["sub_block"] or "")
        if found is None or row["block"] is None:
            text = f"block_id and sub_block_id are {show(row['block'])} and {show(row['sub_block'])}"
            problems.append(Problem("AKF-F161", text, reader.name, line=row["line"]))
        elif (place := (row["block"], found[1], int(found[2]))) in placed:
            text = f"block {row['block']} {row['sub_block']} stands twice"
            problems.append(Problem("AKF-F161", text, reader.name, line=row["line"]))
        else:
            placed[place] = row
    if problems:
        raise InvalidError(problems)
    for kind, core in CORES.items():
        mine = [row for (_, name, _), row in sorted(placed.items(), key=lambda item: item[0]) if name == kind]
        if mine:
            yield core, mine


def _measure(
    core: str | None,
    rows: list[dict[str, object]],
    counters: dict[str, int],
    amounts: dict[str, tuple[str, int]],
    balance: dict[str, Blocks],
) -> None:
    for column in rows[0]:
        unit, _, name = column.partition(" ")
        if not name or (core is not None and name.startswith("ai") and not name.startswith(core)):
            continue
        values = [value for row in rows if isinstance(value := row[column], int)]
        if len(values) != len(rows):
            continue
        if unit != "time":
            total = divided(sum(values) * (1024 if unit == "bytes" else 1), 1000)
            amounts[name] = (unit, amounts.get(name, (unit, 0))[1] + total)
        elif name in CORES.values():
            if core is not None:
                balance.setdefault(
                    name, Blocks(len(values), divided(sum(values), len(values)), max(values), values[-1])
                )
        else:
            counters.setdefault(name, divided(sum(values), len(values)))
