"""One run as it stands in the artifact.

Invariants:
1. What no file says is null or absent, never 0.
2. Totals give the means per completed request; a mean that a tool printed counts only where no total is.
3. The order of facts, objectives and remarks follows their names, not the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from akf.contracts.text import printable
from akf.traffic.bench.draft import Draft
from akf.traffic.bench.figures import figures

_LONGEST_NAME = 256


def result_of(draft: Draft, quantiles: Sequence[Fraction]) -> dict[str, Any]:
    """The result of one run; its id is given when all of them are known."""
    fields = draft.fields
    completed: int = fields["completed"]
    if draft.fields.get("sent") is None and draft.fields.get("failed") is not None:
        fields["sent"] = completed + fields["failed"]
    metrics, refused = figures(draft, quantiles)
    _consistent(draft)
    tokens: dict[str, Any] = {"input_tokens": fields.get("input_tokens"), "output_tokens": fields.get("output_tokens")}
    for side in ("input", "output"):
        total = fields.get(f"{side}_tokens")
        mean = fields.get(f"{side}_mean_tokens")
        if total is not None and completed:
            mean = float(Fraction(total, completed))
        if mean is not None:
            tokens[f"{side}_mean_tokens"] = mean
    if "total_tokens" in fields:
        tokens["total_tokens"] = fields["total_tokens"]
    version = printable(draft.version) if draft.version else None
    sources = [{"name": printable(file.path.name)[:_LONGEST_NAME], "digest": file.digest} for file in draft.sources]
    result = {
        "id": "run",
        "harness": {"name": draft.tool, "version": version, "layout": draft.layout},
        "sources": sources,
        "position": draft.position,
        "identity": draft.identity,
        "load": draft.load,
        "duration_ns": fields.get("duration_ns") or None,
        "requests": {
            "sent": fields.get("sent"), "completed": completed, "failed": fields.get("failed"),
            "failed_from": draft.failed_from if fields.get("failed") is not None else None,
            **({"incomplete": fields["incomplete"]} if "incomplete" in fields else {}),
        },
        "tokens": tokens,
        "throughput": {
            name: fields[name]
            for name in ("requests_per_s", "input_tokens_per_s", "output_tokens_per_s", "total_tokens_per_s")
            if name in fields
        },
        "metrics": metrics,
        "refused": refused,
        "remarks": sorted(draft.remarks, key=lambda remark: (remark["name"], remark["text"])),
    }  # fmt: skip
    if "good_per_s" in fields or "attainment" in fields:
        result["goodput"] = _goodput(draft)
    return result


def _goodput(draft: Draft) -> dict[str, Any]:
    objectives = sorted(draft.objectives, key=lambda entry: entry["concept"]) if draft.objectives else None
    goodput: dict[str, Any] = {"objectives": objectives}
    if "good_per_s" in draft.fields:
        goodput["rate_per_s"] = draft.fields["good_per_s"]
    if "attainment" in draft.fields:
        goodput |= {"attainment_ratio": draft.fields["attainment"], "attainment_over": draft.attainment_over}
    return goodput


def _consistent(draft: Draft) -> None:
    """The printed rate of requests is the completed ones over the duration, within the digits that tools print."""
    fields = draft.fields
    printed, duration, completed = fields.get("requests_per_s"), fields.get("duration_ns"), fields["completed"]
    if not printed or not duration or not completed:
        return
    own = completed * 1_000_000_000 / duration
    if abs(own - printed) > own / 100:
        text = f"{completed} requests in {duration} ns are {own:.6g} a second, printed are {printed:.6g}"
        draft.remark("throughput-disagrees", text)
