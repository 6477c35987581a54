"""Rows that arrive one by one and become columns.

Invariants:
1. What is held as Python objects is one chunk; the rest are polars columns.
2. A text that repeats is held once.
"""

from __future__ import annotations

from typing import Any

import polars as pl

_CHUNK = 65_536


class Rows:
    """A table under construction.

    Args:
        columns: Names and polars types; a column of type `String` takes any text, and holds each text once.
    """

    def __init__(self, columns: dict[str, Any]) -> None:
        self._columns = columns
        self._texts = {name: _Texts() for name, kind in columns.items() if kind == pl.String}
        self._chunk: list[tuple[Any, ...]] = []
        self._done: list[pl.DataFrame] = []

    def add(self, *row: Any) -> None:
        """Append one row, its values in the order of the columns."""
        self._chunk.append(row)
        if len(self._chunk) >= _CHUNK:
            self._flush()

    def frame(self) -> pl.DataFrame:
        """Return the table."""
        self._flush()
        frame: pl.DataFrame = pl.concat(self._done, rechunk=True)
        texts = [
            pl.Series(name, seen.all, dtype=pl.String).gather(frame[name]).alias(name)
            for name, seen in self._texts.items()
        ]
        return frame.with_columns(texts)

    def _flush(self) -> None:
        columns = list(zip(*self._chunk, strict=True)) or [()] * len(self._columns)
        held = {
            name: [self._texts[name].number(text) for text in values] if name in self._texts else values
            for name, values in zip(self._columns, columns, strict=True)
        }
        kinds = {name: pl.UInt32 if name in self._texts else kind for name, kind in self._columns.items()}
        self._done.append(pl.DataFrame(held, schema=kinds))
        self._chunk = []


class _Texts:
    def __init__(self) -> None:
        self.all: list[str | None] = []
        self._known: dict[str | None, int] = {}

    def number(self, text: str | None) -> int:
        number = self._known.setdefault(text, len(self.all))
        if number == len(self.all):
            self.all.append(text)
        return number
