"""A program that answers as `npu-smi` does, and texts in its layouts: of our own making, no board was read.

The layouts follow what `akf.frameworks.npu_smi` names as its source; all figures are invented.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

SCRIPT = """#!/bin/sh
file="$(dirname "$0")/../texts/$(echo "$*" | tr ' ' '_')"
[ -e "$(dirname "$0")/../texts/loaded" ] && [ -e "$file.loaded" ] && file="$file.loaded"
cat "$file" 2>/dev/null || { echo "This device does not support querying $*" >&2; exit 1; }
"""


def line(width: int, *cells: str) -> str:
    widths = (width + 2, width - 10, width + 27) if len(cells) == 3 else (width + 2, width - 10, width + 1, width)
    return "|" + "|".join(f" {cell:<{size}}" for cell, size in zip(cells, widths, strict=True)) + "|"


def table(
    dies: Sequence[tuple[int, int, int]],
    processes: Mapping[tuple[int, int], Sequence[int]],
    *,
    width: int = 25,
    sick: frozenset[tuple[int, int]] = frozenset(),
) -> str:
    """`npu-smi info` for (NPU, chip, busy percent); two chips of a package as an A3 shows them."""
    rule = "+" + "=" * 70 + "+"
    lines = ["+" + "-" * 70 + "+", "| npu-smi 25.5.1                   Version: 25.5.1" + " " * 40 + "|", rule]
    lines += [
        line(width, "NPU   Name", "Health", "Power(W)    Temp(C)           Hugepages-Usage(page)"),
        line(width, "Chip  Phy-ID", "Bus-Id", "AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)"),
    ]
    for number, (npu, chip, busy) in enumerate(dies):
        power = "170.1" if chip == 0 else "-"
        health = "Alarm" if (npu, chip) in sick else "OK"
        lines += [rule, line(width, f"{npu}     Ascend910", health, f"{power}       36                0    / 0")]
        lines += [
            line(
                width,
                f"{chip}     {number}",
                f"0000:9{number}:00.0",
                f"{busy}           0    / 0          3100 / 65536",
            )
        ]
    lines += [rule, line(width, "NPU     Chip", "Process id", "Process name", "Process memory(MB)"), rule]
    for (npu, chip), pids in processes.items():
        lines += [line(width, f"{npu}       {chip}", str(pid), "python3", "1234") for pid in pids]
    lines += [
        f"| No running processes found in NPU {npu} "
        for npu in {die[0] for die in dies} - {key[0] for key in processes}
    ]
    return "\n".join(lines) + "\n"


def common(npu: int, *chips: tuple[int, int]) -> str:
    """`npu-smi info -t common` for (current, rated) MHz of each chip, and the controller behind them."""
    lines: list[tuple[str, object] | None] = [("NPU ID", npu), ("Chip Count", len(chips)), None]
    for chip, (current, rated) in enumerate(chips):
        lines += [("Chip ID", chip), ("Aicore Usage Rate(%)", 0), ("Aicore Freq(MHZ)", rated)]
        lines += [("Aicore curFreq(MHZ)", current), ("Aicore Count", 20), ("Temperature(C)", 40), None]
    lines += [("Chip Name", "mcu"), ("Temperature(C)", 41), ("NPU Real-time Power(W)", 13.4)]
    return "".join("\n" if each is None else f"\t{each[0]:<31}: {each[1]}\n" for each in lines)


def board(chip_name: str, npu_name: str | None = None) -> str:
    """`npu-smi info -t board -c 0`."""
    lines = [
        ("NPU ID", "0"),
        ("Chip ID", "0"),
        ("Chip Type", "Ascend"),
        ("Chip Name", chip_name),
        ("Chip Version", "V1"),
    ]
    lines += [("NPU Name", npu_name)] if npu_name else []
    return "".join(f"\t{name:<31}: {value}\n" for name, value in lines)


def install(folder: Path, texts: Mapping[str, str], patch: pytest.MonkeyPatch) -> Path:
    """Put a `npu-smi` with these answers, by its arguments, first on PATH."""
    (folder / "bin").mkdir()
    (folder / "texts").mkdir()
    program = folder / "bin" / "npu-smi"
    program.write_text(SCRIPT, encoding="utf-8")
    program.chmod(0o755)
    for words, text in texts.items():
        (folder / "texts" / words.replace(" ", "_")).write_text(text, encoding="utf-8")
    patch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return folder / "texts"
