"""Two results side by side: what may be compared, and what may not.

Invariants:
1. Figures are paired by concept and statistic only where quantile rule, population and weight agree; every other figure
   that both have is listed with the reason. What a tool calls its figure plays no part.
2. The rest that differs is said: failures, tokens, load, objectives. Where one of them means that the two runs did not
   do the same work, `comparable` is false.
3. `change_ratio` is B over A. The answer is a plain JSON value, the same for the same results.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

MAX_FAILED = Fraction(1, 100)
"""Share of failed requests up to which the completed ones may speak for a run."""

MAX_TOKENS = Fraction(1, 100)
"""How far mean tokens of prompts or answers may lie apart, as a share of A's."""

_BREAKS = {"failed-share", "failures-unknown", "tokens", "tokens-unknown"}
_ALIKE = ("method", "population", "weight")
_WHY = {"method": "quantile rules", "population": "populations", "weight": "weights"}


def compare(
    a: dict[str, Any],
    b: dict[str, Any],
    *,
    max_failed: Fraction = MAX_FAILED,
    max_tokens: Fraction = MAX_TOKENS,
) -> dict[str, Any]:
    """Compare two results (entries of `results` of a ServingBenchmark).

    Returns:
        `{a, b, comparable, pairs, refused, remarks}`: `pairs` of `{concept, statistic, method, population, weight,
        a_ns, b_ns, change_ratio}`, `refused` of `{concept, statistic, reason}`, `remarks` of `{name, text}`.
    """
    pairs, refused = _pairs(a["metrics"], b["metrics"])
    remarks = [*_failures(a, b, max_failed), *_tokens(a, b, max_tokens), *_load(a, b), *_goodput(a, b)]
    return {
        "a": a["id"],
        "b": b["id"],
        "comparable": not any(remark["name"] in _BREAKS for remark in remarks),
        "pairs": pairs,
        "refused": refused,
        "remarks": remarks,
    }


def _pairs(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    pairs: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for concept, statistic in dict.fromkeys((m["concept"], m["statistic"]) for m in [*a, *b]):
        ours, theirs = (
            sorted(
                (m for m in metrics if (m["concept"], m["statistic"]) == (concept, statistic)),
                key=lambda m: not m["recomputed"],
            )
            for metrics in (a, b)
        )
        match = next(((x, y) for x in ours for y in theirs if all(x[key] == y[key] for key in _ALIKE)), None)
        if match is None:
            refused.append({"concept": concept, "statistic": statistic, "reason": _reason(ours, theirs)})
            continue
        x, y = match
        pairs.append(
            {
                "concept": concept,
                "statistic": statistic,
                **{key: x[key] for key in _ALIKE},
                "a_ns": x["value_ns"],
                "b_ns": y["value_ns"],
                "change_ratio": y["value_ns"] / x["value_ns"] if x["value_ns"] else None,
            }
        )
    return pairs, refused


def _reason(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> str:
    if not ours or not theirs:
        return f"only {'A' if ours else 'B'} has it"
    x, y = min(((x, y) for x in ours for y in theirs), key=lambda pair: sum(pair[0][k] != pair[1][k] for k in _ALIKE))
    differ = [f"{_WHY[key]} differ: {x[key]} and {y[key]}" for key in _ALIKE if x[key] != y[key]]
    return "; ".join(differ)


def _failures(a: dict[str, Any], b: dict[str, Any], limit: Fraction) -> list[dict[str, str]]:
    remarks = []
    for side, result in (("A", a), ("B", b)):
        sent, failed = result["requests"]["sent"], result["requests"]["failed"]
        if failed is None or sent is None:
            remarks.append(_remark("failures-unknown", f"{side} does not say how many requests failed"))
        elif sent and Fraction(failed, sent) > limit:
            remarks.append(
                _remark("failed-share", f"{side}: {failed} of {sent} requests failed, more than {float(limit):.4g}")
            )
    return remarks


def _tokens(a: dict[str, Any], b: dict[str, Any], limit: Fraction) -> list[dict[str, str]]:
    remarks = []
    for side in ("input", "output"):
        x, y = (result["tokens"].get(f"{side}_mean_tokens") for result in (a, b))
        if x is None or y is None:
            remarks.append(_remark("tokens-unknown", f"the {side} tokens per request are not known of both"))
        elif abs(Fraction(x) - Fraction(y)) > limit * Fraction(x):
            remarks.append(_remark("tokens", f"{side} tokens per request differ: {x:.6g} and {y:.6g}"))
    return remarks


def _load(a: dict[str, Any], b: dict[str, Any]) -> list[dict[str, str]]:
    names = ["process", "rate_per_s", "concurrency"]
    if "burstiness" in a["load"] and "burstiness" in b["load"]:  # most tools do not say it
        names.append("burstiness")
    return [
        _remark("load", f"{name} of the load differs: {a['load'][name]} and {b['load'][name]}")
        for name in names
        if a["load"][name] != b["load"][name]
    ]


def _goodput(a: dict[str, Any], b: dict[str, Any]) -> list[dict[str, str]]:
    x, y = a.get("goodput"), b.get("goodput")
    if x is None and y is None:
        return []
    if x is None or y is None:
        return [_remark("goodput", f"only {'A' if x else 'B'} has a goodput")]
    if x["objectives"] is None or y["objectives"] is None:
        return [_remark("objectives", "goodputs are not comparable: the objectives are not known of both")]
    if x["objectives"] != y["objectives"]:
        return [_remark("objectives", "goodputs are not comparable: the objectives differ")]
    if x.get("attainment_over") != y.get("attainment_over"):
        over = f"{x.get('attainment_over')} and {y.get('attainment_over')}"
        return [_remark("attainment", f"shares of good requests are not comparable: they divide by {over}")]
    return []


def _remark(name: str, text: str) -> dict[str, str]:
    return {"name": name, "text": text}
