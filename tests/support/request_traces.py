"""Traces of requests, written in every layout from one list of plain requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.documents import load
from akf.contracts.loader import Document, parse
from akf.contracts.shipped import shipped
from akf.store.draft import render
from akf.traffic.traces.layout_options import stated
from akf.traffic.traces.layouts import Layout
from akf.traffic.traces.reader import Trace, read
from akf.traffic.traces.recognise import recognised
from akf.traffic.traces.workload import Made, Options, draft_of, make

AZURE_HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
BURST_HEADER = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
BURST3_HEADER = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type"


class Request(NamedTuple):
    """One request; the time in milliseconds."""

    ms: int
    input: int
    output: int
    blocks: tuple[int, ...] = ()
    chat: int = 0
    parent: int = -1
    kind: str = "text"


def blocks(tokens: int, size: int, first: int = 0) -> list[int]:
    """As many ids as the prompt has blocks."""
    return list(range(first, first + -(-tokens // size)))


def bailian(request: Request) -> str:
    """A line of a Bailian trace: seconds with a point, blocks of 16 tokens."""
    return json.dumps({
        "chat_id": request.chat, "parent_chat_id": request.parent, "timestamp": request.ms / 1000,
        "input_length": request.input, "output_length": request.output, "type": request.kind,
        "turn": 1 if request.parent == -1 else 2, "hash_ids": list(request.blocks) or blocks(request.input, 16),
    })  # fmt: skip


def mooncake(request: Request) -> str:
    """A line of a Mooncake trace: whole milliseconds, blocks of 512 tokens."""
    return json.dumps({
        "timestamp": request.ms, "input_length": request.input, "output_length": request.output,
        "hash_ids": list(request.blocks) or blocks(request.input, 512),
    })  # fmt: skip


def azure(request: Request) -> str:
    """A row of an Azure trace of 2023: seven decimals, no zone."""
    minutes, ms = divmod(request.ms, 60_000)
    hour, minute = divmod(15 * 60 + minutes, 60)
    second = f"{ms // 1000:02d}.{ms % 1000:03d}0000"
    return f"2023-11-16 {hour:02d}:{minute:02d}:{second},{request.input},{request.output}"


def burstgpt(request: Request) -> str:
    """A row of BurstGPT."""
    total = request.input + request.output
    return f"{request.ms / 1000},ChatGPT,{request.input},{request.output},{total},Conversation log"


def text(path: Path, lines: Iterable[str], end: str = "\n") -> Path:
    """Write lines."""
    path.write_bytes("".join(f"{line}{end}" for line in lines).encode())
    return path


def draft(stages: Sequence[dict[str, Any]] | None = None, **changes: Any) -> Document:
    """The shipped draft, with other stages or fields."""
    document = load(shipped("suites") / "qwen3-8b-a3-bf16" / "workload.json", "Workload")
    value = {**document.value, **changes}
    if stages is not None:
        value["stages"] = list(stages)
    return parse(render(value), "draft.json")


def stage(name: str, given: tuple[int, int], answer: tuple[int, int], **more: Any) -> dict[str, Any]:
    """A stage with these bounds."""
    bounds = {
        "input_min_tokens": given[0], "input_max_tokens": given[1],
        "output_min_tokens": answer[0], "output_max_tokens": answer[1],
    }  # fmt: skip
    rest = {"concurrency": 16, "arrivals": {"process": "closed_loop"}, "weight_ratio": None, "shapes": None}
    return {"id": name, "bounds": bounds, **rest, **more}


EVERYTHING = [stage("mixed", (0, 1 << 24), (0, 1 << 24))]
"""One stage that takes every request."""


def trace(*files: Path, layout: Layout | None = None) -> Trace:
    """Read files in their layout."""
    return read(files, layout or recognised(files))


def timed(sec_multiplier: str, block_size: int | None = None, labels: Sequence[str] = ()) -> Layout:
    """The layout `timed_trace` as the options state it."""
    found = stated("timed_trace", labels, sec_multiplier, block_size)
    assert found is not None
    return found


def made(onto: Document, *files: Path, layout: Layout | None = None, **options: Any) -> Made:
    """The Workload of a draft and a trace."""
    chosen = Options(**options)
    return make(draft_of(onto, chosen), trace(*files, layout=layout), chosen, onto.file)
