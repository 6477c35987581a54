"""Files of one trace to requests, streamed.

Invariants:
- Nothing is skipped in silence: a line is a request, a counted failure, or a problem with its number.
- Rows may stand in any order and files may be named in any order; how many rows ran back in time is said.
- Several files are parts of one trace: one layout, the same columns, one clock. Where a file counts time, blocks and
  chats from its own start, parts that overlap in time are different traces, and are refused; so is a file named twice.
- Names of chats and kinds are used and counted; chats are never kept.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from akf.contracts.problems import InvalidError, Problem
from akf.contracts.text import printable, show
from akf.traffic.traces.layouts import Layout
from akf.traffic.traces.lines import Lines
from akf.traffic.traces.recognise import has_columns
from akf.traffic.traces.requests import Requests
from akf.traffic.traces.rows import Bad, Calendar, blocks, decode, number_ns, number_text, tokens, tokens_text
from akf.traffic.traces.sessions import Chats
from akf.traffic.trouble import Trouble

MAX_KINDS = 64
_LONGEST_KIND, _LONGEST_NAME = 64, 256


class Trace(NamedTuple):
    """What was read."""

    layout: Layout
    requests: Requests
    failures: int
    out_of_order: int
    files: list[dict[str, str]]


class _Reader:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.requests = Requests()
        self.failures = 0
        self.out_of_order = 0
        self.trouble = Trouble("AKF-F264")
        self.chats = Chats()
        self.calendar = Calendar()
        self.columns: tuple[str, frozenset[str]] | None = None
        self.last_ns = -1
        self.name = ""

    def file(self, lines: Lines) -> tuple[int, int] | None:
        """Read one file; the first and the last time in it."""
        before = len(self.requests)
        self.last_ns = -1
        self.name = lines.file
        take: Callable[[bytes, int], None] | None = self._object if self.layout.container == "jsonl" else None
        for number, line in lines:
            try:
                if take is None:
                    take = self._row(self._header(line))
                else:
                    take(line, number)
            except Bad as bad:
                self.trouble.add(bad.problem(lines.file, number))
        times = self.requests.times[before:]
        return (min(times), max(times)) if times else None

    def _object(self, line: bytes, number: int) -> None:
        value = decode(line)
        if not isinstance(value, dict):
            raise _no_row(value, line)
        names = self.layout.fields
        try:
            time, count, answer = value[names["time"]], value[names["input"]], value[names["output"]]
            ids = value[names["blocks"]]
            chat, parent = (value[names["chat"]], value[names["parent"]]) if "chat" in names else (None, None)
            kinds = [value[name] for name in names.get("kind", ())]
        except KeyError as error:
            missing = f"the line has no field {error.args[0]!r}"
            raise Bad("AKF-F252", missing, list(self.layout.required), sorted(map(str, value))[:20]) from None
        unit = self.layout.unit_ns
        time_ns = number_ns(number_text(time, names["time"]), names["time"], self.layout.time, unit)
        input_tokens, output_tokens = tokens(count, names["input"]), tokens(answer, names["output"])
        listed = blocks(ids, names["blocks"], input_tokens, self.layout.block_size_tokens)
        if "chat" in names:
            self.chats.add(chat, parent, self.name, number)
        kind = _kind(kinds) if kinds else None
        self._add(time_ns, input_tokens, output_tokens, kind, chat)
        self.requests.add_blocks(listed)

    def _header(self, line: bytes) -> list[str]:
        header = _cells(line)
        if not has_columns(self.layout, header):
            message = f"the header is not that of the layout {self.layout.name}"
            expected, found = list(self.layout.columns), header[:20]
            raise InvalidError.of("AKF-F250", message, file=self.name, line=1, expected=expected, found=found)
        first, columns = self.columns = self.columns or (self.name, frozenset(header))
        if columns != set(header):
            message = f"the columns are not those of {printable(first)}; parts of one trace have the same"
            expected, found = sorted(columns), sorted(header)
            hint = "ingest them one at a time"
            raise InvalidError.of(
                "AKF-F257", message, file=self.name, line=1, expected=expected, found=found, hint=hint
            )
        return header

    def _row(self, header: list[str]) -> Callable[[bytes, int], None]:
        """How a line under this header is read; columns are found by name."""
        names = self.layout.fields
        at = {name: place for place, name in enumerate(header)}
        time, count, answer = at[names["time"]], at[names["input"]], at[names["output"]]
        total = at.get(names.get("total", ""))
        session = at.get(names.get("session", ""))
        kinds = [at[name] for name in names.get("kind", ())]
        calendar = self.layout.time == "calendar"
        width = len(header)
        known: dict[str, int] = {}

        def take(line: bytes, _: int) -> None:
            cells = _cells(line)
            if len(cells) != width:
                message = f"the line has {len(cells)} cells, the header {width}" if line else "the line is empty"
                raise Bad("AKF-F252", message, width, len(cells) if line else 0)
            if calendar:
                time_ns = self.calendar.ns(cells[time], names["time"])
            else:
                time_ns = number_ns(cells[time], names["time"], self.layout.time, self.layout.unit_ns)
            input_tokens = tokens_text(cells[count], names["input"], known)
            output_tokens = tokens_text(cells[answer], names["output"], known)
            if total is not None and tokens_text(cells[total], names["total"], known) != input_tokens + output_tokens:
                message = f"{names['total']} is {cells[total]}, the two parts add up to {input_tokens + output_tokens}"
                raise Bad("AKF-F266", message, input_tokens + output_tokens, int(cells[total]))
            kind = _kind([cells[place] for place in kinds]) if kinds else None
            self._add(time_ns, input_tokens, output_tokens, kind, cells[session] if session is not None else None)

        return take

    def _add(self, time_ns: int, input_tokens: int, output_tokens: int, kind: str | None, chat: Any) -> None:
        self.out_of_order += time_ns < self.last_ns
        self.last_ns = time_ns
        if output_tokens == 0 and self.layout.zero_output == "failure":
            self.failures += 1
            return
        requests = self.requests
        requests.add(time_ns, input_tokens, output_tokens)
        if chat is not None:
            requests.chats.append(chat)
        if kind is not None:
            if kind not in requests.kind_names and len(requests.kind_names) == MAX_KINDS:
                raise Bad("AKF-F252", f"the trace has more than {MAX_KINDS} kinds of requests", MAX_KINDS, kind)
            requests.add_kind(kind)


def read(files: Sequence[str | os.PathLike[str]], layout: Layout) -> Trace:
    """Read the files of one trace.

    Raises:
        InvalidError: With every problem of the files.
        StorageError: A file cannot be read.
    """
    reader = _Reader(layout)
    spans: list[tuple[int, int, str]] = []
    read_files: dict[str, Lines] = {}
    for file in sorted(os.fspath(file) for file in files):
        lines = Lines(file)
        span = reader.file(lines)
        if span is not None:
            spans.append((*span, file))
        if (twin := read_files.setdefault(lines.digest, lines)) is not lines:
            reader.trouble.add(Problem("AKF-F257", f"the file holds the same bytes as {printable(twin.file)}", file))
    if layout.clock == "relative":
        _no_overlap(sorted(spans), layout, reader.trouble)
    reader.trouble.refuse()
    requests = reader.requests
    if not len(requests):
        failed = f" but {reader.failures} failed ones" if reader.failures else ""
        raise InvalidError.of("AKF-F259", f"the trace holds no request{failed}", file=os.fspath(files[0]))
    if requests.chats:
        reader.chats.check(reader.trouble)
        reader.trouble.refuse()
        requests.sessions = reader.chats.roots(requests.chats)
    named = [{"name": printable(lines.name)[:_LONGEST_NAME], "digest": digest} for digest, lines in read_files.items()]
    named.sort(key=lambda entry: (entry["name"], entry["digest"]))
    return Trace(layout, requests.ordered(), reader.failures, reader.out_of_order, named)


def _no_overlap(spans: list[tuple[int, int, str]], layout: Layout, trouble: Trouble) -> None:
    for (_, last, earlier), (first, _, later) in pairwise(spans):
        if first < last:
            message = (
                f"the file overlaps in time with {printable(earlier)}; files of the layout {layout.name} count time, "
                "blocks and chats from their own start, so these are two traces"
            )
            trouble.add(Problem("AKF-F257", message, later, hint="ingest them one at a time"))


def _cells(line: bytes) -> list[str]:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise Bad("AKF-F252", f"byte 0x{line[error.start]:02x} is not valid UTF-8 here") from None
    if '"' not in text:
        return text.split(",")
    try:
        return next(csv.reader([text], strict=True))
    except csv.Error as error:
        raise Bad("AKF-F252", f"the line is no CSV: {error}") from None


def _no_row(value: Any, line: bytes) -> Bad:
    if not line:
        return Bad("AKF-F252", "the line is empty", "one JSON object")
    if isinstance(value, ValueError):
        return Bad("AKF-F252", f"the line is no JSON: {show(str(value))}", "one JSON object")
    return Bad("AKF-F252", f"the line is {show(value)}", "one JSON object", show(value))


def _kind(parts: list[Any]) -> str:
    if not all(type(part) is str and part for part in parts):
        raise Bad("AKF-F252", "the kind of the request is no text", "text", show(parts[0]))
    name = ", ".join(parts)
    if len(name) > _LONGEST_KIND:
        raise Bad("AKF-F252", f"the kind of the request is longer than {_LONGEST_KIND} characters", _LONGEST_KIND)
    return printable(name)
