"""`npu-smi`: what its texts say of the dies of a machine.

Invariants:
- Columns are found by what stands in them and fields by their names; widths differ between versions.
- A die is a pair of lines, the second of which holds the bus. Chips that are no NPU (`mcu`) are no dies.
- A value that is no number (`-`, `NA`) is unread, and so is a list of processes whose table is not there.

Source of the layouts: `npu-smi info` of 24.1 to 26.0 as users of vLLM-Ascend print it in their reports (issues 2534
and 12980), for A2 and A3; `npu-smi info -t common` and `-t board` as the Ascend community documents them. No text of a
board is part of this project, and none was read here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from akf.contracts.rules import soc
from akf.contracts.text import printable
from akf.frameworks.tool_answer import answer

PROGRAM = "npu-smi"
_BUS = re.compile(r"[0-9A-Fa-f]{4,}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
_VERSION = re.compile(r"npu-smi\s+(\S+)\s+Version:\s*(\S+)")
_ID, _CHIP = "NPU ID", "Chip ID"
_HEALTHY = "OK"
_CURRENT, _RATED = "Aicore curFreq(MHZ)", "Aicore Freq(MHZ)"
_PARTS = 3
_PROCESS_PARTS = 4


class Shown(NamedTuple):
    """A die in the table of `npu-smi info`."""

    name: str
    healthy: bool
    busy_percent: int | None


class Table(NamedTuple):
    """The table: dies by NPU and chip, and processes where they are listed."""

    version: str | None
    dies: dict[tuple[int, int], Shown]
    processes: dict[tuple[int, int], tuple[int, ...]] | None


def ask(*arguments: str) -> str | None:
    """What `npu-smi` prints; None when there is none or it fails."""
    return answer(PROGRAM, *arguments)


def table(text: str) -> Table:
    """The text of `npu-smi info`."""
    version = _VERSION.search(text)
    dies: dict[tuple[int, int], Shown] = {}
    processes: dict[tuple[int, int], tuple[int, ...]] | None = None
    before: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.strip().startswith("|") else []
        if len(cells) == _PROCESS_PARTS and cells[1] == "Process id":
            processes = {}
        elif processes is not None and len(cells) == _PROCESS_PARTS and cells[1].isdigit():
            place = _place(cells[0])
            processes[place] = (*processes.get(place, ()), int(cells[1]))
        elif len(cells) == _PARTS and _BUS.fullmatch(cells[1]) and len(before) == _PARTS:
            npu, _, name = before[0].partition(" ")
            chip = cells[0].split()[0]
            busy = _number(cells[2].split()[0] if cells[2] else "")
            dies[int(npu), int(chip)] = Shown(printable(name.strip()), before[1] == _HEALTHY, busy)
        before = cells
    return Table(printable(version[2]) if version else None, dies, processes)


def fields(text: str) -> dict[str, str]:
    """`Name : value` lines; of a name that stands twice, the first counts."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(" : ")
        if colon:
            found.setdefault(name.strip(), printable(value.strip()))
    return found


def chips(text: str) -> dict[int, dict[str, str]]:
    """`npu-smi info -t common -i N`: fields by chip, behind its `Chip ID`; chip 0's where none is said."""
    found: dict[int, list[str]] = {}
    own: list[str] | None = found.setdefault(0, [])
    for line in text.splitlines():
        name, colon, value = (part.strip() for part in line.partition(" : "))
        if colon and name == _CHIP:
            own = found.setdefault(int(value), []) if value.isdigit() else None
        elif colon and name == "Chip Name":
            own = None  # a controller beside the chips, whose fields have the same names
        elif own is not None:
            own.append(line)
    return {chip: fields("\n".join(lines)) for chip, lines in found.items() if lines}


def frequencies(values: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Current and rated frequency of the AI cores in MHz, of one chip's fields."""
    return _number(values.get(_CURRENT, "")), _number(values.get(_RATED, ""))


def soc_name(board: str) -> str | None:
    """The full SoC name that `npu-smi info -t board` gives; None for one that is unknown."""
    values = fields(board)
    chip = values.get("Chip Name")
    return soc.from_board(chip, values.get("NPU Name")) if chip else None


def _place(cell: str) -> tuple[int, int]:
    numbers = [int(part) for part in cell.split() if part.isdigit()]
    return (numbers[0], numbers[1]) if len(numbers) > 1 else (numbers[0] if numbers else -1, 0)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None
