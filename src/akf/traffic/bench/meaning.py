"""What the keys of each tool mean, from `meaning.toml`, and which tool wrote a document.

Invariants:
1. A tool is recognised by keys alone, never by a file's name; a document that fits two tools is nobody's.
2. One concept has one id, whatever a tool calls it; the table is the only place that says so.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from types import MappingProxyType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_FILE = Path(__file__).with_name("meaning.toml")
CONCEPTS = ("ttft", "tpot", "itl", "itl_per_token", "e2e", "e2e_per_output_token", "batch_e2e")


@cache
def tools() -> Mapping[str, dict[str, Any]]:
    """The table of every tool; it is shared, so do not change it."""
    return MappingProxyType(tomllib.loads(_FILE.read_text(encoding="utf-8")))


def recognised(value: Any) -> list[tuple[str, str]]:
    """Which tools' layouts a document fits, as (tool, layout); an array is known by its first row."""
    rows = isinstance(value, list)
    probe = value[0] if rows and value else value
    if not isinstance(probe, dict):
        return []
    return [
        (tool, layout)
        for tool, table in tools().items()
        for layout, marks in table["layouts"].items()
        if rows == (layout in table.get("rows", ())) and any(all(_holds(probe, key) for key in keys) for keys in marks)
    ]


def _holds(value: Any, key: str) -> bool:
    """Whether a key is there; `a.b` is the key b of what stands under a."""
    for step in key.split("."):
        if not isinstance(value, dict) or step not in value:
            return False
        value = value[step]
    return True


def looked_for() -> str:
    """The layouts that are known, for people."""
    return "; ".join(
        f"{table['title']}: {' or '.join(', '.join(keys) for marks in table['layouts'].values() for keys in marks)}"
        for table in tools().values()
    )
