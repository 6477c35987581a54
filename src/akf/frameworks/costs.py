"""What one call of a callsite moves and computes, at least: bytes and operations.

Invariants:
1. Formulas are data, by operator (`costs.toml`); an operator without one has no cost, never a guessed one.
2. A formula that needs what is not known (a symbol without size, the context of attention) gives None.
3. Bytes are a floor: every operand once, or what the operator must touch of it. No cache makes them fewer.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

from akf.routes.expressions import Expression, ExpressionError, evaluate, parse

_FILE = Path(__file__).resolve().parent / "costs.toml"
_BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3": 1, "float8_e5m2": 1, "int64": 8, "int32": 4,
    "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """Of one call; None where it is not known."""

    bytes: int | None
    operations: int | None


def cost(
    callsite: Mapping[str, Any], symbols: Mapping[str, int], *, context: int | None = None, pairs: int | None = None
) -> Cost:
    """Return what a call with these sizes moves and computes.

    Args:
        callsite: a callsite of a Workload.
        symbols: sizes of its symbols, as a Capture's entry or a Workload's stage has them.
        context: positions of the cache that attention reads, summed over the requests.
        pairs: pairs of a token and a position that it attends to, summed over the requests; in a decode step that is
            the context, in a prefill of n tokens without a cached prefix n * (n + 1) / 2 a request.
    """
    formulas = _formulas().get(callsite["op"])
    if formulas is None:
        return Cost(None, None)
    names = _names(callsite, symbols)
    for name, value in (("context", context), ("pairs", pairs)):
        if value is not None:
            names[name] = value
    moved = formulas.get("bytes")
    return Cost(
        _once(callsite, names) if moved is None else _value(moved, names), _value(formulas["operations"], names)
    )


@cache
def _formulas() -> dict[str, dict[str, Expression]]:
    tables = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {op: {name: parse(text) for name, text in table.items()} for op, table in tables.items()}


def _value(formula: Expression, names: Mapping[str, int]) -> int | None:
    try:
        return evaluate(formula, names)
    except ExpressionError:
        return None


def _names(callsite: Mapping[str, Any], symbols: Mapping[str, int]) -> dict[str, int]:
    names = {
        attribute["name"]: attribute["value"]
        for attribute in callsite.get("attributes", ())
        if isinstance(attribute["value"], int)
    }
    for operand in callsite["operands"]:
        name = operand["name"]
        sizes = [size if isinstance(size, int) else symbols.get(size["sym"]) for size in operand["shape"]]
        names.update({f"{name}_{place}": size for place, size in enumerate(sizes) if size is not None})
        known = [size for size in sizes if size is not None]
        if len(known) == len(sizes):
            names[f"{name}_elements"] = prod(known)
        if operand["dtype"] in _BYTES:
            names[f"itemsize_{name}"] = _BYTES[operand["dtype"]]
    return names


def _once(callsite: Mapping[str, Any], names: Mapping[str, int]) -> int | None:
    total = 0
    for operand in callsite["operands"]:
        elements, itemsize = (
            names.get(name) for name in (f"{operand['name']}_elements", f"itemsize_{operand['name']}")
        )
        if elements is None or itemsize is None:
            return None
        total += elements * itemsize * (2 if operand["access"] == "inout" else 1)
    return total
