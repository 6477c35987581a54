"""Results as benchmark clients write them, with invented numbers: same keys, same quirks.

A run is a list of requests `(ttft, gaps, failed)`, all in nanoseconds, so that a test knows every figure exactly; the
files hold seconds or milliseconds as the tools print them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from akf.traffic.bench import ingest

PROMPT = "a secret question of alice"
TEXTS = (PROMPT, "http://10.1.2.3:8000", "/srv/alice/models", "alice@host-7")


class Request(NamedTuple):
    """One request; its end to end time is the TTFT and all gaps."""

    ttft_ns: int
    gaps_ns: tuple[int, ...]
    failed: bool = False

    @property
    def e2e_ns(self) -> int:
        return self.ttft_ns + sum(self.gaps_ns)

    @property
    def tokens(self) -> int:
        return len(self.gaps_ns) + 1


def steady(count: int = 24, tokens: int = 4) -> list[Request]:
    """Requests that differ a little from one another."""
    return [
        Request(
            40_000_000 + 1_000_000 * (7 * i % count), tuple(8_000_000 + 10_000 * (i + j) for j in range(tokens - 1))
        )
        for i in range(count)
    ]


def with_failures(requests: Sequence[Request], places: Sequence[int]) -> list[Request]:
    """The same, with failed requests in between."""
    mixed = list(requests)
    for place in sorted(places):
        mixed.insert(place, Request(0, (), failed=True))
    return mixed


def decimal(ns: int, unit: str) -> float:
    """As a tool prints it: a binary float."""
    return float(Decimal(ns).scaleb({"s": -9, "ms": -6, "us": -3}[unit]))


def linear(values: Sequence[float], percent: float) -> float:
    """numpy's default quantile."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return float((sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5)


def times(requests: Sequence[Request]) -> dict[str, list[float]]:
    """Times in milliseconds by concept, of what completed."""
    good = [request for request in requests if not request.failed]
    return {
        "ttft": [request.ttft_ns / 1e6 for request in good],
        "tpot": [sum(r.gaps_ns) / len(r.gaps_ns) / 1e6 for r in good if r.gaps_ns],
        "itl": [gap / 1e6 for request in good for gap in request.gaps_ns],
        "e2e": [request.e2e_ns / 1e6 for request in good],
    }


