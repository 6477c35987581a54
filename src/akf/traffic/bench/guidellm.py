"""guidellm: `benchmarks.json`, one benchmark for each load of a sweep.

Invariants:
1. Figures of successful requests only; its quantiles are nearest rank on a weighted distribution.
2. Its two times per token weigh each request by its tokens, and one of them counts the first token: they are kept as
   what they are. Where the requests are in the file, the unweighted figures are recomputed from them.
3. A request without a first token is counted as 0 in its TTFT; such a figure is refused.
4. Requests are used only where they are all there: a sample of them, or a warm-up cut out of them, is not.
"""

from __future__ import annotations

from typing import Any

from akf.traffic.bench.draft import Draft, at
from akf.traffic.foreign import Foreign

_PERCENTILES = {
    "p001": "p0.1", "p01": "p1", "p05": "p5", "p10": "p10", "p25": "p25", "p50": "p50", "p75": "p75", "p90": "p90",
    "p95": "p95", "p99": "p99", "p999": "p99.9",
}  # fmt: skip
_PLAIN = {"mean": "mean", "std_dev": "std", "min": "min", "max": "max"}
_LOADS = {
    "synchronous": "closed_loop",
    "concurrent": "closed_loop",
    "constant": "rate",
    "poisson": "rate",
    "trace": "trace",
}
# field of a request: concept, unit
_DETAIL = {
    "time_to_first_token_ms": ("ttft", "ms"),
    "inter_token_latency_ms": ("tpot", "ms"),
    "time_per_output_token_ms": ("e2e_per_output_token", "ms"),
    "request_latency": ("e2e", "s"),
}


def read(draft: Draft, where: Foreign, index: int) -> None:
    """Read one benchmark of a report."""
    base = ("benchmarks", str(index))
    draft.read_version(where, ("metadata", "guidellm_version"))
    view = _View(where, base)
    if not isinstance(at(view.value, ("metrics", "request_totals")), dict):
        draft.fault(
            where, (*base, "metrics"), "a benchmark without metrics.request_totals", "AKF-F206",
            expected="a report of guidellm 0.6 or later",
        )  # fmt: skip
        return
    draft.read_identity(view)
    draft.read_fields(view)
    draft.need(view, ("metrics", "request_totals", "successful"))
    draft.failed_from = "printed" if "failed" in draft.fields else None
    _load(draft, view)
    slo = at(view.value, ("config", "slo"))
    for name, value in slo.items() if isinstance(slo, dict) else ():
        if value is not None:
            draft.objective(view, ("config", "slo", name), value)
    draft.attainment_over = "evaluated"
    if draft.problems:
        return
    if "failed" in draft.fields:
        draft.fields["sent"] = draft.fields["completed"] + draft.fields["failed"]
    for name, row in draft.table["metrics"].items():
        _metric(draft, view, name, row)
    _detail(draft, view)


class _View(Foreign):
    """A part of a document, whose problems are located in the whole."""

    __slots__ = ("_base", "_whole")

    def __init__(self, whole: Foreign, base: tuple[str, ...]) -> None:
        self._whole = whole
        self._base = base
        self.value = at(whole.value, base)
        self.file = whole.file
        self.infinite = whole.infinite

    def problem(self, code: str, message: str, path: Any = (), **fields: Any) -> Any:
        """As of the whole."""
        return self._whole.problem(code, message, (*self._base, *path), **fields)


def _load(draft: Draft, where: Foreign) -> None:
    strategy = ("config", "strategy")
    kind = at(where.value, (*strategy, "type_"))
    limit = draft.count(where, (*strategy, "streams")) or draft.count(where, (*strategy, "max_concurrency")) or None
    if kind == "synchronous":
        limit = 1
    process = _LOADS.get(kind, "unknown") if isinstance(kind, str) else "unknown"
    if kind == "throughput":
        process = "closed_loop" if limit else "all_at_once"
    draft.load = {"process": process, "rate_per_s": draft.rate(where, (*strategy, "rate")), "concurrency": limit}


def _metric(draft: Draft, where: Foreign, name: str, row: dict[str, Any]) -> None:
    path = ("metrics", name, "successful")
    if not isinstance(at(where.value, path), dict):
        return
    completed = draft.fields["completed"]
    weighted = row.get("weight") == "token"
    samples = None if weighted else draft.count(where, (*path, "count"))
    more: dict[str, Any] = {"at_most": completed} if weighted else {"samples": samples}
    names: list[tuple[tuple[str, ...], str]] = [((*path, key), statistic) for key, statistic in _PLAIN.items()]
    names += [((*path, "percentiles", key), statistic) for key, statistic in _PERCENTILES.items()]
    smallest = at(where.value, (*path, "min"))
    for place, statistic in names:
        number = at(where.value, place)
        if number is None:
            continue
        value = draft.time(where, place, number, row["unit"])
        draft.print(name, statistic, value, unmeasured=smallest == 0 and not weighted, **more)


def _detail(draft: Draft, where: Foreign) -> None:
    requests = at(where.value, ("requests", "successful"))
    if not isinstance(requests, list) or not requests:
        return
    if len(requests) != draft.fields["completed"]:
        text = (
            f"the file holds {len(requests)} of {draft.fields['completed']} completed requests: nothing is recomputed"
        )
        draft.remark("requests-sampled", text)
        return
    for name, (concept, unit) in _DETAIL.items():
        values = []
        for index, request in enumerate(requests):
            number = at(request, (name,))
            if number is not None:
                value = draft.time(where, ("requests", "successful", str(index), name), number, unit)
                values += [] if value is None else [value]
        if values:
            draft.detail[concept] = values
    tokens = [
        draft.count(where, ("requests", "successful", str(index), "output_tokens")) for index in range(len(requests))
    ]
    known = [count for count in tokens if count is not None]
    if len(known) == len(tokens):
        draft.fields["output_tokens"] = sum(known)
