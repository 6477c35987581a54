"""Which layout a trace has, by its first line.

Invariants:
- A CSV is known by its columns, whole; JSON Lines by the fields of its first line.
- `timed_trace` is never guessed: its fields are Mooncake's, and neither its unit of time nor its block size is in the
  file. It must be named, with its unit.
- Mooncake's layout is confirmed by its blocks: as long as no prompt is longer than one, any other size fits as well,
  and the trace must be named too.
- Every file of one trace has one layout.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from typing import Any

from akf.contracts.problems import InvalidError, Problem, UsageError
from akf.contracts.text import did_you_mean, printable
from akf.traffic.traces.layouts import Layout, layouts
from akf.traffic.traces.lines import first_line
from akf.traffic.traces.rows import decode

NAMED_ONLY = "timed_trace"


def named(name: str) -> Layout:
    """The layout of that name.

    Raises:
        UsageError: There is none.
    """
    known = layouts()
    if name in known:
        return known[name]
    near = did_you_mean(name, known)
    hint = f"did you mean {near}?" if near else f"one of {', '.join(known)}"
    raise UsageError.of(
        "AKF-F251", f"--layout: there is no layout {printable(name)}", expected=sorted(known), found=name, hint=hint
    )


def recognised(files: Sequence[str | os.PathLike[str]]) -> Layout:
    """The one layout of these files.

    Raises:
        InvalidError: A file has no known layout, or two files have different ones.
    """
    found = {os.fspath(file): _of(first_line(file)) for file in files}
    unknown = [_unknown(file) for file, layout in found.items() if layout is None]
    if unknown:
        raise InvalidError(unknown)
    layout, *others = {layout.name: layout for layout in found.values() if layout is not None}.values()
    if others:
        parts = ", ".join(f"{os.path.basename(file)}: {layout.name}" for file, layout in found.items() if layout)  # noqa: PTH119
        message = f"the files have different layouts ({printable(parts)})"
        hint = "ingest one trace at a time; several files are parts of one trace"
        raise InvalidError.of("AKF-F257", message, file=os.fspath(files[0]), hint=hint)
    return layout


def confirm(layout: Layout, longest_tokens: int) -> None:
    """Refuse a recognised layout that the blocks cannot tell from a timed trace.

    Raises:
        UsageError: No prompt is longer than a block.
    """
    if layout.exact and longest_tokens <= layout.block_size_tokens:
        message = (
            f"the trace has the fields of {layout.name} and of {NAMED_ONLY}, and no prompt is longer than a block of "
            f"{layout.block_size_tokens} tokens, which would tell them apart"
        )
        hint = f"name it: --layout {layout.name}, or --layout {NAMED_ONLY} with --sec-multiplier and --block-size"
        raise UsageError.of("AKF-F251", message, found=longest_tokens, hint=hint)


def _of(line: bytes) -> Layout | None:
    if line.lstrip().startswith(b"{"):
        value = decode(line)
        return _jsonl(value) if isinstance(value, dict) else None
    try:
        header = next(csv.reader([line.decode()], strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        return None
    return next((layout for layout in layouts().values() if has_columns(layout, header)), None)


def has_columns(layout: Layout, header: list[str]) -> bool:
    """Whether a CSV with this header has the layout."""
    if layout.container != "csv" or len(set(header)) != len(header):
        return False
    return set(header) in ({*layout.columns}, {*layout.columns, *layout.also})


def _jsonl(value: dict[str, Any]) -> Layout | None:
    for layout in layouts().values():
        if layout.container != "jsonl" or layout.name == NAMED_ONLY:
            continue
        wanted = set(layout.required)
        if set(value) == wanted or (not layout.exact and wanted <= set(value)):
            return layout
    return None


def _unknown(file: str) -> Problem:
    known = [f"{name} ({', '.join(layout.columns or layout.required)})" for name, layout in layouts().items()]
    return Problem(
        "AKF-F250",
        "the first line is that of no trace that AKF knows",
        file=file,
        line=1,
        expected=known,
        hint=f"name the layout with --layout; for other names of the four fields use --layout {NAMED_ONLY} --label",
    )
