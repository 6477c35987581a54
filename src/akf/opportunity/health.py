"""Whether the baseline ran as it should while it was captured.

Invariants:
- What the Capture does not tell was not checked, and is listed as unseen; it never counts as healthy or unhealthy.
  An arm that replays graphs, of which it is not known whether it did, is a blocker: its shares may be those of another.
- Eager launches are a finding only where graphs are replayed: an arm that runs eagerly by choice is healthy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from akf.opportunity.complete import computing
from akf.opportunity.policy import Policy

Value = Mapping[str, Any]

LEVERS = {
    "BASELINE_EAGER": "Graph capture: the captured sizes, the limits beyond which the framework runs eagerly.",
    "BASELINE_PADDED": "Graph capture: captured sizes that fit the batch sizes that really occur.",
    "BASELINE_RECOMPILES": "Graph compilation: static shapes, warm-up of every shape before traffic arrives.",
    "BASELINE_COMPILES": "Kernel compilation: ahead-of-time binaries, warm-up before traffic arrives.",
    "OPERATORS_NOT_LOADED": "Installation and loading of the framework's custom operators.",
    "CLOCK_CHANGED": "Power and clock policy of the device.",
}
"""What a configuration Task may change, by the rule that was broken."""


def health_of(capture: Value, workload: Value | None, policy: Policy) -> dict[str, Any]:
    """The state of the baseline, as a Triage states it."""
    found = list(_findings(capture, workload, policy))
    stated = capture.get("health") or {}
    unseen = [name for name in ("recompiles", "jit_compiles", "custom_operators") if stated.get(name) is None]
    if graphs(capture, workload):
        if eager_share(capture) is None:
            unseen.append("eager_share")
        if not _buckets(capture):
            unseen.append("padding")
    if capture["clock"] == "unknown":
        unseen.append("clock")
    return {
        "healthy": not found,
        "findings": [{"rule": rule, "text": text} for rule, text in found],
        "unseen": sorted(unseen),
    }


def graphs(capture: Value, workload: Value | None) -> bool:
    """Whether the arm replays graphs, by its Workload or by what was seen."""
    declared = workload is not None and any(site["graph"]["mode"] == "graph" for site in workload["callsites"])
    return declared or bool(_buckets(capture)) or any(entry.get("graph") == "graph" for entry in capture["entries"])


def eager_share(capture: Value) -> float | None:
    """Share that ran outside graphs: as stated, else of the launches whose mode was seen; None when none was."""
    stated = (capture.get("health") or {}).get("eager_share_ratio")
    if stated is not None:
        return float(stated)
    seen = [entry for entry in capture["entries"] if computing(entry) and entry.get("graph") is not None]
    total = sum(entry["calls"] for entry in seen)
    return sum(entry["calls"] for entry in seen if entry["graph"] == "eager") / total if total else None


def _findings(capture: Value, workload: Value | None, policy: Policy) -> Iterator[tuple[str, str]]:
    stated = capture.get("health") or {}
    share = eager_share(capture)
    if graphs(capture, workload) and share is not None and share > policy.most_eager_ratio:
        yield "BASELINE_EAGER", f"A share of {share:.4f} ran outside graphs, at most {policy.most_eager_ratio} may."
    for bucket in _buckets(capture):
        held = bucket["replays"] * bucket["size_tokens"]
        if held and bucket["padded_tokens"] > policy.most_padding_ratio * held:
            text = f"Bucket {bucket['size_tokens']}: {bucket['padded_tokens']} of {held} tokens are padding"
            yield "BASELINE_PADDED", f"{text}, a share of {policy.most_padding_ratio} may be."
    for name, rule, what in (
        ("recompiles", "BASELINE_RECOMPILES", "graph recompilations"),
        ("jit_compiles", "BASELINE_COMPILES", "just-in-time compilations"),
    ):
        count, most = stated.get(name), policy.values[f"most_{name}"]
        if count is not None and count > most:
            yield rule, f"{count} {what} were seen, at most {most} may be."
    if stated.get("custom_operators") is False:
        yield "OPERATORS_NOT_LOADED", "The framework's custom operators were not loaded."
    seen = capture.get("clocks_mhz", ())
    if capture["clock"] == "changed" or len(set(seen)) > 1:
        clocks = ", ".join(map(str, seen)) or "unknown"
        yield "CLOCK_CHANGED", f"The core clock changed inside the capture: {clocks} MHz."


def _buckets(capture: Value) -> list[dict[str, Any]]:
    return [
        bucket
        for bucket in (capture.get("health") or {}).get("buckets", ())
        if bucket.get("replays") is not None and bucket.get("padded_tokens") is not None
    ]
