"""The callsites of one arm, from a model's config, the arm's settings and its revision.

Invariants:
1. Operators, their order and their shapes are the architecture's; where they are called and who answers is the arm's.
   Both are data (`models/*.toml`, `arms/*.toml`); nothing here knows a model or a framework.
2. The first case of an operator that holds is taken; an operator of which none holds is not called.
3. An operator that one kind of step alone calls has an id that begins with that kind (`prefill-`, `decode-`).
4. A callsite runs in a graph unless the arm captures none, or this operator is never captured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from akf.frameworks.model_config import ModelConfig, number
from akf.frameworks.models import model, operators
from akf.frameworks.revisions import Order, version

_KV_LAYOUT = "paged"


@dataclass(frozen=True)
class Situation:
    """All that decides which cases hold, and every size."""

    config: ModelConfig
    arm: Mapping[str, Any]
    settings: Mapping[str, Any]
    sizes: Mapping[str, int]
    revision: Order


def callsites(situation: Situation) -> list[dict[str, Any]]:
    """Return the callsites in the order of a step."""
    chosen: dict[str, dict[str, Any]] = {}
    for entry in situation.arm["operator"]:
        for name in entry["ids"]:
            case = _case(situation, entry)
            if case is not None and entry.get("without") not in chosen:
                chosen[name] = {**operators(situation.config.architecture)[name], **_shared(entry), **case}
    order = operators(situation.config.architecture)
    return [_callsite(situation, name, chosen[name]) for name in order if name in chosen]


def _shared(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in {"ids", "case", "without"}}


def _case(situation: Situation, entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next((case for case in entry["case"] if _case_holds(situation, case)), None)


def _case_holds(situation: Situation, case: Mapping[str, Any]) -> bool:
    if "since" in case and situation.revision < version(case["since"]):
        return False
    if "until" in case and situation.revision > version(case["until"]):
        return False
    return "when" not in case or holds(situation, case["when"])


def holds(situation: Situation, conditions: list[Mapping[str, Any]]) -> bool:
    """Say whether one of the conditions holds: every name in it has its value, or one of its values."""
    facts = {
        **situation.settings,
        "dtype": situation.config.dtype,
        "eps": situation.config.eps,
        "head_dim": situation.config.fields["head_dim"],
    }
    return any(
        all(facts[name] in (wanted if isinstance(wanted, list) else [wanted]) for name, wanted in condition.items())
        for condition in conditions
    )


def _callsite(situation: Situation, name: str, operator: Mapping[str, Any]) -> dict[str, Any]:
    phase = operator.get("phase")
    name = name if phase is None else f"{phase}-{name}"
    callsite = {
        "id": f"{situation.arm['arm']}.{name}",
        "arm": situation.arm["arm"],
        "site": operator["site"],
        "provider": operator["provider"],
        "op": operator["op"],
        "operands": [_operand(situation, operand) for operand in operator["operands"]],
    }
    attributes = [_attribute(situation, *item) for item in operator.get("attributes", {}).items()]
    if attributes:
        callsite["attributes"] = attributes
    callsite["graph"] = _graph(situation, operator.get("graph", "graph"))
    callsite["calls_per_step"] = number(operator["calls"], situation.sizes)
    return callsite


def _operand(situation: Situation, spec: Mapping[str, Any]) -> dict[str, Any]:
    dtype = spec.get("dtype", situation.config.dtype)
    operand = {
        "name": spec["name"],
        "access": spec.get("access", "in"),
        "dtype": dtype,
        "shape": [_dimension(situation, text) for text in spec["shape"]],
        "layout": spec.get("layout", "ND"),
    }
    if spec.get("cache"):
        block = situation.sizes["block_size"]
        operand["kv"] = {"layout": _KV_LAYOUT, "block_size_tokens": block, "dtype": dtype}
    return operand


def _dimension(situation: Situation, text: str) -> int | dict[str, Any]:
    bound = model(situation.config.architecture)["symbols"].get(text)
    if bound is None:
        return number(text, situation.sizes)
    return {"sym": text, "min": 1, "max": max(number(bound, situation.sizes), 1), "multiple_of": 1}


def _attribute(situation: Situation, name: str, text: str) -> dict[str, Any]:
    return {"name": name, "value": situation.config.eps if text == "eps" else number(text, situation.sizes)}


def _graph(situation: Situation, mode: str) -> dict[str, Any]:
    if mode == "eager" or holds(situation, situation.arm["graph"]["eager"]):
        return {"mode": "eager"}
    captured = situation.settings.get("capture_sizes")
    return {"mode": "graph", "capture_sizes_tokens": list(captured)} if captured else {"mode": "graph"}
