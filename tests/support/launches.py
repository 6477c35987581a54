"""Kernels as a profiler would record them, made from a callsite and sizes of its symbols."""

from __future__ import annotations

from typing import Any

from akf.frameworks.arms import kernels

Row = dict[str, Any]


def shape(operand: Row, sizes: dict[str, int]) -> list[int]:
    return [size if isinstance(size, int) else sizes[size["sym"]] for size in operand["shape"]]


def symbols(callsite: Row) -> dict[str, Row]:
    dimensions = [size for operand in callsite["operands"] for size in operand["shape"] if not isinstance(size, int)]
    return {dimension["sym"]: dimension for dimension in dimensions}


def kernels_of(callsite: Row, arm: str) -> list[Row]:
    """The kernels that may answer a callsite; those that see its operands otherwise only if it has their symbols."""
    found = kernels(arm, callsite["op"], callsite["provider"])
    return [kernel for kernel in found if "seen" not in kernel or "T" in symbols(callsite)]


def as_seen(callsite: Row, kernel: Row) -> dict[str, Row]:
    """The callsite's operands by name, in the shapes in which this kernel sees them."""
    operands = {operand["name"]: operand for operand in callsite["operands"]}
    if "seen" in kernel:
        assert kernel["seen"] == {name: ["T", "num_key_value_heads", "query_2"] for name in ("key", "value")}
        rows, heads = symbols(callsite)["T"], callsite["attributes"][1]["value"]
        other = [rows, heads, operands["query"]["shape"][2]]
        operands |= {name: {**operands[name], "shape": other} for name in kernel["seen"]}
    return operands


def launch(callsite: Row, kernel: Row, sizes: dict[str, int]) -> tuple[str, list[Row], list[Row]]:
    """The type, inputs and outputs of one launch: named operands as they are, others plausible or absent."""
    operands = as_seen(callsite, kernel)

    def seen(name: str) -> Row:
        if name in operands:
            return {"shape": shape(operands[name], sizes), "dtype": operands[name]["dtype"], "layout": "ND"}
        return {"shape": [2048, 2048] if name == "*" else [], "dtype": None, "layout": "ND"}

    inputs, outputs = ([seen(name) for name in kernel[side] if name != "..."] for side in ("inputs", "outputs"))
    return (*kernel.get("names", ()), *kernel.get("unverified", ()))[0], inputs, outputs
