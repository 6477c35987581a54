"""What a Workload and a Capture must mean for the Campaign that names them.

Invariants:
- A Workload belongs to the Campaign's model; weights of one callsite's shapes add up to 1.
- Token bounds of two stages never meet, so that a request has one stage; figures of a trace agree with one another.
- A Capture was measured on the Campaign's platform and names callsites of the Workload; its lines add up.
"""

from __future__ import annotations

from akf.contracts.loader import Document
from akf.contracts.problems import Problem
from akf.contracts.rules.finding import at, duplicates

_SLACK = 1e-6
_STEP_SLACK = 0.02  # profilers round every line; a larger gap is a capture that does not add up


def workload_problems(document: Document, campaign: Document) -> list[Problem]:
    """Problems of the Workload, by itself and for the Campaign."""
    workload = document.value
    found = meaning_problems(document)
    if workload["model"] != campaign.value["model"]["name"]:
        message = f"the Workload belongs to {workload['model']}, the Campaign to {campaign.value['model']['name']}"
        found.append(at(document, "/model", "AKF-M010", message))
    return found


def meaning_problems(document: Document) -> list[Problem]:
    """Problems of the Workload by itself."""
    workload = document.value
    callsites = {site["id"] for site in workload["callsites"]}
    found = [
        *duplicates(document, "/callsites", [site["id"] for site in workload["callsites"]], "callsite"),
        *duplicates(document, "/stages", [stage["id"] for stage in workload["stages"]], "stage"),
        *bounds_problems(document),
        *_figures(document),
    ]
    weights = [stage["weight_ratio"] for stage in workload["stages"]]
    if all(weight is not None for weight in weights) and abs(sum(weights) - 1) > _SLACK:
        found.append(at(document, "/stages", "AKF-M022", f"the stages' weights add up to {sum(weights)}, not to 1"))
    for index, stage in enumerate(workload["stages"]):
        totals: dict[str, float] = {}
        for place, shape in enumerate(stage["shapes"] or ()):
            if shape["callsite"] not in callsites:
                message = f"callsite {shape['callsite']!r} is not described under `callsites`"
                found.append(at(document, f"/stages/{index}/shapes/{place}/callsite", "AKF-M023", message))
            totals[shape["callsite"]] = totals.get(shape["callsite"], 0.0) + shape["weight_ratio"]
        for name, total in sorted(totals.items()):
            if abs(total - 1) > _SLACK:
                message = f"the weights of {name} in stage {stage['id']} add up to {total}, not to 1"
                found.append(at(document, f"/stages/{index}/shapes", "AKF-M022", message))
    return found


def bounds_problems(document: Document) -> list[Problem]:
    """Problems of the stages' token bounds: upside down, or met by another stage's."""
    found = []
    stages = document.value["stages"]
    for index, stage in enumerate(stages):
        bounds = stage["bounds"]
        for side in ("input", "output"):
            least, most = bounds[f"{side}_min_tokens"], bounds[f"{side}_max_tokens"]
            if least > most:
                message = f"stage {stage['id']}: the smallest {side} is {least} tokens, the largest {most}"
                found.append(at(document, f"/stages/{index}/bounds", "AKF-F258", message))
        for other in stages[:index]:
            if all(_meet(bounds, other["bounds"], side) for side in ("input", "output")):
                message = f"requests of the same length fall into the stages {other['id']} and {stage['id']}"
                hint = "let one start where the other ends, plus one"
                found.append(at(document, f"/stages/{index}/bounds", "AKF-F258", message, hint=hint))
    return found


def _meet(one: dict[str, int], other: dict[str, int], side: str) -> bool:
    low, high = f"{side}_min_tokens", f"{side}_max_tokens"
    return one[low] <= other[high] and other[low] <= one[high]


def _figures(document: Document) -> list[Problem]:
    """What a trace's figures say of one another."""
    workload = document.value
    found = []
    traffic, prefix, sample = workload.get("traffic"), workload.get("prefix"), workload.get("sample")
    counts = [stage.get("requests") for stage in workload["stages"]]
    if traffic is not None:
        total = traffic["requests"]
        if None not in counts and sum(counts) != total:
            message = f"the stages hold {sum(counts)} requests, the traffic {total}"
            found.append(at(document, "/traffic/requests", "AKF-F263", message))
        share = traffic["outside"] / (traffic["outside"] + total)
        if abs(share - traffic["outside_ratio"]) > _SLACK:
            message = f"{traffic['outside']} requests outside and {total} inside are a share of {share}"
            found.append(at(document, "/traffic/outside_ratio", "AKF-F263", message))
        if sample is not None and sample["requests"] > total:
            message = f"the sample holds {sample['requests']} of {total} requests"
            found.append(at(document, "/sample/requests", "AKF-F263", message))
    if prefix is not None and prefix.get("prompt_blocks") and prefix.get("reused_blocks") is not None:
        share = prefix["reused_blocks"] / prefix["prompt_blocks"]
        if prefix["reuse_ratio"] is not None and abs(share - prefix["reuse_ratio"]) > _SLACK:
            message = f"{prefix['reused_blocks']} of {prefix['prompt_blocks']} blocks are a share of {share}"
            found.append(at(document, "/prefix/reuse_ratio", "AKF-F263", message))
    return found


def capture_problems(document: Document, campaign: Document, workload: Document | None) -> list[Problem]:
    """Problems of the Capture."""
    capture = document.value
    found = []
    if capture["platform"] != campaign.value["platform"]:
        message = (
            f"the Capture was measured on {capture['platform']}, the Campaign is about {campaign.value['platform']}"
        )
        found.append(at(document, "/platform", "AKF-M024", message))
    callsites = {site["id"] for site in workload.value["callsites"]} if workload is not None else None
    for index, entry in enumerate(capture["entries"]):
        if callsites is not None and entry["callsite"] is not None and entry["callsite"] not in callsites:
            message = f"callsite {entry['callsite']!r} is not described by the Workload"
            found.append(at(document, f"/entries/{index}/callsite", "AKF-M023", message))
    for index, line in enumerate(capture.get("breakdown", ())):
        parts = ("computing_ns", "communication_ns", "waiting_ns", "host_gap_ns", "idle_ns")
        total = sum(line[part] for part in parts)
        if abs(total - line["step_ns"]) > _STEP_SLACK * max(line["step_ns"], 1):
            message = f"rank {line['rank']}: the lines add up to {total} ns, the steps took {line['step_ns']} ns"
            found.append(at(document, f"/breakdown/{index}", "AKF-M025", message))
    return found
