"""`vllm bench serve` and `sglang.bench_serving`: flat objects, with arrays of one entry per request where asked for.

Invariants:
1. A failed request keeps its entry in every array (TTFT 0.0, no tokens, an error text); none of its times is used.
2. The arrays have one length. Which requests failed is known only where the error texts give as many failures as the
   counts do; else no figure is recomputed and a remark says so.
3. TPOT is (end to end - TTFT) / (tokens - 1) of requests with more than one token; ITL pools the gaps between chunks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from akf.traffic.bench.draft import Draft
from akf.traffic.bench.summary import trimmed
from akf.traffic.bench.units import many
from akf.traffic.foreign import Foreign

_FIGURE = re.compile(r"(mean|median|std|min|max|p[0-9]{1,2}(?:\.[0-9]{1,6})?)_(.+)_(ns|us|ms|s)")
_ARRAYS = ("errors", "input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times")
_KNOWN_TEXT = {
    "date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "request_rate", "ramp_up_strategy",
}  # fmt: skip
_RETOKENIZED = {"sglang-oai", "sglang-oai-chat"}


def read_vllm(draft: Draft, where: Foreign) -> None:
    """Read one result of `vllm bench serve`."""
    if isinstance(where.value.get("num_prompts"), str):
        draft.remark("identity-replaced", "num_prompts is a text: --metadata has replaced what the tool wrote")
    extra = sum(isinstance(value, str) and key not in _KNOWN_TEXT for key, value in where.value.items())
    if extra:
        draft.remark("metadata", f"further texts of --metadata, not kept: {extra}")
    _read(draft, where)


def read_sglang(draft: Draft, where: Foreign) -> None:
    """Read one result of `sglang.bench_serving`."""
    slos = where.value.get("goodput_slos_ms")
    if isinstance(slos, dict):
        for name, value in slos.items():
            draft.objective(where, ("goodput_slos_ms", name), value)
        draft.attainment_over = "sent"
    _read(draft, where)


def _read(draft: Draft, where: Foreign) -> None:
    draft.read_identity(where)
    draft.read_fields(where)
    for needed in ("duration", "completed"):
        draft.need(where, (needed,))
    _load(draft, where)
    lists = _arrays(draft, where)
    if not draft.problems:
        _requests(draft, where, lists)
    if not draft.problems:
        _figures(draft, where)


def _load(draft: Draft, where: Foreign) -> None:
    rate = where.value.get("request_rate")
    limit = draft.count(where, ("max_concurrency",)) or None
    draft.load["concurrency"] = limit
    if rate == "trace":
        draft.load["process"] = "trace"
    elif rate in ("inf", Decimal("Infinity")):
        draft.load["process"] = "closed_loop" if limit else "all_at_once"
    elif rate is not None:
        draft.load |= {"process": "rate", "rate_per_s": draft.rate(where, ("request_rate",))}
    if where.value.get("ramp_up_strategy") is not None:
        draft.load["process"] = "ramp"
    if (burstiness := draft.rate(where, ("burstiness",))) is not None:
        draft.load["burstiness"] = burstiness


def _arrays(draft: Draft, where: Foreign) -> dict[str, list[Any]]:
    lists: dict[str, list[Any]] = {}
    for name in _ARRAYS:
        value = where.value.get(name)
        if value is None:
            continue
        if not isinstance(value, list):
            draft.fault(where, (name,), f"{name} is no array", expected="one entry per request")
            continue
        lists[name] = value
    lengths = {name: len(value) for name, value in lists.items()}
    if len(set(lengths.values())) > 1:
        first, size = next(iter(lengths.items()))
        for name, length in lengths.items():
            if length != size:
                text = f"{name} has {length} entries, {first} has {size}"
                draft.fault(where, (name,), text, "AKF-F204", expected=size, found=length)
    return lists


def _requests(draft: Draft, where: Foreign, lists: dict[str, list[Any]]) -> None:
    fields = draft.fields
    completed: int = fields["completed"]
    size = len(next(iter(lists.values()))) if lists else None
    if "failed" in fields:
        draft.failed_from = "printed"
    elif size is not None:
        draft.failed_from = "errors" if "errors" in lists else "difference"
        fields["failed"] = size - completed
    failed = fields.get("failed")
    if size is not None and failed is not None and (completed + failed != size or failed < 0):
        text = f"{completed} requests completed and {failed} failed, but the arrays have {size} entries"
        draft.fault(where, ("completed",), text, "AKF-F205", expected=size, found=completed + failed)
        return
    if failed is not None:
        fields["sent"] = completed + failed
    if size is None:
        return
    good = _good(draft, lists, size, failed or 0)
    if good is not None:
        _detail(draft, where, lists, good)


def _good(draft: Draft, lists: dict[str, list[Any]], size: int, failed: int) -> list[int] | None:
    """Which requests completed, or None when the arrays do not tell."""
    if not failed:
        return list(range(size))
    good = [index for index, error in enumerate(lists.get("errors", [])) if error in ("", None)]
    if len(good) == size - failed:
        return good
    why = f"{size - len(good)} of them have an error text" if "errors" in lists else "the file holds no error texts"
    draft.remark("failures-not-separable", f"{failed} requests failed and {why}: nothing is recomputed")
    return None


def _detail(draft: Draft, where: Foreign, lists: dict[str, list[Any]], good: list[int]) -> None:
    ttfts, latencies = (_times(draft, where, lists, key, good) for key in ("ttfts", "latencies"))
    if ttfts:
        draft.detail["ttft"] = list(ttfts.values())
    if latencies:
        draft.detail["e2e"] = list(latencies.values())
    gaps: list[int] = []
    for index in good if "itls" in lists else []:
        inner = lists["itls"][index]
        if not isinstance(inner, list):
            draft.fault(where, ("itls", index), "the gaps of a request are no array", expected="an array of seconds")
            continue
        if draft.problems:
            return
        gaps += _list(draft, where, ("itls", str(index)), inner)
    if gaps:
        draft.detail["itl"] = gaps
    if ttfts and latencies and "output_lens" in lists:
        draft.detail["tpot"] = _tpots(draft, where, ttfts, latencies)


def _list(draft: Draft, where: Foreign, path: tuple[str, ...], values: list[Any]) -> list[int]:
    """An array of seconds; what is none is a problem at its place."""
    found = many(values, "s")
    if found is not None:
        return found
    times = (draft.time(where, (*path, str(place)), value, "s") for place, value in enumerate(values))
    return [time for time in times if time is not None]


def _times(draft: Draft, where: Foreign, lists: dict[str, list[Any]], key: str, good: list[int]) -> dict[int, int]:
    """Times of the requests that completed, by their place."""
    if key not in lists:
        return {}
    found = many([lists[key][index] for index in good], "s")
    if found is not None:
        return dict(zip(good, found, strict=True))
    times = {index: draft.time(where, (key, str(index)), lists[key][index], "s") for index in good}
    return {index: time for index, time in times.items() if time is not None}


def _tpots(draft: Draft, where: Foreign, ttfts: dict[int, int], latencies: dict[int, int]) -> list[int]:
    found = []
    for index, ttft in ttfts.items():
        tokens = draft.count(where, ("output_lens", str(index)))
        if tokens is None or index not in latencies:
            break
        if latencies[index] < ttft:
            text = f"request {index} ended {ttft - latencies[index]} ns before its first token"
            draft.fault(where, ("latencies", str(index)), text)
            break
        if tokens > 1:
            found.append(round(Fraction(latencies[index] - ttft, tokens - 1)))
    return found


def _figures(draft: Draft, where: Foreign) -> None:
    tool = draft.tool
    value, completed = where.value, draft.fields["completed"]
    retokenized = tool == "sglang" and bool(value.get("accept_length")) and value.get("backend") in _RETOKENIZED
    known = {"ttft": completed, "e2e": completed, "e2e_latency": completed, "e2el": completed}
    for key, number in value.items():
        match = _FIGURE.fullmatch(key)
        if match is None or match[2] not in draft.table["metrics"]:
            continue
        name = match[2]
        more: dict[str, Any] = {"samples": known.get(name)}
        if name == "tpot":
            more["at_most"] = completed
        elif name == "itl":
            more["at_most"] = draft.fields.get("output_tokens")
            more |= {"concept": "itl_per_token"} if retokenized else {}
        statistic = "p50" if match[1] == "median" else match[1]
        draft.print(name, trimmed(statistic), draft.time(where, (key,), number, match[3]), **more)
    if retokenized:
        draft.remark("itl-per-token", "with speculative decoding sglang spreads each gap over the tokens of its chunk")


def read_latency(draft: Draft, where: Foreign) -> None:
    """Read `vllm bench latency`: times of whole offline batches, in seconds."""
    draft.read_identity(where)
    values = where.value["latencies"]
    if not isinstance(values, list) or not values:
        draft.fault(where, ("latencies",), "latencies is no array of times", expected="an array of seconds")
        return
    draft.fields["completed"] = len(values)
    draft.detail["batch_e2e"] = _list(draft, where, ("latencies",), values)
    draft.print("latency", "mean", draft.time(where, ("avg_latency",), where.value["avg_latency"], "s"))
    shares = where.value["percentiles"]
    for key, number in shares.items() if isinstance(shares, dict) else ():
        if _FIGURE.fullmatch(f"p{key}_latency_s"):
            draft.print("latency", trimmed(f"p{key}"), draft.time(where, ("percentiles", key), number, "s"))
    draft.remark("offline", "times of whole batches without a server; the file does not say their size")


def read_throughput(draft: Draft, where: Foreign) -> None:
    """Read `vllm bench throughput`: rates of an offline run."""
    draft.read_identity(where)
    draft.read_fields(where)
    draft.load["process"] = "all_at_once"
    draft.need(where, ("num_requests",))
    draft.remark("offline", "an offline run without a server; a failed request would have ended it")


READERS: dict[str, Callable[[Draft, Foreign], None]] = {
    "vllm": read_vllm, "sglang": read_sglang, "vllm_latency": read_latency, "vllm_throughput": read_throughput,
}  # fmt: skip
