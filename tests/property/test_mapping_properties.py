"""Every callsite's launch maps back to it, and nothing maps to a callsite that does not explain it."""

from __future__ import annotations

import json
from math import prod
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.launches import as_seen, kernels_of, launch, shape, symbols

from akf.contracts.shipped import shipped
from akf.frameworks.mapping import Mapper
from akf.frameworks.shapes import solve

WORKLOAD: dict[str, Any] = json.loads(
    (shipped("suites") / "qwen3-8b-a3-bf16" / "workload.json").read_text(encoding="utf-8")
)
MAPPERS = {arm: Mapper(WORKLOAD, arm) for arm in ("xllm", "vllm_ascend", "sglang_ascend")}
WAYS = [(callsite, kernel) for callsite in WORKLOAD["callsites"] for kernel in kernels_of(callsite, callsite["arm"])]
BY_ID = {callsite["id"]: callsite for callsite in WORKLOAD["callsites"]}


@st.composite
def launches(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], dict[str, int]]:
    callsite, kernel = draw(st.sampled_from(WAYS))
    sizes = {
        name: draw(st.integers(dimension["min"], dimension["max"])) for name, dimension in symbols(callsite).items()
    }
    return callsite, kernel, sizes


def explains(callsite: dict[str, Any], kernel: dict[str, Any], found: dict[str, int], rows: list[Any]) -> bool:
    """Whether these sizes, put into the operands that the kernel's table names, hold as many elements as were seen."""
    operands = as_seen(callsite, kernel)
    for side, seen in zip(("inputs", "outputs"), rows, strict=True):
        for place, name in enumerate(kernel[side]):
            if name not in operands:
                continue
            names = {size["sym"] for size in operands[name]["shape"] if not isinstance(size, int)}
            if not names <= found.keys() or prod(shape(operands[name], found)) != prod(seen[place]["shape"]):
                return False
    return True


@given(launches())
def test_a_launch_maps_back_to_its_callsite(drawn: tuple[dict[str, Any], dict[str, Any], dict[str, int]]) -> None:
    callsite, kernel, sizes = drawn
    name, inputs, outputs = launch(callsite, kernel, sizes)
    found, values = MAPPERS[callsite["arm"]].of(name, name, inputs, outputs)
    if callsite["id"].endswith("prefill-attention") and "" not in kernel["inputs"] and sizes["T"] == sizes["B"]:
        assert found in {callsite["id"], callsite["id"].replace("prefill", "decode")}, "one token a request"
        return
    assert found == callsite["id"]
    assert values == {symbol: size for symbol, size in sizes.items() if symbol in values}


@given(launches(), st.data())
def test_a_changed_launch_maps_only_to_what_explains_it(
    drawn: tuple[dict[str, Any], dict[str, Any], dict[str, int]], data: st.DataObject
) -> None:
    callsite, kernel, sizes = drawn
    name, inputs, outputs = launch(callsite, kernel, sizes)
    operand = data.draw(st.sampled_from([row for row in (*inputs, *outputs) if row["shape"]]))
    place = data.draw(st.integers(0, len(operand["shape"]) - 1))
    operand["shape"][place] = data.draw(st.integers(1, 40_000))
    found, values = MAPPERS[callsite["arm"]].of(name, name, inputs, outputs)
    if found is not None:
        ways = [way for way in kernels_of(BY_ID[found], callsite["arm"]) if name in str(way)]
        assert any(explains(BY_ID[found], way, values, [inputs, outputs]) for way in ways)


FIXED = st.lists(st.integers(1, 64), min_size=1, max_size=4)


@given(st.integers(1, 5000), FIXED, st.data())
def test_grouping_never_changes_what_a_symbol_is(rows: int, fixed: list[int], data: st.DataObject) -> None:
    expected: list[Any] = [{"sym": "T"}, *fixed]
    cut = data.draw(st.integers(1, len(fixed)))
    product = 1
    for size in fixed[cut - 1 :]:
        product *= size
    assert solve(expected, [rows, *fixed]) == {"T": rows}
    assert solve(expected, [rows, *fixed[: cut - 1], product]) == {"T": rows}
    assert solve(expected, [1, rows, *fixed]) == {"T": rows}


@given(FIXED, st.lists(st.integers(1, 5000), min_size=1, max_size=5))
def test_a_solution_holds_as_many_elements_as_were_seen(fixed: list[int], seen: list[int]) -> None:
    found = solve([{"sym": "T"}, *fixed], seen)
    if found is not None:
        elements, wanted = 1, found["T"]
        for size in seen:
            elements *= size
        for size in fixed:
            wanted *= size
        assert elements == wanted