def _client(requests: Sequence[Request], names: dict[str, str], percents: Sequence[float]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for concept, name in names.items():
        values = times(requests)[concept] or [0.0]
        figures[f"mean_{name}_ms"] = sum(values) / len(values)
        figures[f"median_{name}_ms"] = linear(values, 50)
        figures[f"std_{name}_ms"] = spread(values)
        figures |= {f"p{percent:g}_{name}_ms": linear(values, percent) for percent in percents}
    return figures


def _detail(requests: Sequence[Request]) -> dict[str, Any]:
    return {
        "input_lens": [64] * len(requests),
        "output_lens": [0 if r.failed else r.tokens for r in requests],
        "ttfts": [decimal(r.ttft_ns, "s") for r in requests],
        "itls": [[decimal(gap, "s") for gap in r.gaps_ns] for r in requests],
        "generated_texts": [PROMPT] * len(requests),
        "errors": ["Service Unavailable at http://10.1.2.3:8000" if r.failed else "" for r in requests],
    }


def vllm(requests: Sequence[Request], *, detailed: bool = True, **changes: Any) -> dict[str, Any]:
    """`vllm bench serve`; a change to `...` leaves the key out."""
    good = [r for r in requests if not r.failed]
    tokens = sum(r.tokens for r in good)
    value: dict[str, Any] = {
        "date": "20261130-120000", "endpoint_type": "vllm", "backend": "vllm", "label": None,
        "model_id": "Qwen/Qwen3-8B", "tokenizer_id": "/srv/alice/models/qwen3", "num_prompts": len(requests),
        "request_rate": "inf", "burstiness": 1.0, "max_concurrency": 4, "duration": 2.5, "completed": len(good),
        "failed": len(requests) - len(good), "total_input_tokens": 64 * len(good), "total_output_tokens": tokens,
        "request_throughput": len(good) / 2.5, "request_goodput": None, "output_throughput": tokens / 2.5,
        "total_token_throughput": (tokens + 64 * len(good)) / 2.5,
    }  # fmt: skip
    if detailed:
        value |= _detail(requests)
        value["start_times"] = [1249.482933161 + index for index in range(len(requests))]
    value["latencies"] = [decimal(r.e2e_ns, "s") for r in requests]
    names = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2el"}
    return _changed(value | _client(requests, names, (50, 90, 99, 99.9)), changes)


def sglang(requests: Sequence[Request], *, detailed: bool = True, **changes: Any) -> dict[str, Any]:
    """`sglang.bench_serving`: no `failed`, no latencies, infinity as a bare word."""
    good = [r for r in requests if not r.failed]
    tokens = sum(r.tokens for r in good)
    value: dict[str, Any] = {
        "tag": None, "backend": "sglang", "dataset_name": "random", "request_rate": float("inf"), "max_concurrency": 4,
        "server_info": {"model_path": "/srv/alice/models/Qwen3-8B", "host": "10.1.2.3", "version": "0.5.23"},
        "duration": 2.5, "completed": len(good), "total_input_tokens": 64 * len(good), "total_output_tokens": tokens,
        "request_throughput": len(good) / 2.5, "input_throughput": 64 * len(good) / 2.5,
        "output_throughput": tokens / 2.5, "total_throughput": (tokens + 64 * len(good)) / 2.5, "accept_length": None,
    }  # fmt: skip
    if detailed:
        value |= _detail(requests)
    names = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2e_latency"}
    return _changed(value | _client(requests, names, (90, 95, 99)), changes)


def evalscope(folder: Path, requests: Sequence[Request], **changes: Any) -> Path:
    """A folder of evalscope perf, with its database beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    good = [r for r in requests if not r.failed]
    found = times(requests)
    rows = {"Latency (s)": [v / 1000 for v in found["e2e"]], "TTFT (ms)": found["ttft"], "TPOT (ms)": found["tpot"]}
    rows |= {"ITL (ms)": found["itl"], "Output tokens": [float(r.tokens) for r in good]}
    summary = {
        "Test Duration (s)": 2.5, "Concurrency": 4, "Request Rate (req/s)": -1.0, "Total Requests": len(requests),
        "Success Requests": len(good), "Failed Requests": len(requests) - len(good), "Stream Requests": len(good),
        "Non-Stream Requests": 0, "Req Throughput (req/s)": round(len(good) / 2.5, 4),
        "Avg Latency (s)": _mean(rows["Latency (s)"]), "Avg Input Tokens": 64.0,
        "Output Throughput (tok/s)": round(sum(r.tokens for r in good) / 2.5, 4), "Input Throughput (tok/s)": 77777.0,
        "Avg TTFT (ms)": _mean(found["ttft"]), "Avg TPOT (ms)": _mean(found["tpot"]),
        "Avg ITL (ms)": _mean(found["itl"]),
        "Avg Output Tokens": _mean(rows["Output tokens"]),
    }  # fmt: skip
    _dump(folder / "benchmark_summary.json", _changed(summary, changes))
    shares = {"min": 0, **{f"{p}%": p for p in (1, 5, 10, 25, 50, 75, 90, 95, 99)}, "max": 100}
    table = [
        {"Percentiles": label, **{name: round(_nearest(values, share), 4) for name, values in rows.items()}}
        for label, share in shares.items()
    ]
    _dump(folder / "benchmark_percentile.json", table)
    arguments = {
        "model": "Qwen/Qwen3-8B", "model_id": "Qwen3-8B", "api": "openai", "tokenizer_path": "./tok", "number": 24,
        "parallel": 4, "url": TEXTS[1], "total_timeout": 21600, "dataset": "random", "prompt": PROMPT,
    }  # fmt: skip
    _dump(folder / "benchmark_args.json", arguments)
    (folder / "benchmark_data.db").write_bytes(b"SQLite format 3\x00\x80\x04\x95")
    _dump(folder / "workload_throughput.json", {"overall": 1.0})
    return folder


def aiperf(folder: Path, requests: Sequence[Request], *, records: bool = True, **changes: Any) -> Path:
    """A folder of aiperf; the lines begin with a warm-up that does not count."""
    folder.mkdir(parents=True, exist_ok=True)
    good = [r for r in requests if not r.failed]
    found = times(requests)
    names = {"ttft": "time_to_first_token", "tpot": "inter_token_latency", "itl": "inter_chunk_latency"}
    names["e2e"] = "request_latency"
    summary: dict[str, Any] = {
        "schema_version": "1.4", "aiperf_version": "0.13.0",
        "request_throughput": {"unit": "requests/sec", "avg": len(good) / 2.5},
        "request_count": {"unit": "requests", "avg": float(len(good))},
        "completed_request_count": {"unit": "requests", "avg": float(len(requests))},
        "benchmark_duration": {"unit": "sec", "avg": 2.5}, "total_isl": {"unit": "tokens", "avg": 64.0 * len(good)},
        "total_osl": {"unit": "tokens", "avg": float(sum(r.tokens for r in good))},
        "goodput": {"unit": "requests/sec", "avg": 1.0}, "good_request_fraction": {"unit": "ratio", "avg": 0.1},
        "input_config": {
            "models": {"items": [{"name": "Qwen/Qwen3-8B"}]}, "endpoint": {"urls": [TEXTS[1]], "type": "chat"},
            "phases": [{"name": "profiling", "kind": "profiling", "type": "concurrency", "concurrency": 4}],
            "slos": {"time_to_first_token": 50.0}, "artifacts": {"dir": TEXTS[2]}, "tokenizer": {"name": "/x/y/tok"},
        },
        "run_info": {"cli_command": PROMPT}, "was_cancelled": False,
    }  # fmt: skip
    if len(good) < len(requests):
        summary["error_request_count"] = {"unit": "requests", "avg": float(len(requests) - len(good))}
    for concept, name in names.items():
        values = found[concept]
        summary[name] = {
            "unit": "ms", "avg": sum(values) / len(values), "min": min(values), "max": max(values),
            "std": spread(values), "count": len(values), **{f"p{p}": linear(values, p) for p in (50, 90, 99)},
        }  # fmt: skip
    summary["adj_time_to_first_token"] = {"unit": "ms", "p50": max(found["ttft"])}
    _dump(folder / "profile_export_aiperf.json", _changed(summary, changes))
    if records:
        lines = [_record(Request(1, (1, 1)), "warmup"), *(_record(request, "profiling") for request in requests)]
        (folder / "profile_export.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def _record(request: Request, phase: str) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    if not request.failed:
        metrics = {
            "time_to_first_token": {"value": request.ttft_ns / 1e6, "unit": "ms"},
            "request_latency": {"value": request.e2e_ns, "unit": "ns"},
            "inter_token_latency": {"value": sum(request.gaps_ns) / len(request.gaps_ns) / 1e3, "unit": "us"},
            "inter_chunk_latency": {"value": [gap / 1e6 for gap in request.gaps_ns], "unit": "ms"},
        }
    metadata = {"x_request_id": "1", "request_start_ns": 1796050000000000000, "benchmark_phase": phase}
    error = {"code": 503, "message": TEXTS[3]} if request.failed else None
    return {"metadata": metadata, "metrics": metrics, "error": error}


def guidellm(requests: Sequence[Request], *, detailed: bool = True, loads: int = 1) -> dict[str, Any]:
    """A report of guidellm; its two times per token weigh requests by tokens."""
    good = [r for r in requests if not r.failed]
    found = times(requests)
    per_token = [r.e2e_ns / r.tokens / 1e6 for r in good]
    seconds = [value / 1000 for value in found["e2e"]]
    totals = {
        "successful": len(good),
        "errored": len(requests) - len(good),
        "incomplete": 1,
        "total": len(requests) + 1,
    }
    metrics = {
        "request_totals": totals,
        "requests_per_second": {"successful": {"mean": len(good) / 2.5}},
        "time_to_first_token_ms": {"successful": _distribution(found["ttft"], len(good))},
        "inter_token_latency_ms": {"successful": _distribution(found["tpot"], sum(r.tokens - 1 for r in good))},
        "time_per_output_token_ms": {"successful": _distribution(per_token, sum(r.tokens for r in good))},
        "request_latency": {"successful": _distribution(seconds, len(good))},
        "output_token_count": {"successful": {"mean": _mean([float(r.tokens) for r in good])}},
        "prompt_token_count": {"successful": {"mean": 64.0}},
        "slo_attainment": 0.75,
    }
    rows = [
        {
            "request_args": PROMPT, "output": PROMPT, "output_tokens": r.tokens, "request_latency": r.e2e_ns / 1e9,
            "time_to_first_token_ms": r.ttft_ns / 1e6,
            "inter_token_latency_ms": sum(r.gaps_ns) / len(r.gaps_ns) / 1e6 if r.gaps_ns else None,
            "time_per_output_token_ms": r.e2e_ns / r.tokens / 1e6,
        }
        for r in good
    ]  # fmt: skip
    one = {
        "config": {
            "strategy": {"type_": "concurrent", "streams": 4}, "slo": {"ttft_ms": 50.0, "tpot_ms": None},
            "backend": {"model": "Qwen/Qwen3-8B", "target": TEXTS[1], "type_": "openai_http"},
        },
        "metrics": metrics, "duration": 2.5,
        "requests": {"successful": rows if detailed else [], "errored": [], "incomplete": []},
    }  # fmt: skip
    metadata = {"version": 2, "guidellm_version": "0.8.1", "platform": "Linux-of-alice"}
    return {"metadata": metadata, "config": {}, "benchmarks": [one] * loads, "conclusions": []}


def _distribution(values: Sequence[float], count: int) -> dict[str, Any]:
    names = {
        "p001": 0.1,
        "p01": 1,
        "p05": 5,
        "p10": 10,
        "p25": 25,
        "p50": 50,
        "p75": 75,
        "p90": 90,
        "p95": 95,
        "p99": 99,
    }
    return {
        "mean": sum(values) / len(values), "median": _nearest(values, 50), "std_dev": spread(values), "count": count,
        "min": min(values), "max": max(values), "percentiles": {key: _nearest(values, p) for key, p in names.items()},
    }  # fmt: skip


def aisbench(
    folder: Path, requests: Sequence[Request], stages: Sequence[str] = ("total",), changes: Any = None
) -> Path:
    """The two files of AISBench, units as suffixes."""
    folder.mkdir(parents=True, exist_ok=True)
    good = [r for r in requests if not r.failed]
    figures: dict[str, Any] = {
        "Benchmark Duration": "2500.0 ms", "Total Requests": len(requests), "Success Requests": len(good),
        "Failed Requests": len(requests) - len(good), "Max Concurrency": 4,
        "Request Throughput": f"{len(good) / 2.5} req/s", "Total Input Tokens": 64 * len(good),
        "Total Generated Tokens": sum(r.tokens for r in good), "Output Token Throughput": "3264.3388 token/s",
    }  # fmt: skip
    common = {name: dict.fromkeys(stages, value) for name, value in figures.items()}
    _dump(folder / "gsm8k.json", _changed(common, changes or {}))
    found = times(requests)
    with (folder / "gsm8k.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Performance Parameters", "Stage", "Average", "Min", "Max", "Median", "P75", "P99", "N"])
        for name, concept in (("E2EL", "e2e"), ("TTFT", "ttft"), ("TPOT", "tpot"), ("ITL", "itl")):
            values = found[concept]
            cells = [_mean(values), min(values), max(values), *(linear(values, p) for p in (50, 75, 99))]
            for stage in stages:
                writer.writerow([name, stage, *(f"{round(cell, 4)} ms" for cell in cells), len(good)])
    return folder


def one(*paths: Path, **options: Any) -> dict[str, Any]:
    """The only result of some files."""
    results: list[dict[str, Any]] = ingest(paths, **options).artifact["results"]
    assert len(results) == 1
    return results[0]


def write(path: Path, *values: Any) -> Path:
    """JSON documents, one after another, as the tools append them."""
    path.write_text("\n".join(json.dumps(value) for value in values))
    return path


def metric(result: dict[str, Any], concept: str, statistic: str, **wanted: Any) -> dict[str, Any]:
    """The only metric that fits."""
    fits = [
        found
        for found in result["metrics"]
        if (found["concept"], found["statistic"]) == (concept, statistic)
        and all(found[key] == value for key, value in wanted.items())
    ]
    assert len(fits) == 1, fits
    return dict(fits[0])


def _changed(value: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in (value | changes).items() if item is not ...}


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 6)


def _nearest(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[max(0, -int(-len(ordered) * percent // 100) - 1)]


def _dump(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=4))
