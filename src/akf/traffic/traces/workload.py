"""A draft Workload and a trace to a new Workload and its request list.

Invariants:
- The draft gives model, callsites, stages and their bounds; the trace gives weights, arrivals, lengths, sessions and
  prefix reuse. Neither says what the other does: concurrency stays declared, sizes of steps come from Captures.
- Every figure is of the requests inside the stages, which are the ones on the request list; with `--subset` the figures
  stay those of the whole trace, and the sample says how far it is from them.
- The data class is never weaker than the draft's, and `internal` unless somebody says what the trace is.
- Tokens of another tokenizer are marked: only a layout whose publication names the tokenizer, or the user, can say that
  they are the model's.
- No name of a chat, no absolute time, no folder gets into either.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple

from akf.contracts.limits import MAX_SAFE_INTEGER
from akf.contracts.loader import Document, parse
from akf.contracts.problems import InvalidError
from akf.contracts.rules.workload import bounds_problems, meaning_problems
from akf.contracts.schemas import validate
from akf.store.draft import copy_of, render
from akf.traffic.traces.figures import arrivals, partial_prompts, reuse, reused_in_session, sessions, spread
from akf.traffic.traces.layouts import Layout
from akf.traffic.traces.reader import Trace
from akf.traffic.traces.request_list import RequestList
from akf.traffic.traces.requests import Requests
from akf.traffic.traces.sizes import with_sizes
from akf.traffic.traces.stages import OUTSIDE, cut, with_bounds
from akf.traffic.traces.subset import best_window, described

_STRICTER = ("public", "internal", "confidential")


class Options(NamedTuple):
    """What the user says beside the files."""

    bounds: Sequence[str] = ()
    tokenizer: str | None = None
    subset: int | None = None
    data_class: str = "internal"
    captures: Sequence[Document] = ()


class Made(NamedTuple):
    """A Workload as it is written, its request list, and the draft's stages that it does not have.

    A stage that no request falls into, and that no Capture gave sizes, could never be filled.
    """

    workload: dict[str, Any]
    data: bytes
    requests: RequestList
    left_out: Sequence[str]


def draft_of(draft: Document, options: Options) -> dict[str, Any]:
    """The draft with the bounds and sizes that the options give; all that can be refused before the trace is read.

    Raises:
        InvalidError: Bounds overlap, or a Capture does not fit.
        UsageError: A bound is malformed.
    """
    value = copy_of(draft)
    with_bounds(value["stages"], options.bounds)
    problems = bounds_problems(Document(value, draft.file, draft.source))
    if problems:
        raise InvalidError(problems)
    with_sizes(value["stages"], value["callsites"], options.captures)
    return value


def make(value: dict[str, Any], trace: Trace, options: Options, file: str) -> Made:
    """Fill a draft from a trace.

    Args:
        value: the draft, as `draft_of` gives it; it is changed.
        trace: the trace.
        options: what the user says.
        file: the draft's name in messages.

    Raises:
        InvalidError: No request is inside a stage, or the trace is too long.
        UsageError: The subset is larger than the trace.
    """
    stages, layout = value["stages"], trace.layout
    places = cut(trace.requests, stages)
    outside = places.count(OUTSIDE)
    if outside == len(places):
        raise InvalidError.of(
            "AKF-F259",
            f"none of the {outside} requests is inside the bounds of a stage",
            file=file,
            pointer="/stages",
            found={"input_tokens": _range(trace.requests.inputs), "output_tokens": _range(trace.requests.outputs)},
            hint="state bounds that the trace has: --bounds STAGE=MIN:MAX,MIN:MAX",
        )
    inside = array("q", (index for index, place in enumerate(places) if place != OUTSIDE))
    requests = (trace.requests.select(inside) if outside else trace.requests).numbered()
    stage_of = array("b", map(places.__getitem__, inside))
    span = requests.times[-1] - requests.times[0]
    if span > MAX_SAFE_INTEGER:
        message = f"the trace spans {span} ns, which is more than {MAX_SAFE_INTEGER} (104 days)"
        raise InvalidError.of("AKF-F254", message, file=file, hint="ingest a shorter part of it")
    value["source"] = _source(value["source"], trace, options)
    value["data_class"] = max(value["data_class"], options.data_class, key=_STRICTER.index)
    _fill_stages(stages, stage_of, requests)
    left_out = [stage["id"] for stage in stages if not stage["requests"] and not stage["shapes"]]
    value["traffic"] = _traffic(trace, requests, outside, span)
    prefix = _prefix(layout, requests)
    value.pop("prefix", None)
    if prefix is not None:
        value["prefix"] = prefix
    listed = requests
    value.pop("sample", None)
    if options.subset is not None:
        names = [stage["id"] for stage in stages]
        window = best_window(requests, stage_of, names, options.subset)
        value["sample"] = described(window, requests)
        listed = requests.select(range(window.start, window.end)).numbered()
    value["stages"] = [stage for stage in stages if stage["id"] not in left_out]
    request_list = RequestList(listed)
    value["digest_of_requests"] = request_list.digest()
    data = render(value)
    document = parse(data, f"{file}, filled")
    problems = validate(document, "Workload") or meaning_problems(document)
    if problems:
        raise InvalidError(problems)
    return Made(value, data, request_list, left_out)


def summed(trace: Trace) -> dict[str, Any]:
    """The figures of a trace by itself, where no Workload cuts it into stages."""
    requests = trace.requests.numbered()
    return _traffic(trace, requests, 0, requests.times[-1] - requests.times[0])


def _source(draft: dict[str, Any], trace: Trace, options: Options) -> dict[str, Any]:
    layout = trace.layout
    total = len(trace.requests)
    tokenizer = options.tokenizer or layout.tokenizer or None
    source: dict[str, Any] = {
        "kind": "trace",
        "description": f"Requests in the layout of the {layout.title}: {total} answered, {trace.failures} failed",
        "files": trace.files,
        "layout": layout.name,
    }
    if layout.unit_ns:
        source["time_unit_ns"] = layout.unit_ns
    if tokenizer is not None:
        source["tokenizer"] = tokenizer
    matches = _matches(_served(draft), layout, options.tokenizer)
    if matches is not None:
        source["tokenizer_matches"] = matches
    return source


def _served(draft: dict[str, Any]) -> str | None:
    """The served model's tokenizer; a draft that was itself made of a trace names that of the trace."""
    known = draft["kind"] != "trace" or draft.get("tokenizer_matches")
    return draft.get("tokenizer") if known else None


