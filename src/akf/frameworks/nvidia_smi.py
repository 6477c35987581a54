"""`nvidia-smi`: what it says of the GPUs of a machine.

Invariants:
- Columns are those that were asked for, by name; a text with others is not read.
- A value keeps its unit in the text; without the unit that is expected it is unread.
- A GPU that is divided (MIG) is no whole device and not listed.

Source of the layout: `nvidia-smi --query-gpu=... --format=csv` and `--query-compute-apps=...` of driver 580.159.04 on
one NVIDIA H200. Under a load that reaches the power limit, that GPU ran at 1455 MHz of 1980: such a load shows the
limit, not the clock.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable

from akf.frameworks.machine import Die
from akf.frameworks.tool_answer import answer

PROGRAM = "nvidia-smi"
GPU = ("index", "uuid", "mig.mode.current", "utilization.gpu", "clocks.current.sm", "clocks.max.sm")
CAPABILITY = ("index", "compute_cap")
APPS = ("gpu_uuid", "pid")
UNITS = {"utilization.gpu": "%", "clocks.current.sm": "MHz", "clocks.max.sm": "MHz"}
_WHOLE = frozenset({"Disabled", "[N/A]"})


def dies(gpus: Iterable[int]) -> dict[str, Die]:
    """These GPUs by their names as they are leased."""
    gpu = answer(PROGRAM, f"--query-gpu={','.join(GPU)}", "--format=csv")
    apps = answer(PROGRAM, f"--query-compute-apps={','.join(APPS)}", "--format=csv")
    wanted = {f"gpu-{number}-die-0" for number in gpus}
    found = parsed(gpu or "", apps)
    return {name: die for name, die in found.items() if name in wanted}


def capabilities() -> dict[int, str] | None:
    """Compute capability of every GPU by its number, as `sm_90`; None where the tool does not answer."""
    text = answer(PROGRAM, f"--query-gpu={','.join(CAPABILITY)}", "--format=csv")
    rows = None if text is None else _rows(text, CAPABILITY)
    if rows is None:
        return None
    parts = [(row["index"], *row["compute_cap"].partition(".")[::2]) for row in rows]
    return {int(each[0]): f"sm_{each[1]}{each[2]}" for each in parts if all(part.isdigit() for part in each)}


def parsed(gpu: str, apps: str | None) -> dict[str, Die]:
    """Every whole GPU of the two texts; without the second, processes are unread."""
    processes: dict[str, tuple[int, ...]] = {}
    listed = None if apps is None else _rows(apps, APPS)
    for row in listed or ():
        if row["pid"].isdigit():
            processes[row["gpu_uuid"]] = (*processes.get(row["gpu_uuid"], ()), int(row["pid"]))
    found = {}
    for row in _rows(gpu, GPU) or ():
        if row["mig.mode.current"] in _WHOLE and row["index"].isdigit():
            name = f"gpu-{int(row['index'])}-die-0"
            own = None if listed is None else processes.get(row["uuid"], ())
            found[name] = Die(name, own, *(_value(row[field], unit) for field, unit in UNITS.items()))
    return found


def _rows(text: str, columns: tuple[str, ...]) -> list[dict[str, str]] | None:
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines(), skipinitialspace=True) if row]
    if not rows or [cell.partition(" [")[0] for cell in rows[0]] != list(columns):
        return None
    return [dict(zip(columns, row, strict=True)) for row in rows[1:] if len(row) == len(columns)]


def _value(text: str, unit: str) -> int | None:
    number, _, found = text.partition(" ")
    return int(number) if found == unit and number.isascii() and number.isdigit() else None
