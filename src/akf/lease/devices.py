"""The names by which a Campaign's devices are leased.

Invariants:
- A machine without devices is one device, `host`: what runs on it shares its processor.
- A package whose dies share memory, power and clock is leased whole: both dies, whatever the Campaign uses of it.
"""

from __future__ import annotations

from typing import Any

HOST = "host"
DIES = {"ascend910_93": 2}
"""Dies per package by SoC family, where it is not one."""
_PREFIX = {"ascend": "npu", "cuda": "gpu"}


def devices_of(campaign: dict[str, Any]) -> tuple[str, ...]:
    """Every device that a measurement for this Campaign needs for itself, in order."""
    platform = campaign["platform"]
    if platform == "host":
        return (HOST,)
    prefix = _PREFIX[platform]
    ranks = campaign["ranks"]["devices"]
    dies = DIES.get(campaign["environment"]["soc"]["family"], 1)
    wanted = {(rank["npu"], die) for rank in ranks for die in {*range(dies), rank["die"]}}
    return tuple(f"{prefix}-{npu}-die-{die}" for npu, die in sorted(wanted))
