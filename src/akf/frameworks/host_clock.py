"""The processor's clock on the host, as far as the kernel tells: a remark for the journal, never evidence.

Invariants:
- `fixed` needs a governor that holds the frequency on every processor, and turbo known to be off. What is not readable,
  as in most virtual machines, is `cannot tell` with the reason.
- The frequency under load is looked at while this process keeps a core busy.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

SYSTEM = Path("/sys/devices/system/cpu")
CPUINFO = Path("/proc/cpuinfo")
HOLDS = frozenset({"performance", "powersave"})
LOAD_S = 0.05


def clock(system: Path = SYSTEM, cpuinfo: Path = CPUINFO) -> dict[str, Any]:
    """Governors, turbo, frequencies and what follows from them.

    Args:
        system: where the kernel shows processors.
        cpuinfo: where it lists them.
    """
    governors = sorted({text for path in system.glob("cpu[0-9]*/cpufreq/scaling_governor") if (text := _text(path))})
    turbo = _turbo(system)
    facts: dict[str, Any] = {"governors": governors, "turbo": turbo, "mhz_under_load": _under_load(cpuinfo)}
    if not governors:
        return {**facts, "answer": "cannot tell", "why": "the kernel shows no frequency governor here"}
    if turbo is None:
        return {**facts, "answer": "cannot tell", "why": "the kernel does not show whether turbo is on"}
    fixed = not turbo and governors[0] in HOLDS and len(governors) == 1
    why = f"governor {', '.join(governors)}, turbo {'on' if turbo else 'off'}"
    return {**facts, "answer": "fixed" if fixed else "varies", "why": why}


def _turbo(system: Path) -> bool | None:
    off, on = _text(system / "intel_pstate" / "no_turbo"), _text(system / "cpufreq" / "boost")
    if off in {"0", "1"}:
        return off == "0"
    return on == "1" if on in {"0", "1"} else None


def _under_load(cpuinfo: Path) -> list[int]:
    """Frequencies of all processors in MHz, lowest and highest, while one is busy."""
    end = time.monotonic() + LOAD_S
    while time.monotonic() < end:
        pass
    found = []
    for line in _text(cpuinfo).splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "cpu MHz":
            with suppress(ValueError):
                found.append(int(float(value)))
    return [min(found), max(found)] if found else []


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").strip()
    return ""
