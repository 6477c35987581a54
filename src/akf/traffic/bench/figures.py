"""From what was printed and what was measured to metrics and refusals.

Invariants:
1. Where the detail of completed requests exists, figures are recomputed from it by one rule; what the tool printed by
   the same definition becomes a difference beside it, what it printed by another rule stays a figure of its own.
2. A quantile without enough samples is refused, and so is a figure of a run in which nothing completed, and a latency
   of exactly zero, which is how tools write "not measured"; every refusal is listed with what was printed.
3. What a tool printed is held against its own rule over its own detail, and a remark says by how much it differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from akf.traffic.bench.draft import Draft, Printed
from akf.traffic.bench.meaning import CONCEPTS
from akf.traffic.bench.summary import figure, name, share, support

PLAIN = ("mean", "std", "min", "max")
ROUNDING_NS = 1_000
"""What binary floats and the printed digits of a tool may differ by."""

_WEIGHTS = {"itl": "gap", "batch_e2e": "batch"}


def figures(draft: Draft, quantiles: Sequence[Fraction]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the metrics and the refusals of one run, and put remarks into the draft."""
    metrics: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for concept in CONCEPTS:
        printed = [entry for entry in draft.printed if entry.concept == concept]
        values = sorted(draft.detail.get(concept, ()))
        if values and values[0] == 0 and concept not in {"itl", "itl_per_token"}:
            refused += [_refusal(entry, "zero_is_no_measurement") for entry in printed]
            draft.remark(f"{concept}-zero", f"{concept}: a completed request has the time 0, so none of them counts")
            continue
        found, lacking = _recomputed(concept, values, printed, quantiles)
        for entry in printed:
            own = bool(values) and _WEIGHTS.get(concept, "request") == entry.weight
            if own:
                _hold(draft, entry, values)
                same = next((m for m in found if _same(m, entry)), None)
                if same is not None:
                    same["printed_difference_ns"] = entry.value_ns - same["value_ns"]
                    continue
            reason = _doubt(draft, entry, len(values))
            if reason is None:
                found.append(_metric(entry, entry.samples or (len(values) if own else None)))
            elif (old := next((r for r in lacking if r["statistic"] == entry.statistic), None)) is None:
                lacking.append(_refusal(entry, reason, draft, len(values)))
            else:
                old["printed_ns"] = entry.value_ns
        metrics += sorted(found, key=_order)
        refused += sorted(lacking, key=_order)
    return metrics, refused


def _recomputed(
    concept: str, values: list[int], printed: Iterable[Printed], quantiles: Sequence[Fraction]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    if not values:
        return [], []
    found, lacking = [], []
    asked = {name(q) for q in quantiles} | {entry.statistic for entry in printed}
    for statistic in [*PLAIN, *sorted(asked - set(PLAIN), key=lambda text: share(text) or 0)]:
        q = share(statistic)
        if q is not None and len(values) < support(q):
            lacking.append({
                "concept": concept, "statistic": statistic, "reason": "too_few_samples", "samples": len(values),
                "needed_samples": support(q),
            })  # fmt: skip
            continue
        found.append({
            "concept": concept, "statistic": statistic, "value_ns": figure(values, statistic),
            "method": None if q is None else "nearest_rank", "population": "completed",
            "weight": _WEIGHTS.get(concept, "request"), "samples": len(values), "recomputed": True,
        })  # fmt: skip
    return found, lacking


def _hold(draft: Draft, entry: Printed, values: list[int]) -> None:
    """Hold a printed figure against its tool's own rule."""
    if entry.population != "completed" or entry.method == "as_printed":
        return
    own = figure(values, entry.statistic, entry.method or "nearest_rank")
    if abs(entry.value_ns - own) > ROUNDING_NS:
        draft.remark(
            "printed-disagrees",
            f"{entry.concept} {entry.statistic}: printed are {entry.value_ns} ns, the tool's own rule over its own "
            f"detail gives {own} ns",
        )


def _doubt(draft: Draft, entry: Printed, values: int) -> str | None:
    """Why a printed figure is not relied on, or None."""
    if draft.fields.get("completed") == 0:
        return "no_request_completed"
    gap = entry.concept in {"itl", "itl_per_token"} and entry.statistic != "mean"
    if entry.unmeasured or (entry.value_ns == 0 and not gap and entry.statistic != "std"):
        return "zero_is_no_measurement"
    q = share(entry.statistic)
    known = entry.samples if entry.samples is not None else (values or entry.at_most)
    return "too_few_samples" if q is not None and known is not None and known < support(q) else None


def _metric(entry: Printed, samples: int | None) -> dict[str, Any]:
    return {
        "concept": entry.concept, "statistic": entry.statistic, "value_ns": entry.value_ns, "method": entry.method,
        "population": entry.population, "weight": entry.weight, "samples": samples or None, "recomputed": False,
    }  # fmt: skip


def _refusal(entry: Printed, reason: str, draft: Draft | None = None, values: int = 0) -> dict[str, Any]:
    q = share(entry.statistic)
    refusal = {
        "concept": entry.concept, "statistic": entry.statistic, "reason": reason,
        "samples": 0 if reason == "no_request_completed" else entry.samples or values or None,
        "printed_ns": entry.value_ns,
    }  # fmt: skip
    if draft is not None and q is not None and reason == "too_few_samples":
        refusal["needed_samples"] = support(q)
    return refusal


def _same(metric: dict[str, Any], entry: Printed) -> bool:
    mine = (entry.statistic, entry.method, entry.population, entry.weight)
    return mine == (metric["statistic"], metric["method"], metric["population"], metric["weight"])


def _order(entry: dict[str, Any]) -> tuple[Any, ...]:
    statistic = entry["statistic"]
    place = PLAIN.index(statistic) if statistic in PLAIN else len(PLAIN)
    return place, share(statistic) or 0, not entry.get("recomputed", False), entry.get("method") or ""
