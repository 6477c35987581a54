"""Which files `msprof op` wrote, by their names; told without reading them, and without polars."""

from __future__ import annotations

import re

FILE = re.compile(r"(?P<table>[A-Za-z0-9]{4,32}?)(?:_\d{8,20})?\.csv", re.ASCII)
BASIC_INFO = "OpBasicInfo"
METRICS = (
    "PipeUtilization", "ArithmeticUtilization", "Memory", "MemoryL0", "MemoryUB", "L2Cache", "ResourceConflictRatio",
)  # fmt: skip
"""Tables with one row a block. Where two have a time, the first counts; an amount is in one of them only."""


def table_of(name: str) -> str | None:
    """Which table of a launch a file is by its name."""
    found = FILE.fullmatch(name)
    return found["table"] if found and found["table"] in {BASIC_INFO, *METRICS} else None