def _matches(served: str | None, layout: Layout, stated: str | None) -> bool | None:
    """Whether the tokens are the served model's; None when nobody says."""
    if stated is not None:
        return None if served is None else stated == served
    if layout.foreign:
        return False
    if not layout.tokenizer or served is None:
        return None
    return served in layout.same_as


def _fill_stages(stages: list[dict[str, Any]], stage_of: array[int], requests: Requests) -> None:
    for place, stage in enumerate(stages):
        times = array("q", compress(requests.times, map(place.__eq__, stage_of)))
        stage["concurrency_source"] = stage.get("concurrency_source") or "declared"
        stage["requests"] = len(times)
        stage["weight_ratio"] = len(times) / len(requests)
        stage["arrivals"] = arrivals(times)


def _traffic(trace: Trace, requests: Requests, outside: int, span: int) -> dict[str, Any]:
    total = len(requests)
    found = {
        "requests": total,
        "outside": outside,
        "outside_ratio": outside / (outside + total),
        "failures": trace.failures,
        "span_ns": span,
        "arrivals": arrivals(requests.times),
        "input": spread(Counter(requests.inputs)),
        "output": spread(Counter(requests.outputs)),
    }
    groups = sessions(requests.sessions)
    if groups is not None:
        found["sessions"] = groups
    if requests.kinds:
        counts = Counter(requests.kind_names[kind] for kind in requests.kinds)
        found["kinds"] = [{"name": name, "requests": number} for name, number in sorted(counts.items())]
    return found


def _prefix(layout: Layout, requests: Requests) -> dict[str, Any] | None:
    if not len(requests.blocks):
        return None
    found = reuse(requests)
    prefix = {
        "block_size_tokens": layout.block_size_tokens,
        "reuse_ratio": found.reused / found.blocks,
        "leading_ratio": found.leading / found.blocks,
        "prompt_blocks": found.blocks,
        "reused_blocks": found.reused,
        "partial_prompts": partial_prompts(requests, layout.block_size_tokens),
    }
    if requests.sessions:
        prefix["session_ratio"] = reused_in_session(requests) / found.blocks
    return prefix


def _range(column: Any) -> list[int]:
    return [min(column), max(column)]
