"""The layouts of request traces that AKF reads, from `layouts.toml`.

Invariants:
- What differs between layouts is data: fields, unit of time, block size, clock, what a failed request looks like, whose
  tokens are counted. The readers know no layout by name.
- A layout is not a data set: many traces are written in a published layout. So the licence and the origin in the table
  are those of the publication, and are shown, never frozen.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

NS_PER_S = 1_000_000_000


class Layout(NamedTuple):
    """One table of `layouts.toml`."""

    name: str
    title: str
    published: str
    licence: str
    container: Literal["jsonl", "csv"]
    fields: dict[str, Any]
    time: Literal["seconds", "whole", "number", "calendar"]
    unit_ns: int
    block_size_tokens: int
    clock: Literal["absolute", "relative"]
    zero_output: Literal["failure", "count"]
    tokenizer: str
    foreign: bool
    exact: bool = False
    columns: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    same_as: tuple[str, ...] = ()

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the fields that every line of a `jsonl` file holds."""
        return tuple(name for names in self.fields.values() for name in ([names] if isinstance(names, str) else names))


@cache
def layouts() -> dict[str, Layout]:
    """Every layout by its name."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    lists = ("columns", "also", "same_as")
    found = {}
    for name, table in tables.items():
        values: dict[str, Any] = {key: tuple(value) if key in lists else value for key, value in table.items()}
        found[name] = Layout(name=name, **values)
    return found
